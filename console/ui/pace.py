"""When new log lines are painted: at once where nothing was lately, soon otherwise, and always after a key's answer.

Knows the clock and a timer; what is painted it doesn't know.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

_PAINT_S = 0.04
"""Between two paints: the agent looks for new lines each 50 ms, none is to wait for the next look."""
_FLOOD_PAINT_S = 0.12
"""In a flood nobody can read along: the time is better kept for keys."""
KEY_S = 0.06
"""So long new lines wait when a key was pressed: its answer takes a third of that, where nothing else goes on."""


class Stoppable(Protocol):
    """A timer that can be taken back."""

    def stop(self) -> None: ...


class Pace:
    """Paints what came by `paint`, by the timers that `set_timer` makes."""

    def __init__(
        self,
        set_timer: Callable[[float, Callable[[], None]], Stoppable],
        paint: Callable[[], None],
        is_flood: Callable[[], bool],
    ) -> None:
        self._set_timer, self._paint, self._is_flood = set_timer, paint, is_flood
        self._due: Stoppable | None = None
        self._painted_at = self._held_until = 0.0
        self._has_given_way = False

    @property
    def is_held(self) -> bool:
        """Whether a key was pressed a moment ago."""
        return time.monotonic() < self._held_until

    def lines_came(self) -> None:
        """Paint them when it is time."""
        if self._due is None:
            self._paint_later()

    def make_way(self) -> None:
        """A key was pressed. Asked for again before the lines that wait are painted, it changes nothing: keys that are
        held down must not stop the log."""
        if self._due is not None and self._has_given_way:
            return
        self._held_until, self._has_given_way = time.monotonic() + KEY_S, True
        if self._due is not None:
            self._due.stop()
            self._paint_later()

    def _paint_later(self) -> None:
        pace_s = _FLOOD_PAINT_S if self._is_flood() else _PAINT_S
        wait_s = max(self._painted_at + pace_s, self._held_until) - time.monotonic()
        if wait_s > 0:
            self._due = self._set_timer(wait_s, self._paint_now)
        else:
            self._paint_now()

    def _paint_now(self) -> None:
        self._due, self._painted_at, self._has_given_way = None, time.monotonic(), False
        self._paint()
