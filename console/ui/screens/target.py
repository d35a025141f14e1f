"""What the screens of a target share: the newest snapshot, when it is painted, and the keys that mean the same on each.

A screen of its own says how it is laid out (`lay_out`), and what of the stream of log lines it shows (`sync_log`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on, work
from textual.events import Resize, ScreenResume
from textual.message import Message

from console.model import LinkState, Overrides, Snapshot, Verdict
from console.reasons import ConsoleError
from console.ui import terminal
from console.ui.actions import footer_keys, screens_key
from console.ui.pace import KEY_S, Pace
from console.ui.present import words
from console.ui.present.frame import footer, header
from console.ui.present.overview import Panel
from console.ui.present.pastbar import past_bar
from console.ui.present.playbar import play_bar
from console.ui.present.report import report
from console.ui.present.spans import Line, text_of
from console.ui.screens.base import ActionScreen
from console.ui.screens.plan import PlanScreen
from console.ui.situation import Face, Situation, situation_of
from console.ui.source import PastView, Playback, Source
from console.ui.widgets.lines import LinesView

if TYPE_CHECKING:
    from console.ui.app import ConsoleApp

_FLOODED_S = 2.0  # so long after something was skipped it is a flood
# Calm: at most one write a second, or tmux's activity monitor and batteries suffer.
_CALM_PAINT_S = 1.0
_CALM = (Verdict.STEPPING, Verdict.IDLE, Verdict.FINISHED, Verdict.STOPPED)
_REPORT_LINES = 20
_PLAY_STEP_S = 10.0


class TargetScreen(ActionScreen):
    """A screen that shows one target, kept as it is while another one is in front."""

    FACE: ClassVar[Face]

    class SourceChanged(Message):
        """The engine has something new; many of these are one."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, TargetScreen.SourceChanged)

    class LinesCame(Message):
        """The log has new lines; many of these are one."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, TargetScreen.LinesCame)

    def __init__(self) -> None:
        super().__init__()
        app = self.face
        self.live = app.source_or_raise()
        """The target that is watched, whatever is shown."""
        self._shown_source: Source = self.source
        self.look = app.look
        self._snapshot: Snapshot = self.source.snapshot
        self._shown_key: object = None
        self._pace = Pace(
            lambda delay_s, then: self.set_timer(delay_s, then), lambda: self.sync_log(), self._is_flooded
        )

    @property
    def face(self) -> ConsoleApp:
        return cast("ConsoleApp", self.app)

    @property
    def source(self) -> Source:
        """What is shown: the live run, or the one of before that the operator views."""
        return self.viewing or self.live

    @property
    def viewing(self) -> PastView | None:
        """The run of before that is shown; the screen of all runs shows none."""
        return self.face.viewing if self.FACE is not Face.RUNS else None

    @property
    def settings_known(self) -> bool:
        """Whether what the shown run of before was started with can be taken again."""
        return self.viewing is None or self.viewing.settings is not None

    @property
    def snapshot(self) -> Snapshot:
        """What is shown now."""
        return self._snapshot

    @property
    def situation(self) -> Situation:
        return situation_of(
            self._snapshot, face=self.FACE, read_only=self.face.read_only, replay=self.source.playback is not None,
            past=self.viewing is not None, settings_known=self.settings_known,
        )  # fmt: skip

    # --- what a screen of its own says ---

    def lay_out(self) -> None:
        """Lay the newest snapshot out in the size that there is."""
        raise NotImplementedError

    def rebound(self) -> None:
        """Called when another source is shown than before: nothing that was kept of the other one holds."""

    def ready(self) -> None:
        """Called once, when all widgets are there and before the first paint."""

    def sync_log(self) -> None:
        """Show the log lines that came; called at most 25 times a second."""

    def is_calm(self) -> bool:
        """Whether so little came that it can wait for the next second."""
        return True

    # --- refreshing ---

    def on_mount(self) -> None:
        for view in self.query(LinesView):
            view.ascii_only = self.look.glyphs.ascii
        self.live.on_change.append(self._on_change)
        self.live.on_lines.append(self._on_lines)
        self.set_interval(_CALM_PAINT_S, self._refresh_if_shown)
        self.ready()
        self.refresh_now()

    def on_unmount(self) -> None:
        if self._on_change in self.live.on_change:
            self.live.on_change.remove(self._on_change)
            self.live.on_lines.remove(self._on_lines)

    def _on_change(self) -> None:
        # The engine calls from its own task: only a message may cross over.
        if self.is_shown:
            self.post_message(self.SourceChanged())

    def _on_lines(self) -> None:
        if self.is_shown:
            self.post_message(self.LinesCame())

    @property
    def is_shown(self) -> bool:
        """Whether this is the target's screen in front, a dialog over it or not."""
        return self in self.app.screen_stack

    def _refresh_if_shown(self) -> None:
        if not self.is_shown:
            return
        if self._pace.is_held:
            self.set_timer(KEY_S, self.refresh_now)
        else:
            self.refresh_now()

    def make_way(self) -> None:
        """A key was pressed: what is new is painted after its answer."""
        self._pace.make_way()

    @on(SourceChanged)
    def _source_changed(self) -> None:
        snapshot = self.live.snapshot
        if self._key(snapshot) != self._shown_key:
            self.refresh_now()
        else:
            self._lines_came()

    @on(LinesCame)
    def _lines_came(self) -> None:
        if self.viewing is not None or (self._snapshot.verdict in _CALM and self.is_calm()):
            return
        self._pace.lines_came()

    def _is_flooded(self) -> bool:
        gap_at = self.live.log.gap_at
        return gap_at is not None and self.live.snapshot.at - gap_at < _FLOODED_S

    @staticmethod
    def _key(snapshot: Snapshot) -> object:
        """What must be on the screen at once when it changes."""
        run = snapshot.run
        states = tuple((s.state, s.evidence) for s in snapshot.stages)
        return (
            snapshot.verdict,
            snapshot.link.state,
            run and (run.id, run.name, run.alive, run.exit),
            states,
            snapshot.reason,
        )

    def refresh_now(self) -> None:
        """Show the newest snapshot."""
        live, source = self.live.snapshot, self.source
        self.face.notice(live)
        self._snapshot = live if source is self.live else source.snapshot
        self._shown_key = self._key(live)
        if source is not self._shown_source:
            self._shown_source = source
            self.rebound()
        self._put_banner(live)
        self.sync_log()
        self.lay_out()

    def _put_banner(self, live: Snapshot) -> None:
        if not self.query("#banner"):
            return
        past = self.viewing
        rows = (
            (past_bar(past.snapshot, live, self.face.viewing_place, self.size.width, self.look),)
            if past is not None and self.size.width
            else ()
        )
        self.put("banner", Panel(rows))

    @on(ScreenResume)
    def _resumed(self) -> None:
        if self.is_mounted:
            self.refresh_now()

    def on_resize(self, event: Resize) -> None:
        self._put_banner(self.live.snapshot)
        self.lay_out()

    def put(self, widget_id: str, panel: Panel) -> None:
        """Show a panel in the `LinesView` of that id, which vanishes when the panel has no rows."""
        if widget_id == "header" and self.viewing is not None and panel.height:
            # The link and the clock are those of now, whatever is shown below them.
            panel = Panel((header(self.live.snapshot, self.size.width, self.look),))
        widget, height = self.query_one(f"#{widget_id}", LinesView), panel.height
        if widget.display != bool(height):
            widget.display = bool(height)
        if not height:
            return
        if widget.styles.height is None or widget.styles.height.value != height:
            widget.styles.height = height
        if panel.width is not None:
            widget.styles.width = panel.width
        widget.view = panel.view

    def put_footer(self) -> None:
        self.put_keys(footer(*footer_keys(self.situation), self.size.width, screens=screens_key(self.situation)))

    def put_keys(self, line: Line) -> None:
        """Show the footer with these keys, below the bar of a recording where one is played."""
        playback = self.source.playback
        if playback is None:
            self.put("footer", Panel((line,)))
            return
        bar = play_bar(
            self._snapshot.at, playback.position_s, playback.length_s, playback.speed, playback.marks,
            self.size.width, self.look, is_paused=playback.is_paused,
        )  # fmt: skip
        self.put("footer", Panel((bar, line)))

    @property
    def footer_rows(self) -> int:
        """Rows that are the footer's, and the banner's over a run of before."""
        return (1 if self.source.playback is None else 2) + (self.viewing is not None)

    # --- keys that every screen has ---

    def act_overview(self) -> None:
        self.face.show_face(Face.OVERVIEW)

    def act_events(self) -> None:
        self.face.show_face(Face.EVENTS)

    def act_runs(self) -> None:
        self.face.show_face(Face.RUNS)

    def act_older(self) -> None:
        self.face.view_next(1)

    def act_newer(self) -> None:
        self.face.view_next(-1)

    def act_view_again(self) -> None:
        past = self.viewing
        if past is None or past.settings is None:
            self.face.toast("the settings of this run are not known")
            return
        self.open_plan("restart", Overrides(base=past.settings))

    def key_escape(self) -> None:
        """Leave what was come to last."""
        self.face.view_live()

    def act_play(self) -> None:
        self._play(lambda playback: playback.toggle())

    def act_play_back(self) -> None:
        self._play(lambda playback: playback.step(-_PLAY_STEP_S))

    def act_play_on(self) -> None:
        self._play(lambda playback: playback.step(_PLAY_STEP_S))

    def act_play_faster(self) -> None:
        self._play(lambda playback: playback.faster(1))

    def act_play_slower(self) -> None:
        self._play(lambda playback: playback.faster(-1))

    def act_play_next(self) -> None:
        self._play(lambda playback: playback.to_mark(1))

    def act_play_previous(self) -> None:
        self._play(lambda playback: playback.to_mark(-1))

    def _play(self, how: Callable[[Playback], None]) -> None:
        if self.source.playback is not None:
            how(self.source.playback)
            self.refresh_now()

    def act_gpus(self) -> None:
        self.face.show_face(Face.GPUS)

    def act_log(self) -> None:
        self.face.show_face(Face.LOG)

    def act_restart(self) -> None:
        self.open_plan("restart")

    def act_stop(self) -> None:
        self.open_plan("stop")

    def act_again(self) -> None:
        self.open_plan("restart", Overrides(base=self._snapshot.good))

    def open_plan(self, action: str, overrides: Overrides | None = None) -> None:
        if self.live.snapshot.link.state is not LinkState.UP:
            self.face.toast("no link: nothing can be started or stopped; c retries")
            return
        self.face.push_screen(PlanScreen(action, overrides))

    def act_diagnose(self) -> None:
        if self._snapshot.link.state is not LinkState.UP:
            self.face.toast("no link: the run can't be looked at; c retries")
            return
        self.face.toast("looking at the run, which is not touched ...")
        self._diagnose()

    @work(exclusive=True, group="diagnose")
    async def _diagnose(self) -> None:
        try:
            saved = await self.source.diagnose()
        except ConsoleError as error:
            self.face.toast(f"no diagnosis: {words.one_line(error.detail or str(error.reason))}")
            return
        self.face.toast(f"diagnosis saved: {saved.path}")

    def act_reconnect(self) -> None:
        self.source.retry_link()

    def act_copy(self) -> None:
        chosen = self.get_selected_text()
        if chosen:
            self.face.copy(chosen, "the selection")
            return
        self.face.copy(*self.to_copy())

    def to_copy(self) -> tuple[str, str]:
        """Return what `y` copies where nothing is selected, and what that is called."""
        log = self.source.log
        lines: Sequence[str] = [entry.text for entry in log.lines(log.end - _REPORT_LINES, log.end)]
        return report(self._snapshot, lines, self.look), "the report"

    def act_help(self) -> None:
        self.face.help.tell(self.situation)
        self.face.push_screen(self.face.help)

    def act_palette(self) -> None:
        self.face.action_command_palette()

    def act_repaint(self) -> None:
        terminal.wipe(self.face)
        self.refresh(layout=True)
        for widget in self.query("*"):
            widget.refresh()

    def act_quit(self) -> None:
        self.face.exit()

    # --- for tests and the preview ---

    def text(self) -> str:
        """All views as plain text, top to bottom."""
        return "\n".join(text_of(line) for view in self.query(LinesView) if view.display for line in view.view)
