"""The log: a window on the engine's log buffer by absolute line numbers, with a gutter, search and follow.

Lines are rendered when they are seen, never when they arrive; strips are kept by line number. Text reaches the screen
as text: control characters were made visible by the buffer's reader, and no markup is ever interpreted.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from textual.cache import LRUCache
from textual.events import MouseScrollDown, MouseScrollUp
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from console.state.linekind import LineKind
from console.state.logbuffer import EntryKind, LogBuffer
from console.ui.present.look import UNICODE, Glyphs
from console.ui.present.spans import Line, Role, Span, cells, clip
from console.ui.present.words import one_line
from console.ui.widgets.lines import RoleStyles

_STAMP = re.compile(r"^\[(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d(?:[.,]\d+)?\] ")
_SHIFT = 16  # cells by which left and right move


class _Key(NamedTuple):
    number: int
    width: int
    shift: int
    look: int  # grows when search, selection or size class change what a line looks like


class LogPane(ScrollView, RoleStyles, can_focus=True):
    """Follows the end until somebody scrolls up; `f` follows again."""

    class Moved(Message):
        """What the title says has changed: following or not, lines not seen, the search."""

    following = reactive(True, repaint=False)
    placeholder = reactive("")
    stale = reactive(False)
    narrow = reactive(False)
    ended = reactive(False)
    """The run is over: nothing will come that could be followed."""

    def __init__(self, log: LogBuffer, glyphs: Glyphs = UNICODE, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._log = log
        self._glyphs = glyphs
        self._strips: LRUCache[_Key, Strip] = LRUCache(2048)
        self._version = -1
        self._first = log.first
        self._look = 0
        self._shift = 0
        self._pattern: re.Pattern[str] | None = None
        self._cursor: int | None = None
        self._left_at = 0
        self._search_label = ""

    # --- what the title needs ---

    @property
    def unseen(self) -> int:
        """Lines that came since the end was left."""
        return 0 if self.following else max(0, self._log.end - self._left_at)

    @property
    def search_label(self) -> str:
        return self._search_label

    @property
    def searching(self) -> bool:
        return self._pattern is not None

    # --- following the buffer ---

    def pending(self) -> int:
        """How many changes the buffer made since the last `sync`."""
        return self._log.version - self._version

    def sync(self) -> None:
        """Take over what the buffer has; cheap when nothing changed."""
        log = self._log
        if log.version == self._version:
            return
        self._version = log.version
        dropped, self._first = log.first - self._first, log.first
        self.virtual_size = Size(self.size.width, self._rows())
        if self.following:
            self.scroll_to(y=self._bottom(), animate=False, immediate=True, force=True)
        elif dropped > 0:
            self.scroll_to(y=max(0, self.scroll_offset.y - dropped), animate=False, immediate=True, force=True)
        self.refresh()

    def _rows(self) -> int:
        return self._log.end - self._log.first + (1 if self._log.live is not None else 0)

    def _bottom(self) -> int:
        return max(0, self._rows() - self.size.height)

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, self._rows())
        if self.following:
            self.scroll_to(y=self._bottom(), animate=False, immediate=True, force=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(new_value) >= self._bottom():
            if not self.following and self._cursor is None:
                self._set_following(True)
        elif self.following and new_value < old_value:
            self._set_following(False)

    def _set_following(self, following: bool) -> None:
        if self.following and not following:
            self._left_at = self._log.end
        self.following = following
        self.post_message(self.Moved())

    def follow(self) -> None:
        self._cursor = None
        self._forget_look()
        self._set_following(True)
        self.scroll_to(y=self._bottom(), animate=False, immediate=True, force=True)
        self.refresh()

    def go_top(self) -> None:
        self._leave(self._log.first)

    def go_bottom(self) -> None:
        self.follow()

    def _leave(self, number: int) -> None:
        """Show a line a third down the pane and stop following."""
        self._set_following(False)
        row = number - self._log.first
        self.scroll_to(
            y=max(0, min(self._bottom(), row - self.size.height // 3)), animate=False, immediate=True, force=True
        )
        self.refresh()

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        event.stop()
        self.scroll_relative(y=-3, animate=False)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        event.stop()
        self.scroll_relative(y=3, animate=False)

    def action_scroll_left(self) -> None:
        self._shift = max(0, self._shift - _SHIFT)
        self.refresh()

    def action_scroll_right(self) -> None:
        self._shift = min(4096, self._shift + _SHIFT)
        self.refresh()

    # --- search and errors ---

    def search(self, text: str) -> bool:
        """Search as less does with smart case; the newest hit above the bottom first. False where there is none."""
        if not text:
            self.clear_search()
            return False
        self._pattern = re.compile(re.escape(text), 0 if text != text.lower() else re.IGNORECASE)
        start = self._log.end - 1 if self.following else self._log.first + self.scroll_offset.y
        found = self._log.search(self._pattern, start, -1 if self.following else 1)
        if found is None:
            found = self._log.search(self._pattern, self._log.end - 1, -1)
        return self._show_hit(found)

    def search_again(self, direction: int) -> bool:
        """Go to the next (1) or the previous (-1) hit, around the ends."""
        if self._pattern is None:
            self._search_label = "nothing searched yet: / asks"
            self.post_message(self.Moved())
            return False
        here = self._cursor if self._cursor is not None else self._log.first + self.scroll_offset.y
        found = self._log.search(self._pattern, here + direction, direction)
        if found is None:
            found = self._log.search(self._pattern, self._log.first if direction > 0 else self._log.end - 1, direction)
        return self._show_hit(found)

    def _show_hit(self, number: int | None) -> bool:
        pattern = self._pattern
        if pattern is None:
            return False
        text = pattern.pattern.replace("\\", "")
        hits = [e.number for e in self._log.lines(self._log.first, self._log.end) if pattern.search(e.text)]
        place = f"{hits.index(number) + 1} of {len(hits):,}" if number in hits else "not found"
        self._search_label = f"{text}  {place}"
        self._go(number)
        return number is not None

    def clear_search(self) -> None:
        self._pattern, self._search_label, self._cursor = None, "", None
        self._forget_look()
        self.refresh()
        self.post_message(self.Moved())

    def go_error(self, direction: int) -> bool:
        """Show the next (1) or previous (-1) error line, around the ends. False where there is none."""
        log = self._log
        here = self._cursor
        if here is None:
            here = log.end if direction < 0 or self.following else log.first + self.scroll_offset.y - 1
        found = log.next_error(here) if direction > 0 else log.prev_error(here)
        if found is None:
            found = log.next_error(log.first - 1) if direction > 0 else log.prev_error(log.end)
        if found is None:
            self._search_label = "no error line"
            self.post_message(self.Moved())
            return False
        if self._pattern is None:
            self._search_label = ""
        self._go(found)
        return True

    def _go(self, number: int | None) -> None:
        self._cursor = number
        self._forget_look()
        if number is not None and self._bottom() > 0:
            self._leave(number)
        self.refresh()
        self.post_message(self.Moved())

    # --- painting ---

    def _forget_look(self) -> None:
        self._look += 1

    def notify_style_update(self) -> None:
        self._strips.clear()
        super().notify_style_update()

    def watch_stale(self) -> None:
        self._strips.clear()

    def watch_narrow(self) -> None:
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        row = self.scroll_offset.y + y
        number = self._log.first + row
        if not self._rows():
            text = self.placeholder if y == 0 else ""
            return self.strip_of((Span(self._indent() + "  "), Span(text, Role.DIM)), width)
        if number >= self._log.end:
            live = self._log.live
            if number > self._log.end or live is None:
                return self.strip_of((), width)
            line = self._line(self._glyphs.bar if live.cr else " ", Role.BUSY, live.text, Role.TEXT, False, width)
            return self.strip_of(line, width).apply_offsets(0, row)
        selection = self.text_selection
        key = _Key(number, width, self._shift, self._look)
        if selection is None and key in self._strips:
            return self._strips[key].apply_offsets(0, row)
        strip = self.strip_of(self.line_at(number, width), width)
        if selection is not None:
            return self._selected(strip, selection, row).apply_offsets(0, row)
        self._strips[key] = strip
        return strip.apply_offsets(0, row)

    def _indent(self) -> str:
        return "" if self.narrow else " "

    def line_at(self, number: int, width: int) -> Line:
        """Return one line of the buffer with its gutter."""
        entry = self._log.line(number)
        if entry is None:
            return ()
        glyphs = self._glyphs
        match entry.kind:
            case EntryKind.MARK:
                return self._line(glyphs.mark, Role.BUSY, entry.text, Role.BUSY, True, width)
            case EntryKind.GAP | EntryKind.NOTE:
                return self._line(" ", Role.FAINT, entry.text, Role.FAINT, False, width)
            case EntryKind.LINE:
                pass
        match self._log.kind(number):
            case LineKind.ERROR:
                mark, role, bold = glyphs.fail[:1] if not glyphs.ascii else "x", Role.ERROR, True
            case LineKind.WARNING:
                mark, role, bold = "!", Role.WARN, False
            case LineKind.CHECKPOINT:
                mark, role, bold = glyphs.checkpoint, Role.OK, False
            case LineKind.STEP:
                mark, role, bold = " ", Role.DIM, False
            case LineKind.PLAIN:
                mark, role, bold = " ", Role.TEXT if not self.stale else Role.DIM, False
        return self._line(mark, role, entry.text, role, bold, width, cursor=number == self._cursor)

    def _line(
        self, mark: str, mark_role: Role, text: str, role: Role, bold: bool, width: int, *, cursor: bool = False
    ) -> Line:
        if self.narrow:
            text = _STAMP.sub("", text, count=1)
        text = one_line(text)[self._shift :]
        indent = self._indent()
        room = width - cells(indent) - 2 - (1 if not self.narrow else 0)
        gutter = Span(f"{indent}{mark} ", mark_role, True)
        shown = clip(text, room)
        if cursor and self._pattern is None:
            return (gutter, Span(shown, Role.MATCH, bold))
        return (gutter, *self._marked(shown, role, bold))

    def _marked(self, text: str, role: Role, bold: bool) -> list[Span]:
        if self._pattern is None:
            return [Span(text, role, bold)]
        spans, at = [], 0
        for hit in self._pattern.finditer(text):
            spans += [Span(text[at : hit.start()], role, bold), Span(hit.group(), Role.MATCH, bold)]
            at = hit.end()
        return [*spans, Span(text[at:], role, bold)]

    def _selected(self, strip: Strip, selection: Selection, row: int) -> Strip:
        span = selection.get_span(row)
        if span is None:
            return strip
        start, end = span
        end = strip.cell_length if end == -1 else end
        style = self.screen.get_component_rich_style("screen--selection")
        before, chosen, after = strip.crop(0, start), strip.crop(start, end), strip.crop(end)
        return Strip.join([before, chosen.apply_style(style), after])

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        rows = []
        for number in range(self._log.first, self._log.end):
            entry = self._log.line(number)
            rows.append(self._indent() + "  " + (one_line(entry.text) if entry is not None else ""))
        text = selection.extract("\n".join(rows))
        return "\n".join(line.strip() for line in text.split("\n")), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()
