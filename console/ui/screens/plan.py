"""The dialog of a restart or a stop: shows the plan; only the capital letter in here touches anything."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, cast

import msgspec
from rich.markup import escape
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.color import Color, ColorParseError
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Click, Resize
from textual.message import Message
from textual.widgets import Static

from console.model import LinkState, Overrides, Plan, Snapshot
from console.reasons import CATALOGUE, ConsoleError, Reason
from console.state.changes import shown
from console.ui.present import words
from console.ui.present.frame import rows_beyond
from console.ui.present.look import to_ascii
from console.ui.present.plan import PlanView, button_labels, plan_text, plan_view, what_changed
from console.ui.present.spans import BLANK, Line, Role, Span, View, dim, strong, whole_spans, wrap
from console.ui.screens.dialog import Dialog
from console.ui.screens.edit import EditScreen
from console.ui.screens.prompt import PromptScreen
from console.ui.widgets.lines import LinesView

if TYPE_CHECKING:
    from console.ui.app import ConsoleApp

# Keys typed before the plan could be read belong to something else.
TYPE_AHEAD_S = 0.3
# A plan made over a slow link; beyond this something else is wrong.
_PLAN_TIMEOUT_S = 30.0
_WATCH_S = 1.0
_ANEW = "planning anew …"


class Choice(Static, can_focus=True):
    """A button with its key in its label."""

    class Chosen(Message):
        def __init__(self, choice: Choice) -> None:
            super().__init__()
            self.choice = choice

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", "choose", show=False, id="choice.enter")]

    def action_choose(self) -> None:
        self.post_message(self.Chosen(self))

    def on_click(self, event: Click) -> None:
        event.stop()
        self.post_message(self.Chosen(self))


class PlanScreen(Dialog[None]):
    """Plans at once, shows, plans anew when the world changes, and executes on `R` or `S` only."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "keep", "keep", id="plan.keep", show=False),
        Binding("R", "execute('restart')", "do it", id="plan.restart", show=False),
        Binding("S", "execute('stop')", "do it", id="plan.stop", show=False),
        Binding("e", "edit", "edit", id="plan.edit", show=False),
        Binding("n", "rename", "name", id="plan.name", show=False),
        Binding("c", "toggle_cache", "keep cache", id="plan.cache", show=False),
        Binding("o", "toggle_base", "settings of a past run", id="plan.again", show=False),
        Binding("y", "copy", "copy the plan", id="plan.copy", show=False),
        Binding("up", "scroll(-1)", "up", id="plan.up", show=False),
        Binding("down", "scroll(1)", "down", id="plan.down", show=False),
        Binding("pageup", "scroll(-10)", "up", id="plan.pageup", show=False),
        Binding("pagedown", "scroll(10)", "down", id="plan.pagedown", show=False),
    ]

    def __init__(self, action: str, overrides: Overrides | None = None) -> None:
        super().__init__()
        self._action = action
        self._overrides = overrides or Overrides()
        self._plan: Plan | None = None
        self._view: PlanView | None = None
        self._note = ""
        self._error: ConsoleError | None = None
        self._busy = "looking at the host …"
        self._shown_at = time.monotonic()
        self._world: object = None

    @property
    def _face(self) -> ConsoleApp:
        return cast("ConsoleApp", self.app)

    @property
    def _snapshot(self) -> Snapshot:
        return self._face.source_or_raise().snapshot

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="plan"):
            with VerticalScroll(id="body", can_focus=False):
                yield LinesView(id="rows")
            with Horizontal(id="buttons"):
                yield Choice("esc back", id="keep", markup=False)
                yield Choice("", id="act", markup=False)
            yield LinesView(id="hints")

    def on_mount(self) -> None:
        for view in self.query(LinesView):
            view.ascii_only = self._face.ascii_only
        self._colour_border()
        self.watch(self.query_one("#body"), "scroll_y", self._show_more, init=False)
        self.query_one("#keep").focus()
        self._show()
        self._replan()
        self.set_interval(_WATCH_S, self._watch_world)

    def _colour_border(self) -> None:
        colour = self._snapshot.color
        if not colour:
            return
        try:
            parsed = Color.parse(colour)
        except ColorParseError:
            return
        self.query_one("#dialog").styles.border = ("ascii" if self._face.ascii_only else "round", parsed)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if self._too_early and action != "copy_text":
            return False
        restart = self._action == "restart"
        if action in ("edit", "rename", "toggle_cache"):
            return restart and self._plan is not None and self._may_change
        if action == "toggle_base":
            is_there = self._overrides.base is not None or self._snapshot.good is not None
            return restart and is_there and self._may_change
        if action == "execute":
            return (
                parameters[0] == self._action
                and self._view is not None
                and self._view.act is not None
                and not self._busy
            )
        return True

    @property
    def _may_change(self) -> bool:
        """Also while it is planned anew for the change before: that one begins again."""
        return self._busy in ("", _ANEW)

    @property
    def _too_early(self) -> bool:
        return self._face.pressed_at - self._shown_at < TYPE_AHEAD_S

    # --- planning ---

    @work(exclusive=True, group="plan")
    async def _replan(self, note_changes: bool = False) -> None:
        before = self._plan
        try:
            plan = await self._face.source_or_raise().plan(self._action, self._overrides)
        except ConsoleError as error:
            self._plan, self._error, self._busy = None, error, ""
            self._show()
            return
        self._plan, self._error, self._busy = plan, None, ""
        if note_changes and before is not None:
            self._note = what_changed(before, plan) or self._note
        self._world = self._world_now()
        if before is None or (note_changes and self._note):
            # What is shown now was not there to be read before.
            self._shown_at = time.monotonic()
        self._show()

    def _world_now(self) -> object:
        snapshot = self._snapshot
        run, lock = snapshot.run, snapshot.lock
        pids = tuple(sorted((p.pid, p.start_ticks) for p in snapshot.processes))
        return (pids, run and (run.id, run.alive), lock and (lock.operator, lock.run_id), snapshot.link.state)

    def _watch_world(self) -> None:
        if self._plan is None or self._busy:
            return
        if self._world_now() == self._world:
            self._show()  # the run goes on meanwhile: its age, its rate and what would be lost
            return
        self._world = self._world_now()
        if self._snapshot.link.state is LinkState.UP:
            self._replan(note_changes=True)

    # --- showing ---

    def on_resize(self, event: Resize) -> None:
        self._show()

    def _show(self) -> None:
        if not self.query("#hints"):
            return  # the plan came while the dialog, or the whole console, was being closed
        width, height = self.app.size
        dialog = self.query_one("#dialog")
        small = width <= 80 or height <= 24
        outer = width if small else min(width - 8, 112)
        dialog.styles.width = outer
        inner = outer - 6
        rows, hints = self._rows(inner)
        # Borders, buttons and hints stay; a blank row above the buttons where there is room for it.
        room = max(3, (height - 1 if small else height - 5) - 3 - bool(hints))
        if len(rows) > room:
            rows = tuple(row for row in rows if row != BLANK)
        self.query_one("#body").styles.height = room if small else min(len(rows), room)
        dialog.styles.height = (height - 1) if small else "auto"
        dialog.set_class(small, "-small")
        self._put("rows", rows)
        self._put("hints", (hints,) if hints else ())
        self._show_buttons(inner)
        self.call_after_refresh(self._show_more)

    def _show_buttons(self, width: int) -> None:
        view = self._view
        keep, act = self.query_one("#keep", Choice), self.query_one("#act", Choice)
        acts = view is not None and view.act is not None and not self._busy
        act.display = acts
        act.can_focus = view is not None and view.enter_acts
        if view is None:
            keep.update(" esc back ")
            return
        labels = button_labels(view, width) if acts else (view.keep, "")
        keep.update(f" {labels[0]} ")
        act.update(f" {labels[1]} ")

    def _show_more(self) -> None:
        """Say at the border that there is more than fits."""
        if not self.query("#rows"):
            return  # closed before it was painted
        body = self.query_one("#body")
        rows = len(self.query_one("#rows", LinesView).view)
        more = rows_beyond(round(body.scroll_y), body.scrollable_content_region.height, rows)
        self.query_one("#dialog").border_subtitle = to_ascii(more) if self._face.ascii_only else more

    def _rows(self, width: int) -> tuple[View, Line]:
        title = f"{self._action} {self._snapshot.target}"
        if self._error is not None:
            self._view = None
            self._title(title)
            return _error_rows(self._error, width), ()
        if self._plan is None:
            self._title(title)
            return ((dim(self._busy),),), ()
        view = plan_view(self._plan, self._snapshot, self._overrides, width, self._face.look, note=self._note)
        self._view = view
        self._title(view.title)
        hints = whole_spans([(strong(key), dim(f" {label}")) for key, label in view.hints], width, (Span("   "),))
        if self._busy:
            return (*view.rows, BLANK, (strong(self._busy),)), hints
        return view.rows, hints

    def _title(self, text: str) -> None:
        text = words.one_line(text)
        self.query_one("#dialog").border_title = escape(to_ascii(text) if self._face.ascii_only else text)

    def _put(self, widget_id: str, view: View) -> None:
        widget = self.query_one(f"#{widget_id}", LinesView)
        widget.display = bool(view)
        widget.styles.height = max(1, len(view))
        widget.view = view

    # --- keys ---

    def action_keep(self) -> None:
        self.dismiss()

    def action_execute(self, action: str) -> None:
        if self._plan is not None and self._view is not None and self._view.act is not None:
            self._busy = "handing the request to the host …"
            self._show()
            self._execute(self._plan)

    @on(Choice.Chosen)
    def _chosen(self, event: Choice.Chosen) -> None:
        if self._too_early:
            return
        if event.choice.id == "keep":
            self.dismiss()
        elif self.check_action("execute", (self._action,)):
            self.action_execute(self._action)

    @work(exclusive=True, group="execute")
    async def _execute(self, plan: Plan) -> None:
        try:
            await self._face.source_or_raise().execute(plan, self._overrides)
        except ConsoleError as error:
            self._busy = ""
            if error.reason is Reason.PLAN_CHANGED:
                self._note = words.one_line(error.detail) or "the world is not as planned any more"
                self._replan(note_changes=True)
            else:
                self._error = error
                self._show()
            return
        self.dismiss()

    @work
    async def action_edit(self) -> None:
        declared = base_env(self._face.source_or_raise().declared_env, self._overrides)
        # A past run's settings are no change of the config's.
        keep = self._face.keep_settings if self._face.may_keep and self._overrides.base is None else None
        screen = EditScreen(declared, self._overrides, self._snapshot.target, keep)
        edited = await self._face.push_screen_wait(screen)
        if edited is not None and (edited != self._overrides or screen.kept):
            self._change(edited)

    @work
    async def action_rename(self) -> None:
        current = self._plan.name if self._plan is not None else ""
        name = await self._face.push_screen_wait(PromptScreen("name of the run", current, check=_bad_name))
        if name and name != current:
            self._change(msgspec.structs.replace(self._overrides, name=name))

    def action_toggle_cache(self) -> None:
        self._change(msgspec.structs.replace(self._overrides, keep_cache=not self._overrides.keep_cache))

    def action_toggle_base(self) -> None:
        base = self._snapshot.good if self._overrides.base is None else None
        self._change(msgspec.structs.replace(self._overrides, base=base))

    def _change(self, overrides: Overrides) -> None:
        self._overrides = overrides
        self._note = ""
        self._busy = _ANEW
        self._show()
        self._replan()

    def action_copy(self) -> None:
        if self._plan is not None and self._view is not None:
            self._face.copy(plan_text(self._plan, self._view), "the plan")

    def action_scroll(self, rows: int) -> None:
        self.query_one("#body").scroll_relative(y=rows, animate=False)


