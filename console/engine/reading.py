"""The log is read a slice at a time, so that keys and paints have their turn however fast it grows.

Reading is showing and then understanding. What waits is shown before anything more is understood: who opens a log wants
its newest lines. Owns what has come and was not shown yet, and the credit that is given for more. Knows nothing of what
showing and understanding mean.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator

import msgspec

from console.engine.logflow import CREDIT_BYTES, WHOLE_BYTES
from console.protocol import LogEvent

Piece = tuple[LogEvent, bytes, float]
"""An event, the bytes that came with it, and when they came."""

SLICE_BYTES = 16 * 1024
TURN_S = 0.005
"""After so much CPU time others have their turn."""
REST = 1.0
"""Reading may take half of the loop's time, no more. Counted in CPU time: on a busy machine the clock would count
others' work as ours, and the log would fall behind."""
OPENING_REST = 0.25
"""Four fifths while a log is opened: it is what everybody waits for, and a key pauses it."""
FLOOD_TURN_S, FLOOD_REST = 0.002, 4.0
"""In a flood a fifth, in shorter turns: nobody reads it all, what is too much is skipped by the host, and a key that
falls into a turn waits for its end."""
FLOOD_S = 4.0
"""So much more CPU time than its lasting share, and it is a flood. So it is as soon as the host has skipped something:
more came than half of the time is enough for."""
LASTING_SHARE = 1 / 5
OWED_BYTES = CREDIT_BYTES // 4
"""Credit is given in such pieces: one for each line would wake the host up as often as the lines do."""
AHEAD_BYTES = WHOLE_BYTES + (1 << 20)
"""For so much of a log that is opened credit is given when it is shown, for what follows when it is understood: all
that was there, and what comes while that is understood, is seen at once, and a flood waits at the host."""


