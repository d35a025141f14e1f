"""The plots with their titles: tokens/s, loss, queue, memory. Pure but for the canvas that `plot` draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from console.model import Snapshot, Verdict
from console.state.series import Series, loss_limits, rate_limits
from console.ui.plot import Curve, Window, decimate, rows_of_dots
from console.ui.present import words
from console.ui.present.frame import age_span, title
from console.ui.present.gpus import role_of
from console.ui.present.look import Glyphs, Look
from console.ui.present.spans import Line, Role, Span, View, cells, clip, dim, faint
from console.ui.present.verdict import bound_words

# The log is looked at once a second; a step line may take longer than that, so its age is the log's.
PERIOD_S = 2.0
SHORT_WINDOW_S = 600.0
_LABEL = 5  # cells for the labels of the y axis
_GIB = 1024.0**3


class Metric(StrEnum):
    TOK_S = "tok/s"
    LOSS = "loss"
    QUEUE = "queue"
    MEMORY = "memory"


class Zoom(StrEnum):
    RUN = "whole run"
    SHORT = "10 min"


class _Chart(Struct, frozen=True, kw_only=True):
    name: str
    facts: tuple[tuple[Span, ...], ...]
    right: Span | None
    curves: tuple[tuple[Role, tuple[Curve, ...]], ...] = ()
    window: Window | None = None
    baseline: float | None = None
    label: Callable[[float], str] = words.round_rate
    clock: bool = True


def chart_panel(
    metric: Metric,
    snapshot: Snapshot,
    series: Mapping[str, Series],
    width: int,
    rows: int,
    look: Look,
    *,
    zoom: Zoom = Zoom.RUN,
    narrow: bool = False,
    clock_row: bool = True,
) -> View:
    """Return title, plot and axes in exactly `rows` rows.

    Without the row of clock times its age, too, is left to its neighbour.
    """
    margin = (0, 0) if narrow else (1, 1)
    canvas_width = width - _LABEL - 1 - sum(margin)
    canvas_rows = max(0, rows - 2 - clock_row)
    chart = _BUILDERS[metric](snapshot, series, zoom, canvas_width, canvas_rows)
    lost = snapshot.verdict is Verdict.LINK_LOST
    right = chart.right if clock_row or lost else None
    head = title(chart.name, _with_bad(chart, snapshot, metric, look), right, width, look, margin=margin)
    if canvas_rows < 2 or canvas_width < 12:
        return (head,)
    if chart.window is None:
        return (head, (Span(" " * (margin[0] + 1)), faint(clip(_nothing_yet(metric, snapshot), width - 2))))
    return (head, *_axes(chart, chart.window, canvas_width, canvas_rows, look, margin[0], clock_row))


def _nothing_yet(metric: Metric, snapshot: Snapshot) -> str:
    if metric is Metric.MEMORY:
        return "no sample yet"
    if metric is Metric.QUEUE and snapshot.progress.step is not None:
        return "the step line of this run names no queue"
    return "the curve begins with the first step line"


def _with_bad(chart: _Chart, snapshot: Snapshot, metric: Metric, look: Look) -> Sequence[Sequence[Span]]:
    bad = snapshot.progress.bad_since_step
    if metric is not Metric.LOSS or bad is None:
        return chart.facts
    mark = look.glyphs.fail
    return ((Span(f"{mark} NaN since {words.count(bad)}", Role.ERROR, True),), *chart.facts)


# --- the four of them ------------------------------------------------------------------------------------------------


def _right(snapshot: Snapshot, series: Series | None) -> Span | None:
    lost = snapshot.verdict is Verdict.LINK_LOST
    last = series.last if series is not None else None
    if not lost and snapshot.verdict is Verdict.STALLED and last is not None:
        return Span(f"last point {words.whole_duration(snapshot.at - last.at)} ago", Role.WARN, True)
    if last is None and not lost:
        return None
    if snapshot.run is not None and snapshot.run.alive is False and not lost:
        return faint("ended")
    return age_span(snapshot.ages.link if lost else snapshot.ages.log, PERIOD_S, stale=lost)


def _role(snapshot: Snapshot, role: Role) -> Role:
    return Role.DIM if snapshot.verdict is Verdict.LINK_LOST else role


def time_window(
    points: Sequence[tuple[float, ...]] | Sequence[object], now: float, zoom: Zoom
) -> tuple[float, float] | None:
    """Return the span of time to show. Its end moves in steps, so that a calm plot isn't drawn anew each second."""
    if zoom is Zoom.SHORT:
        end = math.ceil(now / 5.0) * 5.0
        return end - SHORT_WINDOW_S, end
    if not points:
        return None
    start = float(points[0][0])  # type: ignore[index]
    length = max(now - start, 60.0)
    quantum = 2.0 ** math.floor(math.log2(length / 64.0)) if length >= 64 else 1.0
    return start, start + math.ceil(length / quantum) * quantum


