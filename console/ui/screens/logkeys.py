"""What keys tell the log pane: search, filter, errors, follow, what is hidden; the line in which a search is typed; the
way to another log and to a copy of lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

from console.reasons import ConsoleError
from console.state.logquery import Place, typed
from console.ui.actions import footer_keys
from console.ui.logrange import LogRange
from console.ui.present import words
from console.ui.present.frame import footer
from console.ui.present.logtitle import LogShown, log_title
from console.ui.present.spans import Line
from console.ui.screens.pick import PickRow, PickScreen
from console.ui.screens.prompt import PromptScreen
from console.ui.screens.target import TargetScreen
from console.ui.widgets.logpane import LogPane

_COPIED_BYTES = 1 << 20
"""What a terminal's clipboard takes at most in practice is far less; more is for a file."""


class SearchLine(Input):
    """The line in which a search or a filter is typed; tab changes from one to the other."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "other", "filter instead", id="searchline.other", show=False, priority=True),
        Binding("ctrl+r", "literal", "as text", id="searchline.literal", show=False, priority=True),
    ]

    class Asks(Message):
        """It asks for something else now."""

    filters = False
    literal = False

    def ask(self, *, filters: bool) -> None:
        self.filters, self.literal = filters, False
        self.visible = True
        self.value = ""
        self._say()
        self.screen.set_focus(self)  # now, and not with the next message: the next key may be here already

    def watch_has_focus(self, _has_focus: bool) -> None:
        """It looks the same with the focus: matching its styles anew would only keep the operator waiting."""

    def _say(self) -> None:
        self.placeholder = prompt(self.app.size.width - 2, filters=self.filters, literal=self.literal)
        self.post_message(self.Asks())

    def on_resize(self) -> None:
        self._say()

    def action_other(self) -> None:
        self.filters = not self.filters
        self._say()

    def action_literal(self) -> None:
        self.literal = not self.literal
        self._say()


def prompt(room: int, *, filters: bool, literal: bool) -> str:
    """Return what the empty line says: what it is for, and how it is read where there is room for that."""
    what = "show only lines that match, nothing shows all" if filters else "search the whole log"
    how = "as text" if literal else "a regular expression where it has signs of one"
    whole = f"{what} ({how})"
    return whole if len(whole) <= room else what


class LogKeys(TargetScreen):
    """A screen with a log pane and its search line; its footer and what else stands on it are the screen's own."""

    CALM_LINES: ClassVar[int] = 5
    """Fewer new lines of a healthy run than that wait for the next second."""

    @property
    def log_pane(self) -> LogPane:
        return self.query_one("#log", LogPane)

    @property
    def _search(self) -> SearchLine:
        return self.query_one("#search", SearchLine)

    def ready(self) -> None:
        self.log_pane.ascii_only = self.look.glyphs.ascii
        self.log_pane.leaves_space = self.source.playback is not None
        self.log_pane.focus()

    def rebound(self) -> None:
        self.log_pane.show(self.source.log, self.source.logs)

    @staticmethod
    def search_line() -> ComposeResult:
        line = SearchLine(id="search", select_on_focus=False)
        line.visible = False
        yield line

    def sync_log(self) -> None:
        self.log_pane.sync()
        self.show_title_and_keys()

    def is_calm(self) -> bool:
        return self.log_pane.pending() < self.CALM_LINES

    def show_title_and_keys(self) -> None:
        """Called when what the log's title or the footer says may have changed."""
        raise NotImplementedError

    def title_line(self, width: int, *, narrow: bool) -> Line:
        pane, view = self.log_pane, self.log_pane.log_view
        where = view.where
        shown = LogShown(
            following=pane.following,
            unseen=pane.unseen,
            search=pane.search_label,
            trouble=view.file.trouble,
            filter=view.patterns.named(view.sieve.only) if view.sieve.only is not None else "",
            hidden_steps=view.hidden_steps if view.sieve.hides_steps else None,
            other=view.file.place.path if view.file.is_other and view.file.place is not None else None,
            offset=where.offset if where is not None else None,
            size_bytes=where.size_bytes if where is not None else 0,
            line=where.line if where is not None else None,
            marked=view.mark is not None,
            skipped_bytes=self.source.log.skipped_lately(self.snapshot.at) if pane.following else 0,
        )
        return log_title(self.snapshot, width, self.look, shown, narrow=narrow)

    def put_footer(self) -> None:
        line = self._search
        if not line.visible:
            super().put_footer()
            return
        keys = [
            ("enter", "shows only them" if line.filters else "searches"),
            ("tab", "search instead" if line.filters else "filter instead"),
            ("ctrl+r", "as an expression" if line.literal else "as plain text"),
            ("esc", "leaves"),
        ]
        _, last = footer_keys(self.situation)
        self.put_keys(footer(keys, last, self.size.width))

    @on(LogPane.Moved)
    def _log_moved(self) -> None:
        self.show_title_and_keys()

    # --- search and filter ---

    def act_search(self) -> None:
        self._ask(filters=False)

    def act_filter(self) -> None:
        self._ask(filters=True)

    def _ask(self, *, filters: bool) -> None:
        """Open the search line above the footer, over the last row of the pane, which goes on above it: were the pane
        made smaller, the whole screen would be laid out and painted anew before the key is answered."""
        self._search.styles.margin = (0, 0, self.query_one("#footer").size.height, 0)
        self.log_pane.covered = 1
        self._search.ask(filters=filters)

    @on(SearchLine.Asks)
    def _search_changed(self) -> None:
        self.show_title_and_keys()

    @on(Input.Submitted, "#search")
    def _search_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        line = self._search
        query = typed(event.value, literal=line.literal) if event.value else None
        self._close_search()
        if line.filters:
            self.log_pane.set_filter(query)
        elif query is not None:
            self.log_pane.search(query)
        else:
            self.log_pane.clear_search()
        self.show_title_and_keys()

    def _close_search(self) -> None:
        self._search.visible = False
        self.log_pane.covered = 0
        self.log_pane.focus()
        self.show_title_and_keys()

    def key_escape(self) -> None:
        """Leave what was come to last: the prompt, a search under way, a mark, the search, the filter, another log."""
        pane, view = self.log_pane, self.log_pane.log_view
        view.file.trouble = ""  # it was read
        ways: list[tuple[bool, Callable[[], object]]] = [
            (self._search.visible, self._close_search),
            (pane.busy, pane.give_up),
            (view.mark is not None, self._unmark),
            (bool(pane.search_label), pane.clear_search),
            (view.sieve.only is not None, lambda: pane.set_filter(None)),
            (view.file.is_other, pane.close_other),
            (self.viewing is not None, self.face.view_live),
        ]
        for applies, leave in ways:
            if applies:
                leave()
                break
        self.show_title_and_keys()

    def act_next_hit(self) -> None:
        self.log_pane.search_again(1)

    def act_prev_hit(self) -> None:
        self.log_pane.search_again(-1)

    def act_next_error(self) -> None:
        self.log_pane.go_error(1)

    def act_prev_error(self) -> None:
        self.log_pane.go_error(-1)

    # --- where it stands, and what is shown ---

    def act_follow(self) -> None:
        self.log_pane.follow()

    def act_top(self) -> None:
        self.log_pane.go_top()

    def act_bottom(self) -> None:
        self.log_pane.go_bottom()

    def act_hide_steps(self) -> None:
        self.log_pane.toggle_steps()

    def act_wrap(self) -> None:
        self.log_pane.toggle_wrap()

    def act_unfold(self) -> None:
        self.log_pane.toggle_folds()

    @work(exclusive=True, group="choose-log")
    async def act_choose_log(self) -> None:
        try:
            files = await self.source.logs.files()
        except ConsoleError as error:
            self.face.toast(f"the logs can't be listed: {words.one_line(error.detail or str(error.reason))}")
            return
        current, zone = self.snapshot.log.path, self.look.zone
        paths = _short_names([file.path for file in files])
        rows = [
            PickRow(name, f"{words.size(file.size_bytes)}  {words.day_and_clock(file.written_wall, zone)}")
            for name, file in zip(paths, files, strict=True)
        ]
        chosen = await self.face.push_screen_wait(PickScreen("logs on the host, the newest first", rows))
        if chosen is None:
            return
        if paths[chosen] == current:
            self.log_pane.close_other()
        else:
            self.log_pane.open(Place(path=paths[chosen]))
        self.show_title_and_keys()

    # --- lines to keep ---

    def act_mark_lines(self) -> None:
        view = self.log_pane.log_view
        view.mark = view.top_offset
        self.show_title_and_keys()

    def _unmark(self) -> None:
        self.log_pane.log_view.mark = None

    def act_copy(self) -> None:
        if self.log_pane.log_view.mark is None or self.get_selected_text():
            super().act_copy()
            return
        self._copy_marked()

    @work(exclusive=True, group="keep-lines")
    async def _copy_marked(self) -> None:
        chosen = self._range()
        begin, end = chosen.begin, chosen.end
        if end - begin > _COPIED_BYTES:
            self.face.toast(f"{words.size(end - begin)} are marked, too much to copy: > saves them to a file")
            return
        try:
            data = await chosen.read(begin, end) if end > begin else b""
        except ConsoleError as error:
            self.face.toast(f"not copied: {words.one_line(error.detail or str(error.reason))}")
            return
        self._unmark()
        self.show_title_and_keys()
        self.face.copy(data.decode("utf-8", "replace"), "the marked lines")

    def _range(self) -> LogRange:
        view = self.log_pane.log_view
        return LogRange(self.source.logs, view, view.files, *view.marked_range)

    @work(exclusive=True, group="keep-lines")
    async def act_save(self) -> None:
        view = self.log_pane.log_view
        chosen = self._range()
        begin, end = chosen.begin, chosen.end
        if view.file.place is None or end <= begin:
            self.face.toast("there are no lines to save")
            return
        stem = Path(view.file.place.path).name.removesuffix(".log")
        path = await self.face.push_screen_wait(
            PromptScreen(f"save {words.size(end - begin)} of lines", f"~/{stem}.{begin}-{end}.log", check=_complaint)
        )
        if path is None:
            return
        try:
            await chosen.write(path)
        except (ConsoleError, OSError) as error:
            said = error.detail if isinstance(error, ConsoleError) else error.strerror
            self.face.toast(f"not saved: {words.one_line(said or str(error))}")
            return
        self._unmark()
        self.show_title_and_keys()
        self.face.toast(f"{words.size(end - begin)} saved: {path}")


def _short_names(paths: Sequence[str]) -> dict[str, str]:
    """Return each path by its file's name, or by itself where another one has that name, too."""
    names = [os.path.basename(path) for path in paths]
    return {name if names.count(name) == 1 else path: path for name, path in zip(names, paths, strict=True)}


def _complaint(text: str) -> str:
    if not text.strip():
        return "a file's name is needed"
    path = Path(text).expanduser()
    if path.exists():
        return "it exists already"
    return "" if path.parent.is_dir() else f"{path.parent} is no directory"
