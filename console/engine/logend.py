"""What is told of a log's end: its newest lines, the first error since the last step, and the lines that last."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from console.engine.logflow import Taken
from console.state import events
from console.state.formatrules import Kind
from console.state.lasting import is_noteworthy
from console.state.linekind import is_error
from console.state.logbuffer import EntryKind, LogBuffer

_TAIL_LINES = 400
_TAIL_EVERY_S = 0.25
_NOTED_LINES = 64


class ErrorLine(NamedTuple):
    number: int
    offset: int
    text: str


class LogEnd:
    """Tells of the end of one log after the other, as events; what the console itself has marked there is left out."""

    def __init__(
        self,
        buffer: LogBuffer,
        feed: Callable[[events.Event], None],
        now: Callable[[], float],
        known_end: Callable[[], int],
    ) -> None:
        """`known_end`: the number one past the last line that was understood; those behind it are not told yet."""
        self._buffer, self._feed, self._now, self._known_end = buffer, feed, now, known_end
        self._follow: int | None = None
        self._first_error: ErrorLine | None = None
        self._said, self._said_at = (-1, -1), 0.0

    def begin(self, follow: int) -> None:
        """Forget the last log; another one is read from here on."""
        self._follow, self._first_error = follow, None
        self._said, self._said_at = (-1, -1), 0.0

    def stop(self) -> None:
        """No log is read any more."""
        self._follow = None

    def scan(self, taken: Taken) -> None:
        """Note the first error line since the last step, which a step that follows calls handled, and what lasts."""
        last_step = max((s.offset for s in taken.samples if s.kind is Kind.STEP), default=None)
        if last_step is not None and self._first_error is not None and self._first_error.offset < last_step:
            self._first_error = None
        noted: list[events.LogLine] = []
        for number, line in enumerate(taken.lines, taken.first_number):
            if is_noteworthy(line.text):
                noted.append(events.LogLine(line.offset, line.text))
            if not is_error(line.text):
                continue
            if self._first_error is None and (last_step is None or line.offset > last_step):
                self._first_error = ErrorLine(number, line.offset, line.text)
                self.say(at_once=True)
        if noted and self._follow is not None:
            is_live = taken.live != () or not taken.history
            self._feed(
                events.LinesNoted(at=self._now(), follow=self._follow, lines=tuple(noted[:_NOTED_LINES]), live=is_live)
            )

    def say(self, *, at_once: bool = False) -> None:
        """Tell the newest lines, when they are new, at most four times a second."""
        now, newest = self._now(), (self._buffer.version, self._known_end())
        if self._follow is None or newest == self._said:
            return
        if not at_once and now - self._said_at < _TAIL_EVERY_S:
            return
        self._said, self._said_at = newest, now
        first = self._first_error
        self._feed(
            events.LogTail(
                at=now,
                follow=self._follow,
                lines=tuple(
                    events.LogLine(offset, text) for offset, text in self._tail(self._known_end(), _TAIL_LINES)
                ),
                first_error=events.LogLine(first.offset, first.text) if first is not None else None,
            )
        )

    def _tail(self, end: int, count: int) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        if end == self._buffer.end and (live := self._buffer.live) is not None:
            found.append((live.offset, live.text))
        for number in range(end - 1, self._buffer.first - 1, -1):
            if len(found) >= count:
                break
            entry = self._buffer.line(number)
            if entry is not None and entry.kind is EntryKind.LINE:
                found.append((entry.offset or 0, entry.text))
        return found[::-1]

    def last_lines(self, count: int) -> list[str]:
        """Return the newest lines that there are, be they understood or not."""
        return [text for _, text in self._tail(self._buffer.end, count)]

    def first_error(self) -> tuple[int, int, str] | None:
        """Return (line number from 1, byte offset, text); the number counts from where we began to read."""
        first = self._first_error
        return (first.number + 1, first.offset, first.text) if first is not None else None
