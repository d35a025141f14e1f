"""A window on a log: the lines of one contiguous range of the file, which grows at either end and stays bounded.

It is cut out of the tail that is followed, or filled by ranges that were asked for; where it reaches the tail, it takes
new lines from there. Positions are byte offsets. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Final

from console.state.logbuffer import Entry, EntryKind, LogBuffer
from console.state.stretch import Stretch

MOST_ENTRIES: Final = 6000
MOST_BYTES: Final = 8 << 20
LOADED: Final = -1
"""The number of an entry that was not in the tail: its offset tells it apart."""


class Window:
    """Lines in the order of the file, with the console's own marks where they came from the tail."""

    def __init__(self, *, begin: int, end: int, is_sieved: bool = False, anew: int = 0) -> None:
        """With `is_sieved` lines are left out between those that come: nobody can count lines by them.

        `anew`: how often the file had begun anew before.
        """
        self.entries: list[Entry] = []
        self.begin, self.end = begin, end
        """Lines that start in [begin, end) are here, as far as they match."""
        self.joined: int | None = None
        """The number of the next entry to be taken from the tail; None while the window doesn't reach it."""
        self.anew = anew
        """How often the file has begun anew, as far as what is here knows."""
        self.file_from = 0
        """What stands before this entry is of a file, or a content of it, that is gone: its offsets mean nothing."""
        self.left_out = 0
        """Lines that are hidden and so did not come, of all that was looked at."""
        self.version = 0
        self._is_sieved = is_sieved
        self._lines_before: int | None = 0 if begin == 0 and not is_sieved else None
        self._breaks: list[int | None] = []
        self._bytes = 0

    @classmethod
    def of_tail(cls, buffer: LogBuffer, *, is_sieved: bool = False) -> Window:
        """Return what the tail holds since bytes were last left out."""
        entries = buffer.lines(max(buffer.first, buffer.end - MOST_ENTRIES), buffer.end)
        gap = max((i for i, entry in enumerate(entries) if entry.kind is EntryKind.GAP), default=-1)
        entries = entries[gap + 1 :]
        known = buffer.anew - sum(entry.kind is EntryKind.ANEW for entry in entries)
        first = next((i for i, entry in enumerate(entries) if entry.kind is EntryKind.LINE), None)
        if first is not None and entries[first].partial and entries[first].offset:
            # The line's start was not read; the range before it will bring the whole line.
            entries = [*entries[:first], *entries[first + 1 :]]
        offsets = [entry.offset for entry in entries if entry.kind is EntryKind.LINE and entry.offset is not None]
        # Of a line that has no end for megabytes nothing may be here yet but what was skipped before it.
        begin = offsets[0] if offsets else buffer.live.offset if buffer.live is not None else 0
        window = cls(begin=begin, end=begin, is_sieved=is_sieved, anew=known)
        window._lines_before = None
        window._add(entries)
        window.joined = buffer.end
        return window

    # -- what is there ------------------------------------------------------------------------------------------------

    @property
    def can_grow_up(self) -> bool:
        return self.begin > 0 and self.file_from == 0

    def is_of(self, buffer: LogBuffer) -> bool:
        """Whether the file that it is of is the one that is followed now, or it will see that it isn't."""
        return self.joined is not None or self.anew == buffer.anew

    def line_number(self, index: int) -> int | None:
        """Return the number, from 1, of the file's line in which an entry stands; None where nobody has counted."""
        if self._lines_before is None:
            return None
        before = self._breaks[:index]
        return None if None in before else self._lines_before + sum(filter(None, before)) + 1

    def index_of(self, offset: int) -> int | None:
        """Return the entry that holds a byte of the file."""
        for index, entry in enumerate(self.entries[self.file_from :], self.file_from):
            if entry.offset is not None and entry.end_offset is not None and entry.offset <= offset < entry.end_offset:
                return index
        return None

    def place_of(self, entry: Entry) -> tuple[int, int]:
        """Return the places at which an entry begins and ends, both the same where it is not here any more."""
        for index, each in enumerate(self.entries):
            if each is entry:
                return index, index + 1
        offset = -1 if entry.offset is None else entry.offset
        for index, each in enumerate(self.entries[self.file_from :], self.file_from):
            if each.offset is not None and each.offset >= offset:
                return index, index + (each.offset == offset)
        return len(self.entries), len(self.entries)

    def know_line(self, offset: int, number: int) -> None:
        """Take from a count which line of the file starts at an offset."""
        index = self.index_of(offset) if not self._is_sieved else None
        if index is not None and None not in self._breaks[:index]:
            self._lines_before = number - 1 - sum(filter(None, self._breaks[:index]))

    # -- growing ------------------------------------------------------------------------------------------------------

    def fill(self, after: Stretch, before: Stretch | None) -> None:
        """Take what was found on both sides of a place: of each as much as leaves room for the other."""
        self._append(_entries(after), after.breaks)
        self.left_out += after.left_out
        self.end = max(self.end, after.end)
        self._trim_end(MOST_ENTRIES // 2, MOST_BYTES // 2)
        if before is not None:
            entries, size_bytes = len(self.entries), self._bytes
            self._put_in_front(before)
            self._trim_front(entries + MOST_ENTRIES // 2, size_bytes + MOST_BYTES // 2)
        self.version += 1

    def prepend(self, stretch: Stretch) -> int:
        """Take what was found before `begin`; return how many entries were put in front."""
        count = self._put_in_front(stretch)
        self._trim_end(MOST_ENTRIES, MOST_BYTES)
        self.version += 1
        return count

    def _put_in_front(self, stretch: Stretch) -> int:
        if self.entries and stretch.end < self.begin:
            # What the tail says of its own beginning is no longer true.
            notes = list(takewhile(lambda entry: entry.kind in (EntryKind.NOTE, EntryKind.GAP), self.entries))
            self._drop_front(len(notes))
        fresh = _entries(stretch)
        self.left_out += stretch.left_out
        self.entries[:0] = fresh
        self._breaks[:0] = stretch.breaks
        self._bytes += sum(map(_cost, fresh))
        self.begin = stretch.end
        if self._is_sieved:
            pass
        elif self.begin == 0:
            self._lines_before = 0
        elif self._lines_before is not None:
            self._lines_before -= sum(stretch.breaks)
        return len(fresh)

    def append(self, stretch: Stretch) -> int:
        """Take what was found from `end` on; return how many entries were dropped at the front for it."""
        fresh = [entry for entry in _entries(stretch) if (entry.offset or 0) >= self.end]
        self._append(fresh, stretch.breaks[len(stretch.breaks) - len(fresh) :])
        self.left_out += stretch.left_out
        self.end = max(self.end, stretch.end)
        self.version += 1
        return self._trim_front(MOST_ENTRIES, MOST_BYTES)

    def join(self, buffer: LogBuffer) -> bool:
        """Go on with the tail if it holds what comes next here; say whether it does."""
        if self.joined is not None:
            return True
        if self.anew != buffer.anew:
            return False
        for number in range(max(buffer.first, buffer.anew_at), buffer.end):
            entry = buffer.line(number)
            if entry is None or entry.offset is None or entry.kind is not EntryKind.LINE:
                continue
            if entry.offset > self.end:
                return False
            if entry.offset == self.end and not entry.partial:
                self.joined = number
                return True
        return False

    def follow(self, buffer: LogBuffer) -> None:
        """Take the tail's new entries, as long as there is room: what is read must not be pushed out."""
        if self.joined is None:
            return
        if self.joined < buffer.first:
            self.joined = None  # they came too fast: the file still has them
            return
        room = min(MOST_ENTRIES - len(self.entries), 1000) if self._bytes < MOST_BYTES else 0
        self._take(buffer, max(0, room))

    def make_room_and_follow(self, buffer: LogBuffer) -> int:
        """Take the tail's next entries whatever goes at the front for them; return how many went."""
        if self.joined is None or self.joined < buffer.first:
            self.joined = None
            return 0
        self._take(buffer, 1000)
        return self._trim_front(MOST_ENTRIES, MOST_BYTES)

    def _take(self, buffer: LogBuffer, count: int) -> None:
        start = self.joined or 0
        fresh = buffer.lines(start, min(buffer.end, start + count))
        if fresh:
            self._add(fresh)
            self.joined = start + len(fresh)
            self.version += 1

    def _add(self, entries: Sequence[Entry]) -> None:
        for index, entry in enumerate(entries, len(self.entries)):
            if entry.kind is EntryKind.ANEW:
                self.anew += 1
                self.file_from, self.end = index + 1, 0
            if entry.end_offset is not None:
                self.end = entry.end_offset
        self._append(entries, [None] * len(entries))

    def _append(self, entries: Sequence[Entry], breaks: Iterable[int | None]) -> None:
        self.entries += entries
        self._breaks += breaks
        self._bytes += sum(map(_cost, entries))

    def _trim_end(self, most_entries: int, most_bytes: int) -> None:
        while len(self.entries) > most_entries or (self._bytes > most_bytes and len(self.entries) > 1):
            entry = self.entries.pop()
            self._breaks.pop()
            self._bytes -= _cost(entry)
            self.joined = None
            if entry.offset is not None:
                self.end = entry.offset

    def _trim_front(self, most_entries: int, most_bytes: int) -> int:
        count, used = 0, self._bytes
        while len(self.entries) - count > most_entries or (used > most_bytes and len(self.entries) - count > 1):
            used -= _cost(self.entries[count])
            count += 1
        self._drop_front(count)
        return count

    def _drop_front(self, count: int) -> None:
        if count == 0:
            return
        breaks = self._breaks[:count]
        if self._lines_before is not None:
            known = None not in breaks
            self._lines_before = self._lines_before + sum(filter(None, breaks)) if known else None
        self._bytes -= sum(map(_cost, self.entries[:count]))
        ends = [entry.end_offset for entry in self.entries[self.file_from : count] if entry.end_offset is not None]
        del self.entries[:count], self._breaks[:count]
        if ends:
            self.begin = ends[-1]
        elif 0 < self.file_from <= count:
            self.begin = next((entry.offset for entry in self.entries if entry.offset is not None), self.end)
        self.file_from = max(0, self.file_from - count)
        self.version += 1


def _cost(entry: Entry) -> int:
    return len(entry.text) + 200


def _entries(stretch: Stretch) -> list[Entry]:
    return [
        Entry(
            number=LOADED, kind=EntryKind.LINE, text=line.text, at=line.at, offset=line.offset,
            end_offset=line.end_offset, cr=line.cr, partial=line.partial,
        )
        for line in stretch.lines
    ]  # fmt: skip
