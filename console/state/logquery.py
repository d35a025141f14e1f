"""What is searched for in a log, where, and what was found: the words of screens and of who reads the file. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

import msgspec

from console.state.stretch import Identity

MOST_KEPT_HITS = 100_000
"""Places of hits that are kept, 1.6 MB; the rest is only counted."""
_SPECIAL = frozenset(".^$*+?{}[]\\|()")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A log on the host."""

    path: str
    pid: int | None = None
    """Where the path is gone: whose stdout it is."""
    identity: Identity | None = None
    """Which file it was when last looked at; None: whichever it is."""


class LogFile(msgspec.Struct, frozen=True, kw_only=True):
    """A log that is there to be chosen."""

    path: str
    size_bytes: int
    written_wall: float
    """When it was last written to, by the host's wall clock."""
    run: str = ""
    """The run that wrote it, where that is known."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A text or a regular expression; or, with `errors`, whatever is an error."""

    text: str = ""
    literal: bool = False
    ignore_case: bool = False
    errors: bool = False

    def pattern(self) -> re.Pattern[str]:
        """Return what is shown as found in a line. Raises: re.error."""
        text = re.escape(self.text) if self.literal else self.text
        return re.compile(text, re.IGNORECASE if self.ignore_case else 0)


ERRORS = Query(errors=True)


def typed(text: str, *, literal: bool = False) -> Query:
    """Read what somebody typed as less does: a regular expression; small letters match capitals, too.

    What is no valid expression, or has nothing special in it, is a text.
    """
    ignore_case = text == text.lower()
    if not literal and has_signs(text):
        try:
            re.compile(text)
        except (re.error, OverflowError, RecursionError):
            literal = True
    else:
        literal = True
    return Query(text=text, literal=literal, ignore_case=ignore_case)


def has_signs(text: str) -> bool:
    """Whether it has signs of a regular expression."""
    return not _SPECIAL.isdisjoint(text)


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at a range brought."""

    to: int
    hits: int
    lines: int
    found: tuple[tuple[int, int], ...]
    """Of the first hits: offset, lines before it since the offset asked for."""
    size_bytes: int
    identity: Identity


class Hits:
    """Where in a file a query is found, as far as was counted from its start on."""

    def __init__(self) -> None:
        self.counted_to = 0
        self.size_bytes: int | None = None
        self.total = 0
        self.is_whole = False
        """It was counted up to the end of the file, as that was then."""
        self.lines = 0
        """Lines of the file before `counted_to`."""
        self._offsets: list[int] = []
        self._lines: list[int] = []

    def add(self, part: Counted) -> None:
        """Take what was counted from `counted_to` on."""
        room = MOST_KEPT_HITS - len(self._offsets) if len(self._offsets) == self.total else 0
        for offset, before in part.found[: max(0, room)]:
            self._offsets.append(offset)
            self._lines.append(self.lines + before)
        self.is_whole = part.to == self.counted_to
        self.total += part.hits
        self.lines += part.lines
        self.counted_to, self.size_bytes = part.to, part.size_bytes

    @property
    def known_to(self) -> int:
        """Up to here every hit's place is known, not only how many there are."""
        return self.counted_to if len(self._offsets) == self.total else self._offsets[-1] + 1 if self._offsets else 0

    def rank_of(self, offset: int) -> int | None:
        """Return which hit, from 1, stands in the line that holds a byte; None where that isn't known yet.

        That it is a hit is the caller's knowledge.
        """
        return bisect_right(self._offsets, offset) or None if offset < self.known_to else None

    def next_from(self, offset: int, *, back: bool) -> int | None:
        """Return where the next hit's line starts at or after (or before) an offset; None where that isn't known."""
        index = bisect_left(self._offsets, offset)
        if back:
            return self._offsets[index - 1] if index and offset <= self.known_to else None
        return self._offsets[index] if index < len(self._offsets) else None

    def none_begins_before(self, offset: int) -> int:
        """Return up to where no other hit's line begins from an offset on, as far as was counted."""
        index = bisect_left(self._offsets, offset)
        return self._offsets[index] if index < len(self._offsets) else max(offset, self.known_to)

    def line_number(self, offset: int) -> int | None:
        """Return the line number, from 1, of a hit whose line starts at an offset."""
        index = bisect_left(self._offsets, offset)
        is_there = index < len(self._offsets) and self._offsets[index] == offset
        return self._lines[index] + 1 if is_there else None
