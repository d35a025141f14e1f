"""Tells the escape key from what only begins with its code, where the next key is right behind it.

Terminals send alt with a key as escape and the key, and so does tmux with a key that is pressed within its escape-time
after escape. No key here is bound with alt, so what comes that way is two keys. Textual takes it for one, which nothing
is bound to, or for the key alone; and it gathers what follows until a tenth of a second has passed without any.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from textual import events
from textual._xterm_parser import XTermParser
from textual.message import Message

_ESC: Final = "\x1b"
_GOES_ON: Final = frozenset("[O\x1b\x7f\tbf")
"""What begins a longer sequence behind an escape, and what is sent with it for a key by which lines are edited: alt and
backspace, b or f (as some send alt and an arrow), shift and tab."""


class EscapeParser(XTermParser):
    """Textual's parser of what a terminal sends."""

    _ends_with_escape = False

    def feed(self, data: str) -> Iterable[Message]:
        """Parse a piece, in which an escape ends before what doesn't go on with it; an empty piece is the end."""
        begin = 0
        for at, character in enumerate(data):
            if self._ends_with_escape and character not in _GOES_ON:
                if at > begin:
                    yield from super().feed(data[begin:at])
                yield from self._end_escape()
                begin = at
            self._ends_with_escape = character == _ESC
        yield from super().feed(data[begin:])

    def _end_escape(self) -> Iterable[Message]:
        """What waits for the rest of a sequence has waited long enough."""
        if self._timeout_time is not None:
            self._timeout_time = 0.0
        return self.tick()

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        """Called with `alt` for what comes behind an escape and turned out to be no sequence: `[`, for one."""
        if alt:
            yield events.Key("escape", _ESC)
        yield from super()._sequence_to_key_events(sequence)
