"""The plots with their titles: tokens/s, loss, queue, memory. What a title says is always of now. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

from console.model import Snapshot, Verdict
from console.state.series import Point, Series, loss_limits, rate_limits
from console.ui.plot import Curve, Window, decimate
from console.ui.present import words
from console.ui.present.drawing import LABEL_CELLS, Drawing, PlotMemory, draw_axes
from console.ui.present.facts import bound_words
from console.ui.present.frame import age_span, title
from console.ui.present.gpucharts import GpuMetric, gpu_drawing, role_of, span_of_time
from console.ui.present.look import STANDS, Look
from console.ui.present.spans import Line, Role, Span, View, clip, dim, faint

# The log is looked at once a second; a step line may take longer than that, so its age is the log's.
PERIOD_S = 2.0
SHORT_WINDOW_S = 600.0

AllSeries = Mapping[str, Series]
_Facts = list[tuple[Span, ...]]


class Metric(StrEnum):
    TOK_S = "tok/s"
    LOSS = "loss"
    QUEUE = "queue"
    MEMORY = "memory"


class Zoom(StrEnum):
    RUN = "whole run"
    SHORT = "10 min"


def chart_panel(
    metric: Metric,
    snapshot: Snapshot,
    series: AllSeries,
    width: int,
    rows: int,
    look: Look,
    *,
    zoom: Zoom = Zoom.RUN,
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
    facts = _TITLES[metric](snapshot, series, zoom, look)
    if snapshot.verdict is Verdict.LINK_LOST:
        facts = [tuple(span._replace(role=Role.DIM) for span in group) for group in facts]
    right = _right(metric, snapshot, series, zoom, clock_row)
    head = title(metric.value, facts, right, width, look, margin=margin)
    if canvas_rows < 2 or canvas < 12:
        return (head,)

    def draw() -> tuple[Drawing | None, list[Line]]:
        drawing = _DRAWINGS[metric](snapshot, series, zoom, canvas, canvas_rows)
        return drawing, draw_axes(drawing, canvas, canvas_rows, look, margin[0], clock_row) if drawing else []

    run = snapshot.run and (snapshot.run.id, snapshot.run.alive)
    progress = snapshot.progress
    key = (metric, zoom, width, rows, narrow, snapshot.verdict, run, progress.rate.baseline, progress.bad_since_step)
    body = (memory or PlotMemory()).recall(key, snapshot.at, draw)
    if body is None:
        return (head, (Span(" " * (margin[0] + 1)), faint(clip(_nothing_yet(metric, snapshot), width - 2))))
    return (head, *body)


def _nothing_yet(metric: Metric, snapshot: Snapshot) -> str:
    if metric is Metric.MEMORY:
        return "no sample yet"
    if metric is Metric.QUEUE and snapshot.progress.step is not None:
        return "the step line of this run names no queue"
    return "the curve begins with the first step line"


# --- titles ----------------------------------------------------------------------------------------------------------


def _right(metric: Metric, snapshot: Snapshot, series: AllSeries, zoom: Zoom, clock_row: bool) -> Span | None:
    if snapshot.verdict is Verdict.LINK_LOST:
        return age_span(snapshot.ages.link, PERIOD_S, stale=True)
    if metric is Metric.MEMORY:
        return faint(zoom.value)
    data = series.get(_NAMES[metric])
    last = data.last if data is not None else None
    if last is None or not clock_row:
        return None
    if snapshot.verdict in STANDS:
        return Span(f"last point {words.whole_duration(snapshot.at - last.at)} ago", Role.WARN, True)
    if snapshot.run is not None and snapshot.run.alive is False:
        return faint("ended")
    return age_span(snapshot.ages.log, PERIOD_S)


def _rate_title(snapshot: Snapshot, series: AllSeries, zoom: Zoom, look: Look) -> _Facts:
    rate = snapshot.progress.rate
    lost, stands = snapshot.verdict is Verdict.LINK_LOST, snapshot.verdict in STANDS
    facts: _Facts = []
    if not len(series.get("tok_s", ())):
        facts.append((dim("no step yet"),))
    else:
        now = words.UNKNOWN if lost else "0" if stands else words.rate(rate.now)
        facts.append((faint("now "), Span(now)))
    if rate.steady is not None:
        facts.append((faint("steady "), Span(f"{words.rate(rate.steady)} {words.spread_of(rate.mad)}".rstrip())))
    if rate.baseline is not None:
        text = f"{words.rate(rate.baseline)} {rate.baseline_name}".rstrip()
        facts.append((faint(f"{look.glyphs.usual * 2} "), dim(text)))
    if zoom is Zoom.SHORT:
        facts.append((faint("10 min"),))
    return facts


def _loss_title(snapshot: Snapshot, series: AllSeries, zoom: Zoom, look: Look) -> _Facts:
    progress = snapshot.progress
    facts: _Facts = []
    if progress.bad_since_step is not None:
        facts.append((Span(f"{look.glyphs.fail} NaN since {words.count(progress.bad_since_step)}", Role.ERROR, True),))
    if progress.loss is not None:
        facts.append((Span(words.loss(progress.loss)),))
    elif not facts:
        facts.append((dim("no step yet" if progress.step is None else words.UNKNOWN),))
    return facts


def _queue_title(snapshot: Snapshot, series: AllSeries, zoom: Zoom, look: Look) -> _Facts:
    queue = snapshot.progress.queue
    if queue is None:
        return [(dim("no step yet" if snapshot.progress.step is None else "none"),)]
    depth = f" of {words.number(queue.max_depth)}" if queue.max_depth is not None else ""
    facts: _Facts = [(faint("min_ready "), Span(words.number(queue.min_ready)), dim(depth))]
    if snapshot.verdict is Verdict.LINK_LOST:
        return facts
    if queue.bound == "balanced":
        return [*facts, (Span("· balanced", Role.OK),)]
    share = queue.empty_pct if queue.bound == "targets" else queue.full_pct
    word = "empty" if queue.bound == "targets" else "full"
    part = f"{word} {share:.0f} %: " if share is not None else ""
    return [*facts, (Span(f"· {part}{bound_words(queue.bound)}", Role.WARN),)]


def _memory_title(snapshot: Snapshot, series: AllSeries, zoom: Zoom, look: Look) -> _Facts:
    roles = dict.fromkeys(gpu.role for gpu in snapshot.gpus.gpus if gpu.role)
    named = tuple(Span(f"{role} ", role_of(role)) for role in roles)
    return [(faint("GiB per GPU"),), named] if named else [(faint("GiB per GPU"),)]


# --- drawings --------------------------------------------------------------------------------------------------------


def time_window(points: Sequence[Point], snapshot: Snapshot, zoom: Zoom) -> tuple[float, float] | None:
    """Return the span of time to show. Its end moves in steps, so that a calm plot isn't drawn anew each second."""
    if not points:
        return None
    now, run = snapshot.at, snapshot.run
    if run is not None and run.alive is False and run.exit is not None and run.exit.at is not None:
        now = max(points[-1].at, min(now, run.exit.at))
    if zoom is Zoom.SHORT:
        end = math.ceil(now / 5.0) * 5.0
        return end - SHORT_WINDOW_S, end
    start = points[0].at
    length = max(now - start, 60.0)
    quantum = 2.0 ** math.floor(math.log2(length / 64.0)) if length >= 64 else 1.0
    return start, start + math.ceil(length / quantum) * quantum


