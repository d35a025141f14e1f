"""Seconds per step from the arrival times of step lines, also where output comes in bursts. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

BURST_S: Final = 0.2
"""Lines closer together than this came out of one buffer or one read: the times between them say nothing."""


class _Burst(Struct):
    began_at: float
    last_at: float
    last_step: int
    lines: int = 1


class Arrivals:
    """Takes each step line as it arrives.

    The first burst is never used as a starting point: when its lines were written isn't known. After a burst of one
    line the next line closes the interval; a burst of several is closed by the line that opens the next one, so that
    the steps of one buffer are divided by the time that it took to fill.
    """

    def __init__(self) -> None:
        self._known: _Burst | None = None
        self._open: _Burst | None = None
        self._first = True

    def step_seconds(self, step: int, at: float) -> float | None:
        """Return the seconds per step of the last complete interval, or None while there is none."""
        burst = self._open
        if burst is None or step < burst.last_step or at < burst.last_at:
            self._known, self._open, self._first = None, _Burst(at, at, step), True
            return None
        if at - burst.began_at < BURST_S:
            burst.last_at, burst.last_step = at, step
            burst.lines += 1
            return None
        self._open = _Burst(at, at, step)
        known, first = self._known, self._first
        self._known, self._first = (None if first else burst), False
        if first:
            return None
        if burst.lines == 1:
            return _seconds(burst, step, at)
        return _seconds(known, burst.last_step, burst.last_at) if known is not None else None


def _seconds(start: _Burst, step: int, at: float) -> float | None:
    steps = step - start.last_step
    return (at - start.last_at) / steps if steps > 0 and at > start.last_at else None
