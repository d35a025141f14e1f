"""One line asked for: a name, a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from console.ui.screens.dialog import Dialog


class PromptScreen(Dialog[str | None]):
    """Returns what was typed, or None after esc. `check` says what is wrong with a text, or nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "back", id="prompt.cancel", show=False)]

    def __init__(
        self, title: str, value: str = "", *, password: bool = False, check: Callable[[str], str] | None = None
    ) -> None:
        super().__init__()
        self._prompt_title, self._value, self._password, self._check = title, value, password, check

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="prompt") as dialog:
            dialog.border_title = self._prompt_title.replace("[", "\\[")
            dialog.border_subtitle = "enter takes it, esc back"
            yield Input(self._value, password=self._password, id="line", select_on_focus=False)
            yield Static("", id="complaint", markup=False)

    def on_mount(self) -> None:
        self.query_one("#complaint").display = False
        self.query_one(Input).focus()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        complaint = self._check(event.value) if self._check is not None else ""
        line = self.query_one("#complaint", Static)
        line.update(complaint)
        line.display = bool(complaint)
        if not complaint:
            self.dismiss(event.value)

    def action_cancel(self) -> None:
        self.dismiss(None)
