"""The guard before plotext: whatever the numbers, only dots inside the canvas reach it."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.ui import plot
from console.ui.plot import Column, Curve, Window, decimate, rows_of_dots

WINDOW = Window(0.0, 100.0, 0.0, 10.0)
# Bits of a braille cell, from the bottom, left and right.
_BITS = ((0x40, 0x80), (0x04, 0x20), (0x02, 0x10), (0x01, 0x08))


def test_a_dot_is_drawn_exactly_where_it_was_asked_for() -> None:
    plot.load()
    for width, height in ((10, 4), (53, 9), (90, 11)):
        for x, y in ((0, 0), (2 * width - 1, 4 * height - 1), (7, 9), (2 * width - 2, 1)):
            rows = rows_of_dots([Curve((Column(x, y, y, True),))], width, height)

            found = [(i, j, char) for j, row in enumerate(rows) for i, char in enumerate(row) if char != " "]

            assert found == [(x // 2, height - 1 - y // 4, chr(0x2800 + _BITS[y % 4][x % 2]))]


def _dots(rows: tuple[str, ...]) -> set[tuple[int, int]]:
    """Where dots are, counted from the bottom left."""
    return {
        (2 * i + right, 4 * (len(rows) - 1 - j) + up)
        for j, row in enumerate(rows)
        for i, char in enumerate(row)
        for up, bits in enumerate(_BITS)
        for right, bit in enumerate(bits)
        if char != " " and ord(char) - 0x2800 & bit
    }


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 15), st.booleans()), min_size=1, max_size=6))
def test_a_level_stretch_has_all_its_dots(stretches: list[tuple[int, int, bool]]) -> None:
    plot.load()
    columns: list[Column] = []
    for length, level, opens in stretches:
        columns += [Column(len(columns) + i, level, level, opens and i == 0) for i in range(length)]

    dots = _dots(rows_of_dots([Curve(tuple(columns))], 40, 4))

    assert {(column.x, column.low) for column in columns} <= dots
    for x in range(80):
        levels = [column.low for column in columns if abs(column.x - x) <= 1]
        assert all(levels and min(levels) <= y <= max(levels) for at, y in dots if at == x)


def test_between_columns_that_stand_apart_the_pen_goes_from_middle_to_middle() -> None:
    """Each of the places of a long log is a column from 10 to 14: the line between them lies at 12."""
    plot.load()
    columns = tuple(Column(x, 10, 14, x == 0) for x in range(0, 40, 6))

    rows = rows_of_dots([Curve(columns)], 20, 6)

    dots = {(x, y) for x, y in _dots(rows) if x % 6}
    assert dots == {(x, 12) for x in range(37) if x % 6}


def test_points_outside_become_edge_marks_and_break_the_curve() -> None:
    points = [(10, 5), (20, 1e9), (30, 5), (40, -1e9), (50, 5)]

    curve = decimate(points, WINDOW, 50, 10)

    assert (curve.above, curve.below) == ((10,), (20,))
    assert [column.opens for column in curve.columns] == [True, True, True]


def test_a_dip_within_a_half_cell_does_not_part_the_places_of_a_long_log() -> None:
    """Three places, each with a dip out of sight and what is usual at the same moment; a gap before it still parts."""
    points = [(10.0, 5.0), (40.0, -3.0), (40.0, 5.0), (70.0, -3.0, True), (70.0, 5.0), (90.0, -3.0), (95.0, 5.0)]

    curve = decimate(points, WINDOW, 20, 5)

    assert [column.opens for column in curve.columns] == [True, False, True, True]
    assert curve.below == (8, 14, 18)


def test_a_gap_and_a_nan_are_not_bridged() -> None:
    curve = decimate([(10, 5), (20, 5, True), (30, math.nan), (40, 5)], WINDOW, 50, 10)

    assert [column.opens for column in curve.columns] == [True, True, True]


def test_a_dip_of_one_point_among_thousands_survives_decimation() -> None:
    points = [(index / 100, 1.0 if index == 5000 else 9.0) for index in range(10_000)]

    curve = decimate(points, WINDOW, 50, 10)

    assert min(column.low for column in curve.columns) == 4
    assert len(curve.columns) == 100


def test_without_plotext_a_canvas_is_blank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plot, "_plotext", None)

    assert rows_of_dots([Curve((Column(0, 0, 0, True),))], 3, 2) == ("   ", "   ")


anything = st.floats(allow_nan=True, allow_infinity=True)
points = st.lists(st.one_of(st.tuples(anything, anything), st.tuples(anything, anything, st.booleans())), max_size=60)


@given(points, anything, anything, anything, anything, st.integers(-2, 700), st.integers(-2, 200))
def test_whatever_the_floats_only_dots_of_the_canvas_come_out(
    found: list[tuple[float, ...]], left: float, right: float, low: float, high: float, width: int, height: int
) -> None:
    curve = decimate(found, Window(left, right, low, high), width, height)

    wide, tall = min(max(0, width), 512), min(max(0, height), 128)
    assert all(0 <= c.x < 2 * wide and 0 <= c.low <= c.high < 4 * tall for c in curve.columns)
    assert all(0 <= x < wide for x in (*curve.below, *curve.above))
    assert [c.x for c in curve.columns] == sorted({c.x for c in curve.columns})


_CHILD = """
import json, random, struct, sys
from console.ui import plot
plot.load()
r = random.Random(int(sys.argv[1]))
def anyfloat():
    pick = r.random()
    if pick < 0.5: return r.uniform(-1e3, 1e3)
    if pick < 0.6: return r.choice([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e308, -1e308, 5e-324])
    return struct.unpack("d", struct.pack("Q", r.getrandbits(64)))[0]
drawn = 0
for _ in range(120):
    points = [(anyfloat() if r.random() < 0.1 else i, anyfloat(), r.random() < 0.1) for i in range(r.randrange(200))]
    width, height = r.randrange(1, 120), r.randrange(2, 30)
    w = plot.Window(0, 200, *sorted((anyfloat(), anyfloat())))
    curve = plot.decimate(points, w, width, height)
    rows = plot.rows_of_dots([curve, curve], width, height)
    assert len(rows) == height and all(len(row) == width for row in rows)
    drawn += any(row.strip() for row in rows)
print(json.dumps(drawn))
"""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_plotext_survives_arbitrary_floats_in_a_process_of_its_own(seed: int) -> None:
    done = subprocess.run([sys.executable, "-c", _CHILD, str(seed)], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr[-500:]
    assert json.loads(done.stdout) > 10
