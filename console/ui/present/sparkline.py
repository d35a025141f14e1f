"""The plot of a pane of 60 columns: one row. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from console.model import OUT_OF_REACH, Snapshot
from console.state.series import Point, Series, rate_limits
from console.ui.present import words
from console.ui.present.curves import time_window
from console.ui.present.look import Look
from console.ui.present.plotting import Zoom
from console.ui.present.spans import Line, Role, Span, cells, dim, faint


def sparkline(snapshot: Snapshot, series: Mapping[str, Series], width: int, look: Look) -> Line:
    """`tok/s ▅▆▇▇▇ +2.1 % slammed4`: the plot of a pane of 60 columns. Blank where nothing is known."""
    data = series.get("tok_s")
    rate = snapshot.progress.rate
    lead = [Span(" "), faint("tok/s ")]
    points = data.points if data is not None else ()
    times = time_window(points, snapshot, Zoom.RUN)
    limits = rate_limits([p.value for p in points], rate.baseline, rate.steady)
    if times is None or limits is None:
        return (*lead, dim("no step yet"))
    change = words.percent_change(rate.delta_pct)
    tail = f"  {change} {rate.baseline_name}".rstrip() if change else ""
    bars = max(8, width - 7 - cells(tail) - 1)
    levels = _spark_levels(points, times, limits.low, limits.high, bars)
    spark = look.glyphs.spark
    text = "".join(" " if level is None else spark[min(len(spark) - 1, int(level * len(spark)))] for level in levels)
    lost = snapshot.verdict in OUT_OF_REACH
    return (*lead, Span(text, Role.DIM if lost else Role.OK), dim(tail))


def _spark_levels(
    points: Sequence[Point], times: tuple[float, float], low: float, high: float, bars: int
) -> list[float | None]:
    sums: list[list[float]] = [[] for _ in range(bars)]
    for point in points:
        if times[0] <= point.at <= times[1]:
            sums[min(bars - 1, int((point.at - times[0]) / (times[1] - times[0]) * bars))].append(point.value)
    levels: list[float | None] = []
    for found in sums:
        if not found:
            levels.append(None)
            continue
        middle = sorted(found)[len(found) // 2]
        levels.append(min(1.0, max(0.0, (middle - low) / (high - low))))
    return levels