def _rate(snapshot: Snapshot, series: Mapping[str, Series], zoom: Zoom, width: int, rows: int) -> _Chart:
    rate = snapshot.progress.rate
    data = series.get("tok_s")
    points = data.points if data is not None else ()
    facts: list[tuple[Span, ...]] = []
    lost, stalled = snapshot.verdict is Verdict.LINK_LOST, snapshot.verdict is Verdict.STALLED
    if not points:
        facts.append((dim("no step yet"),))
    else:
        now = words.UNKNOWN if lost else "0" if stalled else words.rate(rate.now)
        facts.append((faint("now "), Span(now)))
    if rate.steady is not None:
        facts.append((faint("steady "), Span(f"{words.rate(rate.steady)} {words.spread_of(rate.mad)}".rstrip())))
    if rate.baseline is not None:
        facts.append((faint("┈┈ "), dim(f"{words.rate(rate.baseline)} {rate.baseline_name}".rstrip())))
    if zoom is Zoom.SHORT:
        facts.append((faint("10 min"),))
    times = time_window(points, snapshot.at, zoom)
    shown = [p for p in points if times and times[0] <= p.at <= times[1]]
    limits = rate_limits([p.value for p in shown], rate.baseline, rate.steady)
    window = None
    if times is not None and limits is not None:
        window = Window(times[0], times[1], _round_down(limits.low), _round_up(limits.high))
    return _Chart(
        name="tok/s", facts=tuple(facts), right=_right(snapshot, data), window=window, baseline=rate.baseline,
        curves=_curves(window, [(_role(snapshot, Role.OK), [data])], width, rows),
    )  # fmt: skip


def _loss(snapshot: Snapshot, series: Mapping[str, Series], zoom: Zoom, width: int, rows: int) -> _Chart:
    data = series.get("loss")
    points = data.points if data is not None else ()
    times = time_window(points, snapshot.at, zoom)
    shown = [p.value for p in points if times and times[0] <= p.at <= times[1]]
    limits = loss_limits(shown)
    value = snapshot.progress.loss
    facts: tuple[tuple[Span, ...], ...] = ((Span(words.loss(value)),),) if value is not None else ()
    if not points:
        facts = ((dim("no step yet"),),)
    window = None
    if times is not None and limits is not None:
        # Room above, or the noise of a flat curve would fill the panel and hide where it came from.
        span = max(limits.high - limits.low, 0.15 * abs(limits.high))
        window = Window(times[0], times[1], limits.low - 0.1 * span, limits.high + 0.5 * span)
    return _Chart(
        name="loss", facts=facts, right=_right(snapshot, data), window=window, label=_loss_label,
        curves=_curves(window, [(_role(snapshot, Role.BUSY), [data])], width, rows),
    )  # fmt: skip


def _loss_label(value: float) -> str:
    return f"{value:.3g}"


def _queue(snapshot: Snapshot, series: Mapping[str, Series], zoom: Zoom, width: int, rows: int) -> _Chart:
    data = series.get("queue")
    queue = snapshot.progress.queue
    points = data.points if data is not None else ()
    facts: list[tuple[Span, ...]] = []
    if queue is not None:
        depth = f" of {words.number(queue.max_depth)}" if queue.max_depth is not None else ""
        facts.append((faint("min_ready "), Span(words.number(queue.min_ready)), dim(depth)))
        facts.append((_queue_verdict(snapshot),))
    elif not points:
        facts.append((dim("none" if snapshot.progress.step is not None else "no step yet"),))
    times = time_window(points, snapshot.at, zoom)
    top = max([p.value for p in points] + [queue.max_depth if queue and queue.max_depth else 0.0], default=0.0)
    window = Window(times[0], times[1], -0.5, max(1.0, top) * 1.05) if times is not None and points else None
    return _Chart(
        name="queue", facts=tuple(facts), right=_right(snapshot, data), window=window, label=words.number,
        curves=_curves(window, [(_role(snapshot, Role.DRAFTER), [data])], width, rows),
    )  # fmt: skip


