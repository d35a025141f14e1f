"""Edits what one restart changes: environment, arguments, note, in a table with undo. Nothing is started from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from rich.markup import escape
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import Resize

from console.model import Overrides
from console.reasons import ConsoleError
from console.ui.edittable import EditTable, Kind, Row, bad_args, bad_name, is_secret
from console.ui.present.spans import BLANK, Line, Role, Span, View, cells, clip, dim, faint, strong, whole_spans
from console.ui.present.words import one_line
from console.ui.screens.dialog import Dialog
from console.ui.screens.prompt import PromptScreen
from console.ui.widgets.lines import LinesView

if TYPE_CHECKING:
    from console.ui.app import ConsoleApp

_HINTS = (
    ("esc", "back"),
    ("enter", "edit"),
    ("a", "add"),
    ("x", "unset"),
    ("u", "undo"),
    ("v", "as in the config"),
)
_KEEP = ("c", "keep in the config")
_EMPTY = {Kind.ARGS: "none besides the command's own", Kind.NOTE: "none"}


Keep = Callable[[Mapping[str, str], tuple[str, ...]], None]


class EditScreen(Dialog[Overrides | None]):
    """Returns the overrides with what was edited."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "done", "to the plan", id="edit.done", show=False),
        Binding("up,k", "move(-1)", "up", id="edit.up", show=False),
        Binding("down,j", "move(1)", "down", id="edit.down", show=False),
        Binding("enter", "edit", "edit", id="edit.edit", show=False),
        Binding("a", "add", "add", id="edit.add", show=False),
        Binding("x", "unset", "unset", id="edit.unset", show=False),
        Binding("u", "undo", "undo", id="edit.undo", show=False),
        Binding("v", "revert", "as in the config", id="edit.revert", show=False),
        Binding("c", "keep", "keep in the config", id="edit.keep", show=False),
    ]

    def __init__(
        self, declared: Mapping[str, str], overrides: Overrides, target: str, keep: Keep | None = None
    ) -> None:
        """`keep` writes environment and added arguments into the config; None where there is none to write to."""
        super().__init__()
        self._keep = keep
        self.kept = False
        self._table = EditTable(declared, overrides)
        self._base = overrides
        self._target = target
        self._at = 0

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="edit") as dialog:
            dialog.border_title = escape(f"edit the next run on {self._target}, this run only")
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
        name_width = min(max(cells(row.name) for row in rows) + 2, inner // 2)
        view: list[Line] = [(faint(f"  {'NAME'.ljust(name_width)}VALUE"),)]
        if rows[0].kind is not Kind.ENV:
            view.append((faint("  the config declares no environment; a adds a name"),))
        at = 0
        for index, row in enumerate(rows):
            if row.kind is Kind.ARGS:
                view.append(BLANK)
            if index == self._at:
                at = len(view)
            view.append(self._row(row, index == self._at, name_width, inner))
        self._put("rows", tuple(view))
        body, room = self.query_one("#body"), max(3, height - 5)
        body.styles.height = min(len(view), room)
        body.scroll_to(y=max(0, at + 2 - room), animate=False, immediate=True)
        hints = (*_HINTS, _KEEP) if self._keep is not None and self._table.is_changed else _HINTS
        self._put("hints", (whole_spans([(strong(k), dim(f" {v}")) for k, v in hints], inner, (Span("   "),)),))

    def _put(self, widget_id: str, view: View) -> None:
        lines = self.query_one(f"#{widget_id}", LinesView)
        lines.styles.height = len(view)
        lines.view = view

    @staticmethod
    def _row(row: Row, chosen: bool, name_width: int, width: int) -> Line:
        mark = Span("▌ " if chosen else "~ " if row.changed else "  ", Role.BUSY if chosen else Role.WARN, True)
        name = clip(row.name, name_width - 2).ljust(name_width)
        value = one_line(row.shown(row.value))
        was = ""
        if row.kind is Kind.ENV and row.changed:
            was = "   new" if row.declared is None else f"   was {one_line(row.shown(row.declared))}"
        shown = clip(value, max(8, width - 2 - name_width - cells(was)))
        if row.value is None and row.kind is not Kind.ENV:
            shown = clip(_EMPTY[row.kind], width - 2 - name_width)
        role = Role.FAINT if row.value is None else Role.STRONG if chosen or row.changed else Role.TEXT
        return (mark, Span(name, Role.STRONG if chosen else Role.TEXT, chosen), Span(shown, role, row.changed),
                faint(clip(was, max(0, width - 2 - name_width - cells(shown)))))  # fmt: skip

    def _row_at(self) -> Row:
        return self._table.rows[self._at]

    def action_move(self, rows: int) -> None:
        self._at += rows
        self._show()

    @work
    async def action_edit(self) -> None:
        row = self._row_at()
        secret = row.kind is Kind.ENV and is_secret(row.name)
        start = "" if secret else row.value or ""
        match row.kind:
            case Kind.ENV:
                value = await self.app.push_screen_wait(PromptScreen(row.name, start, password=secret))
                put: Callable[[str], None] = partial(self._table.put, row.name)
            case Kind.ARGS:
                title = "arguments added to the command"
                value = await self.app.push_screen_wait(PromptScreen(title, start, check=bad_args))
                put = self._table.put_args
            case Kind.NOTE:
                value = await self.app.push_screen_wait(PromptScreen("note kept with the run", start))
                put = self._table.put_note
        if value is not None:
            put(value)
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
        self._table.unset(self._row_at())
        self._show()

    def action_undo(self) -> None:
        self._table.undo()
        self._show()

    def action_revert(self) -> None:
        self._table.revert()
        self._show()

    def action_keep(self) -> None:
        """Write environment and arguments into the config: every later run has them, too."""
        if self._keep is None or not self._table.is_changed:
            return
        face = cast("ConsoleApp", self.app)
        try:
            self._keep(self._table.env, self._table.args)
        except ConsoleError as error:
            face.toast(f"not kept: {one_line(error.detail)}")
            return
        self.kept = True
        self._table.declared()
        face.toast("kept in the config")
        self._show()

    def action_done(self) -> None:
        self.dismiss(self._table.overrides(self._base))
