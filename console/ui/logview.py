"""What is shown of a log: the end that is followed, or a window anywhere in the whole file; where it stands in it.

Knows no widget and no search: a pane tells it its size, asks for rows, and runs what takes a while (`fetch`, `go_to`,
...) as workers. Lines reach it from the buffer of the followed log and from the `file` on the host; what searches the
log asks for them here (`tail_or_window`, `entries_from`) and has what it found shown (`reveal`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from console.reasons import ConsoleError, Reason
from console.state.logbuffer import Entry, LogBuffer
from console.state.logquery import Place, Query
from console.state.logwindow import Window
from console.ui.logfile import ShownFile
from console.ui.logpatterns import Patterns, SlowQuery
from console.ui.logrows import Row, Sieve
from console.ui.logviewport import Shown, Viewport
from console.ui.present.words import one_line
from console.ui.source import LogSource

_AROUND_BYTES = 48 << 10
_LOOKS = 12
"""For one key press: with step lines hidden a whole range may hold nothing to show."""
_OWED_SCREENS = 20
_WALKED = 4000


class Where(NamedTuple):
    """Where the top of the pane stands in the file."""

    offset: int
    size_bytes: int
    line: int | None
    """None: nobody has counted the lines before it."""


class LogView:
    def __init__(self, buffer: LogBuffer, logs: LogSource, changed: Callable[[], None]) -> None:
        self._buffer, self._changed = buffer, changed
        self.patterns = Patterns()
        self.sieve = Sieve(self.patterns)
        self.viewport = Viewport()
        self.file = ShownFile(logs, self.sieve, on_another=self._forget, on_slow=self.take_as_text)
        self.window: Window | None = None
        """None while the end is followed."""
        self.hidden_steps = 0
        self.cursor: Entry | None = None
        """What was gone to."""
        self.mark: int | None = None
        """Offset from which on lines are to be copied or saved."""
        self._anew = self._owed = self._left_at = 0
        self._asked_at = -1
        """Where in the file the window was begun; -1: at its end."""
        self._projected: object = None

    # -- the followed log ---------------------------------------------------------------------------------------------

    @property
    def files(self) -> tuple[int, int]:
        """Which file is shown, and which content of it: what was found in one holds in it alone."""
        return self.file.changes, 0 if self.file.is_other else self._buffer.anew

    @property
    def following(self) -> bool:
        return self.window is None

    def _forget(self) -> None:
        """Another file: nothing that was found holds any more."""
        self.window = self.cursor = self.mark = None

    @property
    def unseen(self) -> int:
        """Lines that came since the end was left."""
        return 0 if self.window is None or self.file.is_other else max(0, self._buffer.end - self._left_at)

    def sync(self) -> None:
        """Take over what the buffer has."""
        if self.file.is_other:
            return
        if self._anew != self._buffer.anew:
            self._began_anew()
        if self.window is not None:
            self.window.follow(self._buffer)

    def _began_anew(self) -> None:
        """The followed file has another content now, or its name leads to another one."""
        self._anew, self.file.size_bytes = self._buffer.anew, 0
        if self.mark is not None:
            self.mark, self.file.trouble = None, "the marked lines are gone from the file"
        if self.window is None or self.window.joined is not None:
            self.file.forget_identity()

    def is_gone(self, entry: Entry) -> bool:
        """Whether the file doesn't hold it any more: it was truncated or replaced since."""
        if self.file.is_other or self._buffer.anew == 0:
            return False
        if self.window is not None:
            return any(each is entry for each in self.window.entries[: self._file_from(self.window)])
        return entry.number < self._buffer.anew_at

    def _file_from(self, window: Window) -> int:
        """Return from which entry on a window shows the file as it is now."""
        is_of_it = self.file.is_other or window.is_of(self._buffer)
        return window.file_from if is_of_it else len(window.entries)

    def follow(self) -> None:
        """Stay at the end from now on."""
        self.window = self.cursor = None
        self.file.trouble = ""
        self._owed = 0

    # -- rows ---------------------------------------------------------------------------------------------------------

    def visible(self) -> list[Shown]:
        """Return what fills the pane from the top, line by line."""
        self.rows()
        if self.window is not None:
            return self.viewport.lines()
        self.viewport.go_last(kept_free=0 if self._buffer.live is None else 1)
        return [shown._replace(number=shown.row.entry.number) for shown in self.viewport.lines()]

    def numbered(self, first: int, last: int) -> list[tuple[int, str]]:
        """Return the rows with these numbers, as far as they are here."""
        if self.window is None:
            entries = self._buffer.lines(first, last + 1)
            return [(entry.number, one_line(entry.text)) for entry in entries]
        self.rows()
        return self.viewport.numbered(first, last)

    def rows(self) -> list[Row]:
        """Return all rows that could be shown without asking the host."""
        try:
            return self._looked_up()
        except SlowQuery as slow:
            self.take_as_text(slow.query)
            return self._looked_up()

    def _looked_up(self) -> list[Row]:
        window, port = self.window, self.viewport
        look = (self.sieve.choice, self.cursor)
        if window is None:
            key: object = (None, self._buffer.version, self._buffer.end, port.height, port.wraps, look)
            if key != self._projected:
                port.put(self._end_rows())
        else:
            key = (window, window.version, look)
            if key != self._projected:
                port.put_around_top(self._project(window.entries))
        self._projected = key
        return port.rows

    def _end_rows(self) -> list[Row]:
        """Project no more of the buffer's end than fills the pane: a flood must cost nothing here."""
        height = self.viewport.height
        count = height + 1
        while True:
            entries = self._buffer.lines(max(self._buffer.first, self._buffer.end - count), self._buffer.end)
            rows = self._project(entries)
            if len(rows) >= height or count >= _WALKED or len(entries) < count:
                return rows
            count = min(_WALKED, count * 4)

    def _project(self, entries: list[Entry]) -> list[Row]:
        rows, hidden = self.sieve.rows(entries, self.cursor)
        self.hidden_steps = hidden + (self.window.left_out if self.window is not None else 0)
        return rows

    # -- moving -------------------------------------------------------------------------------------------------------

    def scroll(self, lines: int) -> None:
        """Move by lines of the pane, as far as rows are here; `fetch` brings the rest."""
        if self.window is None:
            if lines >= 0:
                return
            self._leave_end()
        self.rows()
        if lines < 0:
            missing = self.viewport.up(-lines)
            if missing and self.window is not None and self.window.can_grow_up:
                self._owed = min(self._owed + missing, _OWED_SCREENS * self.viewport.height)
            return
        self._owed = 0
        if self.viewport.down(lines) and self._at_end():
            self.follow()

    def _leave_end(self) -> None:
        self.visible()  # what stands at the top now stays there
        self.window = Window.of_tail(self._buffer, is_sieved=self.sieve.leaves_out)
        self._left_at, self._asked_at = self._buffer.end, -1
        self.rows()

    def _at_end(self) -> bool:
        """Whether the last row is the newest line of the followed log."""
        window = self.window
        if window is None or self.file.is_other or not window.join(self._buffer):
            return False
        return window.joined is not None and window.joined >= self._buffer.end

    def reveal(self, found: Entry) -> None:
        """Show an entry that is here; at the end only if it isn't on the pane."""
        if self.window is None:
            if len(self.rows()) < self.viewport.height and not self._buffer.live:
                return  # everything is on the screen
            self._leave_end()
        self._place_at(found)

    def _place_at(self, entry: Entry) -> None:
        self.rows()
        self.viewport.place(entry)

    @property
    def where(self) -> Where | None:
        """Where the top stands; None at the followed end and where nothing is."""
        window = self.window
        if window is None:
            return None
        self.rows()
        for row in self.viewport.from_top:
            if row.entry.offset is not None:
                if row.at < self._file_from(window):
                    return None
                size = max(self.file.size_bytes, window.end)
                return Where(row.entry.offset, size, window.line_number(row.at))
        return None

    @property
    def top_offset(self) -> int | None:
        """The offset of the first line on the pane."""
        return next((entry.offset for entry in self._on_pane() if entry.offset is not None), None)

    def _on_pane(self) -> list[Entry]:
        """Return what of the file, as it is now, is on the pane."""
        return [each.row.entry for each in self.visible() if not self.is_gone(each.row.entry)]

    @property
    def marked_range(self) -> tuple[int, int]:
        """From the mark to the end of the last line on the pane, or the other way round; unmarked what is on it."""
        shown = self._on_pane()
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
        window, port = self.window, self.viewport
        return window is not None and window.can_grow_up and (self._owed > 0 or port.top < port.height)

    @property
    def _wants_newer(self) -> bool:
        window = self.window
        if window is None or len(self.rows()) - self.viewport.top > 2 * self.viewport.height:
            return False
        if not self.file.is_other and window.join(self._buffer):
            return window.joined is not None and window.joined < self._buffer.end
        return window.end < self.file.size_bytes

    async def fetch(self) -> None:
        """Bring what is missing above and below what is shown."""
        looks = 0
        while self.wants and looks < _LOOKS:
            looks += 1
            older = self._wants_older
            moved = await self.file.guarded(self._older() if older else self._newer())
            self._changed()
            if not moved:
                break
        self._owed = 0

    async def _older(self) -> bool:
        window, place = self.window, self.file.place
        if window is None or place is None:
            return False
        begin = window.begin
        self._check_file(window, place)
        found = await self.file.next_to(place, begin, back=True)
        if self.window is not window or window.begin != begin:
            return True  # it went elsewhere meanwhile
        self._check_file(window, place, found.size_bytes)
        self.file.pin(place, found)
        window.prepend(found)
        self.rows()
        self._owed = self.viewport.up(self._owed) if self._owed else 0
        return window.begin < begin

    async def _newer(self) -> bool:
        window, place = self.window, self.file.place
        if window is None or place is None:
            return False
        if not self.file.is_other and window.join(self._buffer):
            window.make_room_and_follow(self._buffer)
            return True
        end = window.end
        self._check_file(window, place)
        found = await self.file.next_to(place, end, back=False)
        if self.window is not window or window.end != end:
            return True
        self._check_file(window, place, found.size_bytes)
        self.file.pin(place, found)
        window.append(found)
        return window.end > end

    def _check_file(self, window: Window, place: Place, size_bytes: int | None = None) -> None:
        """Raises: ConsoleError where the file has another content than what is here was read from."""
        is_cut = size_bytes is not None and size_bytes < window.end
        if is_cut or not (self.file.is_other or window.is_of(self._buffer)):
            raise ConsoleError(Reason.LOG_REPLACED, place.path)

    async def go_to(self, offset: int) -> bool:
        """Show the file around a byte; -1 is its end. With the host out of reach, as far as lines are here."""
        if self.window is None:
            self._leave_end()
        window = self.window
        index = None
        if window is not None and self.sieve.only is None and (self.file.is_other or window.is_of(self._buffer)):
            index = window.index_of(offset)
        if window is not None and index is not None:
            self._place_at(window.entries[index])
            return True
        return bool(await self.file.guarded(self._load(offset)))

    async def go_top(self) -> bool:
        """Show the first line of the file."""
        if self.window is None:
            self._leave_end()
        window = self.window
        if window is not None and not window.can_grow_up:
            self.viewport.go_first()
            return True
        if self.file.place is None or not await self.file.guarded(self._load(0)):
            self.viewport.go_first()
            return False
        return True

    async def _load(self, offset: int, *, at_top: bool = False) -> bool:
        place, query, anew = self.file.place, self.sieve.only, self._buffer.anew
        if place is None:
            return False
        if query is not None:
            after = await self.file.matching(place, query, offset)
            before = await self.file.matching(place, query, offset, back=True)
        else:
            after = await self.file.lines(place, offset, _AROUND_BYTES, align=True)
            start = after.begin
            before = await self.file.lines(place, start, _AROUND_BYTES, back=True) if start else after
        self.file.pin(place, after)
        window = Window(begin=after.begin, end=after.begin, is_sieved=self.sieve.leaves_out, anew=anew)
        window.fill(after, before if before is not after else None)
        if not self.file.is_other:
            window.join(self._buffer)
        self.window, self._asked_at = window, offset
        self.viewport.put([])
        rows = self.rows()
        if offset < 0:
            self.viewport.go_last()
        else:
            entry = next((row.entry for row in rows if (row.entry.end_offset or 0) > after.begin), None)
            if entry is not None:
                self.viewport.place(entry, at_top=at_top)
        return True

    @property
    def _kept_place(self) -> int | None:
        """Where to look once other lines are let through; None: whatever is let through is here."""
        if self.window is None:
            return None
        if self.where is None and not self._file_from(self.window):
            return self._asked_at  # nothing of it is shown, but there is more than what came
        return self.where.offset if self.where is not None else None

    # -- other logs, filters ------------------------------------------------------------------------------------------

    async def open(self, place: Place) -> None:
        """Show another log from its end."""
        self.file.become(place, is_other=True)
        self.window = Window(begin=0, end=0)
        await self.file.guarded(self._load(-1))

    def close_other(self) -> None:
        """Back to the log that is followed."""
        self.file.become(None, is_other=False)

    async def hide_steps(self, hidden: bool) -> None:
        """Hide step lines, or show them again, around what is at the top."""
        offset = self._kept_place
        self.sieve.hides_steps = hidden
        if offset is not None and self.file.place is not None:
            await self.file.guarded(self._load(offset, at_top=True))

    async def set_filter(self, query: Query | None) -> None:
        """Show only lines that match; None: all again."""
        offset = self._kept_place
        self.sieve.only = query
        if offset is None or await self.file.guarded(self._load(offset, at_top=True)):
            return
        if self.sieve.only is not None and self.patterns.is_text_of_slow(self.sieve.only):
            await self.file.guarded(self._load(offset, at_top=True))

    def take_as_text(self, slow: Query) -> None:
        """Search, or filter, for a slow expression's own letters from now on."""
        is_filter = self.sieve.only == slow
        self.patterns.take_as_text(slow)
        if is_filter and not self.file.is_other:
            self.follow()  # what was loaded was let through by the expression

    # -- for searches -------------------------------------------------------------------------------------------------

    @property
    def tail_or_window(self) -> Window:
        """What of the log is here."""
        return self.window if self.window is not None else Window.of_tail(self._buffer)

    @property
    def ends_before(self) -> bool:
        """Whether the file goes on below what is here."""
        window = self.window
        if window is None:
            return False
        return window.end < self.file.size_bytes if self.file.is_other else not self._at_end()

    @property
    def top_entry(self) -> Entry | None:
        """The first line of the file that stands at the top or below it."""
        self.rows()
        return next((row.entry for row in self.viewport.from_top if row.entry.offset is not None), None)

    async def entries_from(self, offset: int, most: int) -> list[Entry]:
        """Go to a byte of the file; return what stands from there on."""
        if not await self.go_to(offset) or self.window is None:
            return []
        index = self.window.index_of(offset)
        return self.window.entries[index : index + most] if index is not None else []

    def know_line(self, offset: int, number: int) -> None:
        """Take from a count which line of the file starts at an offset."""
        if self.window is not None:
            self.window.know_line(offset, number)
