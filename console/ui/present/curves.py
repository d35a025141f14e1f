"""The drawings of the plots: windows, limits, curves and what is marked along the axis. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence

from console.model import OUT_OF_REACH, Snapshot
from console.state.series import Point, Series, loss_limits, percentile, rate_limits
from console.ui.plot import Curve, Window, decimate
from console.ui.present import words
from console.ui.present.drawing import LABEL_CELLS, Drawing
from console.ui.present.gpucharts import GpuMetric, gpu_drawing, span_of_time
from console.ui.present.plotting import Metric, Plotting, Zoom
from console.ui.present.spans import Role

SHORT_WINDOW_S = 600.0


def draw(plotting: Plotting, width: int, rows: int) -> Drawing | None:
    """Return what stands between the axes; None where there is nothing to draw."""
    return _DRAWINGS.get(plotting.metric, _named_drawing)(plotting, width, rows)


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


def x_window(data: Series, plotting: Plotting) -> tuple[float, float] | None:
    """Return the span of times, or of steps, to show."""
    times = time_window(data.points, plotting.snapshot, plotting.zoom)
    if times is None or not plotting.by_step:
        return times
    points = _within(data.points, times) if plotting.zoom is Zoom.SHORT else data.points
    steps = [point.step for point in points if point.step is not None]
    if not steps:
        return None
    low, high = min(steps), max(steps)
    quantum = 2.0 ** max(0, math.floor(math.log2(max(1, high - low) / 64.0)))
    return float(low), low + max(1.0, math.ceil((high - low) / quantum) * quantum)


def _shown(data: Series, times: tuple[float, float], plotting: Plotting) -> Sequence[Point]:
    """The points of a window, and one before it."""
    if not plotting.by_step:
        return _within(data.points, times)
    return [point for point in data.points if point.step is not None and times[0] <= point.step <= times[1]]


def _marks(data: Series, plotting: Plotting) -> tuple[tuple[float, str], ...]:
    """Checkpoints and restarts along the axis; by step a restart is where the curve begins again."""
    glyphs = plotting.look.glyphs
    if plotting.by_step:
        return tuple((float(step), glyphs.checkpoint) for _, step in data.saves if step is not None)
    saves = [(at, glyphs.checkpoint) for at, _ in data.saves]
    return (*saves, *((at, glyphs.restart) for at in data.restarts))


def _label_x(plotting: Plotting) -> Callable[[float], str] | None:
    return (lambda step: words.count(max(0, round(step)))) if plotting.by_step else None


def _within(points: Sequence[Point], times: tuple[float, float]) -> Sequence[Point]:
    """The points of a span of time, and one before it."""
    return points[max(0, bisect_left(points, times[0], key=lambda point: point.at) - 1) :]


def _rate_drawing(plotting: Plotting, width: int, rows: int) -> Drawing | None:
    rate = plotting.snapshot.progress.rate
    data = plotting.series.get("tok_s")
    times = x_window(data, plotting) if data is not None else None
    if data is None or times is None:
        return None
    limits = rate_limits([p.value for p in _shown(data, times, plotting)], rate.baseline, rate.steady)
    if limits is None:
        return None
    window = Window(times[0], times[1], _to_step(limits.low, math.floor), _to_step(limits.high, math.ceil))
    return Drawing(
        window=window,
        baseline=rate.baseline,
        label=rate_number,
        label_x=_label_x(plotting),
        marks=_marks(data, plotting),
        curves=_curves(plotting, window, [(Role.OK, [data])], width, rows),
    )


def _to_step(value: float, direction: Callable[[float], int]) -> float:
    """To two digits: limits that creep would redraw the plot for nothing."""
    if not math.isfinite(value) or value <= 0:
        return value
    step = 10.0 ** (math.floor(math.log10(value)) - 1) / 2
    return direction(value / step) * step


def _loss_drawing(plotting: Plotting, width: int, rows: int) -> Drawing | None:
    data = plotting.series.get("loss")
    times = x_window(data, plotting) if data is not None else None
    if data is None or times is None:
        return None
    limits = loss_limits([p.value for p in _shown(data, times, plotting)])
    if limits is None:
        return None
    # Room above, or the noise of a flat curve would fill the panel and hide where it came from.
    span = max(limits.high - limits.low, 0.15 * abs(limits.high))
    window = Window(times[0], times[1], limits.low - 0.1 * span, limits.high + 0.5 * span)
    return Drawing(
        window=window,
        label=axis_number,
        label_x=_label_x(plotting),
        bad_from=_bad_from(data, plotting),
        marks=_marks(data, plotting),
        curves=_curves(plotting, window, [(Role.BUSY, [data])], width, rows),
    )


def _bad_from(data: Series, plotting: Plotting) -> float | None:
    last, since = data.points[-1], plotting.snapshot.progress.bad_since_step
    if since is None:
        return None
    return float(last.step or since) if plotting.by_step else last.at


def _named_drawing(plotting: Plotting, width: int, rows: int) -> Drawing | None:
    data = plotting.series.get(plotting.metric)
    times = x_window(data, plotting) if data is not None else None
    if data is None or times is None:
        return None
    values = sorted(point.value for point in _shown(data, times, plotting))
    if not values:
        return None
    low, high = percentile(values, 1), percentile(values, 99)
    span = max(high - low, 0.02 * max(abs(low), abs(high)), 1e-12)
    window = Window(times[0], times[1], low - 0.1 * span, high + 0.1 * span)
    return Drawing(
        window=window,
        label=axis_number,
        label_x=_label_x(plotting),
        marks=_marks(data, plotting),
        curves=_curves(plotting, window, [(Role.TARGET, [data])], width, rows),
    )


_SIZES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K"))


def axis_number(value: float, room: int = LABEL_CELLS - 1) -> str:
    """A number of any size in the four cells that an axis has for it: `12K`, `0.05`, `2e-5`.

    One that can't be told in so few is longer: `-123K`.
    """
    factor, suffix = next((one for one in _SIZES if one[0] <= abs(value) < one[0] * 1000), (1.0, ""))
    text = ""
    for digits in (3, 2, 1):
        shorter = f"{value / factor:.{digits}g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e") + suffix
        if text and "e" in shorter and "e" not in text:
            break  # `-123` is not `-1e2`
        text = shorter
        if len(text) <= room:
            break
    return text


def rate_number(value: float) -> str:
    """A rate on an axis: `20K`, `0.03`."""
    text = words.round_rate(value)
    return text if len(text) <= LABEL_CELLS else axis_number(value)


def _queue_drawing(plotting: Plotting, width: int, rows: int) -> Drawing | None:
    data = plotting.series.get("queue")
    times = x_window(data, plotting) if data is not None else None
    if data is None or times is None:
        return None
    queue = plotting.snapshot.progress.queue
    depth = queue.max_depth if queue is not None and queue.max_depth is not None else 0.0
    top = max([p.value for p in data.points] + [depth, 1.0])
    window = Window(times[0], times[1], -0.5, top * 1.05)
    return Drawing(
        window=window,
        label=axis_number,
        label_x=_label_x(plotting),
        marks=_marks(data, plotting),
        curves=_curves(plotting, window, [(Role.DRAFTER, [data])], width, rows),
    )


def _memory_drawing(plotting: Plotting, width: int, rows: int) -> Drawing | None:
    snapshot, series = plotting.snapshot, plotting.series
    gpus = snapshot.gpus.gpus
    known = [series[name] for gpu in gpus if (name := f"gpu_memory:{gpu.index}") in series]
    times = span_of_time(known, snapshot, whole=plotting.zoom is Zoom.RUN)
    return gpu_drawing(GpuMetric.MEMORY, snapshot, gpus, series, times, (width, rows)) if times is not None else None


def _role(snapshot: Snapshot, role: Role) -> Role:
    return Role.DIM if snapshot.verdict in OUT_OF_REACH else role


def _curves(
    plotting: Plotting,
    window: Window,
    groups: Sequence[tuple[Role, Iterable[Series]]],
    width: int,
    rows: int,
) -> tuple[tuple[Role, tuple[Curve, ...]], ...]:
    times = (window.left, window.right)
    return tuple(
        (
            _role(plotting.snapshot, role),
            tuple(
                decimate(piece, window, width, rows)
                for data in many
                for piece in _pieces(_shown(data, times, plotting), by_step=plotting.by_step)
            ),
        )
        for role, many in groups
    )


def _pieces(points: Sequence[Point], *, by_step: bool) -> list[list[tuple[float, float, bool]]]:
    """Points as a canvas takes them; by step a counter that begins anew begins another curve over the first."""
    if not by_step:
        return [[(point.at, point.value, point.opens) for point in points]]
    pieces: list[list[tuple[float, float, bool]]] = []
    last: int | None = None
    for point in points:
        if point.step is None:
            continue
        if last is None or point.step < last:
            pieces.append([])
        pieces[-1].append((float(point.step), point.value, point.opens))
        last = point.step
    return pieces


_DRAWINGS: Mapping[str, Callable[[Plotting, int, int], Drawing | None]] = {
    Metric.TOK_S: _rate_drawing,
    Metric.LOSS: _loss_drawing,
    Metric.QUEUE: _queue_drawing,
    Metric.MEMORY: _memory_drawing,
}
