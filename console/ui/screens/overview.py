"""The overview: verdict, rail, the panels of the moment, log. It refreshes, and turns keys into requests."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from console.model import Verdict
from console.ui.actions import Face, Situation, situation_of
from console.ui.present.charts import Metric, Zoom
from console.ui.present.layout import Layout
from console.ui.present.logtitle import empty_log, log_title
from console.ui.present.overview import Choice, Painter, Panel, Picture
from console.ui.screens.logkeys import LogKeys
from console.ui.widgets.lines import LinesView
from console.ui.widgets.logpane import LogPane

# So few new lines of a healthy run wait for the next second.
_CALM_LINES = 5
_FILLS = ("fail", "warn", "busy", "link")
_PANELS = (
    "header", "contact", "band", "rail", "strips", "main-panel", "lower-a", "lower-b", "gpus", "memory",
)  # fmt: skip


class Overview(LogKeys):
    """One target at a glance."""

    FACE = Face.OVERVIEW

    def __init__(self) -> None:
        super().__init__()
        self._metric = Metric.TOK_S
        self._zoom = Zoom.RUN
        self._painter = Painter(self.look)
        self._watching = False
        self._layout_now: Layout | None = None

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
        yield LogPane(self.source.log, self.look.glyphs, id="log")
        yield from self.search_line()
        yield LinesView(id="footer")

    def ready(self) -> None:
        self.log_pane.ascii_only = self.look.glyphs.ascii
        self.log_pane.focus()

    @property
    def situation(self) -> Situation:
        log = self.log_pane
        return situation_of(
            self.snapshot, face=self.FACE, read_only=self.face.read_only, watching=self._watching,
            searching=log.searching, following=log.following,
            panels=self._layout_now is None or not self._layout_now.strips, unwritten=self.face.may_write,
        )  # fmt: skip

    # --- painting ---

    def sync_log(self) -> None:
        self.log_pane.sync()
        self.show_title_and_keys()

    def is_calm(self) -> bool:
        return self.log_pane.pending() < _CALM_LINES

    def lay_out(self) -> None:
        width, height = self.size
        if not width or not height or not self.is_mounted:
            return
        snapshot = self.snapshot
        situation = self.situation
        choice = Choice(
            metric=self._metric,
            zoom=self._zoom,
            contact=situation.contact,
            may_act=not situation.read_only,
            may_write=situation.unwritten,
        )
        picture = self._painter.paint(snapshot, self.source.series, width, height, choice)
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
            self.put(widget_id, picture.panels.get(widget_id, Panel(())))

    def show_title_and_keys(self) -> None:
        layout, log = self._layout_now, self.log_pane
        if layout is None:
            return
        line = log_title(
            self.snapshot, layout.width, self.look, following=log.following, unseen=log.unseen,
            narrow=layout.narrow, search=log.search_label,
        )  # fmt: skip
        self.put("log-title", Panel((line,) if log.display else ()))
        self.put_footer()

    # --- keys ---

    @on(LogPane.Moved)
    def _log_moved(self) -> None:
        self.show_title_and_keys()

    def act_watch(self) -> None:
        self._watching = True
        self.lay_out()
        self.log_pane.focus()

    def act_configure(self) -> None:
        self.face.write_target()
        self.lay_out()

    def act_metric(self) -> None:
        every = list(Metric)
        self._metric = every[(every.index(self._metric) + 1) % len(every)]
        self.lay_out()

    def act_zoom(self) -> None:
        self._zoom = Zoom.SHORT if self._zoom is Zoom.RUN else Zoom.RUN
        self.lay_out()
