"""What is shown of a log: the end that is followed, or a window anywhere in the whole file; where it stands in it.

Knows no widget: a pane tells it its size, asks for rows, and runs what takes a while (`fetch`, `find`, `count`, ...)
as workers. Lines reach it from the buffer of the followed log and from `LogSource`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from console.bounded import Bounded, TooSlow, bounded
from console.model import LogState, Snapshot
from console.reasons import ConsoleError, Reason
from console.state.folding import folds
from console.state.linekind import LineKind, classify
from console.state.logbuffer import Entry, EntryKind, LogBuffer
from console.state.logquery import Hits, Place, Query, typed
from console.state.logwindow import LOADED, Window
from console.state.stretch import Identity, Stretch
from console.ui.present.spans import cells
from console.ui.present.words import one_line
from console.ui.source import LogSource

RANGE_BYTES = 128 << 10
"""One look: about a thousand lines, a tenth of a second over a slow link."""
_AROUND_BYTES = 48 << 10
_SIEVED_BYTES = 512 << 10
"""One look while step lines are hidden: most of a log is nothing else."""
_FILTERED_LINES = 200
_LOOKS = 12
"""For one key press: with step lines hidden a whole range may hold nothing to show."""
_OWED_SCREENS = 20
_WALKED = 4000
_KINDS_KEPT = 20_000
_BOUNDS_KEPT = 8


class Row(NamedTuple):
    """One line as it is shown."""

    entry: Entry
    text: str
    at: int
    """Place of the entry in the window; -1 at the followed end."""
    folded: bool = False
    """It stands for equal tracebacks of several ranks."""


class Shown(NamedTuple):
    """One line of the pane."""

    row: Row
    number: int
    line: int
    """Which of the row's lines, where a long one is wrapped."""


class Where(NamedTuple):
    """Where the top of the pane stands in the file."""

    offset: int
    size_bytes: int
    line: int | None
    """None: nobody has counted the lines before it."""


class _SlowQuery(Exception):
    """A query takes too long, here or on the host."""

    def __init__(self, query: Query) -> None:
        super().__init__(query.text)
        self.query = query


