"""The help: every key that the situation offers, from the registry."""

from __future__ import annotations

from typing import ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Resize, ScreenResume

from console.ui.actions import key_name, offered
from console.ui.actiontable import Group
from console.ui.present.frame import rows_beyond
from console.ui.present.look import Look, to_ascii
from console.ui.present.spans import BLANK, Line, cells, dim, faint, strong, wrap
from console.ui.screens.dialog import Dialog
from console.ui.situation import Situation
from console.ui.widgets.lines import LinesView

_MOVING = (
    ("↑ ↓ PgUp PgDn", "scroll the log"),
    ("Home End", "the first line of the log, the newest line"),
    ("← →", "show what is cut at the right"),
    ("shift + mouse", "select as your terminal does; with the mouse alone: select, then y"),
)
_KEYS_WIDTH = max(cells(keys) for keys, _ in _MOVING) + 2
_LAST = "A capital letter acts, a small letter asks. The run never needs this console."
_WIDEST = 92


def help_rows(situation: Situation, width: int) -> tuple[Line, ...]:
    """Return the keys by groups, each with a sentence that wraps and is never cut."""
    rows: list[Line] = []
    for group in Group:
        actions = [a for a in offered(situation) if a.group is group]
        if not actions:
            continue
        rows += [BLANK] if rows else []
        rows.append((strong(group.value),))
        for action in actions:
            rows += _key_rows(" ".join(key_name(key) for key in action.keys), action.help, width)
        if group is Group.LOG and not situation.contact:
            rows += [row for keys, text in _MOVING for row in _key_rows(keys, text, width)]
    rows += [BLANK, *((faint(text),) for text in wrap(_LAST, width))]
    return tuple(rows)


def _key_rows(keys: str, text: str, width: int) -> list[Line]:
    column = _KEYS_WIDTH + 2
    return [
        (strong(f"  {keys if index == 0 else ''}".ljust(column)), dim(part))
        for index, part in enumerate(wrap(text, max(12, width - column)))
    ]


class HelpScreen(Dialog[None]):
    """Made once and kept: what takes time is to compose and style it. `tell` says what it is to show before it is
    pushed, each time."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "dismiss", "back", id="help.back", show=False),
        Binding("up,k", "scroll(-1)", "up", id="help.up", show=False),
        Binding("down,j", "scroll(1)", "down", id="help.down", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._situation: Situation | None = None

    def tell(self, situation: Situation) -> None:
        """Show the keys of this situation, from the first on."""
        self._situation = situation
        if self.is_mounted:
            self._fill(self._dialog, self._view)
            self._dialog.scroll_home(animate=False)
            self.call_after_refresh(self._hint)

    def compose(self) -> ComposeResult:
        # With its rows from the beginning: an empty dialog would be laid out and painted first.
        view = LinesView(id="rows")
        view.ascii_only = getattr(self.app, "ascii_only", False)
        with VerticalScroll(id="dialog", classes="help") as dialog:
            dialog.border_title = "keys"
            self._fill(dialog, view)
            yield view

    @property
    def _dialog(self) -> VerticalScroll:
        return self.query_one("#dialog", VerticalScroll)

    @property
    def _view(self) -> LinesView:
        return self.query_one("#rows", LinesView)

    def on_screen_resume(self, event: ScreenResume) -> None:
        event.refresh_styles = False  # they are those of the last time

    def on_mount(self) -> None:
        self.watch(self._dialog, "scroll_y", self._hint, init=False)
        self._dialog.focus()

    def on_resize(self, event: Resize) -> None:
        if self._is_there:
            self._fill(self._dialog, self._view)
            self.call_after_refresh(self._hint)

    @property
    def _is_there(self) -> bool:
        """False while it is taken apart with the whole console, which may be before it was ever seen."""
        return bool(self.query("#rows"))

    def _fill(self, dialog: VerticalScroll, view: LinesView) -> None:
        outer = min(_WIDEST, self.app.size.width)
        dialog.styles.width = outer
        rows = help_rows(self._situation, outer - 6) if self._situation is not None else ()
        view.styles.height = len(rows)
        view.view = rows

    def _hint(self) -> None:
        """Say at the border that there is more, so that no group is missed."""
        if not self._is_there:
            return
        look = cast(Look, getattr(self.app, "look", Look()))
        rows, room = len(self._view.view), self._dialog.scrollable_content_region.height
        more = rows_beyond(round(self._dialog.scroll_y), room, rows)
        text = f"{more} · esc back" if more else "esc back"
        self._dialog.border_subtitle = to_ascii(text) if look.glyphs.ascii else text

    async def action_dismiss(self, result: None = None) -> None:
        self.dismiss()

    def action_scroll(self, rows: int) -> None:
        self._dialog.scroll_relative(y=rows, animate=False)
