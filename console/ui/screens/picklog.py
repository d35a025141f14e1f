"""The dialog in which another log is chosen: the logs on the host, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from console.state.logquery import LogFile
from console.ui.present import words
from console.ui.present.look import Look, to_ascii


def option_text(file: LogFile, look: Look, *, is_current: bool, run_width: int) -> str:
    """`slammed4   412 MiB  Aug 20 09:02  /workspace/train_slammed4.log`."""
    mark = "● " if is_current else "  "
    run = words.one_line(file.run or "?").ljust(run_width)
    written = words.day_and_clock(file.written_wall, look.zone)
    text = f"{mark}{run}  {words.size(file.size_bytes):>9}  {written}  {words.one_line(file.path)}"
    return to_ascii(text) if look.glyphs.ascii else text


class PickLog(ModalScreen[LogFile | None]):
    """Returns the log that was chosen, or None after esc. What is typed narrows the list."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "back", id="picklog.cancel", show=False),
        Binding("down", "move(1)", "down", id="picklog.down", show=False, priority=True),
        Binding("up", "move(-1)", "up", id="picklog.up", show=False, priority=True),
    ]

    def __init__(self, files: Sequence[LogFile], current: str | None, look: Look) -> None:
        super().__init__()
        self._files, self._current, self._look = files, current, look
        self._offered: list[LogFile] = []

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="picklog") as dialog:
            dialog.border_title = "logs on the host"
            dialog.border_subtitle = "type to narrow, enter shows, esc back"
            yield Input(id="narrow", placeholder="part of a name", select_on_focus=False)
            yield OptionList(id="logs", markup=False)

    def on_mount(self) -> None:
        self._offer("")
        self.query_one(Input).focus()

    def _offer(self, part: str) -> None:
        self._offered = [file for file in self._files if part.lower() in file.path.lower()]
        width = max((len(file.run or "?") for file in self._offered), default=0)
        options = self.query_one("#logs", OptionList)
        options.clear_options()
        options.add_options(
            Option(option_text(file, self._look, is_current=file.path == self._current, run_width=min(24, width)))
            for file in self._offered
        )
        if not self._offered:
            nothing = "no log that the template could have made" if not self._files else "none has that in its name"
            options.add_option(Option(nothing, disabled=True))
        options.highlighted = 0 if self._offered else None

    @on(Input.Changed, "#narrow")
    def _narrowed(self, event: Input.Changed) -> None:
        event.stop()
        self._offer(event.value)

    @on(Input.Submitted, "#narrow")
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        index = self.query_one("#logs", OptionList).highlighted
        if index is not None and index < len(self._offered):
            self.dismiss(self._offered[index])

    @on(OptionList.OptionSelected, "#logs")
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_index < len(self._offered):
            self.dismiss(self._offered[event.option_index])

    def action_move(self, rows: int) -> None:
        options = self.query_one("#logs", OptionList)
        if self._offered:
            options.highlighted = max(0, min(len(self._offered) - 1, (options.highlighted or 0) + rows))

    def action_cancel(self) -> None:
        self.dismiss(None)