def _within(points: Sequence[Point], times: tuple[float, float]) -> Sequence[Point]:
    """The points of a span of time, and one before it."""
    return points[max(0, bisect_left(points, times[0], key=lambda point: point.at) - 1) :]


def _rate_drawing(snapshot: Snapshot, series: AllSeries, zoom: Zoom, width: int, rows: int) -> Drawing | None:
    rate = snapshot.progress.rate
    data = series.get("tok_s")
    times = time_window(data.points, snapshot, zoom) if data is not None else None
    if data is None or times is None:
        return None
    limits = rate_limits([p.value for p in _within(data.points, times)], rate.baseline, rate.steady)
    if limits is None:
        return None
    window = Window(times[0], times[1], _to_step(limits.low, math.floor), _to_step(limits.high, math.ceil))
    return Drawing(
        window=window, baseline=rate.baseline, label=words.round_rate,
        curves=_curves(window, [(_role(snapshot, Role.OK), [data])], width, rows),
    )  # fmt: skip


def _to_step(value: float, direction: Callable[[float], int]) -> float:
    """To two digits: limits that creep would redraw the plot for nothing."""
    if not math.isfinite(value) or value <= 0:
        return value
    step = 10.0 ** (math.floor(math.log10(value)) - 1) / 2
    return direction(value / step) * step


