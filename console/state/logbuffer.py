"""The last lines of the log under absolute numbers, with the console's own marks, gaps and notes among them.

Bounded by lines and by bytes: the oldest go first, and `dropped` says how many. Numbers never change and are never used
twice, so they can serve as cache keys. Nothing is formatted for the screen here. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from console.state.linekind import LineKind, classify
from console.state.lines import RawLine

ENTRY_BYTES: Final = 200  # what an entry costs beyond its text, roughly
FLOOD_S: Final = 60.0
"""Gaps that come sooner one after the other than this are of one flood."""


class EntryKind(StrEnum):
    LINE = "line"
    MARK = "mark"  # the console's own: `spawned pid 90112, log opened`
    GAP = "gap"  # bytes that were never read
    NOTE = "note"  # the console's own word on what is read
    ANEW = "anew"  # truncated, rotated, replaced: what stands above is in no file any more


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    number: int
    kind: EntryKind
    text: str
    at: float
    offset: int | None = None
    """Byte offset of a line in the file; None for what isn't in it."""
    end_offset: int | None = None
    cr: bool = False
    partial: bool = False
    """Bytes of the line are missing at its start or its end."""


class LogBuffer:
    """Append-only to the reader, bounded to the writer."""

    def __init__(self, max_lines: int = 20_000, max_bytes: int = 32 * 1024 * 1024) -> None:
        self._max_lines = max(1, max_lines)
        self._max_bytes = max_bytes
        self._entries: list[Entry] = []
        self._head = 0  # entries before it are dropped, and are cut off now and then
        self._first = 0
        self._used_bytes = 0
        self._kinds: dict[int, LineKind] = {}
        self._live: RawLine | None = None
        self._version = 0
        self._gap_at: float | None = None
        self._skipped_bytes = 0
        self.anew = 0
        """How often the file began anew."""
        self.anew_at = 0
        """Entries with lower numbers are of a file that is gone."""

    @property
    def first(self) -> int:
        """Number of the oldest entry that is still here."""
        return self._first

    @property
    def end(self) -> int:
        """One past the number of the newest entry."""
        return self._first + len(self._entries) - self._head

    @property
    def dropped(self) -> int:
        """How many entries were dropped from the front."""
        return self._first

    @property
    def version(self) -> int:
        """Grows with every change, the live line's included."""
        return self._version

    @property
    def gap_at(self) -> float | None:
        """When bytes were last left out; None where all was read."""
        return self._gap_at

    def skipped_lately(self, now: float) -> int:
        """Return how many bytes were left out in the flood that goes on, or was over just now."""
        return self._skipped_bytes if self._gap_at is not None and now - self._gap_at < FLOOD_S else 0

    @property
    def live(self) -> RawLine | None:
        """The unfinished last line or the current state of a progress bar; it has no number."""
        return self._live

    def __len__(self) -> int:
        return len(self._entries) - self._head

    # Writing

    def append(self, lines: Iterable[RawLine]) -> int:
        """Add lines as the splitter hands them out, without the overwritten states of bars, and return how many."""
        added = 0
        for line in lines:
            if line.frame:
                continue
            self._add(
                Entry(
                    number=self.end,
                    kind=EntryKind.LINE,
                    text=line.text,
                    at=line.at,
                    offset=line.offset,
                    end_offset=line.end_offset,
                    cr=line.cr,
                    partial=line.partial,
                )
            )
            added += 1
        if added:
            self._version += 1
        return added

    def set_live(self, line: RawLine | None) -> None:
        """Show this as the unfinished last line."""
        if line != self._live:
            self._live = line
            self._version += 1

    def mark(self, text: str, at: float) -> None:
        """Add a line of the console's own."""
        self._add_text(EntryKind.MARK, text, at)

    def gap(self, skipped_bytes: int, at: float) -> None:
        """Say that bytes of the log are left out here."""
        self._skipped_bytes = self.skipped_lately(at) + skipped_bytes
        self._gap_at = at
        self._add_text(EntryKind.GAP, f"… {_size(skipped_bytes)} skipped", at)

    def note(self, text: str, at: float) -> None:
        """Say something of what is read: `the log begins 3,100 bytes above this line`."""
        self._add_text(EntryKind.NOTE, text, at)

    def begin_anew(self, text: str, at: float) -> None:
        """Say that another file follows, or another content of this one: `log was truncated`."""
        self._begin_anew()
        self._add_text(EntryKind.ANEW, text, at)

    def _begin_anew(self) -> None:
        self.anew += 1
        self.anew_at = self.end
        self._skipped_bytes = 0

    def clear(self) -> None:
        """Drop everything (another run's log is shown); numbers go on."""
        self._begin_anew()
        self._first = self.end
        self._entries.clear()
        self._kinds.clear()
        self._head = self._used_bytes = 0
        self._live = None
        self._version += 1

    def _add_text(self, kind: EntryKind, text: str, at: float) -> None:
        self._add(Entry(number=self.end, kind=kind, text=text, at=at))
        self._version += 1

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._used_bytes += len(entry.text) + ENTRY_BYTES
        while len(self) > self._max_lines or (self._used_bytes > self._max_bytes and len(self) > 1):
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        oldest = self._entries[self._head]
        self._used_bytes -= len(oldest.text) + ENTRY_BYTES
        self._kinds.pop(oldest.number, None)
        self._head += 1
        self._first += 1
        if self._head >= self._max_lines // 4 + 1:
            del self._entries[: self._head]
            self._head = 0

    # Reading

    def line(self, number: int) -> Entry | None:
        """Return an entry by its number, or None where it is dropped or not there yet."""
        index = number - self._first + self._head
        return self._entries[index] if self._head <= index < len(self._entries) else None

    def lines(self, start: int, stop: int) -> list[Entry]:
        """Return the entries with start <= number < stop that are here."""
        shift = self._head - self._first
        return self._entries[max(start + shift, self._head) : max(stop + shift, self._head)]

    def kind(self, number: int) -> LineKind:
        """Return what the gutter shows for a line; marks, gaps and what isn't here are plain."""
        known = self._kinds.get(number)
        if known is None:
            entry = self.line(number)
            if entry is None or entry.kind is not EntryKind.LINE:
                return LineKind.PLAIN
            known = self._kinds[number] = classify(entry.text)
        return known

    def search(self, pattern: re.Pattern[str] | str, start: int, direction: int = 1) -> int | None:
        """Return the nearest number from `start` on (inclusive) whose text holds the pattern, without wrapping around.

        A string is searched for as it is, ignoring case when it has no capitals. `direction` is 1 (newer) or -1
        (older).
        """
        if isinstance(pattern, str):
            pattern = re.compile(re.escape(pattern), 0 if pattern != pattern.lower() else re.IGNORECASE)
        for number in self._walk(start, direction):
            if pattern.search(self._entries[number - self._first + self._head].text):
                return number
        return None

    def next_error(self, after: int) -> int | None:
        """Return the first error line after a number."""
        return self._error(after + 1, 1)

    def prev_error(self, before: int) -> int | None:
        """Return the last error line before a number."""
        return self._error(before - 1, -1)

    def _error(self, start: int, direction: int) -> int | None:
        return next((n for n in self._walk(start, direction) if self.kind(n) is LineKind.ERROR), None)

    def _walk(self, start: int, direction: int) -> range:
        if direction >= 0:
            return range(max(start, self._first), self.end)
        return range(min(start, self.end - 1), self._first - 1, -1)


def _size(size_bytes: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes} B"
