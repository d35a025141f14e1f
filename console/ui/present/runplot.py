"""The curves of two runs in one plot, since their first steps; where few rows are left the gap between them. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any

from msgspec import Struct

from console.history.comparing import SMOOTH_S, Comparison, Points, curve, gap_curve, smoothed
from console.history.samples import Curves
from console.state.series import percentile
from console.ui.plot import Window, decimate
from console.ui.present import words
from console.ui.present.curves import axis_number, rate_number
from console.ui.present.drawing import LABEL_CELLS, Drawing, draw_axes
from console.ui.present.frame import title
from console.ui.present.look import Look
from console.ui.present.spans import Role, Span, View, clip, dim, faint

BOTH_FROM_ROWS = 14
"""In fewer rows two close curves melt into one: the gap in percent is drawn instead."""


class Curve(StrEnum):
    """What the plot shows; `m` goes on to the next that both runs have."""

    TOK_S = "tok_s"
    LOSS = "loss"
    QUEUE = "queue"


_TITLES = {Curve.TOK_S: "tok/s", Curve.LOSS: "loss", Curve.QUEUE: "queue"}


class Beside(Struct, frozen=True, kw_only=True):
    """Two runs with their curves, and how to show them."""

    found: Comparison
    a: Curves
    b: Curves
    curve: Curve = Curve.TOK_S
    by_step: bool = False
    version: int = 0
    """Of what was read: the same one is drawn once."""


def shared_curves(a: Mapping[str, object], b: Mapping[str, object]) -> list[Curve]:
    """Return what can be drawn: the curves that both runs have."""
    return [each for each in Curve if each in a and each in b]


def run_plot(beside: Beside, width: int, rows: int, look: Look) -> View:
    """Return the plot with its title in `rows` rows, or why there is none."""
    name = _TITLES[beside.curve]
    both = rows - 3 >= BOTH_FROM_ROWS
    along = "by step" if beside.by_step else "since the first step"
    if beside.curve not in shared_curves(beside.a.digests, beside.b.digests):
        head = title(f"{name} gap", [(dim(along),)], None, width, look)
        return (head, (Span("  "), faint(clip("the curve of one of them is not kept", width - 3))))
    if beside.found.unlike and beside.curve is Curve.TOK_S:
        head = title(name, [(dim(along),)], faint("m metric"), width, look)
        return (head, (Span("  "), faint(clip(f"not drawn: {beside.found.unlike}", width - 3))))
    curves = [curve(each.digests[beside.curve], by_step=beside.by_step) for each in (beside.a, beside.b)]
    smooth = _smoothing(curves)
    canvas, canvas_rows = width - LABEL_CELLS - 3, rows - 3
    if both:
        facts = [(Span("A", Role.TARGET, True), Span(" B", Role.DRAFTER, True)), (dim(along),)]
        drawing = _both_curves([smoothed(points, smooth / 2) for points in curves], canvas, canvas_rows, beside)
    else:
        facts = [(dim(f"A over B, %, {along}, {_smooth_words(smooth, beside)} median"),)]
        drawing = _gap(curves, smooth, canvas, canvas_rows, beside)
    head = title(name if both else f"{name} gap", facts, faint("m metric · x step/time"), width, look)
    if drawing is None:
        return (head, (Span("  "), faint(clip("the two curves have no stretch in common", width - 3))))
    return (head, *draw_axes(drawing, canvas, canvas_rows, look, 1, clock_row=True))


def _smoothing(curves: Sequence[Points]) -> float:
    """Five minutes; of steps or of shorter runs a tenth of what both have."""
    length = min((points[-1][0] - points[0][0] for points in curves if points), default=0.0)
    return min(SMOOTH_S, length / 10)


def _smooth_words(smooth: float, beside: Beside) -> str:
    if beside.by_step:
        return f"{max(1, round(smooth)):,}-step"
    return words.span(smooth).replace("5m", "5 min")


_ROUND_S = tuple(
    unit * factor
    for unit, factors in (
        (1, (1, 2, 5, 10, 15, 30)), (60, (1, 2, 5, 10, 15, 30)), (3600, (1, 2, 3, 6, 12)), (86400, (1, 2, 5, 10, 30)),
    )
    for factor in factors
)  # fmt: skip


def ticks_x(right: float, width: int, *, by_step: bool) -> tuple[float, ...]:
    """Return round places of the x axis, from 0 on and not too close to each other."""
    wanted = right / max(2, min(6, width // 18))
    if by_step:
        base = 10.0 ** math.floor(math.log10(max(wanted, 1.0)))
        step = next((base * factor for factor in (1, 2, 5) if base * factor >= wanted), base * 10)
    else:
        step = float(next((seconds for seconds in _ROUND_S if seconds >= wanted), _ROUND_S[-1]))
    return tuple(step * n for n in range(int(right / step) + 1)) if right / step <= 100 else ()


def label_x(value: float, *, by_step: bool) -> str:
    """`0`, `30 s`, `45m`, `1h 30m`, `18,000`."""
    whole = round(value)
    if by_step or not whole:
        return words.count(whole)
    if whole < 3600 or whole % 3600:
        return words.span(whole) if whole < 60 or whole % 60 or whole > 3600 else f"{whole // 60}m"
    return f"{whole // 3600}h" if whole < 86400 else words.duration(whole)


def _axis(beside: Beside, right: float, width: int) -> dict[str, Any]:
    return {
        "label_x": partial(label_x, by_step=beside.by_step),
        "ticks_x": ticks_x(right, width, by_step=beside.by_step),
    }


def _gap(curves: Sequence[Points], smooth: float, width: int, rows: int, beside: Beside) -> Drawing | None:
    points = gap_curve(curves[0], curves[1], smooth, sampled=beside.found.b.is_log_only)
    if not points:
        return None
    # By the later half: a slow start of one of them is marked on the edge and doesn't flatten what one looks for.
    values = sorted(value for _, value in points[len(points) // 2 :])
    low, high = min(0.0, percentile(values, 2)), max(0.0, percentile(values, 98))
    margin = max(0.5, (high - low) * 0.6)
    right = max(x for x, _ in points) or 1.0
    window = Window(0.0, right, low - margin, high + margin)
    return Drawing(
        window=window,
        curves=((Role.TARGET, (decimate(points, window, width, rows),)),),
        label=partial(_percent, digits=0 if high - low > 4 else 1),
        baseline=0.0,
        **_axis(beside, right, width),
    )


def _percent(value: float, digits: int) -> str:
    """`+2`, `−0.5`, `+2K`, in the four cells of an axis."""
    text = f"{abs(value):.{digits}f}"
    sign = words.MINUS if value < 0 and float(text) else "+"
    return f"{sign}{text if len(text) < LABEL_CELLS - 1 else axis_number(abs(value), LABEL_CELLS - 2)}"


def _both_curves(curves: Sequence[Points], width: int, rows: int, beside: Beside) -> Drawing | None:
    values = sorted(value for points in curves for _, value in points)
    if not values:
        return None
    low, high = percentile(values, 2), percentile(values, 98)
    margin = max((high - low) * 0.15, abs(high) * 0.01, 1e-9)
    right = max(points[-1][0] for points in curves if points)
    window = Window(0.0, right or 1.0, low - margin, high + margin)
    is_rate = beside.curve is Curve.TOK_S
    return Drawing(
        window=window,
        curves=tuple(
            (role, (decimate(points, window, width, rows),))
            for role, points in zip((Role.DRAFTER, Role.TARGET), reversed(curves), strict=True)
        ),
        label=rate_number if is_rate else axis_number,
        **_axis(beside, window.right, width),
    )
