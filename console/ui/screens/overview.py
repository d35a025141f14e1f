"""The overview: verdict, rail, the panels of the moment, log. It lays out, refreshes and turns keys into requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input

from console.model import LinkState, Overrides, Snapshot, Verdict
from console.reasons import ConsoleError
from console.ui import terminal
from console.ui.actions import Situation, footer_keys, situation_of
from console.ui.present import charts, words
from console.ui.present.band import draw_band
from console.ui.present.charts import Metric, Zoom
from console.ui.present.contact import contact_page
from console.ui.present.drawing import PlotMemory
from console.ui.present.facts import VerdictFacts
from console.ui.present.frame import footer, header
from console.ui.present.gpus import gpu_line, gpu_panel
from console.ui.present.launch import launch_panel, process_panel, why_line, why_panel
from console.ui.present.layout import Layout, Middle, lay_out
from console.ui.present.logtitle import empty_log, log_title
from console.ui.present.rail import draw_rail
from console.ui.present.report import report
from console.ui.present.spans import BLANK, Span, View, keep_end, strong, text_of
from console.ui.present.sparkline import sparkline
from console.ui.present.verdict import verdict_facts
from console.ui.screens.base import ActionScreen
from console.ui.screens.help import HelpScreen
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
_REPORT_LINES = 20


class Overview(ActionScreen):
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
        self._plots = PlotMemory()
        self._watching = False
        self._shown_key: object = None
        self._flush: Timer | None = None
        self._layout_now: Layout | None = None
        self._search_text = ""

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
        yield Input(id="search", placeholder="search the log: enter finds, esc leaves", select_on_focus=False)
        yield LinesView(id="footer")

    def on_mount(self) -> None:
        ascii_only = self._look.glyphs.ascii
        for view in self.query(LinesView):
            view.ascii_only = ascii_only
        self._log.ascii_only = ascii_only
        self.query_one("#search", Input).display = False
        self._source.on_change.append(self._on_change)
        self.set_interval(_CALM_PAINT_S, self.refresh_now)
        self._log.focus()
        self.refresh_now()

    def on_unmount(self) -> None:
        if self._on_change in self._source.on_change:
            self._source.on_change.remove(self._on_change)

    def _on_change(self) -> None:
        # The engine calls from its own task: only a message may cross over.
        self.post_message(self.SourceChanged())

    @property
    def _log(self) -> LogPane:
        return self.query_one("#log", LogPane)

    @property
    def snapshot(self) -> Snapshot:
        """What is shown now."""
        return self._snapshot

    @property
    def situation(self) -> Situation:
        log = self._log
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
        if calm and self._log.pending() < _CALM_LINES:
            return
        if self._flush is None:
            self._flush = self.set_timer(_LOG_PAINT_S, self._flush_log)

    def _flush_log(self) -> None:
        self._flush = None
        self._log.sync()
        self._show_log_title()

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
        self._log.sync()
        self._arrange()

    def on_resize(self, event: Resize) -> None:
        self._arrange()

    def _arrange(self) -> None:
        width, height = self.size
        if not width or not height or not self.is_mounted:
            return
        snapshot, look = self._snapshot, self._look
        facts = verdict_facts(snapshot, look)
        big = width >= 110 and height >= 30 and not look.glyphs.ascii
        wide = width >= 150 and height >= 44
        band = draw_band(facts, width, big_letters=big, airy=wide)
        why = why_panel(snapshot, width, look, narrow=width < 110)
        plots = any(len(series) for series in self._source.series.values())
        layout = lay_out(snapshot, width, height, band_rows=len(band), why_rows=len(why) + 1, big=big, plots=plots)
        if layout.verdict_only:
            band = draw_band(facts, width, big_letters=False)
        self._layout_now = layout
        self._show_band(facts, band, layout)
        self._show_frame(layout)
        self._show_middle(layout)
        self._show_log_title()
        self._log.placeholder = empty_log(snapshot)
        self._log.stale = snapshot.verdict is Verdict.LINK_LOST
        self._log.narrow = layout.narrow

    def _show_frame(self, layout: Layout) -> None:
        snapshot, look, width = self._snapshot, self._look, layout.width
        contact = self.situation.contact and not layout.verdict_only
        self._put("header", (header(snapshot, width, look),) if layout.header or contact else ())
        rail = draw_rail(snapshot, width, look, rows=layout.rail_rows, durations=layout.rail_times)
        rail = (BLANK, *rail, BLANK) if layout.airy else rail
        overview = not contact and not layout.verdict_only
        self._put("rail", rail if overview else ())
        page = contact_page(snapshot, width, look, may_act=not self.situation.read_only) if contact else ()
        self._put("contact", page)
        self._log.display = overview
        self.query_one("#middle").display = overview and not layout.strips
        self._show_footer()

    def _show_footer(self) -> None:
        layout = self._layout_now
        if layout is None:
            return
        self._put("footer", (footer(*footer_keys(self.situation), layout.width),))

    def _show_band(self, facts: VerdictFacts, band: View, layout: Layout) -> None:
        widget = self.query_one("#band", LinesView)
        for fill in _FILLS:
            widget.set_class(facts.fill == fill, f"-{fill}")
        rows = (
            min(len(band), max(3, layout.height - 7)) if not layout.verdict_only else min(len(band), layout.height - 1)
        )
        self._put("band", band[:rows] if not self.situation.contact or layout.verdict_only else ())

    def _show_middle(self, layout: Layout) -> None:
        snapshot, look, series = self._snapshot, self._look, self._source.series
        hidden = layout.verdict_only or self.situation.contact
        self._put("strips", self._strips(layout) if layout.strips and not hidden else ())
        if layout.strips or hidden:
            return
        middle, left, right = self.query_one("#middle"), self.query_one("#left"), self.query_one("#right")
        middle.styles.height = layout.middle_rows
        left.styles.width = layout.left_width + layout.gap
        right.styles.width = layout.right_width
        right.display = layout.right_width > 0
        upper = layout.middle_rows - (layout.lower_rows if self._has_lower(layout) else 0)
        self._put("main-panel", self._main_panel(layout, layout.left_width, upper), upper)
        self._show_lower(layout)
        gpu_rows = layout.middle_rows - layout.right_lower_rows
        panel = gpu_panel(snapshot, layout.right_width, gpu_rows, look, narrow=layout.narrow, wide=layout.wide)
        self._put("gpus", panel if right.display else (), gpu_rows if right.display else 0)
        memory: View = ()
        if layout.right_lower_rows:
            memory = charts.chart_panel(
                Metric.MEMORY, snapshot, series, layout.right_width, layout.right_lower_rows, look,
                zoom=Zoom.RUN if layout.middle is Middle.LAUNCH else Zoom.SHORT, memory=self._plots,
            )  # fmt: skip
        self._put("memory", memory, layout.right_lower_rows)

    def _main_panel(self, layout: Layout, width: int, rows: int) -> View:
        snapshot, look = self._snapshot, self._look
        if layout.middle is Middle.LAUNCH:
            return launch_panel(snapshot, width, rows, look, narrow=layout.narrow)
        if layout.middle is Middle.WHY:
            return why_panel(snapshot, width, look, narrow=layout.narrow)[:rows]
        metric = Metric.TOK_S if layout.lower_rows and self._metric is not Metric.MEMORY else self._metric
        return self._chart(metric, width, rows, narrow=layout.narrow)

    def _chart(self, metric: Metric, width: int, rows: int, *, narrow: bool, clock_row: bool = True) -> View:
        return charts.chart_panel(
            metric, self._snapshot, self._source.series, width, rows, self._look,
            zoom=self._zoom, narrow=narrow, clock_row=clock_row, memory=self._plots,
        )  # fmt: skip

    def _has_lower(self, layout: Layout) -> bool:
        """Whether something stands under the left panel: not after a failure that left nothing to plot."""
        steps = len(self._source.series.get("tok_s", ()))
        return layout.lower_rows > 0 and (layout.middle is not Middle.WHY or steps > 0)

    def _show_lower(self, layout: Layout) -> None:
        lower = self.query_one("#lower")
        lower.display = self._has_lower(layout)
        if not lower.display:
            return
        lower.styles.height = layout.lower_rows
        half = layout.left_width // 2
        rest = layout.left_width - half
        if layout.middle is not Middle.SPEED:
            if layout.middle is Middle.LAUNCH:
                panel = process_panel(self._snapshot, layout.left_width, layout.lower_rows, self._look)
            else:
                panel = self._chart(Metric.TOK_S, layout.left_width, layout.lower_rows, narrow=False)
            self._put("lower-a", panel, layout.lower_rows)
            self._put("lower-b", ())
            self.query_one("#lower-a").styles.width = layout.left_width
            return
        self.query_one("#lower-a").styles.width = half
        self.query_one("#lower-b").styles.width = rest
        self._put(
            "lower-a",
            self._chart(Metric.LOSS, half, layout.lower_rows, narrow=False, clock_row=False),
            layout.lower_rows,
        )
        self._put(
            "lower-b",
            self._chart(Metric.QUEUE, rest, layout.lower_rows, narrow=False, clock_row=False),
            layout.lower_rows,
        )

    def _strips(self, layout: Layout) -> View:
        snapshot, width, look = self._snapshot, layout.width, self._look
        first = sparkline(snapshot, self._source.series, width, look)
        if layout.middle is Middle.WHY:
            first = why_line(snapshot, width)
        elif layout.middle is Middle.LAUNCH:
            phase = words.one_line(snapshot.progress.phase) or "no step yet"
            first = (Span(" now  "), strong(keep_end(phase, width - 7)))
        return first, gpu_line(snapshot, width, look)

    def _show_log_title(self) -> None:
        layout, log = self._layout_now, self._log
        if layout is None:
            return
        line = log_title(
            self._snapshot, layout.width, self._look, following=log.following, unseen=log.unseen,
            narrow=layout.narrow, search=log.search_label,
        )  # fmt: skip
        self._put("log-title", (line,) if self._log.display else ())

    def _put(self, widget_id: str, view: View, rows: int | None = None) -> None:
        widget = self.query_one(f"#{widget_id}", LinesView)
        height = len(view) if rows is None else rows
        if widget.display != bool(height):
            widget.display = bool(height)
        if not height:
            return
        if widget.styles.height is None or widget.styles.height.value != height:
            widget.styles.height = height
        widget.view = view

    # --- keys ---

    @on(LogPane.Moved)
    def _log_moved(self) -> None:
        self._show_log_title()
        self._show_footer()

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
        self._log.focus()

    def act_reconnect(self) -> None:
        self._source.retry_link()

    def act_search(self) -> None:
        box = self.query_one("#search", Input)
        box.display = True
        box.value = ""
        box.focus()

    @on(Input.Submitted, "#search")
    def _search_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._close_search()
        self._log.search(event.value)
        self._log_moved()

    def _close_search(self) -> None:
        self.query_one("#search", Input).display = False
        self._log.focus()

    def key_escape(self) -> None:
        if self.query_one("#search", Input).display:
            self._close_search()
        elif self._log.searching:
            self._log.clear_search()

    def act_next_hit(self) -> None:
        self._log.search_again(1)

    def act_prev_hit(self) -> None:
        self._log.search_again(-1)

    def act_next_error(self) -> None:
        self._log.go_error(1)

    def act_prev_error(self) -> None:
        self._log.go_error(-1)

    def act_follow(self) -> None:
        self._log.follow()

    def act_top(self) -> None:
        self._log.go_top()

    def act_bottom(self) -> None:
        self._log.go_bottom()

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