class LogView:
    def __init__(self, buffer: LogBuffer, logs: LogSource, changed: Callable[[], None]) -> None:
        self._buffer, self._logs, self._changed = buffer, logs, changed
        self.height, self.room = 1, 80
        self.place: Place | None = None
        """Of the log that is shown; None while none is known."""
        self.is_other = False
        """It is not the one that is followed."""
        self.window: Window | None = None
        """None while the end is followed."""
        self.filter: Query | None = None
        self.hides_steps = self.wraps = self.unfolds = False
        self.hidden_steps = 0
        self._left_out = 0
        self.searched: Query | None = None
        self.cursor: Entry | None = None
        self.mark: int | None = None
        """Offset from which on lines are to be copied or saved."""
        self.trouble = ""
        self._asked: Query | None = None
        self._progress = ""
        self._bounds: dict[Query, Bounded] = {}
        self._plain: dict[Query, Query] = {}
        """What is taken as a text, since it takes too long as an expression, and as which."""
        self._hits: dict[Query, Hits] = {}
        self._counting: Query | None = None
        self._size_bytes = 0
        self._top, self._sub, self._owed = 0, 0, 0
        self._rows: list[Row] = []
        self._shift = 1 << 20
        """Makes a row's number: it stays the same when rows come or go above it."""
        self._projected: object = None
        self._kinds: dict[tuple[int, int | None, str], LineKind] = {}
        self._left_at = 0

    # -- the followed log ---------------------------------------------------------------------------------------------

    @property
    def following(self) -> bool:
        return self.window is None

    def seen(self, snapshot: Snapshot) -> None:
        """Take from a snapshot which log is followed."""
        log, run = snapshot.log, snapshot.run
        if self.is_other:
            return
        self._size_bytes = log.size_bytes or 0
        path = log.path if log.path and log.state is not LogState.MISSING else None
        if path is None:
            self.place = None
        elif self.place is None or self.place.path != path:
            self.place = Place(path=path, pid=run.pid if run is not None else None)
            self._forget()

    def _forget(self) -> None:
        """Another file: nothing that was found holds any more."""
        self._hits.clear()
        self.window = self.cursor = self.mark = None
        self.trouble = ""

    @property
    def unseen(self) -> int:
        """Lines that came since the end was left."""
        return 0 if self.window is None or self.is_other else max(0, self._buffer.end - self._left_at)

    def sync(self) -> None:
        """Take over what the buffer has."""
        if self.window is not None and not self.is_other:
            self.window.follow(self._buffer)

    def follow(self) -> None:
        """Stay at the end from now on."""
        self.window = self.cursor = None
        self._owed = 0

    # -- rows ---------------------------------------------------------------------------------------------------------

    def visible(self) -> list[Shown]:
        """Return what fills the pane from the top, line by line."""
        rows = self.rows()
        if self.window is None:
            self._top, self._sub = self._lowest_top(rows)
        found: list[Shown] = []
        at, sub = self._top, self._sub
        while len(found) < self.height and at < len(rows):
            row, number = rows[at], self.number_of(rows[at], at)
            found += [Shown(row, number, line) for line in range(sub, self.lines_of(row))]
            at, sub = at + 1, 0
        return found[: self.height]

    def number_of(self, row: Row, place: int) -> int:
        """Return a number by which a row at a place of `rows` is known while it moves."""
        return row.entry.number if self.window is None else place + self._shift

    def numbered(self, first: int, last: int) -> list[tuple[int, str]]:
        """Return the rows with these numbers, as far as they are here."""
        if self.window is None:
            entries = self._buffer.lines(first, last + 1)
            return [(entry.number, one_line(entry.text)) for entry in entries]
        rows = self.rows()
        start, stop = max(0, first - self._shift), max(0, last + 1 - self._shift)
        return [(place + self._shift, row.text) for place, row in enumerate(rows[start:stop], start)]

    def rows(self) -> list[Row]:
        """Return all rows that could be shown without asking the host."""
        try:
            return self._looked_up()
        except _SlowQuery as slow:
            self._take_as_text(slow.query)
            return self._looked_up()

    def _looked_up(self) -> list[Row]:
        window = self.window
        look = (self.filter, self.hides_steps, self.unfolds, id(self.cursor))
        if window is None:
            key: object = (None, self._buffer.version, self._buffer.end, self.height, self.wraps, look)
            if key != self._projected:
                self._rows = self._end_rows()
        else:
            key = (id(window), window.version, look)
            if key != self._projected:
                anchor = self._anchor()
                self._rows = self._project(window.entries, 0)
                self._return_to(anchor)
        self._projected = key
        return self._rows

    def _end_rows(self) -> list[Row]:
        """Project no more of the buffer's end than fills the pane: a flood must cost nothing here."""
        count = self.height + 1
        while True:
            entries = self._buffer.lines(max(self._buffer.first, self._buffer.end - count), self._buffer.end)
            rows = self._project(entries, None)
            if len(rows) >= self.height or count >= _WALKED or len(entries) < count:
                return rows
            count = min(_WALKED, count * 4)

    def _project(self, entries: Sequence[Entry], first_index: int | None) -> list[Row]:
        told = {} if self.unfolds else self._folds(entries)
        passes = self._search_of(self.filter) if self.filter is not None else None
        rows: list[Row] = []
        self.hidden_steps = self._left_out if self.window is not None else 0
        for number, entry in enumerate(entries):
            text = told.get(number)
            if text == "":
                continue
            if passes is not None and (entry.kind is not EntryKind.LINE or not passes(entry.text)):
                continue
            if self.hides_steps and self.kind(entry) is LineKind.STEP:
                self.hidden_steps += 1
                continue
            index = number if first_index is not None else -1
            rows.append(Row(entry, one_line(text or entry.text), index, folded=bool(text)))
        return rows

    def _folds(self, entries: Sequence[Entry]) -> dict[int, str]:
        """Return for each folded entry its text: that of the whole at the first one, nothing at the others."""
        if not any("Traceback (most" in entry.text for entry in entries):
            return {}
        told: dict[int, str] = {}
        for fold in folds([entry.text if entry.kind is EntryKind.LINE else "" for entry in entries]):
            if self.cursor is not None and any(entries[index] is self.cursor for index in fold.members):
                continue  # what was searched for must be seen
            told |= dict.fromkeys(fold.members, "")
            told[fold.first] = fold.text
        return told

    def kind(self, entry: Entry) -> LineKind:
        if entry.kind is not EntryKind.LINE:
            return LineKind.PLAIN
        key = (entry.number, entry.offset, entry.text if entry.number == LOADED else "")
        known = self._kinds.get(key)
        if known is None:
            if len(self._kinds) > _KINDS_KEPT:
                self._kinds.clear()
            known = self._kinds[key] = classify(entry.text)
        return known

    def lines_of(self, row: Row) -> int:
        return max(1, -(-cells(row.text) // self.room)) if self.wraps else 1

    # -- moving -------------------------------------------------------------------------------------------------------

    def scroll(self, lines: int) -> None:
        """Move by lines of the pane, as far as rows are here; `fetch` brings the rest."""
        if self.window is None:
            if lines >= 0:
                return
            self._leave_end()
        self.rows()
        if lines < 0:
            missing = self._up(-lines)
            window = self.window
            if missing and window is not None and window.can_grow_up:
                self._owed = min(self._owed + missing, _OWED_SCREENS * self.height)
            return
        self._owed = 0
        self._down(lines)

    def _leave_end(self) -> None:
        rows = self.rows()
        top = rows[self._lowest_top(rows)[0]].entry if rows else None
        sub = self._lowest_top(rows)[1]
        is_sieved = self.filter is not None or self.hides_steps
        self.window, self._projected = Window.of_tail(self._buffer, is_sieved=is_sieved), None
        self._left_out = 0
        self._left_at = self._buffer.end
        self._rows, self._top, self._sub = [], 0, 0
        found = self.rows()
        self._top = next((i for i, row in enumerate(found) if row.entry is top), 0)
        self._sub = sub

    def _up(self, lines: int) -> int:
        """Go up by lines; return how many there weren't."""
        while lines > 0:
            if self._sub >= lines:
                self._sub -= lines
                return 0
            lines -= self._sub
            self._sub = 0
            if self._top == 0:
                return lines
            self._top -= 1
            self._sub = self.lines_of(self._rows[self._top])
        return 0

    def _down(self, lines: int) -> None:
        lowest = self._lowest_top(self._rows)
        for _ in range(lines):
            if (self._top, self._sub) >= lowest:
                self._top, self._sub = lowest
                if self._at_end():
                    self.follow()
                return
            self._sub += 1
            if self._sub >= self.lines_of(self._rows[self._top]):
                self._top, self._sub = self._top + 1, 0
        if (self._top, self._sub) >= lowest and self._at_end():
            self.follow()

    def _at_end(self) -> bool:
        """Whether the last row is the newest line of the followed log."""
        window = self.window
        if window is None or self.is_other or not window.join(self._buffer):
            return False
        return window.joined is not None and window.joined >= self._buffer.end

    def _lowest_top(self, rows: Sequence[Row]) -> tuple[int, int]:
        """Return the top with which the last row stands at the bottom."""
        left = self.height - (1 if self.window is None and self._buffer.live is not None else 0)
        at = len(rows)
        while at > 0 and left > 0:
            at -= 1
            lines = self.lines_of(rows[at])
            if lines >= left:
                return at, lines - left
            left -= lines
        return at, 0

    def _anchor(self) -> tuple[Entry, int] | None:
        return (self._rows[self._top].entry, self._sub) if self._top < len(self._rows) else None

    def _return_to(self, anchor: tuple[Entry, int] | None) -> None:
        """Keep in place what was at the top, or what stands nearest to it where that is hidden now."""
        if anchor is None:
            self._top = min(self._top, max(0, len(self._rows) - 1))
            return
        entry, sub = anchor
        for index, row in enumerate(self._rows):
            if row.entry is entry:
                self._shift += self._top - index
                self._top, self._sub = index, sub
                return
        offset = entry.offset or 0
        later = (i for i, row in enumerate(self._rows) if row.entry.offset is not None and row.entry.offset >= offset)
        self._top, self._sub = next(later, max(0, len(self._rows) - 1)), 0

    def _place_at(self, entry: Entry) -> None:
        """Show an entry a third down the pane."""
        rows = self.rows()
        index = next((i for i, row in enumerate(rows) if row.entry is entry), None)
        if index is None:
            return
        self._top, self._sub = index, 0
        self._up(self.height // 3)
        lowest = self._lowest_top(rows)
        if (self._top, self._sub) > lowest:
            self._top, self._sub = lowest

    @property
    def where(self) -> Where | None:
        """Where the top stands; None at the followed end and where nothing is."""
        window = self.window
        if window is None:
            return None
        rows = self.rows()
        for row in rows[self._top :]:
            if row.entry.offset is not None:
                size = max(self._size_bytes, window.end)
                return Where(row.entry.offset, size, window.line_number(row.at))
        return None

    @property
    def top_offset(self) -> int | None:
        """The offset of the first line on the pane."""
        shown = self.visible()
        return next((each.row.entry.offset for each in shown if each.row.entry.offset is not None), None)

    @property
    def marked_range(self) -> tuple[int, int]:
        """From the mark to the end of the last line on the pane, or the other way round; unmarked what is on it."""
        shown = [each.row.entry for each in self.visible()]
        starts = [entry.offset for entry in shown if entry.offset is not None]
        ends = [entry.end_offset for entry in shown if entry.end_offset is not None]
        if not starts or not ends:
            return 0, 0
        begin = starts[0] if self.mark is None else min(self.mark, starts[0])
        return begin, ends[-1] if self.mark is None else max(ends[-1], self.mark)

    # -- what is waited for -------------------------------------------------------------------------------------------

    @property
    def wants(self) -> bool:
        """Whether `fetch` has something to do."""
        return self._wants_older or self._wants_newer

    @property
    def _wants_older(self) -> bool:
        window = self.window
        return window is not None and window.can_grow_up and (self._owed > 0 or self._top < self.height)

    @property
    def _wants_newer(self) -> bool:
        window = self.window
        if window is None or len(self.rows()) - self._top > 2 * self.height:
            return False
        if not self.is_other and window.join(self._buffer):
            return window.joined is not None and window.joined < self._buffer.end
        return window.end < self._size_bytes

    async def fetch(self) -> None:
        """Bring what is missing above and below what is shown."""
        looks = 0
        while self.wants and looks < _LOOKS:
            looks += 1
            older = self._wants_older
            moved = await self._guarded(self._older() if older else self._newer())
            self._changed()
            if not moved:
                break
        self._owed = 0

    async def _older(self) -> bool:
        window, place = self.window, self.place
        if window is None or place is None:
            return False
        begin = window.begin
        if self.filter is not None:
            found = await self._matching(place, self.filter, begin, back=True, limit=_FILTERED_LINES)
        else:
            found = await self._lines(place, begin, RANGE_BYTES, back=True)
        if self.window is not window or window.begin != begin:
            return True  # it went elsewhere meanwhile
        if found.size_bytes < begin:
            raise ConsoleError(Reason.LOG_REPLACED, place.path)
        self._pin(found.size_bytes, place, found.identity)
        window.prepend(found)
        self.rows()
        self._owed = self._up(self._owed) if self._owed else 0
        return window.begin < begin

    async def _newer(self) -> bool:
        window, place = self.window, self.place
        if window is None or place is None:
            return False
        if not self.is_other and window.join(self._buffer):
            window.make_room_and_follow(self._buffer)
            return True
        end = window.end
        if self.filter is not None:
            found = await self._matching(place, self.filter, end, limit=_FILTERED_LINES)
        else:
            found = await self._lines(place, end, RANGE_BYTES)
        if self.window is not window or window.end != end:
            return True
        self._pin(found.size_bytes, place, found.identity)
        window.append(found)
        return window.end > end

    async def _lines(
        self, place: Place, offset: int, length: int, *, back: bool = False, align: bool = False
    ) -> Stretch:
        """Ask for lines; those that are hidden are left out at once, or they would push out what is seen."""
        length = max(length, _SIEVED_BYTES) if self.hides_steps else length
        found = await self._logs.lines(place, offset, length, back=back, align=align)
        if not self.hides_steps:
            return found
        kept = [i for i, line in enumerate(found.lines) if classify(line.text) is not LineKind.STEP]
        self._left_out += len(found.lines) - len(kept)
        return msgspec.structs.replace(
            found, lines=tuple(found.lines[i] for i in kept), breaks=tuple(found.breaks[i] for i in kept)
        )

    async def _matching(self, place: Place, query: Query, offset: int, *, back: bool = False, limit: int) -> Stretch:
        """Ask for lines that match. Raises: _SlowQuery, ConsoleError."""
        try:
            return await self._logs.matching(place, query, offset, back=back, limit=limit)
        except ConsoleError as error:
            if error.reason is Reason.PATTERN_SLOW and not query.literal:
                raise _SlowQuery(query) from error
            raise

    def _pin(self, size_bytes: int, place: Place, identity: Identity) -> None:
        self._size_bytes = max(size_bytes, self._size_bytes) if not self.is_other else size_bytes
        if place.identity is None and self.place is place:
            self.place = Place(path=place.path, pid=place.pid, identity=identity)

    async def _guarded(self, work: Awaitable[bool]) -> bool:
        """Do it; say in the title what went wrong, and forget a file that was replaced."""
        try:
            done = await work
        except _SlowQuery as slow:
            self._take_as_text(slow.query)
            return False
        except ConsoleError as error:
            if error.reason is Reason.LOG_REPLACED:
                place = self.place
                self._forget()
                self.place = Place(path=place.path, pid=place.pid) if place is not None else None
                self.trouble = "the log was replaced while it was read"
            elif error.reason is Reason.NO_LINK:
                self.trouble = "no link: not all is here"
            else:
                self.trouble = one_line(error.detail or str(error.reason))
            return False
        self.trouble = ""
        return done

    async def go_to(self, offset: int, *, back: bool = False) -> bool:
        """Show the file around a byte; -1 is its end. With the host out of reach, as far as lines are here."""
        if self.window is None:
            self._leave_end()
        window = self.window
        index = window.index_of(offset) if window is not None and self.filter is None else None
        if window is not None and index is not None:
            self._place_at(window.entries[index])
            return True
        return await self._guarded(self._load(offset))

    async def go_top(self) -> bool:
        """Show the first line of the file."""
        if self.window is None:
            self._leave_end()
        window = self.window
        if window is not None and not window.can_grow_up:
            self._top = self._sub = 0
            return True
        if self.place is None or not await self._guarded(self._load(0)):
            self._top = self._sub = 0
            return False
        return True

    async def _load(self, offset: int) -> bool:
        place = self.place
        if place is None:
            return False
        if self.filter is not None:
            start = offset
            after = await self._matching(place, self.filter, start, limit=_FILTERED_LINES)
            before = await self._matching(place, self.filter, start, back=True, limit=_FILTERED_LINES)
        else:
            self._left_out = 0
            after = await self._lines(place, offset, _AROUND_BYTES, align=True)
            start = after.begin
            before = await self._lines(place, start, _AROUND_BYTES, back=True) if start else after
        self._pin(after.size_bytes, place, after.identity)
        window = Window(begin=after.begin, end=after.begin, is_sieved=self.filter is not None or self.hides_steps)
        window.fill(after, before if before is not after else None)
        if not self.is_other:
            window.join(self._buffer)
        self.window, self._projected = window, None
        self._rows, self._top, self._sub = [], 0, 0
        rows = self.rows()
        if offset < 0:
            self._top, self._sub = self._lowest_top(rows)
        else:
            entry = next((row.entry for row in rows if (row.entry.end_offset or 0) > after.begin), None)
            if entry is not None:
                self._place_at(entry)
        return True

    # -- other logs, filters ------------------------------------------------------------------------------------------

    async def open(self, place: Place) -> None:
        """Show another log from its end."""
        self._forget()
        self.place, self.is_other, self._size_bytes = place, True, 0
        self.window, self._projected = Window(begin=0, end=0), None
        await self._guarded(self._load(-1))

    def close_other(self) -> None:
        """Back to the log that is followed."""
        self._forget()
        self.is_other, self.place, self._size_bytes = False, None, 0

    async def hide_steps(self, hidden: bool) -> None:
        """Hide step lines, or show them again, around what is at the top."""
        offset = self.top_offset if self.window is not None else None
        self.hides_steps = hidden
        if offset is not None and self.place is not None:
            await self._guarded(self._load(offset))

    async def set_filter(self, query: Query | None) -> None:
        """Show only lines that match; None: all again."""
        offset = self.where.offset if self.where is not None else None
        self.filter = self._plain.get(query, query) if query is not None else None
        if offset is not None and not await self._guarded(self._load(offset)) and self.filter in self._plain.values():
            await self._guarded(self._load(offset))

    # -- search -------------------------------------------------------------------------------------------------------

    async def find(self, query: Query, *, back: bool, again: bool = True) -> bool:
        """Go to the nearest hit in a direction, around the ends; False where there is none."""
        asked = self._plain.get(query, query)
        try:
            found = await self._find(asked, back=back, again=again)
            is_slow = asked in self._plain  # by the host's word
        except _SlowQuery as slow:
            self._take_as_text(slow.query)
            found, is_slow = False, True
        return await self.find(query, back=back, again=again) if is_slow else found

    async def _find(self, query: Query, *, back: bool, again: bool) -> bool:
        self._asked, self._progress = query, "searching"
        if not query.errors:
            self.searched = query
        self._changed()
        here = self._here(back=back, again=again)
        entries = self._local()
        found = self._local_hit(entries, query, here, back=back)
        if found is None:
            found = await self._far_hit(query, here, entries, back=back)
        if found is None:
            found = self._local_hit(entries, query, None, back=back)
        self._progress = "" if found is not None else "not found"
        self.cursor = found
        if found is not None:
            self._show(found, entries)
        if (hits := self._hits.get(query)) is not None:
            self._know_lines(hits)
        self._changed()
        return found is not None

    def _here(self, *, back: bool, again: bool) -> tuple[int, int] | None:
        """Return what to search beyond, as an order of entries; None: an end of the log."""
        if again and self.cursor is not None:
            return _order(self.cursor)
        if self.window is None:
            return None if back else (1 << 62, 0)
        rows = self.rows()
        at = min(len(rows) - 1, self._top)
        entry = next((row.entry for row in rows[at:] if row.entry.offset is not None), None) if rows else None
        if entry is None:
            return None
        first, second = _order(entry)
        return (first, second + 1) if back else (first, second - 1)

    def _local(self) -> list[Entry]:
        return (self.window if self.window is not None else Window.of_tail(self._buffer)).entries

    def _local_hit(
        self, entries: list[Entry], query: Query, here: tuple[int, int] | None, *, back: bool
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
        if query.errors:
            found: Callable[[Entry], bool] = lambda entry: self.kind(entry) is LineKind.ERROR  # noqa: E731
        else:
            search = self._search_of(query)
            found = lambda entry: search(entry.text)  # noqa: E731
        if self.filter is None:
            return found
        passes = self._search_of(self.filter)
        return lambda entry: passes(entry.text) and found(entry)

    async def _far_hit(
        self, query: Query, here: tuple[int, int] | None, entries: list[Entry], *, back: bool
    ) -> Entry | None:
        """Ask the host beyond what is here, then from the other end on."""
        if self.place is None:
            return None
        offsets = [entry.offset for entry in entries if entry.offset is not None]
        edge = -1 if not offsets else offsets[0] if back else self._end_of(entries)
        if edge >= 0 and (hit := await self._scan(query, edge, back=back)) is not None:
            return hit
        return await self._scan(query, -1 if back else 0, back=back)

    def _end_of(self, entries: Iterable[Entry]) -> int:
        return max((entry.end_offset or 0 for entry in entries), default=0)

    async def _scan(self, query: Query, offset: int, *, back: bool) -> Entry | None:
        """Ask the host from an offset on to the end of the file in that direction; what was counted is known."""
        passes = self._search_of(self.filter) if self.filter is not None else None
        hits = self._hits.get(query) if passes is None else None
        known = hits.next_from(offset, back=back) if hits is not None and offset >= 0 else None
        if known is not None and (hit := await self._entry_at(query, known)) is not None:
            return hit
        while (found := await self._look_for(query, offset, back=back)) is not None:
            lines = reversed(found.lines) if back else iter(found.lines)
            passing = next((line for line in lines if passes is None or passes(line.text)), None)
            if passing is not None and (hit := await self._entry_at(query, passing.offset)) is not None:
                return hit
            if found.end in (found.begin, 0 if back else found.size_bytes):
                return None
            offset = found.end
            self._progress = f"searching {self._percent(offset)}"
            self._changed()
        return None

    async def _look_for(self, query: Query, offset: int, *, back: bool) -> Stretch | None:
        found: list[Stretch] = []

        async def look(place: Place) -> bool:
            limit = 1 if self.filter is None else _FILTERED_LINES
            stretch = await self._matching(place, query, offset, back=back, limit=limit)
            self._pin(stretch.size_bytes, place, stretch.identity)
            found.append(stretch)
            return True

        return found[0] if self.place is not None and await self._guarded(look(self.place)) else None

    def _percent(self, offset: int) -> str:
        return f"{100 * offset // max(1, self._size_bytes)} %"

    async def _entry_at(self, query: Query, offset: int) -> Entry | None:
        """Load what stands around a hit and return its entry."""
        if not await self.go_to(offset) or self.window is None:
            return None
        index = self.window.index_of(offset)
        if index is None:
            return None
        matches = self._matcher(query)
        near = self.window.entries[index : index + 50]
        if self.filter is not None and not any(map(matches, near[:1])):
            return None
        return next((entry for entry in near if matches(entry)), near[0])

    def _show(self, entry: Entry, entries: list[Entry]) -> None:
        if self.window is None:
            if len(self.rows()) < self.height and not self._buffer.live:
                return  # everything is on the screen
            self._leave_end()
        self._projected = None
        self._place_at(entry)

    def clear_search(self) -> None:
        self.searched = self._asked = self.cursor = None
        self._progress = ""

    def gave_up(self) -> None:
        """The search was stopped by the operator."""
        if self._progress and self._progress != "not found":
            self._progress = f"stopped while {self._progress}"

    # -- expressions that take too long --------------------------------------------------------------------------------

    def _bound(self, query: Query) -> Bounded:
        """Return one for all uses of a query: what it may take is counted over all of them."""
        if query not in self._bounds:
            if len(self._bounds) >= _BOUNDS_KEPT:
                self._bounds.pop(next(iter(self._bounds)))
            self._bounds[query] = bounded(query)
        return self._bounds[query]

    def _search_of(self, query: Query) -> Callable[[str], bool]:
        """Return what tells whether a text holds a query. It raises: _SlowQuery."""
        bound = self._bound(query)

        def holds(text: str) -> bool:
            try:
                return bound.search(text) is not None
            except TooSlow as exc:
                raise _SlowQuery(query) from exc

        return holds

    def marks(self, text: str) -> list[tuple[int, int]]:
        """Return where in a text what is searched for stands."""
        query = self.searched
        if query is None:
            return []
        try:
            found = self._bound(query).findall(text)
        except TooSlow:
            self._take_as_text(query)
            found = self._bound(self._plain[query]).findall(text)
        return [hit.span() for hit in found if hit.end() > hit.start()]

    def _take_as_text(self, slow: Query) -> None:
        """Search, or filter, for the expression's own letters from now on: their search always ends."""
        text = self._plain[slow] = typed(slow.text, literal=True)
        if self.searched == slow:
            self.searched = text
        if self._asked == slow:
            self._asked = text
        if self.filter == slow:
            self.filter, self._projected = text, None
            if not self.is_other:
                self.follow()  # what was loaded was let through by the expression

    def named(self, query: Query) -> str:
        """Return what the title calls a query."""
        return f"{query.text} (takes too long: as text)" if query in self._plain.values() else query.text

    # -- counting -----------------------------------------------------------------------------------------------------

    async def count(self, query: Query) -> None:
        """Count the hits of the whole file, from its start on; goes on where an earlier count stopped."""
        query = self._plain.get(query, query)
        if len(self._hits) > 3:
            self._hits.pop(next(iter(self._hits)))
        hits = self._hits.setdefault(query, Hits())
        self._counting = query
        try:
            while self.place is not None:
                before, place = hits.counted_to, self.place

                async def look(place: Place = place, before: int = before) -> bool:
                    hits.add(await self._logs.count(place, query, before))
                    return True

                if not await self._guarded(look()) or hits.counted_to <= before:
                    break
                self._know_lines(hits)
                self._changed()
        finally:
            self._counting = None
            self._changed()

    def _know_lines(self, hits: Hits) -> None:
        cursor, window = self.cursor, self.window
        if cursor is None or window is None or cursor.offset is None:
            return
        number = hits.line_number(cursor.offset)
        if number is not None:
            window.know_line(cursor.offset, number)

    @property
    def label(self) -> str:
        """What the title says of the search: `/loss  hit 3 of 1,204…`."""
        query = self._asked
        if query is None:
            return ""
        name = "" if query.errors else f"/{self.named(query)}  "
        if self._progress == "not found":
            return "no error line" if query.errors else f"{name}not found"
        if self._progress:
            return f"{name or 'errors  '}{self._progress}"
        try:
            return name + self._tally(query)
        except _SlowQuery as slow:
            self._take_as_text(slow.query)
            return name

    def _tally(self, query: Query) -> str:
        word = "error" if query.errors else "hit"
        hits, cursor = self._hits.get(query), self.cursor
        if hits is None or not hits.counted_to:
            entries = [entry for entry in self._local() if entry.kind is EntryKind.LINE]
            found = list(filter(self._matcher(query), entries))
            place = next((f"{i + 1} of " for i, entry in enumerate(found) if entry is cursor), "")
            far = self.window is not None and self.window.can_grow_up
            return f"{word} {place}{len(found):,}{'+' if far or self._counting == query else ''}"
        rank = hits.rank_of(cursor.offset) if cursor is not None and cursor.offset is not None else None
        more = "…" if self._counting == query else ""
        return f"{word} {f'{rank:,} of ' if rank else ''}{hits.total:,}{more}"


def _order(entry: Entry) -> tuple[int, int]:
    return (entry.offset if entry.offset is not None else -1, 0)
