"""The overview: verdict, rail, the panels of the moment, log. It refreshes, and turns keys into requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.message import Message
from textual.timer import Timer

from console.model import LinkState, Overrides, Snapshot, Verdict
from console.reasons import ConsoleError
from console.ui import terminal
from console.ui.actions import Situation, footer_keys, situation_of
from console.ui.present import words
from console.ui.present.charts import Metric, Zoom
from console.ui.present.frame import footer
from console.ui.present.layout import Layout
from console.ui.present.logtitle import empty_log, log_title
from console.ui.present.overview import Choice, Painter, Panel, Picture
from console.ui.present.report import report
from console.ui.present.spans import text_of
from console.ui.screens.help import HelpScreen
from console.ui.screens.logkeys import LogKeys
from console.ui.screens.plan import PlanScreen
from console.ui.widgets.lines import LinesView
from console.ui.widgets.logpane import LogPane

if TYPE_CHECKING:
    from console.ui.app import ConsoleApp

# Between two paints of arriving log lines: 10 Hz is as fast as a reader follows.
_LOG_PAINT_S = 0.1
# Calm: at most one write a second, or tmux's activity monitor and batteries suffer.
_CALM_PAINT_S = 1.0
# So few new lines of a healthy run wait for the next second.
_CALM_LINES = 5
_FILLS = ("fail", "warn", "busy", "link")
_PANELS = (
    "header", "contact", "band", "rail", "strips", "main-panel", "lower-a", "lower-b", "gpus", "memory",
)  # fmt: skip
_REPORT_LINES = 20


class Overview(LogKeys):
    """One target at a glance."""

    class SourceChanged(Message):
        """The engine has something new; many of these are one."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, Overview.SourceChanged)

    def __init__(self) -> None:
        super().__init__()
        app = self._face
        self._source = app.source_or_raise()
        self._look = app.look
        self._snapshot: Snapshot = self._source.snapshot
        self._metric = Metric.TOK_S
        self._zoom = Zoom.RUN
        self._painter = Painter(self._look)
        self._watching = False
        self._shown_key: object = None
        self._flush: Timer | None = None
        self._layout_now: Layout | None = None

    @property
    def _face(self) -> ConsoleApp:
        return cast("ConsoleApp", self.app)

    # --- what stands where ---

    def compose(self) -> ComposeResult:
        yield LinesView(id="header")
        yield LinesView(id="contact")
        yield LinesView(id="band")
        yield LinesView(id="rail")
        yield LinesView(id="strips")
        with Horizontal(id="middle"):
            with Vertical(id="left"):
                yield LinesView(id="main-panel")
                with Horizontal(id="lower"):
                    yield LinesView(id="lower-a")
                    yield LinesView(id="lower-b")
            with Vertical(id="right"):
                yield LinesView(id="gpus")
                yield LinesView(id="memory")
        yield LinesView(id="log-title")
        yield LogPane(self._source.log, self._look.glyphs, id="log")
        yield from self.search_line()
        yield LinesView(id="footer")

    def on_mount(self) -> None:
        ascii_only = self._look.glyphs.ascii
        for view in self.query(LinesView):
            view.ascii_only = ascii_only
        self.log_pane.ascii_only = ascii_only
        self._source.on_change.append(self._on_change)
        self.set_interval(_CALM_PAINT_S, self.refresh_now)
        self.log_pane.focus()
        self.refresh_now()

    def on_unmount(self) -> None:
        if self._on_change in self._source.on_change:
            self._source.on_change.remove(self._on_change)

    def _on_change(self) -> None:
        # The engine calls from its own task: only a message may cross over.
        self.post_message(self.SourceChanged())

    @property
    def snapshot(self) -> Snapshot:
        """What is shown now."""
        return self._snapshot

    @property
    def situation(self) -> Situation:
        log = self.log_pane
        return situation_of(
            self._snapshot, read_only=self._face.read_only, watching=self._watching, searching=log.searching,
            following=log.following, panels=self._layout_now is None or not self._layout_now.strips,
        )  # fmt: skip

    # --- refreshing ---

    @on(SourceChanged)
    def _source_changed(self) -> None:
        snapshot = self._source.snapshot
        if self._key(snapshot) != self._shown_key:
            self.refresh_now()
            return
        calm = snapshot.verdict in (Verdict.STEPPING, Verdict.IDLE, Verdict.FINISHED, Verdict.STOPPED)
        if calm and self.log_pane.pending() < _CALM_LINES:
            return
        if self._flush is None:
            self._flush = self.set_timer(_LOG_PAINT_S, self._flush_log)

    def _flush_log(self) -> None:
        self._flush = None
        self.log_pane.sync()
        self.show_title_and_keys()

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
        snapshot = self._source.snapshot
        self._face.notice(self._snapshot, snapshot)
        self._snapshot = snapshot
        self._shown_key = self._key(snapshot)
        self.log_pane.sync()
        self._arrange()

    def on_resize(self, event: Resize) -> None:
        self._arrange()

    def _arrange(self) -> None:
        width, height = self.size
        if not width or not height or not self.is_mounted:
            return
        snapshot = self._snapshot
        situation = self.situation
        choice = Choice(
            metric=self._metric, zoom=self._zoom, contact=situation.contact, may_act=not situation.read_only
        )
        picture = self._painter.paint(snapshot, self._source.series, width, height, choice)
        self._layout_now = picture.layout
        self._apply(picture)
        log = self.log_pane
        log.display = picture.has_log
        log.placeholder = empty_log(snapshot)
        log.stale = snapshot.verdict is Verdict.LINK_LOST
        log.narrow = picture.layout.narrow
        self.show_title_and_keys()

    def _apply(self, picture: Picture) -> None:
        layout = picture.layout
        band = self.query_one("#band", LinesView)
        for fill in _FILLS:
            band.set_class(picture.fill == fill, f"-{fill}")
        middle, right, lower = self.query_one("#middle"), self.query_one("#right"), self.query_one("#lower")
        middle.display = picture.has_middle
        if picture.has_middle:
            middle.styles.height = layout.middle_rows
            self.query_one("#left").styles.width = layout.left_width + layout.gap
            right.styles.width = layout.right_width
            right.display = layout.right_width > 0
            lower.display = "lower-a" in picture.panels
            lower.styles.height = layout.lower_rows
        for widget_id in _PANELS:
            self._put(widget_id, picture.panels.get(widget_id, Panel(())))

    def show_title_and_keys(self) -> None:
        layout, log = self._layout_now, self.log_pane
        if layout is None:
            return
        line = log_title(
            self._snapshot, layout.width, self._look, following=log.following, unseen=log.unseen,
            narrow=layout.narrow, search=log.search_label,
        )  # fmt: skip
        self._put("log-title", Panel((line,) if log.display else ()))
        self._put("footer", Panel((footer(*footer_keys(self.situation), layout.width),)))

    def _put(self, widget_id: str, panel: Panel) -> None:
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

    # --- keys ---

    @on(LogPane.Moved)
    def _log_moved(self) -> None:
        self.show_title_and_keys()

    def act_restart(self) -> None:
        self._open_plan("restart")

    def act_stop(self) -> None:
        self._open_plan("stop")

    def act_again(self) -> None:
        self._open_plan("restart", Overrides(base=self._snapshot.good))

    def _open_plan(self, action: str, overrides: Overrides | None = None) -> None:
        if self._snapshot.link.state is not LinkState.UP:
            self._face.toast("no link: nothing can be started or stopped; c retries")
            return
        self._face.push_screen(PlanScreen(action, overrides))

    def act_diagnose(self) -> None:
        if self._snapshot.link.state is not LinkState.UP:
            self._face.toast("no link: the run can't be looked at; c retries")
            return
        self._face.toast("looking at the run, which is not touched ...")
        self._diagnose()

    @work(exclusive=True, group="diagnose")
    async def _diagnose(self) -> None:
        try:
            saved = await self._source.diagnose()
        except ConsoleError as error:
            self._face.toast(f"no diagnosis: {words.one_line(error.detail or str(error.reason))}")
            return
        self._face.toast(f"diagnosis saved: {saved.path}")

    def act_watch(self) -> None:
        self._watching = True
        self._arrange()
        self.log_pane.focus()

    def act_reconnect(self) -> None:
        self._source.retry_link()

    def act_metric(self) -> None:
        every = list(Metric)
        self._metric = every[(every.index(self._metric) + 1) % len(every)]
        self._arrange()

    def act_zoom(self) -> None:
        self._zoom = Zoom.SHORT if self._zoom is Zoom.RUN else Zoom.RUN
        self._arrange()

    def act_copy(self) -> None:
        chosen = self.get_selected_text()
        if chosen:
            self._face.copy(chosen, "the selection")
            return
        source = self._source
        lines = [e.text for e in source.log.lines(source.log.end - _REPORT_LINES, source.log.end)]
        self._face.copy(report(self._snapshot, lines, self._look), "the report")

    def act_help(self) -> None:
        self._face.push_screen(HelpScreen(self.situation))

    def act_palette(self) -> None:
        self._face.action_command_palette()

    def act_repaint(self) -> None:
        terminal.wipe(self._face)
        self.refresh(layout=True)
        for widget in self.query("*"):
            widget.refresh()

    def act_quit(self) -> None:
        self._face.exit()

    # --- for tests and the preview ---

    def text(self) -> str:
        """All views as plain text, top to bottom."""
        return "\n".join(text_of(line) for view in self.query(LinesView) if view.display for line in view.view)
