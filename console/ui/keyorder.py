"""What the terminal sends is handled in its order: each key by what has the focus when those before it are done with.

Textual hands a key to what has the focus when the key arrives. Keys that come in one piece, as a slow connection and
tmux's send-keys bring them, all arrive before the first of them has moved the focus: letters behind `/` would be
commands, those behind the enter that ends a search would be typed into it.

A key is done with when it has climbed from what had the focus to the app, and when what was posted by its handlers on
the way has climbed, too: a line that was submitted, a focus to be set, a dialog that composes itself. To know that, a
callback goes the same way through the same queues, over again until the focus stays where it is. A key may also ask the
ledger or the host before its dialog opens, or before its run is shown: further keys wait for that, but not for long.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from textual.app import App, ScreenStackError
from textual.events import Event
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget

_FEWEST_CLIMBS = 2
"""By the first the key itself is done with, by the second what its handlers have posted."""
_ASKING: Final = frozenset({"baseline", "choose-log", "view"})
"""Groups of the workers that do what a key says: until then further keys would go elsewhere, or begin them anew."""
_ASKING_S = 2.0
"""A host that is slow to answer must not hold up the keys."""
_LOOK_S = 0.01
_LONGEST_S = 5.0
"""A handler that hangs must not take the keyboard away: after that a further key brings all before it to the focus."""


class KeyOrder:
    """Lets one key, or one paste, of an app be under way at a time; `handle` does with it what the app does."""

    def __init__(self, app: App[Any], handle: Callable[[Event], Awaitable[None]]) -> None:
        self._app, self._handle = app, handle
        self._waiting: deque[Event] = deque()
        self._turn = 0
        self._began_at: float | None = None
        """When the key that is under way was handed over; None: none is."""
        self.came_at: float | None = None
        """When that key came from the terminal."""

    @property
    def is_busy(self) -> bool:
        """Whether a key is under way."""
        return self._began_at is not None

    async def take(self, event: Event) -> None:
        """Handle it now, or when those before it are done with. Called by the app's own task only."""
        self._waiting.append(event)
        if self._began_at is None:
            await self._next()
        elif time.monotonic() - self._began_at > _LONGEST_S:
            while self._waiting:
                await self._next()

    async def _next(self) -> None:
        self._turn += 1
        if not self._waiting:
            self._began_at = self.came_at = None
            return
        event = self._waiting.popleft()
        self._began_at, self.came_at = time.monotonic(), event.time
        await self._handle(event)
        self._climb(self._turn, 1)

    def _climb(self, turn: int, climbs: int) -> None:
        """Send a callback behind the key, or what came of it, from what has the focus up to the app."""
        place = self._place()
        if place is None:  # the app ends
            return
        screen, focused = place

        async def arrived() -> None:
            if turn != self._turn:
                return
            if climbs < _FEWEST_CLIMBS or self._place() != place:
                self._climb(turn, climbs + 1)
            elif self._is_asking(screen):
                self._app.set_timer(_LOOK_S, arrived)
            else:
                await self._next()

        _climb_by((focused or screen).ancestors_with_self, arrived)

    def _is_asking(self, screen: Screen[Any]) -> bool:
        """Whether what was asked for is still being brought, and it isn't the operator who is waited for."""
        if self._began_at is None or time.monotonic() - self._began_at > _ASKING_S:
            return False
        return any(
            worker.group in _ASKING and not worker.is_finished and worker.node in (screen, self._app)
            for worker in self._app.workers
        )

    def _place(self) -> tuple[Screen[Any], Widget | None] | None:
        try:
            return self._app.screen, self._app.focused
        except ScreenStackError:
            return None


def _climb_by(way: Sequence[MessagePump], arrived: Callable[[], Awaitable[None]]) -> None:
    """Go through the queue of each in turn, then call; those that are closing take nothing more and are passed by."""
    for index, pump in enumerate(way):
        if index == len(way) - 1:
            pump.call_later(arrived)
        elif pump.call_later(_climb_by, way[index + 1 :], arrived):
            return