def _queue_verdict(snapshot: Snapshot) -> Span:
    queue = snapshot.progress.queue
    if queue is None or snapshot.verdict is Verdict.LINK_LOST:
        return dim("")
    if queue.bound == "balanced":
        return Span("· balanced", Role.OK)
    share = queue.empty_pct if queue.bound == "targets" else queue.full_pct
    word = "empty" if queue.bound == "targets" else "full"
    part = f"{word} {share:.0f} %: " if share is not None else ""
    return Span(f"· {part}{bound_words(queue.bound)}", Role.WARN)


def _memory(snapshot: Snapshot, series: Mapping[str, Series], zoom: Zoom, width: int, rows: int) -> _Chart:
    gpus = snapshot.gpus.gpus
    by_role: dict[str, list[Series]] = {}
    for gpu in gpus:
        data = series.get(f"gpu_memory:{gpu.index}")
        if data is not None and len(data):
            by_role.setdefault(gpu.role or "", []).append(data)
    every = [data for group in by_role.values() for data in group]
    first = min((data.points[0].at for data in every), default=None)
    times = time_window([(first,)] if first is not None else [], snapshot.at, zoom)
    total = max((gpu.total_bytes for gpu in gpus if gpu.total_bytes), default=None)
    top = total / _GIB if total else max((p.value / _GIB for data in every for p in data.points), default=1.0)
    window = Window(times[0], times[1], -0.02 * top, 1.06 * top) if times is not None and every else None
    groups = [(_role(snapshot, role_of(role)), list(found)) for role, found in by_role.items()]
    lost = snapshot.verdict is Verdict.LINK_LOST
    facts: list[tuple[Span, ...]] = [(faint("GiB per GPU"),)]
    if any(by_role):
        facts.append(tuple(Span(f"{role} ", role_of(role)) for role in by_role))
    right = age_span(snapshot.ages.link, PERIOD_S, stale=True) if lost else faint(zoom.value)
    return _Chart(
        name="memory", facts=tuple(facts), right=right, window=window, label=words.number,
        baseline=total / _GIB if total else None, curves=_curves(window, groups, width, rows, scale=1 / _GIB),
    )  # fmt: skip


def _curves(
    window: Window | None,
    groups: Sequence[tuple[Role, Iterable[Series | None]]],
    width: int,
    rows: int,
    *,
    scale: float = 1.0,
) -> tuple[tuple[Role, tuple[Curve, ...]], ...]:
    if window is None:
        return ()
    return tuple(
        (role, tuple(decimate(_as_points(data, scale), window, width, rows) for data in many if data is not None))
        for role, many in groups
    )


def _as_points(series: Series, scale: float) -> list[tuple[float, float, bool]]:
    return [(point.at, point.value * scale, point.opens) for point in series.points]


_BUILDERS = {Metric.TOK_S: _rate, Metric.LOSS: _loss, Metric.QUEUE: _queue, Metric.MEMORY: _memory}


def _round_down(value: float) -> float:
    """To two digits: limits that creep would redraw the plot for nothing."""
    return _to_step(value, math.floor)


def _round_up(value: float) -> float:
    return _to_step(value, math.ceil)


def _to_step(value: float, direction: Callable[[float], int]) -> float:
    if not math.isfinite(value) or value <= 0:
        return value
    step = 10.0 ** (math.floor(math.log10(value)) - 1) / 2
    return direction(value / step) * step


# --- axes ------------------------------------------------------------------------------------------------------------


