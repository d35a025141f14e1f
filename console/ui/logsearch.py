"""Search in what a LogView shows: the nearest hit in either direction, here or on the host, and how many there are.

It moves the view by what the view offers for that, never by itself. Workers run `find` and `count`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import NamedTuple

from console.state.linekind import LineKind
from console.state.lines import is_cut
from console.state.logbuffer import Entry, EntryKind
from console.state.logquery import Hits, Query
from console.state.logwindow import Window
from console.ui.logfile import FILTERED_LINES
from console.ui.logpatterns import SlowQuery
from console.ui.logview import LogView

_COUNTS_KEPT = 4
_NOT_FOUND, _NOT_HERE = "not found", "not found here"
_NEAR = 50
"""Entries that the line of a hit may be cut into."""


class _Edge(NamedTuple):
    """A place in the file beyond which what is here doesn't tell where hits are."""

    offset: int
    is_before_it: bool = False
    """What is here of the file goes on behind it."""


class LogSearch:
    def __init__(self, view: LogView, changed: Callable[[], None], searched: Query | None = None) -> None:
        """`searched`: in another log; `n` goes on with it here."""
        self._view, self._changed = view, changed
        self._searched = searched
        self._asked: Query | None = None
        """What was asked for last: a search, or errors."""
        self._progress = ""
        self._is_unsure = False
        """The host couldn't say whether there is a hit."""
        self._hits: dict[tuple[tuple[int, int], Query], Hits] = {}
        """Of each file and query."""
        self._counting: Query | None = None

    @property
    def searched(self) -> Query | None:
        """What `n` goes on with, and what is marked."""
        return self._view.patterns.taken(self._searched) if self._searched is not None else None

    def clear(self) -> None:
        self.leave()
        self._searched = None

    def leave(self) -> None:
        """Say no more of what was asked for: another log is shown. `n` goes on with the search there."""
        self._asked = self._view.cursor = None
        self._progress = ""

    def gave_up(self) -> None:
        """The search was stopped by the operator."""
        if self._progress and self._progress not in (_NOT_FOUND, _NOT_HERE):
            self._progress = f"stopped while {self._progress}"

    def marks(self, text: str) -> list[tuple[int, int]]:
        """Return where in a text what is searched for stands."""
        query = self.searched
        if query is None:
            return []
        patterns = self._view.patterns
        try:
            return patterns.spans(query, text)
        except SlowQuery:
            self._view.take_as_text(query)
            return patterns.spans(patterns.taken(query), text)

    # -- finding ------------------------------------------------------------------------------------------------------

    async def find(self, query: Query, *, back: bool, again: bool = True) -> bool:
        """Go to the nearest hit in a direction, around the ends; False where there is none."""
        patterns = self._view.patterns
        asked = patterns.taken(query)
        try:
            found = await self._find(asked, back=back, again=again)
            is_slow = patterns.is_slow(asked)  # by the host's word
        except SlowQuery as slow:
            self._view.take_as_text(slow.query)
            found, is_slow = False, True
        return await self.find(query, back=back, again=again) if is_slow else found

    async def _find(self, query: Query, *, back: bool, again: bool) -> bool:
        self._asked, self._progress = query, "searching"
        if not query.errors:
            self._searched = query
        self._changed()
        self._is_unsure = False
        here = self._view.tail_or_window
        entries = here.entries
        beyond = tuple(self._beyond(here, back=back, again=again))
        nearest = self._local_hit(beyond, query)
        edge = self._far_edge(here, takewhile(lambda entry: entry is not nearest, beyond), back=back)
        found = None
        if edge is not None and (nearest is None or edge.is_before_it):
            found = await self._scan(query, edge.offset, back=back)
        if found is None:
            found = nearest
        if found is None:
            found = await self._scan(query, -1 if back else 0, back=back)
        if found is None:
            found = self._local_hit(reversed(entries) if back else entries, query)
        self._progress = "" if found is not None else _NOT_HERE if self._is_unsure else _NOT_FOUND
        self._view.cursor = found
        if found is not None:
            self._view.reveal(found)
        if (hits := self._hits_of(query)) is not None:
            self._know_line(hits)
        self._changed()
        return found is not None

    def _beyond(self, here: Window, *, back: bool, again: bool) -> Iterable[Entry]:
        """Return the entries from where a search begins on, the nearest first."""
        cursor = self._view.cursor if again else None
        if cursor is None and self._view.following:
            return reversed(here.entries) if back else ()
        entry = cursor if cursor is not None else self._view.top_entry
        if entry is None:
            return reversed(here.entries) if back else here.entries
        first, last = here.place_of(entry)
        if cursor is None:  # the line at the top is searched, too
            first, last = last, first
        return reversed(here.entries[:first]) if back else here.entries[last:]

    def _local_hit(self, entries: Iterable[Entry], query: Query) -> Entry | None:
        matches = self._matcher(query)
        return next((entry for entry in entries if entry.kind is EntryKind.LINE and matches(entry)), None)

    def _matcher(self, query: Query) -> Callable[[Entry], bool]:
        """Return what tells whether an entry is a hit that the filter lets through. It raises: SlowQuery."""
        found, only = self._finder(query), self._view.sieve.only
        if only is None:
            return found
        passes = self._view.patterns.finder(only)
        return lambda entry: passes(entry.text) and found(entry)

    def _finder(self, query: Query) -> Callable[[Entry], bool]:
        """Return what tells whether a query is found in what is shown of an entry. It raises: SlowQuery."""
        if query.errors:
            return lambda entry: self._view.sieve.kind(entry) is LineKind.ERROR
        finds = self._view.patterns.finder(query)
        return lambda entry: finds(entry.text)

    @staticmethod
    def _far_edge(here: Window, passed: Iterable[Entry], *, back: bool) -> _Edge | None:
        """Return from where on only the host can tell where the next hit is; None where nothing of the file is here.

        `passed`: what is here and shows no hit. It may hold one all the same: a line that is cut, or a bar's state that
        was written over.
        """
        of_file = {id(entry) for entry in here.entries[here.file_from :]}
        for entry in passed:
            offset = entry.end_offset if back else entry.offset
            if offset is not None and id(entry) in of_file and (entry.cr or is_cut(entry.text)):
                return _Edge(offset, is_before_it=True)
        offsets = [entry.offset for entry in here.entries[here.file_from :] if entry.offset is not None]
        ends = [entry.end_offset for entry in here.entries[here.file_from :] if entry.end_offset is not None]
        return _Edge(offsets[0] if back else max(ends, default=0)) if offsets else None

    async def _scan(self, query: Query, offset: int, *, back: bool) -> Entry | None:
        """Ask the host from an offset on to the end of the file in that direction; what was counted is known."""
        view = self._view
        if view.file.place is None:
            self._is_unsure = True
            return None
        passes = view.patterns.finder(view.sieve.only) if view.sieve.only is not None else None
        hits = self._hits_of(query) if passes is None else None
        known = hits.next_from(offset, back=back) if hits is not None and offset >= 0 else None
        if hits is not None and known is not None:
            hit = await self._entry_at(query, known, hits.none_begins_before(known + 1))
            if hit is not None:
                return hit
        limit = 1 if passes is None else FILTERED_LINES
        while (found := await view.file.look_for(query, offset, back=back, limit=limit)) is not None:
            order = reversed(range(len(found.lines))) if back else range(len(found.lines))
            at = next((index for index in order if passes is None or passes(found.lines[index].text)), None)
            if at is not None:
                hit = await self._entry_at(query, found.lines[at].offset, found.line_end(at))
                if hit is not None:
                    return hit
            if found.end in (found.begin, 0 if back else found.size_bytes):
                return None
            offset = found.end
            self._progress = f"searching {view.file.percent_of(offset)}"
            self._changed()
        self._is_unsure = True
        return None

    async def _entry_at(self, query: Query, offset: int, end: int) -> Entry | None:
        """Load what stands around a hit and return its entry; what begins at `end` is none of its line."""
        near = [entry for entry in await self._view.entries_from(offset, _NEAR) if (entry.offset or 0) < end]
        if not near:
            return None
        matches = self._matcher(query)
        if self._view.sieve.only is not None and not matches(near[0]):
            return None
        return next((entry for entry in near if matches(entry)), near[0])

    # -- counting -----------------------------------------------------------------------------------------------------

    async def count(self, query: Query) -> None:
        """Count the hits of the whole file, from its start on; goes on where an earlier count stopped."""
        view = self._view
        query = view.patterns.taken(query)
        key = (view.files, query)
        if key not in self._hits and len(self._hits) >= _COUNTS_KEPT:
            self._hits.pop(next(iter(self._hits)))
        hits = self._hits.setdefault(key, Hits())
        self._counting = query
        try:
            while True:
                before = hits.counted_to
                part = await view.file.count(query, before)
                if part is None or view.files != key[0] or part.to < before:
                    break
                hits.add(part)
                if hits.is_whole:
                    break
                self._know_line(hits)
                self._changed()
        finally:
            self._counting = None
            self._changed()

    def _hits_of(self, query: Query) -> Hits | None:
        """Return what was counted in the file that is shown."""
        return self._hits.get((self._view.files, query))

    def _know_line(self, hits: Hits) -> None:
        cursor = self._view.cursor
        if cursor is None or cursor.offset is None or self._view.is_gone(cursor):
            return
        number = hits.line_number(cursor.offset)
        if number is not None:
            self._view.know_line(cursor.offset, number)

    # -- what is said of it -------------------------------------------------------------------------------------------

    @property
    def label(self) -> str:
        """What the title says of the search: `/loss  hit 3 of 1,204…`."""
        query = self._view.patterns.taken(self._asked) if self._asked is not None else None
        if query is None:
            return ""
        name = "" if query.errors else f"/{self._view.patterns.named(query)}  "
        if self._progress in (_NOT_FOUND, _NOT_HERE):
            return self._progress.replace("not found", "no error line") if query.errors else name + self._progress
        if self._progress:
            return f"{name or 'errors  '}{self._progress}"
        try:
            return name + self._tally(query)
        except SlowQuery as slow:
            self._view.take_as_text(slow.query)
            return name

    def _tally(self, query: Query) -> str:
        word = "error" if query.errors else "hit"
        view, hits, cursor = self._view, self._hits_of(query), self._view.cursor
        is_gone = cursor is not None and view.is_gone(cursor)
        rank: int | None = None
        if hits is None or not hits.counted_to:
            here = view.tail_or_window
            lines = [entry for entry in here.entries[here.file_from :] if entry.kind is EntryKind.LINE]
            found = list(filter(self._matcher(query), lines))
            rank = next((place for place, entry in enumerate(found, 1) if entry is cursor), None)
            is_part = here.can_grow_up or view.ends_before or self._counting == query
            total = f"{len(found):,}{'+' if is_part else ''}"
        else:
            if cursor is not None and cursor.offset is not None and not is_gone:
                rank = hits.rank_of(cursor.offset)
            total = f"{hits.total:,}{'…' if self._counting == query else '' if hits.is_whole else '+'}"
        if is_gone:
            return f"{word} gone, {total} in the file"
        if cursor is None or rank is None:
            return f"{total} {word}{'' if total == '1' else 's'}"
        return f"{word} {rank:,} of {total}{'' if self._finder(query)(cursor) else f', {_why_unseen(cursor)}'}"


def _why_unseen(hit: Entry) -> str:
    """Why a line of which the host says that it is a hit doesn't show it."""
    return "cut off" if is_cut(hit.text) else "written over" if hit.cr else "not shown"
