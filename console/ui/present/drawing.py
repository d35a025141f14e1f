"""A plot with its axes as lines of spans, and the memory that keeps a calm plot from being drawn anew each second.

Pure but for the canvas that `plot` draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

from msgspec import Struct

from console.ui import plot
from console.ui.plot import Curve, Window, rows_of_dots
from console.ui.present import words
from console.ui.present.look import Glyphs, Look
from console.ui.present.spans import Line, Role, Span, cells, faint

LABEL_CELLS = 5
"""Width of the labels of the y axis with the blank behind them."""
# A column of a long run covers a minute: nobody sees it change each second. Yet a curve should not lag far behind.
_SLOWEST_S, _FASTEST_S = 5.0, 3.0
_KEPT = 16


class Drawing(Struct, frozen=True, kw_only=True):
    """What stands between the axes."""

    window: Window
    curves: tuple[tuple[Role, tuple[Curve, ...]], ...]
    label: Callable[[float], str]
    baseline: float | None = None
    bad_from: float | None = None
    """From here on there is no number to draw: marked on the axis."""
    marks: tuple[tuple[float, str], ...] = ()
    """What happened at some places of the axis, a glyph each."""
    label_x: Callable[[float], str] | None = None
    """What stands under the x axis where that is not the time of day."""
    ticks_x: tuple[float, ...] = ()
    """Where it stands; evenly spaced where nothing is said."""


class PlotMemory:
    """Keeps drawn plots until a column may have changed."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._drawn: dict[Hashable, tuple[float, float, list[Line] | None]] = {}

    def recall(
        self, key: Hashable, now: float, draw: Callable[[], tuple[Drawing | None, list[Line]]]
    ) -> list[Line] | None:
        """Return the plot under a key, drawn anew when it is too old; None where there is nothing to draw."""
        key = (key, plot.loaded())
        found = self._drawn.get(key)
        if found is not None and found[0] <= now < found[1]:
            return found[2]
        drawing, lines = draw()
        shown = lines if drawing is not None else None
        if len(self._drawn) >= self._kept:
            self._drawn.clear()
        self._drawn[key] = (now, now + _fresh_for(drawing, lines), shown)
        return shown


def _fresh_for(drawing: Drawing | None, lines: Sequence[Line]) -> float:
    if drawing is None:
        return 0.0
    columns = max(1, max((sum(cells(span.text) for span in line) for line in lines), default=1) * plot.X_DOTS)
    return max(_FASTEST_S, min(_SLOWEST_S, (drawing.window.right - drawing.window.left) / columns))


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


def draw_axes(drawing: Drawing, width: int, rows: int, look: Look, margin: int, clock_row: bool) -> list[Line]:
    """Return the plot with its axes in `rows` rows and one or two more."""
    glyphs, window = look.glyphs, drawing.window
    left = " " * margin
    ticks = y_ticks(window.low, window.high, rows)
    grid = _grid(drawing, width, rows, glyphs)
    lines: list[Line] = []
    for row in range(rows):
        label = drawing.label(ticks[row]) if row in ticks else ""
        axis = glyphs.tick if row in ticks else glyphs.axis
        lines.append((Span(left), faint(f"{_fitted(label)}{axis}"), *_merged(grid[row])))
    places = [_place(window, x, width) for x in drawing.ticks_x] or _x_places(width)
    lines.append((Span(left + " " * LABEL_CELLS), *_floor(drawing, places if clock_row else (), width, glyphs)))
    if clock_row:
        lines.append((Span(left + " " * (LABEL_CELLS + 1)), faint(_x_labels(drawing, places, width, look))))
    return lines


def _fitted(label: str) -> str:
    """A long label takes the blank behind it; one that is still too long is left out: cut it would be another number,
    and whole it would push the curve aside."""
    text = f"{label:>{LABEL_CELLS - 1}} "
    return text[:LABEL_CELLS] if cells(label) <= LABEL_CELLS else " " * LABEL_CELLS


def _floor(drawing: Drawing, places: Sequence[int], width: int, glyphs: Glyphs) -> list[Span]:
    """The x axis with its ticks and what happened along it."""
    window = drawing.window
    row: list[_Cell] = [(glyphs.floor, Role.FAINT)] * width
    for place in places:
        row[place] = (glyphs.floor_tick, Role.FAINT)
    for x, glyph in drawing.marks:
        if window.left <= x <= window.right:
            row[_place(window, x, width)] = (glyph, Role.DIM)
    if drawing.bad_from is not None and window.left <= drawing.bad_from <= window.right:
        row[min(width - 1, 1 + _place(window, drawing.bad_from, width))] = (glyphs.bad, Role.ERROR)
    return _merged([(glyphs.corner, Role.FAINT), *row])


def _x_places(width: int) -> list[int]:
    n = 2 if width < 45 else 4 if width < 110 else 6
    return [round(index * (width - 1) / (n - 1)) for index in range(n)]


def _place(window: Window, x: float, width: int) -> int:
    return max(0, min(width - 1, int((x - window.left) / (window.right - window.left) * width)))


def _x_labels(drawing: Drawing, places: Sequence[int], width: int, look: Look) -> str:
    window, row = drawing.window, [" "] * width
    span = window.right - window.left

    def clock(at: float) -> str:
        return words.clock(at, look.zone, seconds=span < 120) if span < 36 * 3600 else words.day(at, look.zone)

    for index, place in enumerate(places):
        at = drawing.ticks_x[index] if drawing.ticks_x else window.left + span * place / max(1, width - 1)
        text = (drawing.label_x or clock)(at)
        start = (
            place if index == 0 else place - cells(text) + 1 if index == len(places) - 1 else place - cells(text) // 2
        )
        start = max(0, min(width - cells(text), start))
        if "".join(row[max(0, start - 1) : start + cells(text) + 1]).strip():
            continue
        row[start : start + cells(text)] = text
    return "".join(row)


_Cell = tuple[str, Role]


def _grid(drawing: Drawing, width: int, rows: int, glyphs: Glyphs) -> list[list[_Cell]]:
    window = drawing.window
    grid: list[list[_Cell]] = [[(" ", Role.TEXT)] * width for _ in range(rows)]
    if drawing.baseline is not None and window.low <= drawing.baseline <= window.high:
        share = (drawing.baseline - window.low) / (window.high - window.low)
        row = rows - 1 - min(rows - 1, int(share * rows))
        grid[row] = [(glyphs.usual, Role.FAINT)] * width
    for role, curves in drawing.curves:
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
