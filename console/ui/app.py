"""The Textual app: one target on the screen. It wires screens, themes and toasts; it knows nothing of runs.

Start: `ConsoleApp(source).run()`; without a source the page without a config is shown and the result may be "demo".
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import tzinfo
from functools import cached_property, partial
from importlib import import_module
from typing import Any, ClassVar, Final

from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.events import Event, Key, Paste
from textual.screen import Screen

from console.configeditor import ConfigEntry, with_found
from console.model import Snapshot, Verdict
from console.reasons import ConsoleError
from console.resources import stylesheet_path
from console.ui import plot, terminal
from console.ui.chronicle import Chronicle
from console.ui.driver import TerminalDriver
from console.ui.keyorder import KeyOrder
from console.ui.palette import Commands, ExtraCommand
from console.ui.present.linkback import LinkWatch
from console.ui.present.look import ASCII, UNICODE, Look
from console.ui.present.report import pane_title
from console.ui.present.words import one_line
from console.ui.screens.help import HelpScreen
from console.ui.screens.noconfig import NoConfig
from console.ui.screens.overview import Overview
from console.ui.screens.target import TargetScreen
from console.ui.situation import Face
from console.ui.source import PastView, Source
from console.ui.themes import ANSI, DEFAULTS, THEMES, choose_theme
from console.ui.widgets.lines import ROLE_CLASSES

_TOAST_S = 4.0
_MOST_RUNS = 200


_CLASSES: Final[Mapping[Face, tuple[str, str]]] = {
    Face.GPUS: ("gpus", "GpuScreen"),
    Face.LOG: ("log", "LogScreen"),
    Face.RUNS: ("runs", "RunsScreen"),
    Face.EVENTS: ("events", "EventsScreen"),
}


def screen_class(face: Face) -> type[Screen[Any]]:
    """Return what shows a face; imported when it is first asked for."""
    if face is Face.OVERVIEW:
        return Overview
    module, name = _CLASSES[face]
    found: type[Screen[Any]] = getattr(import_module(f"console.ui.screens.{module}"), name)
    return found


def _made(face: Face) -> Screen[Any]:
    return screen_class(face)()


class ConsoleApp(App[str]):
    """The face of one target."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(ROLE_CLASSES)
    CSS_PATH = str(stylesheet_path("main.tcss"))
    ENABLE_COMMAND_PALETTE = True
    SCREENS: ClassVar[dict[str, Callable[[], Screen[Any]]]] = {  # imported and made when first shown, kept
        face: partial(_made, face) for face in Face
    }
    COMMANDS: ClassVar[set[Any]] = {Commands}
    NOTIFICATION_TIMEOUT = _TOAST_S
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "quit", id="app.quit", show=False, priority=True),
        Binding("ctrl+c", "help_quit", "copy", id="app.ctrl_c", show=False),
    ]

    def __init__(
        self,
        source: Source | None,
        *,
        read_only: bool = False,
        ascii_only: bool = False,
        light: bool = False,
        zone: tzinfo | None = None,
        config_path: str = "",
        entry: ConfigEntry | None = None,
        extra: Sequence[ExtraCommand] = (),
    ) -> None:
        theme = choose_theme(os.environ, light=light)
        # Said at once: Textual chooses its filter for NO_COLOR before it knows our themes.
        super().__init__(driver_class=TerminalDriver, ansi_color=True if theme == ANSI else None)
        self._source = source
        self.read_only = read_only
        self.ascii_only = ascii_only
        self.look = Look(glyphs=ASCII if ascii_only else UNICODE, zone=zone)
        self._config_path = config_path
        self._entry = entry
        self.may_keep = entry is not None and entry.is_written
        """The target stands in a config file that may be changed."""
        self.may_write = entry is not None and not self.may_keep
        """The target was given by flags: it can be added to the config file."""
        self.extra = tuple(extra)
        for ours in THEMES:
            self.register_theme(ours)
        self.theme = theme
        self.stylesheet.set_variables(self.get_css_variables())  # else it is read with those of Textual's own theme
        self._styled_with = self.get_css_variables()
        self._link_watch = LinkWatch()
        self._noticed: Snapshot | None = None
        self.chronicle = Chronicle()
        """What has happened, and since when the operator is away."""
        self._pane_title = ""
        self.viewing: PastView | None = None
        """The run of before that the screens show in place of the live one."""
        self.viewing_place = ""
        self.animation_level = "none"
        self._key_order = KeyOrder(self, super().on_event)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(DEFAULTS)

    def refresh_css(self, animate: bool = True) -> None:
        """Read the stylesheet anew. Textual asks for it at the start, too, when everything was just styled with it."""
        variables = self.get_css_variables()
        if variables != self._styled_with:
            self._styled_with = variables
            super().refresh_css(animate)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        return ()

    def source_or_raise(self) -> Source:
        """The target's source. Raises: RuntimeError on the page without a config, which has no use for one."""
        if self._source is None:
            raise RuntimeError("there is no target")
        return self._source

    def on_mount(self) -> None:
        self.set_class(self.no_color, "-no-color")
        self.set_class(self.ascii_only, "-ascii")
        if self._source is None:
            self.push_screen(NoConfig(self._config_path))
            return
        self.push_screen(Face.OVERVIEW)
        self.call_after_refresh(self.painted)

    def painted(self) -> None:
        """The first picture is there; `load_rest` is due."""
        self.load_rest()

    @work(thread=True, exit_on_error=False)
    def load_rest(self) -> None:
        """Import what the first picture does without: plotext takes 0.15 s and more, the other screens a moment."""
        plot.load()
        for face in Face:
            screen_class(face)
        self.call_from_thread(self._plot_loaded)

    def _plot_loaded(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, TargetScreen):
                screen.refresh_now()

    @cached_property
    def help(self) -> HelpScreen:
        """The help, made when it is first asked for and kept."""
        screen = HelpScreen()
        self.install_screen(screen, "help")
        return screen

    def show_face(self, face: Face) -> None:
        """Bring a screen of the target to the front; the one that was there stays as it is for the way back."""
        if not (isinstance(self.screen, TargetScreen) and self.screen.FACE is face):
            self.switch_screen(face)

    # --- runs of before ---

    @work(exclusive=True, group="view")
    async def view_next(self, direction: int) -> None:
        """Show the next older (1) or newer (-1) run in every panel; newer than the newest of before is the live one."""
        source = self.source_or_raise()
        try:
            live = source.snapshot.run_id
            runs = [row.id for row in (await source.archive.runs(_MOST_RUNS)).rows if row.id != live]
            shown = self.viewing.entry.id if self.viewing is not None else None
            index = (runs.index(shown) if shown in runs else -1) + direction
            if index < 0:
                self.view_live()
                return
            if index >= len(runs):
                self.toast("no older run is known" if runs else "no run before this one is known")
                return
            past = await source.view(runs[index])
        except ConsoleError as error:
            self.toast(f"not shown: {one_line(error.detail or str(error.reason))}")
            return
        self.viewing, self.viewing_place = past, f"{index + 1} of {len(runs)} past runs"
        self._show_viewed()

    def view_live(self) -> None:
        """Show the live run again."""
        self.workers.cancel_group(self, "view")
        if self.viewing is not None:
            self.viewing, self.viewing_place = None, ""
            self._show_viewed()

    def _show_viewed(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, TargetScreen):
                screen.refresh_now()

    # --- the config file ---

    def keep_settings(self, env: Mapping[str, str], arguments: tuple[str, ...]) -> None:
        """Write a run's environment and added arguments into the config. Raises: ConsoleError(CONFIG)."""
        if self._entry is not None:
            self._entry.keep_settings(env, arguments)
            self.source_or_raise().redeclare(env, arguments)

    def write_target(self) -> None:
        """Add the target to the config file, with what its run tells of itself, and say where it stands."""
        if self._entry is None:
            return
        source = self.source_or_raise()
        try:
            self._entry.add(with_found(source.target, source.snapshot))
        except ConsoleError as error:
            self.toast(f"not written: {one_line(error.detail)}")
            return
        self.may_write, self.may_keep = False, True
        self.toast(f"wrote target {self._entry.name} to {self._entry.path}")

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key) and self._source is not None:
            self._source.attend()
            self.chronicle.key(self._source.snapshot.at)
            for screen in self.screen_stack:
                if isinstance(screen, TargetScreen):
                    screen.make_way()
        if isinstance(event, Key | Paste) and not event.is_forwarded:
            await self._key_order.take(event)
        else:
            await super().on_event(event)

    @property
    def pressed_at(self) -> float:
        """When the key came that is being answered, however long it had to wait; now, where none is."""
        return self._key_order.came_at or time.monotonic()

    # --- what happens beside the picture ---

    def notice(self, now: Snapshot) -> None:
        """Ring for failures, name the pane, toast what came back or what another operator did."""
        source, before = self.source_or_raise(), self._noticed or now
        self._noticed = now
        self.chronicle.see(now)
        if source.bells:
            # The engine knows what is news: also what failed while the link was away, never what had failed before.
            if self.viewing is not None:
                self.toast(f"live: {one_line(source.bells[-1].title)} · esc shows it")
            source.bells.clear()
            self.bell()
        title = pane_title(now, self.look)
        if title != self._pane_title:
            self._pane_title = title
            terminal.set_title(self, title)
        back = self._link_watch.see(now, source.log)
        if back is not None:
            self.toast(back)
        run_before, run_now = before.run and before.run.id, now.run and now.run.id
        if run_before != run_now and now.run is not None and before.verdict is not Verdict.NO_WORD:
            by = now.run.operator
            if by and now.operator and by != now.operator:
                self.toast(f"{by} started {now.run.name}")

    def toast(self, text: str) -> None:
        """Say something for 4 s, one thing at a time. Never for failures: those are the verdict."""
        self.clear_notifications()
        self.notify(text, timeout=_TOAST_S, markup=False)

    @work(exclusive=True, group="copy")
    async def copy(self, text: str, what: str) -> None:
        """Put a text into the operator's clipboard (OSC 52), and say so, or that tmux drops it."""
        self.copy_to_clipboard(text)
        if await terminal.tmux_swallows_copies():
            self.toast(f"copied {what}, but tmux drops it: set -g set-clipboard on")
        else:
            self.toast(f"copied {what}")

    def action_help_quit(self) -> None:
        self.toast("q quits, the run goes on")
