"""A list to choose from: a number to plot, a run to compare with. It may take a text of one's own, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from console.ui.present.look import Look
from console.ui.present.spans import Line, Span, cells, clip, dim, faint, strong
from console.ui.screens.dialog import Dialog
from console.ui.widgets.lines import LinesView

_WIDTH = 64
_FRAME = 6  # the border and its padding on both sides
_AROUND = 8  # rows of the dialog that are no row of the list, with a margin


class PickRow(NamedTuple):
    name: str
    detail: str = ""


class PickScreen(Dialog[str | None]):
    """Returns the chosen name, or what was typed and `check` finds nothing wrong with; None after esc.

    Typing narrows the list. With `free` the prompt takes a text of its own while the list has no row for it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "back", id="pick.cancel", show=False),
        Binding("up", "move(-1)", "up", id="pick.up", show=False, priority=True),
        Binding("down", "move(1)", "down", id="pick.down", show=False, priority=True),
        Binding("pageup", "move(-10)", "page up", id="pick.pageup", show=False, priority=True),
        Binding("pagedown", "move(10)", "page down", id="pick.pagedown", show=False, priority=True),
    ]

    def __init__(
        self, title: str, rows: Sequence[PickRow], *, free: str = "", check: Callable[[str], str] | None = None
    ) -> None:
        super().__init__()
        self._pick_title, self._rows, self._free, self._check = title, tuple(rows), free, check
        self._cursor = 0

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="prompt") as dialog:
            dialog.border_title = self._pick_title
            dialog.border_subtitle = "enter takes it, esc back"
            yield Input(placeholder=self._free or "type to narrow the list", id="line", select_on_focus=False)
            yield Static("", id="complaint", markup=False)
            yield LinesView(id="rows")

    def on_mount(self) -> None:
        self.query_one("#rows", LinesView).ascii_only = getattr(self.app, "ascii_only", False)
        self.query_one("#complaint").display = False
        self.query_one(Input).focus()
        self._show()

    def on_resize(self) -> None:
        self._show()

    @property
    def _typed(self) -> str:
        return self.query_one(Input).value.strip()

    @property
    def _matching(self) -> list[PickRow]:
        typed = self._typed.casefold()
        return [row for row in self._rows if typed in row.name.casefold()]

    def _show(self) -> None:
        look = cast(Look, getattr(self.app, "look", Look()))
        matching = self._matching
        self._cursor = max(0, min(self._cursor, len(matching) - 1))
        width = min(_WIDTH, self.app.size.width) - _FRAME
        room = max(3, self.app.size.height - _AROUND)
        first = max(0, min(self._cursor - room // 2, len(matching) - room))
        lines = [
            _line(row, width, look, chosen=first + index == self._cursor)
            for index, row in enumerate(matching[first : first + room])
        ]
        view = self.query_one("#rows", LinesView)
        view.styles.height = max(1, len(lines))
        view.view = tuple(lines) or ((faint("no such row"),),)

    @on(Input.Changed)
    def _changed(self) -> None:
        self.query_one("#complaint").display = False
        self._show()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        matching = self._matching
        if matching:
            self.dismiss(matching[self._cursor].name)
            return
        complaint = self._check(self._typed) if self._free and self._check is not None else "no such row"
        if not complaint:
            self.dismiss(self._typed)
            return
        line = self.query_one("#complaint", Static)
        line.update(complaint)
        line.display = True

    def action_move(self, rows: int) -> None:
        self._cursor += rows
        if self.is_mounted:  # a key that was typed ahead comes before there are rows
            self._show()

    def action_cancel(self) -> None:
        self.dismiss(None)


def _line(row: PickRow, width: int, look: Look, *, chosen: bool) -> Line:
    name = clip(row.name, max(1, width - cells(row.detail) - 4))
    gap = " " * max(1, width - 2 - cells(name) - cells(row.detail))
    mark = "> " if look.glyphs.ascii else "▸ "
    return (strong(mark + name) if chosen else Span("  " + name), Span(gap), dim(row.detail))
