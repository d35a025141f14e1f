"""The log: what a LogView shows of it, with a gutter, line by line; keys move it, workers bring what isn't here.

Lines are rendered when they are seen, never when they arrive; strips are kept by what they show. Text reaches the
screen as text: control characters were made visible by the buffer's reader, and no markup is ever interpreted.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.events import MouseScrollDown, MouseScrollUp
from textual.message import Message
from textual.reactive import reactive
from textual.selection import Selection
from textual.strip import Strip

from console.model import Snapshot
from console.state.linekind import LineKind
from console.state.logbuffer import EntryKind, LogBuffer
from console.state.logquery import ERRORS, Place, Query
from console.ui.logsearch import LogSearch
from console.ui.logview import LogView, Where
from console.ui.logviewport import Shown
from console.ui.present.logline import LineLook, blank_gutter, live_line, log_line, text_room
from console.ui.present.logtitle import nothing_let_through
from console.ui.present.look import UNICODE, Glyphs
from console.ui.present.spans import Role, Span
from console.ui.source import LogSource
from console.ui.widgets.lines import RoleStyles

_STRIPS_KEPT = 512  # ten screens; one takes 1.5 to 5 KB, and two screens have a pane
_SHIFT = 16  # cells by which left and right move
_FETCH, _FIND, _COUNT = "log-fetch", "log-find", "log-count"


class _Key(NamedTuple):
    text: str
    kind: LineKind | EntryKind
    line: int
    width: int
    room: int  # where long lines are wrapped; a paint may come between a new width and the lines cut for it
    shift: int
    is_cursor: bool
    look: int  # grows when search or size class change what a line looks like


class LogPane(RoleStyles, can_focus=True):
    """Follows the end until somebody scrolls up; `f` follows again."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", id="log.up", show=False),
        Binding("down,j", "move(1)", "down", id="log.down", show=False),
        Binding("pageup", "page(-1)", "page up", id="log.pageup", show=False),
        Binding("pagedown", "page(1)", "page down", id="log.pagedown", show=False),
        Binding("space", "page_by_space", "page down", id="log.space", show=False),
        Binding("home", "top", "top", id="log.home", show=False),
        Binding("end", "bottom", "bottom", id="log.end", show=False),
        Binding("left", "shift(-1)", "left", id="log.left", show=False),
        Binding("right", "shift(1)", "right", id="log.right", show=False),
    ]

    class Moved(Message):
        """What the title says has changed: following or not, lines not seen, the search."""

    placeholder = reactive("")
    stale = reactive(False)
    narrow = reactive(False)
    ended = reactive(False)
    """The run is over: nothing will come that could be followed."""
    covered = reactive(0, repaint=False)
    """So many rows at its lower end lie under something else and are left free."""
    leaves_space = False
    """Space is the screen's key: it stops the recording that is played."""

    def __init__(
        self,
        log: LogBuffer,
        logs: LogSource,
        glyphs: Glyphs = UNICODE,
        *,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id)
        self._log = log
        self.log_view = LogView(log, logs, self._changed)
        self.log_search = LogSearch(self.log_view, self._changed)
        self._glyphs = glyphs
        self._strips: LRUCache[_Key, Strip] = LRUCache(_STRIPS_KEPT)
        self._version = -1
        self._synced_end = log.end
        self._look = 0
        self._shift = 0
        self._marks_hits = False
        self._shown: list[Shown] = []

    # --- what the title needs ---

    @property
    def following(self) -> bool:
        return self.log_view.following

    @property
    def unseen(self) -> int:
        """Lines that came since the end was left."""
        return self.log_view.unseen

    @property
    def search_label(self) -> str:
        return self.log_search.label

    @property
    def where(self) -> Where | None:
        return self.log_view.where

    @property
    def searching(self) -> bool:
        return self.log_search.searched is not None

    @property
    def busy(self) -> bool:
        """Whether the host is being asked for something that can be given up."""
        return any(worker.group in (_FIND, _COUNT) and not worker.is_finished for worker in self.workers)

    # --- following the buffer ---

    def show(self, log: LogBuffer, logs: LogSource) -> None:
        """Show another run's log from its end on; how lines are shown stays as the operator wants it."""
        self._ask_no_more()
        before, searched = self.log_view, self.log_search.searched
        self._log = log
        self.log_view = LogView(log, logs, self._changed)
        self.log_search = LogSearch(self.log_view, self._changed, searched)
        self.log_view.viewport.wraps, self.log_view.sieve.unfolds = before.viewport.wraps, before.sieve.unfolds
        self.log_view.sieve.hides_steps = before.sieve.hides_steps
        self._marks_hits, self._version, self._shift = False, -1, 0
        self._strips.clear()
        self._look += 1

    def seen(self, snapshot: Snapshot) -> None:
        """Take from a snapshot which log is followed."""
        if self.log_view.file.seen(snapshot):
            self._left()

    def _ask_no_more(self) -> None:
        for group in (_FETCH, _FIND, _COUNT):
            self.workers.cancel_group(self, group)

    def _left(self) -> None:
        """Another log is shown: what comes late of the one before, and what was searched there, has no place here."""
        self._ask_no_more()
        self._marks_hits = False
        self._look += 1
        self.log_search.leave()
        self._moved()

    def pending(self) -> int:
        """How many lines came since the last `sync`."""
        return self._log.end - self._synced_end

    def sync(self) -> None:
        """Take over what the buffer has; cheap when nothing changed."""
        if self._log.version == self._version:
            return
        self._version, self._synced_end = self._log.version, self._log.end
        self.log_view.sync()
        self._repaint()

    def _repaint(self) -> None:
        port = self.log_view.viewport
        port.height = max(1, self.size.height - self.covered)
        port.room = max(8, text_room(self.size.width, narrow=self.narrow))
        self._shown = self.log_view.visible()
        self.refresh()

    def _changed(self) -> None:
        """Something came from the host."""
        if self.is_mounted:
            self._repaint()
            self.post_message(self.Moved())

    def on_resize(self) -> None:
        self._repaint()

    def on_mount(self) -> None:
        self._repaint()

    # --- moving ---

    def _moved(self) -> None:
        self._repaint()
        if self.log_view.wants:
            self.run_worker(self.log_view.fetch(), group=_FETCH, exclusive=True)
        self.post_message(self.Moved())

    def action_move(self, lines: int) -> None:
        self.log_view.scroll(lines)
        self._moved()

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self.size.height - 1))

    def action_page_by_space(self) -> None:
        self.action_page(1)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "page_by_space" and self.leaves_space:
            return False
        return super().check_action(action, parameters)

    def action_top(self) -> None:
        self.go_top()

    def action_bottom(self) -> None:
        self.go_bottom()

    def action_shift(self, way: int) -> None:
        self._shift = min(4096, max(0, self._shift + way * _SHIFT))
        self.refresh()

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        event.stop()
        self.action_move(-3)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        event.stop()
        self.action_move(3)

    def follow(self) -> None:
        """Go to the end: of the followed log to stay there, of another one as it is now."""
        self.workers.cancel_group(self, _FETCH)
        if self.log_view.file.is_other:
            self.run_worker(self._then_moved(self.log_view.go_to(-1)), group=_FETCH, exclusive=True)
            return
        self.log_view.follow()
        self._look += 1
        self._moved()

    def go_bottom(self) -> None:
        self.follow()

    def go_top(self) -> None:
        self.run_worker(self._then_moved(self.log_view.go_top()), group=_FETCH, exclusive=True)

    async def _then_moved(self, work: Awaitable[object]) -> None:
        await work
        self._moved()

    # --- what is shown ---

    def toggle_steps(self) -> None:
        work = self.log_view.hide_steps(not self.log_view.sieve.hides_steps)
        self.run_worker(self._then_moved(work), group=_FETCH, exclusive=True)

    def toggle_wrap(self) -> None:
        self.log_view.viewport.wraps = not self.log_view.viewport.wraps
        self._shift = 0
        self._look += 1
        self._moved()

    def toggle_folds(self) -> None:
        self.log_view.sieve.unfolds = not self.log_view.sieve.unfolds
        self._moved()

    def set_filter(self, query: Query | None) -> None:
        self._look += 1
        self.run_worker(self._then_moved(self.log_view.set_filter(query)), group=_FETCH, exclusive=True)

    def open(self, place: Place) -> None:
        """Show another log than the one that is followed."""
        self._left()
        self.run_worker(self._then_moved(self.log_view.open(place)), group=_FETCH, exclusive=True)

    def close_other(self) -> None:
        self._left()
        self.log_view.close_other()
        self._moved()

    # --- search and errors ---

    def search(self, query: Query) -> None:
        """Go to the newest hit above the end, or, when it isn't followed, to the next one below the top."""
        self._find(query, back=self.following, again=False)

    def search_again(self, direction: int) -> None:
        """Go to the next (1) or the previous (-1) hit, around the ends."""
        query = self.log_search.searched
        if query is None:
            self.log_view.file.trouble = "nothing searched yet: / asks"
            self.post_message(self.Moved())
            return
        self._find(query, back=direction < 0, again=True)

    def go_error(self, direction: int) -> None:
        """Show the next (1) or previous (-1) error line, around the ends."""
        self._find(ERRORS, back=direction < 0, again=True)

    def _find(self, query: Query, *, back: bool, again: bool) -> None:
        self._marks_hits = not query.errors
        self._look += 1
        self.run_worker(self._finding(query, back=back, again=again), group=_FIND, exclusive=True)

    async def _finding(self, query: Query, *, back: bool, again: bool) -> None:
        found = await self.log_search.find(query, back=back, again=again)
        self._moved()
        if found:
            self.run_worker(self.log_search.count(query), group=_COUNT, exclusive=True)

    def give_up(self) -> None:
        """Stop asking the host; what was found stays."""
        self.workers.cancel_group(self, _FIND)
        self.workers.cancel_group(self, _COUNT)
        self.log_search.gave_up()
        self._moved()

    def clear_search(self) -> None:
        self._marks_hits = False
        self._look += 1
        self.log_search.clear()
        self._moved()

    # --- painting ---

    def watch_has_focus(self, _has_focus: bool) -> None:
        """It looks the same with the focus, so no styles are matched anew."""

    def notify_style_update(self) -> None:
        self._strips.clear()
        super().notify_style_update()

    def watch_covered(self) -> None:
        self._repaint()

    def watch_stale(self) -> None:
        self._strips.clear()

    def watch_narrow(self) -> None:
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y < len(self._shown):
            return self._painted(self._shown[y], width)
        live = self._log.live
        if self.following and live is not None and y == len(self._shown):
            return self.strip_of(live_line(live, self._line_look(width)), width).apply_offsets(0, self._log.end)
        if y == 0 and not self._shown:
            return self.strip_of((Span(blank_gutter(narrow=self.narrow)), Span(self._why_empty(), Role.DIM)), width)
        return self.strip_of((), width)

    def _why_empty(self) -> str:
        view = self.log_view
        only, hidden_steps = view.sieve.only, view.hidden_steps if view.sieve.hides_steps else 0
        if (view.following and not len(self._log)) or (only is None and not hidden_steps):
            return self.placeholder
        return nothing_let_through(view.patterns.named(only) if only is not None else "", hidden_steps)

    def _painted(self, shown: Shown, width: int) -> Strip:
        row, number, line = shown
        entry = row.entry
        kind = LineKind.ERROR if row.folded else self.log_view.sieve.kind(entry)
        selection = self.text_selection
        is_cursor = entry is self.log_view.cursor
        shape = kind if entry.kind is EntryKind.LINE else entry.kind
        key = _Key(row.text, shape, line, width, self.log_view.viewport.room, self._shift, is_cursor, self._look)
        across = line * self.log_view.viewport.room if line else 0
        strip = self._strips.get(key)
        if strip is None:
            strip = self.strip_of(log_line(shown, kind, self._line_look(width), is_cursor=is_cursor), width)
            self._strips[key] = strip
        if selection is not None:
            strip = self._selected(strip, selection, number, across)
        return strip.apply_offsets(across, number)

    def _line_look(self, width: int) -> LineLook:
        """Whatever is in here grows `_look`, empties the strips, or stands in their keys."""
        port = self.log_view.viewport
        return LineLook(
            self._glyphs,
            width,
            narrow=self.narrow,
            stale=self.stale,
            wraps_at=port.room if port.wraps else None,
            shift=self._shift,
            hits=self.log_search.marks if self._marks_hits else None,
        )

    # --- selecting with the mouse ---

    def _selected(self, strip: Strip, selection: Selection, number: int, across: int) -> Strip:
        span = selection.get_span(number)
        if span is None:
            return strip
        start, end = span
        start = max(0, start - across)
        end = strip.cell_length if end == -1 else max(0, end - across)
        style = self.screen.get_component_rich_style("screen--selection")
        before, chosen, after = strip.crop(0, start), strip.crop(start, end), strip.crop(end)
        return Strip.join([before, chosen.apply_style(style), after])

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        first = selection.start.y if selection.start is not None else 0
        last = selection.end.y if selection.end is not None else (1 << 40)
        found = []
        for number, text in self.log_view.numbered(min(first, last), max(first, last)):
            span = selection.get_span(number)
            if span is not None:
                shown = blank_gutter(narrow=self.narrow) + text[self._shift :]
                found.append(shown[span[0] : None if span[1] == -1 else span[1]].strip())
        return "\n".join(found), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def shown_text(self) -> str:
        """Return the lines that are on the screen, whole."""
        return "\n".join(shown.row.text for shown in self._shown if shown.line == 0)
