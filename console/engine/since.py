"""Where in a log that begins which was written since a moment, by the dates that its lines bear.

A few looks, however large the log is: dates rise from its start to its end. Lines without a date are as old as the one
above them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from console.state.lines import RawLine
from console.state.stretch import Stretch

LOOK_BYTES = 64 << 10
TAIL_BYTES = 256 << 10
"""A log without a date in so much of its end is not dated, whatever its head says."""
_MOST_BYTES = 1 << 20
AHEAD_S = 120.0
"""A date further ahead than clocks differ is one of another zone: then none of them tells anything."""

Look = Callable[[int, int, bool], Awaitable[Stretch]]
"""Offset (-1: the end), bytes, whether before it -> whole lines; forward any byte of a line stands for its start."""
Dated = Callable[[str], float | None]


@dataclass(frozen=True, slots=True)
class Since:
    """Where it begins."""

    offset: int
    undated_below_at: float | None = None
    """Nothing that bears a date is as new: from `offset` on stands what bears none, below a line of this time."""


async def since(look: Look, dated: Dated, at: float, now: float) -> Since | None:
    """Return where the first line stands that was written at a moment or later; None where lines bear no dates."""
    tail = await look(-1, TAIL_BYTES, True)
    known = list(_dates(tail, dated))
    if not known or known[-1][1] > now + AHEAD_S:
        return None
    if known[-1][1] < at:
        last, last_at = known[-1]
        return Since(last.end_offset, last_at)
    found = next(line for line, when in known if when >= at)
    if known[0][1] < at or tail.end <= 0:
        return Since(found.offset)
    return Since(await _searched(look, dated, at, found.offset))


async def _searched(look: Look, dated: Dated, at: float, found: int) -> int:
    """Return the first dated line as new as `at`: that at `found` is, and whatever is dated before `low` is not."""
    low, high = 0, found
    while low < high:
        middle = low if high - low <= LOOK_BYTES else (low + high) // 2
        probe = await _probe(look, dated, at, middle, high)
        if probe.newer is not None:
            found = probe.newer
            if probe.has_older:
                return found
        if probe.has_older:
            low = max(probe.end, middle + 1)
        else:
            high = min(probe.begin, middle)
    return found


@dataclass(frozen=True, slots=True)
class _Probe:
    begin: int
    has_older: bool
    """A dated line that is too old stands there, before the newer one."""
    newer: int | None
    end: int


async def _probe(look: Look, dated: Dated, at: float, start: int, high: int) -> _Probe:
    """Look from the line that holds a byte on until a date is met: most of a log is seldom without."""
    offset, length, begin, has_older = start, LOOK_BYTES, start, False
    while True:
        stretch = await look(offset, length, False)
        begin = min(begin, stretch.begin)
        for line, when in _dates(stretch, dated):
            if line.offset >= high:
                return _Probe(begin, has_older, None, high)
            if when >= at:
                return _Probe(begin, has_older, line.offset, stretch.end)
            has_older = True
        if has_older or stretch.end >= high or stretch.end <= offset:
            return _Probe(begin, has_older, None, stretch.end)
        offset, length = stretch.end, min(_MOST_BYTES, 4 * length)


def _dates(stretch: Stretch, dated: Dated) -> Iterator[tuple[RawLine, float]]:
    for line in stretch.lines:
        if (when := dated(line.text)) is not None:
            yield line, when
