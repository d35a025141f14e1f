"""The help: every key that the situation offers, from the registry."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen

from console.ui.actions import Group, Situation, key_name, offered
from console.ui.present.spans import BLANK, Line, dim, faint, strong
from console.ui.widgets.lines import LinesView

_MOVING = (
    ("↑ ↓ PgUp PgDn Home End", "scroll the log; ← → show what is cut"),
    ("shift + mouse", "select as your terminal does; with the mouse alone: select, then y"),
)
_KEYS_WIDTH = 10


def help_rows(situation: Situation) -> tuple[Line, ...]:
    rows: list[Line] = []
    for group in Group:
        actions = [a for a in offered(situation) if a.group is group]
        if not actions:
            continue
        rows += [BLANK] if rows else []
        rows.append((strong(group.value),))
        for action in actions:
            keys = " ".join(key_name(key) for key in action.keys)
            gap = " " * max(1, _KEYS_WIDTH - len(keys))
            rows.append((strong(f"  {keys}{gap}"), dim(action.help)))
        if group is Group.LOG:
            rows += [(strong(f"  {keys}"), dim(f"  {text}")) for keys, text in _MOVING]
    rows += [BLANK, (faint("A capital letter acts, a small letter asks. The run never needs this console."),)]
    return tuple(rows)


class HelpScreen(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "dismiss", "back", id="help.back", show=False),
        Binding("up,k", "scroll(-1)", "up", id="help.up", show=False),
        Binding("down,j", "scroll(1)", "down", id="help.down", show=False),
    ]

    def __init__(self, situation: Situation) -> None:
        super().__init__()
        self._situation = situation

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="dialog", classes="help") as dialog:
            dialog.border_title = "keys"
            dialog.border_subtitle = "esc back"
            yield LinesView(id="rows")

    def on_mount(self) -> None:
        rows = help_rows(self._situation)
        view = self.query_one("#rows", LinesView)
        view.ascii_only = getattr(self.app, "ascii_only", False)
        view.styles.height = len(rows)
        view.view = rows
        self.query_one("#dialog").focus()

    async def action_dismiss(self, result: None = None) -> None:
        self.dismiss()

    def action_scroll(self, rows: int) -> None:
        self.query_one("#dialog").scroll_relative(y=rows, animate=False)
