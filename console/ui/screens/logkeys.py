"""What keys tell the log pane: search, errors, follow, top and bottom; and the line in which a search is typed."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.widgets import Input

from console.ui.screens.target import TargetScreen
from console.ui.widgets.logpane import LogPane


class LogKeys(TargetScreen):
    """A screen with a log pane and its search line; its title and the footer are the screen's own."""

    @property
    def log_pane(self) -> LogPane:
        return self.query_one("#log", LogPane)

    @property
    def _search(self) -> Input:
        return self.query_one("#search", Input)

    @staticmethod
    def search_line() -> ComposeResult:
        line = Input(id="search", placeholder="search the log: enter finds, esc leaves", select_on_focus=False)
        line.display = False
        yield line

    def show_title_and_keys(self) -> None:
        """Called when what the log's title or the footer says may have changed."""
        raise NotImplementedError

    def act_search(self) -> None:
        self._search.display = True
        self._search.value = ""
        self._search.focus()

    @on(Input.Submitted, "#search")
    def _search_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._close_search()
        self.log_pane.search(event.value)
        self.show_title_and_keys()

    def _close_search(self) -> None:
        self._search.display = False
        self.log_pane.focus()

    def key_escape(self) -> None:
        if self._search.display:
            self._close_search()
        elif self.log_pane.searching:
            self.log_pane.clear_search()

    def act_next_hit(self) -> None:
        self.log_pane.search_again(1)

    def act_prev_hit(self) -> None:
        self.log_pane.search_again(-1)

    def act_next_error(self) -> None:
        self.log_pane.go_error(1)

    def act_prev_error(self) -> None:
        self.log_pane.go_error(-1)

    def act_follow(self) -> None:
        self.log_pane.follow()

    def act_top(self) -> None:
        self.log_pane.go_top()

    def act_bottom(self) -> None:
        self.log_pane.go_bottom()
