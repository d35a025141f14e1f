"""The overview: verdict, rail, the panels of the moment, log. It refreshes, and turns keys into requests."""

from __future__ import annotations

from textual import work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from console.model import OUT_OF_REACH
from console.reasons import ConsoleError
from console.state.digest import Digest
from console.state.formatrules import parse_number
from console.state.series import Series
from console.ui.present import words
from console.ui.present.layout import Layout, Middle, middle_of
from console.ui.present.logtitle import empty_log
from console.ui.present.overview import Choice, Painter, Panel, Picture
from console.ui.present.plotting import Against, Axis, Metric, Zoom, metric_of, named_metrics
from console.ui.screens.logkeys import LogKeys
from console.ui.screens.pick import PickRow, PickScreen
from console.ui.situation import Face, Situation, situation_of
from console.ui.widgets.lines import LinesView
from console.ui.widgets.logpane import LogPane

_FILLS = ("fail", "warn", "busy", "link")
_MOST_RUNS = 50
NO_BASELINE = "nothing"
NUMBER = "baseline"
"""What a baseline is called that is a number, not a run."""
_PANELS = (
    "header", "contact", "band", "rail", "strips", "main-panel", "lower-a", "lower-b", "gpus", "memory",
)  # fmt: skip


class Overview(LogKeys):
    """One target at a glance."""

    FACE = Face.OVERVIEW
    CALM_LINES = 15  # ten a second are painted once

    def __init__(self) -> None:
        super().__init__()
        self._metric: str = Metric.TOK_S
        self._zoom, self._axis = Zoom.RUN, Axis.TIME
        self._against: Against | None = None
        self._asked_against = ""
        self._painter = Painter(self.look)
        self._watching = False
        self._plots_of: str | None = None
        """Id of the run whose plots are wanted in the place of why it ended."""
        self._layout_now: Layout | None = None

    # --- what stands where ---

    def compose(self) -> ComposeResult:
        yield LinesView(id="banner")
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
        yield LogPane(self.source.log, self.source.logs, self.look.glyphs, id="log")
        yield from self.search_line()
        yield LinesView(id="footer")

    def rebound(self) -> None:
        super().rebound()
        self._painter = Painter(self.look)

    @property
    def situation(self) -> Situation:
        log = self.log_pane
        return situation_of(
            self.snapshot, face=self.FACE, read_only=self.face.read_only, watching=self._watching,
            searching=log.searching, following=log.following,
            panels=self._layout_now is None or not self._layout_now.strips, unwritten=self.face.may_write,
            replay=self.source.playback is not None, past=self.viewing is not None, settings_known=self.settings_known,
            plotted=any(len(each) for each in self.source.series.values()),
        )  # fmt: skip

    # --- painting ---

    def lay_out(self) -> None:
        width, height = self.size
        if not width or not height or not self.is_mounted:
            return
        snapshot = self.snapshot
        situation = self.situation
        self._follow_baseline()
        choice = Choice(
            metric=self._metric,
            beside=self._beside,
            zoom=self._zoom,
            axis=self._axis,
            against=self._against,
            plots_asked=self._plots_asked,
            contact=situation.contact,
            may_act=not situation.read_only,
            may_write=situation.unwritten,
        )
        rows = height - (self.viewing is not None)
        picture = self._painter.paint(snapshot, self.source.series, width, rows, choice)
        self._layout_now = picture.layout
        self._apply(picture)
        log = self.log_pane
        log.display = picture.has_log
        log.seen(snapshot)
        log.placeholder = empty_log(snapshot)
        log.stale = snapshot.verdict in OUT_OF_REACH
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
        line = self.title_line(layout.width, narrow=layout.narrow)
        self.put("log-title", Panel((line,) if log.display else ()))
        self.put_footer()

    # --- keys ---

    def act_watch(self) -> None:
        self._watching = True
        self.lay_out()
        self.log_pane.focus()

    def act_configure(self) -> None:
        self.face.write_target()
        self.lay_out()

    @property
    def _beside(self) -> str:
        """What the config wants shown in the queue's place."""
        return metric_of(self.source.target.metrics.show)

    def act_metric(self) -> None:
        """The main plots take turns; behind the last of them stands the list of all other numbers, if there are any."""
        if self._shows_why and not self._plots_asked:
            self._plots_of = self.snapshot.run_id
            self._show_metric(Metric.TOK_S)
            return
        layout = self._layout_now
        has_own = layout is not None and layout.lower_rows and layout.middle is Middle.SPEED
        own = (Metric.LOSS, self._beside) if has_own else ()
        turns = [each for each in (Metric.TOK_S, Metric.LOSS, self._beside, Metric.MEMORY) if each not in own]
        if self._metric not in turns:
            self._show_metric(turns[0])
        elif self._metric != turns[-1]:
            self._show_metric(turns[turns.index(self._metric) + 1])
        elif names := named_metrics(self.source.series, self._beside):
            rows = [PickRow(name, _newest(self.source.series[name])) for name in names]
            self.app.push_screen(PickScreen("plot", rows), self._metric_picked)
        else:
            self._begin_anew()

    @property
    def _plots_asked(self) -> bool:
        return self._plots_of is not None and self._plots_of == self.snapshot.run_id

    @property
    def _shows_why(self) -> bool:
        """The evidence stands where the plots would, and there are some."""
        layout = self._layout_now
        return (
            layout is not None
            and not layout.wide
            and middle_of(self.snapshot) is Middle.WHY
            and any(len(each) for each in self.source.series.values())
        )

    def _begin_anew(self) -> None:
        """Show what the turns began with."""
        self._plots_of = None
        self._show_metric(Metric.TOK_S)

    def _metric_picked(self, name: str | None) -> None:
        if name is None:
            self._begin_anew()
        else:
            self._show_metric(name)

    def _show_metric(self, metric: str) -> None:
        self._metric = metric
        self.lay_out()

    def act_axis(self) -> None:
        self._axis = Axis.STEP if self._axis is Axis.TIME else Axis.TIME
        self.lay_out()

    @work(exclusive=True, group="baseline")
    async def act_baseline(self) -> None:
        """Ask what to compare with: a run of the ledger, or a number."""
        rows = [*await self._past_rates(), PickRow(NO_BASELINE)]
        picker = PickScreen("compare with", rows, free="a number of tokens/s, or a run", check=_is_rate)
        chosen = await self.app.push_screen_wait(picker)
        if chosen is not None:
            await self._compare_with(chosen)

    async def _past_rates(self) -> list[PickRow]:
        try:
            runs = (await self.source.archive.runs(_MOST_RUNS)).rows
        except ConsoleError as error:
            self.face.toast(f"no past runs: {words.one_line(error.detail or str(error.reason))}")
            return []
        return [
            PickRow(run.name, f"{words.rate(run.steady_tok_s)} tok/s")
            for run in runs
            if run.steady_tok_s is not None and run.id != self.snapshot.run_id
        ]

    async def _compare_with(self, chosen: str) -> None:
        if chosen == NO_BASELINE:
            self.source.choose_baseline(None, "")
        elif (tok_s := parse_number(chosen)) is not None:
            self.source.choose_baseline(tok_s, NUMBER)
        else:
            try:
                entry, _ = await self.source.archive.run(chosen)
            except ConsoleError as error:
                self.face.toast(words.one_line(error.detail or str(error.reason)))
                return
            self.source.choose_baseline(entry.steady_tok_s, entry.name, entry.scope)
        self.refresh_now()

    @work(exclusive=True, group="against")
    async def _load_against(self, name: str) -> None:
        """Read the losses of the run that is compared with, so that they can be set beside those of this one."""
        try:
            _, curves = await self.source.archive.run(name)
        except ConsoleError:
            return  # it is no run of the ledger, or its samples had to make room
        losses = curves.digests.get("loss", Digest()).buckets
        found = sorted((bucket.step, bucket.mean) for bucket in losses if bucket.step is not None)
        self._against = Against(name=name, losses=tuple(found))
        self.lay_out()

    def _follow_baseline(self) -> None:
        """Read the losses of the baseline's run when another one is compared with."""
        rate = self.snapshot.progress.rate
        is_run = (rate.baseline is not None or rate.unlike) and rate.baseline_name != NUMBER
        name = rate.baseline_name if is_run else ""
        if name != self._asked_against:
            self._asked_against, self._against = name, None
            if name:
                self._load_against(name)

    def act_zoom(self) -> None:
        self._zoom = Zoom.SHORT if self._zoom is Zoom.RUN else Zoom.RUN
        self.lay_out()


def _newest(series: Series) -> str:
    return f"{series.last.value:.6g}" if series.last is not None else ""


def _is_rate(text: str) -> str:
    """Return what is wrong with a typed baseline; nothing where it is a number."""
    value = parse_number(text)
    return "" if value is not None and 0 < value < 1e12 else "a number such as 14500 or 21.5K, or one of the runs"
