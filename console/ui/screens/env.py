"""Edits the environment of one restart: a table NAME VALUE with undo. Nothing is started from here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, cast

from rich.markup import escape
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import Resize
from textual.screen import ModalScreen

from console.model import Overrides
from console.ui.envtable import EnvTable, Row, bad_name, is_secret
from console.ui.present.spans import Line, Role, Span, cells, clip, dim, faint, strong
from console.ui.present.words import one_line
from console.ui.screens.prompt import PromptScreen
from console.ui.widgets.lines import LinesView

if TYPE_CHECKING:
    from console.ui.app import ConsoleApp

_HINTS = (
    ("enter", "edit"),
    ("a", "add"),
    ("x", "unset"),
    ("u", "undo"),
    ("v", "as in the config"),
    ("esc", "to the plan"),
)


class EnvScreen(ModalScreen[Overrides | None]):
    """Returns the overrides with the edited environment."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "done", "to the plan", id="env.done", show=False),
        Binding("up,k", "move(-1)", "up", id="env.up", show=False),
        Binding("down,j", "move(1)", "down", id="env.down", show=False),
        Binding("enter", "edit", "edit", id="env.edit", show=False),
        Binding("a", "add", "add", id="env.add", show=False),
        Binding("x", "unset", "unset", id="env.unset", show=False),
        Binding("u", "undo", "undo", id="env.undo", show=False),
        Binding("v", "revert", "as in the config", id="env.revert", show=False),
    ]

    def __init__(self, declared: Mapping[str, str], overrides: Overrides, target: str) -> None:
        super().__init__()
        self._table = EnvTable(declared, overrides)
        self._base = overrides
        self._target = target
        self._at = 0

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="env") as dialog:
            dialog.border_title = escape(f"environment of the next run on {self._target}, this run only")
            with VerticalScroll(id="body", can_focus=False):
                yield LinesView(id="rows")
            yield LinesView(id="hints")

    def on_mount(self) -> None:
        for view in self.query(LinesView):
            view.ascii_only = cast("ConsoleApp", self.app).ascii_only
        self._show()

    def on_resize(self, event: Resize) -> None:
        self._show()

    def _show(self) -> None:
        width, height = self.app.size
        outer = min(width, 100) if width <= 80 else min(width - 8, 100)
        self.query_one("#dialog").styles.width = outer
        inner = outer - 6
        rows = self._table.rows
        self._at = max(0, min(self._at, len(rows) - 1))
        name_width = max([cells(row.name) for row in rows] + [4]) + 2
        name_width = min(name_width, inner // 2)
        view: list[Line] = [(faint(f"  {'NAME'.ljust(name_width)}VALUE"),)]
        view += [self._row(row, index == self._at, name_width, inner) for index, row in enumerate(rows)]
        if not rows:
            view.append((dim("  the config declares no environment; a adds a name"),))
        lines = self.query_one("#rows", LinesView)
        lines.styles.height = len(view)
        lines.view = tuple(view)
        body = self.query_one("#body")
        body.styles.height = min(len(view), max(3, height - 6))
        body.scroll_to(y=max(0, self._at + 2 - (height - 6)), animate=False, immediate=True)
        hints: list[Span] = []
        for key, label in _HINTS:
            more = [Span("   " if hints else ""), strong(key), dim(f" {label}")]
            if sum(cells(s.text) for s in (*hints, *more)) <= inner:
                hints += more
        self.query_one("#hints", LinesView).view = (tuple(hints),)

    @staticmethod
    def _row(row: Row, chosen: bool, name_width: int, width: int) -> Line:
        mark = Span("▌ " if chosen else "~ " if row.changed else "  ", Role.BUSY if chosen else Role.WARN, True)
        name = clip(row.name, name_width - 2).ljust(name_width)
        value = one_line(row.shown(row.value))
        was = f"   was {one_line(row.shown(row.declared))}" if row.changed and row.declared is not None else ""
        if row.changed and row.declared is None:
            was = "   new"
        shown = clip(value, max(8, width - 2 - name_width - cells(was)))
        role = Role.FAINT if row.value is None else Role.STRONG if chosen or row.changed else Role.TEXT
        return (mark, Span(name, Role.STRONG if chosen else Role.TEXT, chosen), Span(shown, role, row.changed),
                faint(clip(was, max(0, width - 2 - name_width - cells(shown)))))  # fmt: skip

    def _row_at(self) -> Row | None:
        rows = self._table.rows
        return rows[self._at] if rows else None

    def action_move(self, rows: int) -> None:
        self._at += rows
        self._show()

    @work
    async def action_edit(self) -> None:
        row = self._row_at()
        if row is None:
            return
        secret = is_secret(row.name)
        value = await self.app.push_screen_wait(
            PromptScreen(row.name, "" if secret else row.value or "", password=secret)
        )
        if value is not None:
            self._table.put(row.name, value)
            self._show()

    @work
    async def action_add(self) -> None:
        name = await self.app.push_screen_wait(PromptScreen("name of the variable", check=bad_name))
        if name is None:
            return
        value = await self.app.push_screen_wait(PromptScreen(name, password=is_secret(name)))
        if value is None:
            return
        self._table.put(name, value)
        self._at = next(i for i, row in enumerate(self._table.rows) if row.name == name)
        self._show()

    def action_unset(self) -> None:
        row = self._row_at()
        if row is not None:
            self._table.unset(row.name)
            self._show()

    def action_undo(self) -> None:
        self._table.undo()
        self._show()

    def action_revert(self) -> None:
        self._table.revert()
        self._show()

    def action_done(self) -> None:
        self.dismiss(self._table.overrides(self._base))
