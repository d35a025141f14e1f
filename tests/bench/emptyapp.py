"""The peer of every screen: a Textual app with one line. It says READY, then `seen 1`, `seen 2` for each key `?`."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Static


class EmptyApp(App[None]):
    ENABLE_COMMAND_PALETTE = False

    def compose(self) -> ComposeResult:
        self._seen = 0
        yield Static("READY", id="word")

    def key_question_mark(self) -> None:
        self._seen += 1
        self.query_one("#word", Static).update(f"seen {self._seen}")


if __name__ == "__main__":
    EmptyApp().run()
