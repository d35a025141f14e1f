"""Curves of GPUs over time: memory, power or how busy they are; one plot for all, or one for each. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from console.model import OUT_OF_REACH, Gpu, Snapshot
from console.state.series import Point, Series
from console.ui.plot import Curve, Window, decimate
from console.ui.present import words
from console.ui.present.drawing import LABEL_CELLS, Drawing, PlotMemory, draw_axes
from console.ui.present.frame import title
from console.ui.present.look import Look
from console.ui.present.spans import Line, Role, Span, View, dim, faint, width_of

_GIB = 1024.0**3
SHORT_S = 600.0
_WIDEST = 30
"""Cells that a plot of one GPU needs, its labels among them."""
_MOST_ALONE = 16
MIN_ROWS = 7


class GpuMetric(StrEnum):
    MEMORY = "memory"
    POWER = "power"
    BUSY = "busy"


class _Kind(NamedTuple):
    series: str
    unit: str
    scale: float


KINDS = {
    GpuMetric.MEMORY: _Kind("gpu_memory", "GiB", 1 / _GIB),
    GpuMetric.POWER: _Kind("gpu_power", "W", 1.0),
    GpuMetric.BUSY: _Kind("gpu_busy", "%", 1.0),
}


def limit_of(metric: GpuMetric, gpus: Sequence[Gpu]) -> float | None:
    """Return where the scale ends; None where nobody says."""
    match metric:
        case GpuMetric.MEMORY:
            return max((gpu.total_bytes / _GIB for gpu in gpus if gpu.total_bytes), default=None)
        case GpuMetric.POWER:
            return max((gpu.power_limit_w for gpu in gpus if gpu.power_limit_w), default=None)
        case GpuMetric.BUSY:
            return 100.0


def role_of(role: str | None) -> Role:
    """The colour of a role; the letter or word stands beside it always."""
    return Role.DRAFTER if role is not None and role.startswith("d") else Role.TARGET


def span_of_time(found: Sequence[Series], snapshot: Snapshot, *, whole: bool) -> tuple[float, float] | None:
    """Return the span to show: of the run, as far as it is known. Its end moves in steps; it ends with the run."""
    points = [series.points for series in found if len(series)]
    if not points:
        return None
    run, now = snapshot.run, snapshot.at
    if run is not None and run.alive is False and run.exit is not None and run.exit.at is not None:
        now = min(now, run.exit.at + 20.0)  # the fall of the curves is part of the story
    if not whole:
        end = math.ceil(now / 5.0) * 5.0
        return end - SHORT_S, end
    start = min(each[0].at for each in points)
    began = run.accepted_at or run.spawned_at if run is not None else None
    if began is not None and began < now:
        start = max(start, began)
    length = max(now - start, 60.0)
    quantum = 2.0 ** math.floor(math.log2(length / 64.0)) if length >= 64 else 1.0
    return start, start + math.ceil(length / quantum) * quantum


def gpu_drawing(
    metric: GpuMetric,
    snapshot: Snapshot,
    gpus: Sequence[Gpu],
    series: Mapping[str, Series],
    times: tuple[float, float],
    size: tuple[int, int],
) -> Drawing | None:
    """Return the curves of some GPUs in one plot of (cells, rows), coloured by role; None where there are none."""
    width, rows = size
    kind = KINDS[metric]
    grey = snapshot.verdict in OUT_OF_REACH
    by_role: dict[Role, list[Series]] = {}
    for gpu in gpus:
        data = series.get(f"{kind.series}:{gpu.index}")
        if data is not None and len(data):
            by_role.setdefault(Role.DIM if grey else role_of(gpu.role), []).append(data)
    if not by_role:
        return None
    limit = limit_of(metric, gpus)
    top = limit or max(p.value for many in by_role.values() for data in many for p in data.points) * kind.scale or 1.0
    window = Window(times[0], times[1], -0.02 * top, 1.06 * top)
    curves = tuple(
        (role, tuple(_curve(data.points, kind.scale, window, width, rows) for data in many))
        for role, many in by_role.items()
    )
    baseline = limit if metric is not GpuMetric.BUSY else None
    return Drawing(window=window, curves=curves, label=words.number, baseline=baseline)


def _curve(points: Sequence[Point], scale: float, window: Window, width: int, rows: int) -> Curve:
    found = [(p.at, p.value * scale, p.opens) for p in points if window.left <= p.at <= window.right]
    return decimate(found, window, width, rows)


class Grid(NamedTuple):
    """How the plots of single GPUs are shared out; no columns: one plot for all of them."""

    columns: int
    lines: int


def grid_for(count: int, width: int, rows: int) -> Grid:
    most = min(count, max(0, width // _WIDEST))
    if not count or count > _MOST_ALONE or most < 2:
        return Grid(0, 1)
    lines = math.ceil(count / most)
    if rows // lines < MIN_ROWS:
        return Grid(0, 1)
    return Grid(math.ceil(count / lines), lines)


class GpuScene(NamedTuple):
    """What a drawing of the GPUs is made from."""

    snapshot: Snapshot
    gpus: Sequence[Gpu]
    series: Mapping[str, Series]
    look: Look
    metric: GpuMetric = GpuMetric.MEMORY
    whole: bool = True
    """The run from its beginning; else the last 10 minutes."""
    chosen: int | None = None
    """The GPU that the operator has chosen."""

    @property
    def kind(self) -> _Kind:
        return KINDS[self.metric]

    @property
    def times(self) -> tuple[float, float] | None:
        """The same for all plots, or they could not be compared."""
        known = [self.series[name] for gpu in self.gpus if (name := f"{self.kind.series}:{gpu.index}") in self.series]
        return span_of_time(known, self.snapshot, whole=self.whole)

    @property
    def is_grey(self) -> bool:
        return self.snapshot.verdict in OUT_OF_REACH

    def role_of(self, role: str | None) -> Role:
        return Role.DIM if self.is_grey else role_of(role)


class Plots:
    """Draws the lower half of the GPU screen and remembers what it drew."""

    def __init__(self) -> None:
        self._memory = PlotMemory(kept=64)

    def draw(self, scene: GpuScene, width: int, rows: int) -> View:
        """Return exactly `rows` rows: a plot for each GPU where there is room, else one for all."""
        if rows < 4 or width < 24:
            return ()
        times = scene.times
        grid = grid_for(len(scene.gpus), width, rows)
        if not grid.columns:
            head = _common_title(scene, times, width)
            return (head, *self._body(scene, scene.gpus, times, width, rows - 1))
        view: list[Line] = []
        for line in range(grid.lines):
            height = rows * (line + 1) // grid.lines - rows * line // grid.lines
            some = scene.gpus[line * grid.columns : (line + 1) * grid.columns]
            view += self._side_by_side(scene, some, times, width, height, grid.columns)
        return tuple(view)

    def _side_by_side(
        self,
        scene: GpuScene,
        gpus: Sequence[Gpu],
        times: tuple[float, float] | None,
        width: int,
        rows: int,
        columns: int,
    ) -> list[Line]:
        blocks: list[tuple[int, View]] = []
        for place, gpu in enumerate(gpus):
            share = width * (place + 1) // columns - width * place // columns
            blocks.append((share, (_own_title(scene, gpu, share), *self._body(scene, (gpu,), times, share, rows - 1))))
        lines: list[Line] = []
        for row in range(rows):
            parts: list[Span] = []
            for share, block in blocks:
                part = block[row] if row < len(block) else ()
                parts += [*part, Span(" " * max(0, share - width_of(part)))]
            lines.append(tuple(parts))
        return lines

    def _body(
        self, scene: GpuScene, gpus: Sequence[Gpu], times: tuple[float, float] | None, width: int, rows: int
    ) -> Sequence[Line]:
        canvas, canvas_rows = width - LABEL_CELLS - 3, rows - 2
        nothing: Sequence[Line] = ((Span("  "), faint("no sample yet")),)
        if times is None or canvas < 12 or canvas_rows < 2:
            return nothing

        def draw() -> tuple[Drawing | None, list[Line]]:
            drawing = gpu_drawing(scene.metric, scene.snapshot, gpus, scene.series, times, (canvas, canvas_rows))
            return drawing, draw_axes(drawing, canvas, canvas_rows, scene.look, 1, True) if drawing else []

        run = scene.snapshot.run and (scene.snapshot.run.id, scene.snapshot.run.alive)
        what = tuple((gpu.index, gpu.role) for gpu in gpus)
        key = (scene.metric, what, width, rows, scene.snapshot.verdict, run, scene.whole)
        return self._memory.recall(key, scene.snapshot.at, draw) or nothing


def _common_title(scene: GpuScene, times: tuple[float, float] | None, width: int) -> Line:
    roles = dict.fromkeys(gpu.role for gpu in scene.gpus if gpu.role)
    unit = scene.kind.unit
    named = tuple(Span(f"{role}s ", scene.role_of(role)) for role in roles)
    facts: list[Sequence[Span]] = [(faint(f"{unit}, "), *named) if named else (faint(f"{unit} of each GPU"),)]
    if scene.metric is not GpuMetric.BUSY:
        facts.append((faint(f"{scene.look.glyphs.usual * 2} limit"),))
    length = words.short_duration(times[1] - times[0]) if times is not None and scene.whole else "10 min"
    return title(scene.metric.value, facts, faint(length), width, scene.look)


def _own_title(scene: GpuScene, gpu: Gpu, width: int) -> Line:
    facts: list[Sequence[Span]] = [(Span(gpu.role, scene.role_of(gpu.role)),)] if gpu.role else []
    if gpu.index == scene.chosen:
        facts.append((dim(_now(scene.metric, gpu)),))
    return title(f"{gpu.index}", facts, None, width, scene.look)


def _now(metric: GpuMetric, gpu: Gpu) -> str:
    match metric:
        case GpuMetric.MEMORY:
            return f"{words.whole_gib(gpu.used_bytes)}/{words.whole_gib(gpu.total_bytes)} GiB"
        case GpuMetric.POWER:
            watts = words.UNKNOWN if gpu.power_w is None else f"{gpu.power_w:.0f}"
            limit = "" if gpu.power_limit_w is None else f"/{gpu.power_limit_w:.0f}"
            return f"{watts}{limit} W"
        case GpuMetric.BUSY:
            return f"{words.UNKNOWN if gpu.util_pct is None else gpu.util_pct} %"
