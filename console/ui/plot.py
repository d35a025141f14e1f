"""The only caller of plotext: hands over finite, clipped, decimated points and takes back rows of dots.

plotext 6.1 aborts the process on NaN or infinity and rasterises lines before clipping, so nothing but small integers
inside the canvas ever reaches it. Axes, ticks, colours and edge marks are drawn elsewhere. `load` imports plotext (0.15
s and more): call it after the first paint; until then every canvas is empty.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

# Dots of a braille cell.
X_DOTS, Y_DOTS = 2, 4
# Beyond these a terminal has no room, and plotext no reason to be asked.
_MAX_CELLS_WIDE, _MAX_CELLS_HIGH = 512, 128


class Sample(NamedTuple):
    """A point as it comes: anything a float can be."""

    x: float
    y: float
    opens: bool = False
    """Not joined to the point before it."""


class Window(NamedTuple):
    """The part of the plane that a canvas shows."""

    left: float
    right: float
    low: float
    high: float


class Column(NamedTuple):
    """All points of one half cell: dots from `low` to `high`, counted from the bottom left."""

    x: int
    low: int
    high: int
    opens: bool


class Curve(NamedTuple):
    """A decimated curve; `below` and `above` are cells whose points lie outside."""

    columns: tuple[Column, ...] = ()
    below: tuple[int, ...] = ()
    above: tuple[int, ...] = ()


def decimate(points: Iterable[Sequence[Any]], window: Window, width: int, height: int) -> Curve:
    """Return the lowest and the highest dot of each half cell; what lies outside becomes edge marks, NaN nothing.

    `points` are (x, y[, opens]) in the order of x; any float will do. A gap, a NaN and an excursion break the curve,
    but for one within a half cell, where the curve comes back at once.
    """
    width, height = min(width, _MAX_CELLS_WIDE), min(height, _MAX_CELLS_HIGH)
    span_x, span_y = window.right - window.left, window.high - window.low
    if width <= 0 or height <= 0 or not _usable(span_x) or not _usable(span_y):
        return Curve()
    last_x, last_y = width * X_DOTS - 1, height * Y_DOTS - 1
    columns: list[Column] = []
    below: set[int] = set()
    above: set[int] = set()
    broken = True
    whole_until: int | None = None  # column of an excursion up to which the curve was whole
    for point in points:
        x, y = float(point[0]), float(point[1])
        if len(point) > 2 and point[2]:
            broken, whole_until = True, None
        if math.isnan(y) or not math.isfinite(x):
            broken, whole_until = True, None
            continue
        if not window.left <= x <= window.right:
            continue
        at = min(last_x, int((x - window.left) / span_x * (last_x + 1)))
        if y < window.low or y > window.high:
            (below if y < window.low else above).add(at // X_DOTS)
            if not broken:
                whole_until = at
            broken = True
            continue
        dot = min(last_y, int((y - window.low) / span_y * (last_y + 1)))
        if columns and columns[-1].x == at:
            old = columns[-1]
            columns[-1] = Column(at, min(old.low, dot), max(old.high, dot), old.opens)
        elif not columns or at > columns[-1].x:
            columns.append(Column(at, dot, dot, broken and at != whole_until))
        broken, whole_until = False, None
    return Curve(tuple(columns), tuple(sorted(below)), tuple(sorted(above)))


def _usable(span: float) -> bool:
    return math.isfinite(span) and span > 0


_plotext: Any = None
# plotext has one module-level figure.
_lock = threading.Lock()


def load() -> None:
    """Import plotext; may run in a thread."""
    global _plotext
    with _lock:
        if _plotext is None:
            import plotext

            plotext.terminal.limit(False, False)
            _plotext = plotext
    _rows_of.cache_clear()


def loaded() -> bool:
    return _plotext is not None


def rows_of_dots(curves: Sequence[Curve], width: int, height: int) -> tuple[str, ...]:
    """Return `height` rows of `width` cells with the curves drawn into one canvas of braille dots."""
    width, height = max(0, min(width, _MAX_CELLS_WIDE)), max(0, min(height, _MAX_CELLS_HIGH))
    columns = tuple(curve.columns for curve in curves if curve.columns)
    if _plotext is None or not columns or not width or not height:
        return (" " * width,) * height
    return _rows_of(columns, width, height)


@lru_cache(maxsize=64)
def _rows_of(curves: tuple[tuple[Column, ...], ...], width: int, height: int) -> tuple[str, ...]:
    with _lock:
        figure = _plotext.figure
        figure.clear()
        figure.theme("colorless")
        figure.plot_size(width, height)
        figure.axes(False)
        figure.ruler("both", "both").ticks([], [])
        # The limits are the middles of the outermost cells: so dot n is drawn as dot n.
        figure.ruler("x", 0).lim(0.5, width * X_DOTS - 1.5)
        figure.ruler("y", 0).lim(1.5, height * Y_DOTS - 2.5)
        for columns in curves:
            for stroke in _strokes(columns):
                signal = figure.signal([x for x, _ in stroke], [y for _, y in stroke], marker="braille")
                figure.draw(signal.lines() if len(stroke) > 1 else signal)
        text = figure.build().string()
    return _clean(text, width, height)


def _strokes(columns: Sequence[Column]) -> list[list[tuple[int, int]]]:
    """Cut a curve into pieces that may be drawn without lifting the pen; the pen goes the shorter way into a column.

    Between columns that stand apart it goes from middle to middle: from end to end it would draw waves that are none.
    """
    strokes: list[list[tuple[int, int]]] = []
    before: Column | None = None
    for column in columns:
        if column.opens or before is None:
            strokes.append([])
        stroke = strokes[-1]
        if stroke and before is not None and column.x > before.x + 1:
            ways = ((before.x, (before.low + before.high) // 2), (column.x, (column.low + column.high) // 2))
            stroke += [point for point in ways if point != stroke[-1]]
        before = column
        ends = [column.low, column.high]
        if stroke and abs(stroke[-1][1] - column.high) < abs(stroke[-1][1] - column.low):
            ends.reverse()
        if len(stroke) > 1 and stroke[-2][1] == stroke[-1][1] == ends[0]:
            stroke.pop()  # the line goes on level: plotext takes its time by points, not by dots
        if not stroke or stroke[-1] != (column.x, ends[0]):
            stroke.append((column.x, ends[0]))
        if ends[1] != ends[0]:
            stroke.append((column.x, ends[1]))
    return strokes


def _clean(text: str, width: int, height: int) -> tuple[str, ...]:
    rows = []
    for row in text.split("\n")[:height]:
        dots = "".join(char for char in _without_escapes(row) if char == " " or "\u2800" <= char <= "\u28ff")
        rows.append(dots.replace("\u2800", " ")[:width].ljust(width))
    return tuple(rows) + (" " * width,) * (height - len(rows))


def _without_escapes(row: str) -> str:
    parts = row.split("\x1b[")
    return parts[0] + "".join(part.partition("m")[2] for part in parts[1:])