class Reading:
    """Hands pieces to `show` in their order; says by `give_credit` how many bytes more may come."""

    def __init__(
        self,
        show: Callable[[LogEvent, bytes, float], bool | None],
        give_credit: Callable[[int], None],
        understand: Callable[[Callable[[], bool]], int | None] = lambda has_time: None,
    ) -> None:
        """`show` returns True where something is left to be understood. `understand` goes on for as long as its
        argument says that there is time; it returns how many of the shown bytes it is done with, None where nothing is
        left."""
        self._show, self._give_credit, self._understand = show, give_credit, understand
        self._unread: deque[Piece] = deque()
        self._next: asyncio.TimerHandle | None = None
        self._is_paused = False
        self._spent_s = self._spent_until = 0.0
        self._turn_s = TURN_S
        self.begin(0)

    def put(self, event: LogEvent, data: bytes, now: float) -> None:
        """Read it at once where nothing waits, else in its turn."""
        self._unread += slices(event, data, now)
        if self._next is None:
            self._go_on()

    def wake(self) -> None:
        """There is something to be understood that was held back."""
        if self._next is None:
            self._go_on()

    def pause(self, seconds: float) -> None:
        """Let others go first for a moment. Asked for again before the next turn it changes nothing: keys that are held
        down must not stop the log."""
        if self._is_paused:
            return
        self._is_paused = True
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if self._next is not None:
            until = max(until, self._next.when())
            self._next.cancel()
        self._next = loop.call_at(until, self._go_on)

    def begin(self, ahead_bytes: int, stale_bytes: int = 0) -> None:
        """Forget what was not shown yet, and what is owed for it: another connection counts anew.

        `ahead_bytes`: so many are credited when they are shown. `stale_bytes`: so many of the connection before are
        still to be understood.
        """
        self._unread.clear()
        self._ahead_bytes, self._done_bytes = ahead_bytes, -stale_bytes
        self._shown_bytes = self._credited_bytes = 0
        if self._next is not None:
            self._next.cancel()
            self._next, self._is_paused = None, False

    def _go_on(self) -> None:
        self._next, self._is_paused = None, False
        began = time.thread_time()

        def has_time() -> bool:
            return time.thread_time() - began < self._turn_s

        while self._next is None and self._step(has_time):
            took_s = time.thread_time() - began
            if took_s >= self._turn_s:  # also where nothing is left: what comes next waits
                loop = asyncio.get_running_loop()
                self._next = loop.call_later(took_s * self._rest(took_s, loop.time()), self._go_on)

    def _step(self, has_time: Callable[[], bool]) -> bool:
        """Do the next piece of work; False where there is none."""
        if self._unread:
            event, data, now = self._next_piece()
            self._shown_bytes += len(data)
            if event.skipped_from is not None:
                self._spent_s, self._spent_until = max(self._spent_s, FLOOD_S), asyncio.get_running_loop().time()
            if not self._show(event, data, now):
                self._done_bytes += len(data)
            self._pay()
            return True
        done_bytes = self._understand(has_time)
        if done_bytes is None:
            return False
        self._done_bytes += done_bytes
        self._pay()
        return True

    def _next_piece(self) -> Piece:
        """Take what waits together, as far as it is one piece of the log: who is behind catches up, since a piece costs
        more than its lines."""
        event, data, now = self._unread.popleft()
        parts, size_bytes = [data], len(data)
        while self._unread and goes_on(event, size_bytes, self._unread[0]) and size_bytes < SLICE_BYTES:
            after, more, now = self._unread.popleft()
            parts.append(more)
            size_bytes += len(more)
            event = msgspec.structs.replace(after, offset=event.offset, n=size_bytes, skipped_from=event.skipped_from)
        return event, b"".join(parts), now

    def _rest(self, took_s: float, now: float) -> float:
        """Return for how long to rest after a turn, in times of the turn, and set how long the next one may be. What a
        log is opened with is no flood, however long it takes: no verdict is given before it is understood."""
        self._turn_s = TURN_S
        if self._done_bytes < min(self._shown_bytes, self._ahead_bytes):
            return OPENING_REST
        if not self._is_flooded(took_s, now):
            return REST
        self._turn_s = FLOOD_TURN_S
        return FLOOD_REST

    def _is_flooded(self, took_s: float, now: float) -> bool:
        """Add a turn to what was spent, from which the lasting share is paid back as time passes."""
        paid_s = (now - self._spent_until) * LASTING_SHARE
        self._spent_s, self._spent_until = max(0.0, self._spent_s - paid_s) + took_s, now
        self._spent_s = min(self._spent_s, 2 * FLOOD_S)
        return self._spent_s > FLOOD_S

    def _pay(self) -> None:
        owed = max(self._done_bytes, min(self._shown_bytes, self._ahead_bytes)) - self._credited_bytes
        if owed >= OWED_BYTES:  # before that the host has enough left
            self._credited_bytes += owed
            self._give_credit(owed)


def goes_on(event: LogEvent, size_bytes: int, piece: Piece) -> bool:
    """Whether a piece is just the next bytes of the same file, and says nothing else."""
    after, more, _ = piece
    return (
        size_bytes > 0
        and len(more) > 0
        and after.skipped_from is None
        and after.offset == event.offset + size_bytes
        and (after.path, after.dev, after.inode) == (event.path, event.dev, event.inode)
        and (after.state, after.full, after.fs, after.detail) == (event.state, event.full, event.fs, event.detail)
    )


def slices(event: LogEvent, data: bytes, now: float) -> Iterator[Piece]:
    """Cut a chunk into slices that say where they stand; a pure status is one."""
    if len(data) <= SLICE_BYTES:
        yield event, data, now
        return
    for start in range(0, len(data), SLICE_BYTES):
        part = data[start : start + SLICE_BYTES]
        skipped_from = event.skipped_from if start == 0 else None
        yield (
            msgspec.structs.replace(event, offset=event.offset + start, n=len(part), skipped_from=skipped_from),
            part,
            now,
        )
