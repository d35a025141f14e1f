"""The plots with their titles: tokens/s, loss, queue, memory. What a title says is always of now. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from console.model import OUT_OF_REACH, Snapshot
from console.ui.present import curves, words
from console.ui.present.drawing import LABEL_CELLS, Drawing, PlotMemory, draw_axes
from console.ui.present.facts import bound_words
from console.ui.present.frame import age_span, title
from console.ui.present.gpucharts import role_of
from console.ui.present.look import STANDS, Look
from console.ui.present.plotting import SERIES, Against, AllSeries, Axis, Metric, Plotting, Zoom
from console.ui.present.spans import Line, Role, Span, View, dim, faint, wrap

# The log is looked at once a second; a step line may take longer than that, so its age is the log's.
PERIOD_S = 2.0

_Facts = list[tuple[Span, ...]]


def chart_panel(
    metric: str,
    snapshot: Snapshot,
    series: AllSeries,
    width: int,
    rows: int,
    look: Look,
    *,
    zoom: Zoom = Zoom.RUN,
    axis: Axis = Axis.TIME,
    against: Against | None = None,
    narrow: bool = False,
    clock_row: bool = True,
    memory: PlotMemory | None = None,
) -> View:
    """Return title, plot and axes in exactly `rows` rows.

    Without the row of clock times its age, too, is left to its neighbour.
    """
    margin = (0, 0) if narrow else (1, 1)
    canvas = width - LABEL_CELLS - 1 - sum(margin)
    canvas_rows = max(0, rows - 2 - clock_row)
    data = series.get(SERIES.get(metric, metric))
    untimed = data is not None and data.untimed and zoom is Zoom.RUN
    by_step = metric != Metric.MEMORY and (axis is Axis.STEP or untimed)
    plotting = Plotting(metric, snapshot, series, zoom, look, by_step, against)
    facts = _TITLES.get(metric, _named_title)(plotting)
    if by_step and untimed and axis is Axis.TIME:
        facts.insert(1, (Span("by step: no usable times in the log", Role.WARN),))
    elif by_step:
        facts.append((faint("by step"),))
    if snapshot.verdict in OUT_OF_REACH:
        facts = [tuple(span._replace(role=Role.DIM) for span in group) for group in facts]
    right = _right(metric, snapshot, series, zoom, clock_row)
    head = title(str(metric), facts, right, width, look, margin=margin)
    if canvas_rows < 2 or canvas < 12:
        return (head,)

    def draw() -> tuple[Drawing | None, list[Line]]:
        drawing = curves.draw(plotting, canvas, canvas_rows)
        return drawing, draw_axes(drawing, canvas, canvas_rows, look, margin[0], clock_row) if drawing else []

    run = snapshot.run and (snapshot.run.id, snapshot.run.alive)
    progress = snapshot.progress
    key = (
        metric,
        zoom,
        by_step,
        width,
        rows,
        narrow,
        snapshot.verdict,
        run,
        progress.rate.baseline,
        progress.bad_since_step,
    )
    body = (memory or PlotMemory()).recall(key, snapshot.at, draw)
    if body is None:
        texts = wrap(_nothing_yet(metric, snapshot), width - 2)
        return (head, *((Span(" " * (margin[0] + 1)), faint(text)) for text in texts[: max(1, rows - 1)]))
    return (head, *body)


def _nothing_yet(metric: str, snapshot: Snapshot) -> str:
    if metric == Metric.MEMORY:
        return "no sample yet"
    if snapshot.run is not None and snapshot.run.alive is False and snapshot.progress.step is not None:
        return f"no curve of {words.one_line(metric)} is kept of this run"
    if metric == Metric.TOK_S and snapshot.progress.step is not None:
        return "the step lines of this run name no rate; metrics.tokens_per_step in the config tells what a step holds"
    if metric == Metric.LOSS and snapshot.progress.step is not None and snapshot.progress.bad_since_step is None:
        return "the step lines of this run name no loss"
    if metric == Metric.QUEUE and snapshot.progress.step is not None:
        return "the step line of this run names no queue"
    if metric not in SERIES and snapshot.progress.step is not None:
        return f"the step line of this run names no {words.one_line(metric)}; m lists what it names"
    return "the curve begins with the first step line"


# --- titles ----------------------------------------------------------------------------------------------------------


def _right(metric: str, snapshot: Snapshot, series: AllSeries, zoom: Zoom, clock_row: bool) -> Span | None:
    if snapshot.verdict in OUT_OF_REACH:
        return age_span(snapshot.ages.link, PERIOD_S, stale=True)
    if metric == Metric.MEMORY:
        return faint(zoom.value)
    data = series.get(SERIES.get(metric, metric))
    last = data.last if data is not None else None
    if last is None or not clock_row:
        return None
    if snapshot.verdict in STANDS:
        return Span(f"last point {words.whole_duration(snapshot.at - last.at)} ago", Role.WARN, True)
    if snapshot.run is not None and snapshot.run.alive is False:
        return faint("ended")
    return age_span(snapshot.ages.log, PERIOD_S)


def _rate_title(plotting: Plotting) -> _Facts:
    snapshot, series, zoom, look = plotting.snapshot, plotting.series, plotting.zoom, plotting.look
    rate = snapshot.progress.rate
    lost, stands = snapshot.verdict in OUT_OF_REACH, snapshot.verdict in STANDS
    facts: _Facts = []
    if not len(series.get("tok_s", ())):
        facts.append((dim("no step yet" if snapshot.progress.step is None else "none"),))
    elif rate.now is not None or lost or stands:
        now = words.UNKNOWN if lost else "0" if stands else words.rate(rate.now)
        facts.append((faint("now "), Span(now)))
    if rate.steady is not None:
        spread = words.spread_of(rate.mad, rate.steady)
        facts.append((faint("steady "), Span(f"{words.rate(rate.steady)} {spread}".rstrip())))
    if rate.baseline is not None:
        text = f"{words.rate(rate.baseline)} {rate.baseline_name}".rstrip()
        facts.append((faint(f"{look.glyphs.usual * 2} "), dim(text)))
    elif rate.unlike:
        facts += [(faint("not compared"),), (faint(words.one_line(rate.unlike)),)]
    if zoom is Zoom.SHORT:
        facts.append((faint("10 min"),))
    return facts


def _loss_title(plotting: Plotting) -> _Facts:
    progress, look = plotting.snapshot.progress, plotting.look
    facts: _Facts = []
    if progress.bad_since_step is not None:
        facts.append((Span(f"{look.glyphs.fail} NaN since {words.count(progress.bad_since_step)}", Role.ERROR, True),))
    if progress.loss is not None:
        facts.append((Span(words.loss(progress.loss)),))
        facts += _beside(progress.loss, progress.step, plotting.against)
    elif not facts:
        facts.append((dim("no step yet" if progress.step is None else words.UNKNOWN),))
    return facts


def _beside(loss: float, step: int | None, against: Against | None) -> _Facts:
    """How far the loss is from that of the run compared with, at the same step."""
    theirs = against.loss_at(step) if against is not None and step is not None else None
    if against is None or theirs is None:
        return []
    return [(dim(f"{words.loss_difference(loss - theirs)} vs {against.name}"),)]


def _queue_title(plotting: Plotting) -> _Facts:
    snapshot = plotting.snapshot
    queue = snapshot.progress.queue
    if queue is None:
        if len(plotting.series.get(SERIES[Metric.QUEUE], ())):
            return [(faint("min_ready"),)]  # of a run of before its curve is kept
        return [(dim("no step yet" if snapshot.progress.step is None else "none"),)]
    depth = f" of {words.number(queue.max_depth)}" if queue.max_depth is not None else ""
    facts: _Facts = [(faint("min_ready "), Span(words.number(queue.min_ready)), dim(depth))]
    if snapshot.verdict in OUT_OF_REACH:
        return facts
    if queue.bound == "balanced":
        return [*facts, (Span("· balanced", Role.OK),)]
    share = queue.empty_pct if queue.bound == "targets" else queue.full_pct
    word = "empty" if queue.bound == "targets" else "full"
    part = f"{word} {share:.0f} %: " if share is not None else ""
    return [*facts, (Span(f"· {part}{bound_words(queue.bound)}", Role.WARN),)]


def _named_title(plotting: Plotting) -> _Facts:
    data = plotting.series.get(plotting.metric)
    last = data.last if data is not None else None
    return [(dim("no value yet"),)] if last is None else [(faint("now "), Span(f"{last.value:.6g}"))]


def _memory_title(plotting: Plotting) -> _Facts:
    snapshot = plotting.snapshot
    roles = dict.fromkeys(gpu.role for gpu in snapshot.gpus.gpus if gpu.role)
    named = tuple(Span(f"{role} ", role_of(role)) for role in roles)
    return [(faint("GiB per GPU"),), named] if named else [(faint("GiB per GPU"),)]


_TITLES: Mapping[str, Callable[[Plotting], _Facts]] = {
    Metric.TOK_S: _rate_title,
    Metric.LOSS: _loss_title,
    Metric.QUEUE: _queue_title,
    Metric.MEMORY: _memory_title,
}