def base_env(declared: Mapping[str, str], overrides: Overrides) -> Mapping[str, str]:
    """Return the environment that edits come on top of; of a past run's secrets only hashes are there."""
    if overrides.base is None:
        return declared
    past = overrides.base.settings.env
    return {name: value if shown(value) == value else declared.get(name, "") for name, value in past.items()}


def _bad_name(name: str) -> str:
    if not name.strip():
        return "a run needs a name"
    if any(char in "/\0" or not char.isprintable() or char.isspace() for char in name) or name.startswith((".", "-")):
        return "no blanks, slashes or control characters; not first a dot or a dash"
    return ""


def _error_rows(error: ConsoleError, width: int) -> View:
    entry = CATALOGUE.get(error.reason)
    title = entry.title if entry is not None else str(error.reason)
    rows: list[Line] = [(Span("✗ ", Role.ERROR, True), strong(text)) for text in wrap(words.one_line(title), width - 2)]
    texts = [words.one_line(error.detail), *map(words.one_line, error.tail[-5:])]
    rows += [(Span("  "), Span(part)) for text in texts if text for part in wrap(text, width - 2)]
    if entry is not None:
        rows += [(Span("  "), dim(part)) for part in wrap(f"safe: {entry.safe}", width - 2)]
        rows += [(Span("  "), dim(part)) for text in entry.next for part in wrap(f"next: {text}", width - 2)]
    return tuple(rows)