def _loss_drawing(snapshot: Snapshot, series: AllSeries, zoom: Zoom, width: int, rows: int) -> Drawing | None:
    data = series.get("loss")
    times = time_window(data.points, snapshot, zoom) if data is not None else None
    if data is None or times is None:
        return None
    limits = loss_limits([p.value for p in _within(data.points, times)])
    if limits is None:
        return None
    # Room above, or the noise of a flat curve would fill the panel and hide where it came from.
    span = max(limits.high - limits.low, 0.15 * abs(limits.high))
    window = Window(times[0], times[1], limits.low - 0.1 * span, limits.high + 0.5 * span)
    return Drawing(
        window=window,
        label="{:.3g}".format,
        bad_from=data.points[-1].at if snapshot.progress.bad_since_step is not None else None,
        curves=_curves(window, [(_role(snapshot, Role.BUSY), [data])], width, rows),
    )


def _queue_drawing(snapshot: Snapshot, series: AllSeries, zoom: Zoom, width: int, rows: int) -> Drawing | None:
    data = series.get("queue")
    times = time_window(data.points, snapshot, zoom) if data is not None else None
    if data is None or times is None:
        return None
    queue = snapshot.progress.queue
    depth = queue.max_depth if queue is not None and queue.max_depth is not None else 0.0
    top = max([p.value for p in data.points] + [depth, 1.0])
    window = Window(times[0], times[1], -0.5, top * 1.05)
    return Drawing(
        window=window,
        label=words.number,
        curves=_curves(window, [(_role(snapshot, Role.DRAFTER), [data])], width, rows),
    )


def _memory_drawing(snapshot: Snapshot, series: AllSeries, zoom: Zoom, width: int, rows: int) -> Drawing | None:
    gpus = snapshot.gpus.gpus
    known = [series[name] for gpu in gpus if (name := f"gpu_memory:{gpu.index}") in series]
    times = span_of_time(known, snapshot, whole=zoom is Zoom.RUN)
    return gpu_drawing(GpuMetric.MEMORY, snapshot, gpus, series, times, (width, rows)) if times is not None else None


def _role(snapshot: Snapshot, role: Role) -> Role:
    return Role.DIM if snapshot.verdict is Verdict.LINK_LOST else role


def _curves(
    window: Window, groups: Sequence[tuple[Role, Iterable[Series]]], width: int, rows: int, *, scale: float = 1.0
) -> tuple[tuple[Role, tuple[Curve, ...]], ...]:
    times = (window.left, window.right)
    return tuple(
        (role, tuple(decimate(_scaled(_within(data.points, times), scale), window, width, rows) for data in many))
        for role, many in groups
    )


def _scaled(points: Sequence[Point], scale: float) -> list[tuple[float, float, bool]]:
    return [(point.at, point.value * scale, point.opens) for point in points]


_NAMES = {Metric.TOK_S: "tok_s", Metric.LOSS: "loss", Metric.QUEUE: "queue"}
_TITLES = {
    Metric.TOK_S: _rate_title,
    Metric.LOSS: _loss_title,
    Metric.QUEUE: _queue_title,
    Metric.MEMORY: _memory_title,
}
_DRAWINGS = {
    Metric.TOK_S: _rate_drawing,
    Metric.LOSS: _loss_drawing,
    Metric.QUEUE: _queue_drawing,
    Metric.MEMORY: _memory_drawing,
}