def y_ticks(low: float, high: float, rows: int) -> dict[int, float]:
    """Return round values for some rows (counted from the top), at least three rows apart."""
    span = high - low
    if rows < 2 or not math.isfinite(span) or span <= 0:
        return {}
    wanted = max(2, min(4, rows // 4))
    raw = span / wanted
    base = 10.0 ** math.floor(math.log10(raw))
    step = next((base * factor for factor in (1, 2, 5, 10) if base * factor >= raw * 0.8), base * 10)
    ticks: dict[int, float] = {}
    value = math.ceil(low / step) * step
    while value <= high:
        row = rows - 1 - min(rows - 1, int((value - low) / span * rows))
        if all(abs(row - other) >= 3 for other in ticks):
            ticks[row] = 0.0 if abs(value) < step / 1e6 else value
        value += step
    return ticks


def _axes(chart: _Chart, window: Window, width: int, rows: int, look: Look, margin: int, clock_row: bool) -> list[Line]:
    glyphs = look.glyphs
    left = " " * margin
    ticks = y_ticks(window.low, window.high, rows)
    grid = _grid(chart, window, width, rows, glyphs)
    lines: list[Line] = []
    for row in range(rows):
        label = chart.label(ticks[row]) if row in ticks else ""
        axis = glyphs.tick if row in ticks else glyphs.axis
        lines.append((Span(left), faint(f"{label:>{_LABEL - 1}} {axis}"), *_merged(grid[row])))
    places = _x_places(width)
    floor_cells = [glyphs.floor] * width
    for place in places if clock_row else ():
        floor_cells[place] = glyphs.floor_tick
    lines.append((Span(left + " " * _LABEL), Span(glyphs.corner + "".join(floor_cells), Role.FAINT)))
    if clock_row:
        lines.append((Span(left + " " * (_LABEL + 1)), faint(_clock_labels(window, places, width, look))))
    return lines


def _x_places(width: int) -> list[int]:
    n = 2 if width < 45 else 4 if width < 110 else 6
    return [round(index * (width - 1) / (n - 1)) for index in range(n)]


def _clock_labels(window: Window, places: Sequence[int], width: int, look: Look) -> str:
    row = [" "] * width
    span = window.right - window.left
    for index, place in enumerate(places):
        at = window.left + span * place / max(1, width - 1)
        text = words.clock(at, look.zone, seconds=span < 120) if span < 36 * 3600 else words.day(at, look.zone)
        start = (
            place if index == 0 else place - cells(text) + 1 if index == len(places) - 1 else place - cells(text) // 2
        )
        start = max(0, min(width - cells(text), start))
        if "".join(row[max(0, start - 1) : start + cells(text) + 1]).strip():
            continue
        row[start : start + cells(text)] = text
    return "".join(row)


_Cell = tuple[str, Role]


def _grid(chart: _Chart, window: Window, width: int, rows: int, glyphs: Glyphs) -> list[list[_Cell]]:
    grid: list[list[_Cell]] = [[(" ", Role.TEXT)] * width for _ in range(rows)]
    if chart.baseline is not None and window.low <= chart.baseline <= window.high:
        share = (chart.baseline - window.low) / (window.high - window.low)
        row = rows - 1 - min(rows - 1, int(share * rows))
        grid[row] = [(glyphs.usual, Role.FAINT)] * width
    for role, curves in chart.curves:
        for y, text in enumerate(rows_of_dots(curves, width, rows)):
            for x, char in enumerate(text):
                if char != " ":
                    grid[y][x] = ("*" if glyphs.ascii else char, role)
        for curve in curves:
            for x in curve.below:
                grid[rows - 1][x] = (glyphs.below, role)
            for x in curve.above:
                grid[0][x] = (glyphs.above, role)
    return grid


def _merged(row: Sequence[_Cell]) -> list[Span]:
    spans: list[Span] = []
    text, current = "", Role.TEXT
    for char, role in row:
        if role != current and text:
            spans.append(Span(text, current))
            text = ""
        text, current = text + char, role
    spans.append(Span(text, current))
    return spans


# --- one row ---------------------------------------------------------------------------------------------------------


def sparkline(snapshot: Snapshot, series: Mapping[str, Series], width: int, look: Look) -> Line:
    """`tok/s ▅▆▇▇▇ +2.1 % slammed4`: the plot of a pane of 60 columns. Blank where nothing is known."""
    data = series.get("tok_s")
    rate = snapshot.progress.rate
    lead = [Span(" "), faint("tok/s ")]
    points = data.points if data is not None else ()
    times = time_window(points, snapshot.at, Zoom.RUN)
    limits = rate_limits([p.value for p in points], rate.baseline, rate.steady)
    if times is None or limits is None:
        return (*lead, dim("no step yet"))
    change = words.percent_change(rate.delta_pct)
    tail = f"  {change} {rate.baseline_name}".rstrip() if change else ""
    bars = max(8, width - 7 - cells(tail) - 1)
    levels = _spark_levels(points, times, limits.low, limits.high, bars)
    spark = look.glyphs.spark
    text = "".join(" " if level is None else spark[min(len(spark) - 1, int(level * len(spark)))] for level in levels)
    lost = snapshot.verdict is Verdict.LINK_LOST
    return (*lead, Span(text, Role.DIM if lost else Role.OK), dim(tail))


def _spark_levels(
    points: Sequence[object], times: tuple[float, float], low: float, high: float, bars: int
) -> list[float | None]:
    sums: list[list[float]] = [[] for _ in range(bars)]
    for point in points:
        at, value = point.at, point.value  # type: ignore[attr-defined]
        if times[0] <= at <= times[1]:
            sums[min(bars - 1, int((at - times[0]) / (times[1] - times[0]) * bars))].append(value)
    levels: list[float | None] = []
    for found in sums:
        if not found:
            levels.append(None)
            continue
        middle = sorted(found)[len(found) // 2]
        levels.append(min(1.0, max(0.0, (middle - low) / (high - low))))
    return levels
