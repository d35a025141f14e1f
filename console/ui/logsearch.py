"""Search in what a LogView shows: the nearest hit in either direction, here or on the host, and how many there are.

It moves the view by what the view offers for that, never by itself. Workers run `find` and `count`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from console.state.linekind import LineKind
from console.state.logbuffer import Entry, EntryKind
from console.state.logquery import Hits, Query
from console.ui.logpatterns import SlowQuery
from console.ui.logview import FILTERED_LINES, LogView

_COUNTS_KEPT = 4
_NEAR = 50
"""Entries that the line of a hit may be cut into."""


class LogSearch:
    def __init__(self, view: LogView, changed: Callable[[], None]) -> None:
        self._view, self._changed = view, changed
        self._searched: Query | None = None
        self._asked: Query | None = None
        """What was asked for last: a search, or errors."""
        self._progress = ""
        self._hits: dict[tuple[int, Query], Hits] = {}
        """Of each file and query."""
        self._counting: Query | None = None

    @property
    def searched(self) -> Query | None:
        """What `n` goes on with, and what is marked."""
        return self._view.patterns.taken(self._searched) if self._searched is not None else None

    def clear(self) -> None:
        self._searched = self._asked = self._view.cursor = None
        self._progress = ""

    def gave_up(self) -> None:
        """The search was stopped by the operator."""
        if self._progress and self._progress != "not found":
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
        here = self._here(back=back, again=again)
        entries = self._view.tail_or_window.entries
        found = self._local_hit(entries, query, here, back=back)
        if found is None:
            found = await self._far_hit(query, entries, back=back)
        if found is None:
            found = self._local_hit(entries, query, None, back=back)
        self._progress = "" if found is not None else "not found"
        self._view.cursor = found
        if found is not None:
            self._view.reveal(found)
        if (hits := self._hits_of(query)) is not None:
            self._know_line(hits)
        self._changed()
        return found is not None

    def _here(self, *, back: bool, again: bool) -> tuple[int, int] | None:
        """Return what to search beyond, as an order of entries; None: an end of the log."""
        if again and self._view.cursor is not None:
            return _order(self._view.cursor)
        if self._view.following:
            return None if back else (1 << 62, 0)
        entry = self._view.top_entry
        if entry is None:
            return None
        first, second = _order(entry)
        return (first, second + 1) if back else (first, second - 1)

    def _local_hit(
        self, entries: Sequence[Entry], query: Query, here: tuple[int, int] | None, *, back: bool
    ) -> Entry | None:
        matches = self._matcher(query)
        for entry in reversed(entries) if back else entries:
            if entry.kind is not EntryKind.LINE:
                continue
            if here is not None and (_order(entry) >= here if back else _order(entry) <= here):
                continue
            if matches(entry):
                return entry
        return None

    def _matcher(self, query: Query) -> Callable[[Entry], bool]:
        """Return what tells whether an entry is a hit that the filter lets through. It raises: SlowQuery."""
        sieve, patterns = self._view.sieve, self._view.patterns
        if query.errors:
            found: Callable[[Entry], bool] = lambda entry: sieve.kind(entry) is LineKind.ERROR  # noqa: E731
        else:
            finds = patterns.finder(query)
            found = lambda entry: finds(entry.text)  # noqa: E731
        if sieve.only is None:
            return found
        passes = patterns.finder(sieve.only)
        return lambda entry: passes(entry.text) and found(entry)

    async def _far_hit(self, query: Query, entries: Sequence[Entry], *, back: bool) -> Entry | None:
        """Ask the host beyond what is here, then from the other end on."""
        if self._view.place is None:
            return None
        offsets = [entry.offset for entry in entries if entry.offset is not None]
        ends = [entry.end_offset for entry in entries if entry.end_offset is not None]
        edge = -1 if not offsets else offsets[0] if back else max(ends, default=0)
        if edge >= 0 and (hit := await self._scan(query, edge, back=back)) is not None:
            return hit
        return await self._scan(query, -1 if back else 0, back=back)

    async def _scan(self, query: Query, offset: int, *, back: bool) -> Entry | None:
        """Ask the host from an offset on to the end of the file in that direction; what was counted is known."""
        view = self._view
        passes = view.patterns.finder(view.sieve.only) if view.sieve.only is not None else None
        hits = self._hits_of(query) if passes is None else None
        known = hits.next_from(offset, back=back) if hits is not None and offset >= 0 else None
        if known is not None and (hit := await self._entry_at(query, known)) is not None:
            return hit
        limit = 1 if passes is None else FILTERED_LINES
        while (found := await view.look_for(query, offset, back=back, limit=limit)) is not None:
            lines = reversed(found.lines) if back else iter(found.lines)
            passing = next((line for line in lines if passes is None or passes(line.text)), None)
            if passing is not None and (hit := await self._entry_at(query, passing.offset)) is not None:
                return hit
            if found.end in (found.begin, 0 if back else found.size_bytes):
                return None
            offset = found.end
            self._progress = f"searching {view.percent_of(offset)}"
            self._changed()
        return None

    async def _entry_at(self, query: Query, offset: int) -> Entry | None:
        """Load what stands around a hit and return its entry."""
        near = await self._view.entries_from(offset, _NEAR)
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
                part = await view.count(query, before)
                if part is None or view.files != key[0] or part.to <= before:
                    break
                hits.add(part)
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
        if cursor is None or cursor.offset is None:
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
        if self._progress == "not found":
            return "no error line" if query.errors else f"{name}not found"
        if self._progress:
            return f"{name or 'errors  '}{self._progress}"
        try:
            return name + self._tally(query)
        except SlowQuery as slow:
            self._view.take_as_text(slow.query)
            return name

    def _tally(self, query: Query) -> str:
        word = "error" if query.errors else "hit"
        hits, cursor = self._hits_of(query), self._view.cursor
        if hits is None or not hits.counted_to:
            here = self._view.tail_or_window
            found = list(filter(self._matcher(query), [each for each in here.entries if each.kind is EntryKind.LINE]))
            place = next((f"{i + 1} of " for i, entry in enumerate(found) if entry is cursor), "")
            is_part = here.can_grow_up or self._counting == query
            return f"{word} {place}{len(found):,}{'+' if is_part else ''}"
        rank = hits.rank_of(cursor.offset) if cursor is not None and cursor.offset is not None else None
        more = "…" if self._counting == query else ""
        return f"{word} {f'{rank:,} of ' if rank else ''}{hits.total:,}{more}"


def _order(entry: Entry) -> tuple[int, int]:
    return (entry.offset if entry.offset is not None else -1, 0)
