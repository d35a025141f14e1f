"""The whole overview as panels: which of them there are at a size and at a moment, how high each is, and what it shows.

Pure but for the plots, which are remembered between two pictures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from console.model import Snapshot
from console.state.series import Series
from console.ui.present import charts, words
from console.ui.present.band import draw_band
from console.ui.present.contact import contact_page
from console.ui.present.drawing import PlotMemory
from console.ui.present.frame import header
from console.ui.present.gpus import gpu_line, gpu_panel
from console.ui.present.launch import launch_panel, process_panel, why_line, why_panel
from console.ui.present.layout import Layout, Middle, lay_out
from console.ui.present.look import Look
from console.ui.present.plotting import Against, Axis, Metric, Zoom
from console.ui.present.rail import draw_rail
from console.ui.present.spans import BLANK, Span, View, keep_end, strong
from console.ui.present.sparkline import sparkline
from console.ui.present.verdict import verdict_facts


class Choice(Struct, frozen=True, kw_only=True):
    """What the operator has chosen to see."""

    metric: str = Metric.TOK_S
    """One of `Metric`, or the name of any other series."""
    beside: str = Metric.QUEUE
    """What has its place beside the loss."""
    zoom: Zoom = Zoom.RUN
    axis: Axis = Axis.TIME
    against: Against | None = None
    plots_asked: bool = False
    """In the place of the evidence of a failure."""
    contact: bool = False
    """The page that introduces a run started by hand."""
    may_act: bool = True
    may_write: bool = False


class Panel(NamedTuple):
    view: View
    rows: int | None = None
    """Its height; None: that of its view."""
    width: int | None = None
    """None: the whole width of where it stands."""

    @property
    def height(self) -> int:
        return len(self.view) if self.rows is None else self.rows


class Picture(Struct, frozen=True, kw_only=True):
    layout: Layout
    fill: str | None
    """The ground of the verdict."""
    panels: Mapping[str, Panel]
    """By the id of the widget; a panel that isn't named is not there."""
    has_log: bool = True
    has_middle: bool = True


class Painter:
    """Paints pictures of one target; remembers plots until a column of them may have changed."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._plots = PlotMemory()

    def paint(
        self, snapshot: Snapshot, series: Mapping[str, Series], width: int, height: int, choice: Choice
    ) -> Picture:
        """Return the picture at a size, but for the log, its title and the footer."""
        look = self._look
        facts = verdict_facts(snapshot, look)
        big = width >= 110 and height >= 30 and not look.glyphs.ascii
        wide = width >= 150 and height >= 44
        band = draw_band(facts, width, big_letters=big, airy=wide)
        why = why_panel(snapshot, width, look, narrow=width < 110)
        plots = any(len(each) for each in series.values())
        layout = lay_out(
            snapshot, width, height, band_rows=len(band), why_rows=len(why) + 1, big=big, plots=plots,
            plots_asked=choice.plots_asked,
        )  # fmt: skip
        if layout.verdict_only:
            band = draw_band(facts, width, big_letters=False)[: height - 1]
            return Picture(
                layout=layout, fill=facts.fill, panels={"band": Panel(band)}, has_log=False, has_middle=False
            )
        head = Panel((header(snapshot, width, look),))
        if choice.contact:
            page = Panel(contact_page(snapshot, width, look, may_act=choice.may_act, may_write=choice.may_write))
            return Picture(
                layout=layout, fill=None, panels={"header": head, "contact": page}, has_log=False, has_middle=False
            )
        panels = {"band": Panel(band[: max(3, height - 7)]), "rail": Panel(self._rail(snapshot, layout))}
        if layout.header:
            panels["header"] = head
        if layout.strips:
            panels["strips"] = Panel(self._strips(snapshot, series, layout))
        else:
            panels |= _Middle(snapshot, series, look, layout, choice, self._plots).panels()
        return Picture(layout=layout, fill=facts.fill, panels=panels, has_middle=not layout.strips)

    def _rail(self, snapshot: Snapshot, layout: Layout) -> View:
        rail = draw_rail(
            snapshot, layout.width, self._look, rows=layout.rail_rows, durations=layout.rail_times
        )  # fmt: skip
        return (BLANK, *rail, BLANK) if layout.airy else rail

    def _strips(self, snapshot: Snapshot, series: Mapping[str, Series], layout: Layout) -> View:
        width, look = layout.width, self._look
        first = sparkline(snapshot, series, width, look)
        if layout.middle is Middle.WHY:
            first = why_line(snapshot, width)
        elif layout.middle is Middle.LAUNCH:
            phase = words.one_line(snapshot.progress.phase) or "no step yet"
            first = (Span(" now  "), strong(keep_end(phase, width - 7)))
        return first, gpu_line(snapshot, width, look)


class _Middle(NamedTuple):
    """The panels between rail and log."""

    snapshot: Snapshot
    series: Mapping[str, Series]
    look: Look
    layout: Layout
    choice: Choice
    plots: PlotMemory

    def panels(self) -> dict[str, Panel]:
        layout = self.layout
        lower = self._lower()
        upper = layout.middle_rows - (layout.lower_rows if lower else 0)
        found = {"main-panel": Panel(self._main(layout.left_width, upper), upper), **lower}
        if layout.right_width:
            rows = layout.middle_rows - layout.right_lower_rows
            narrow, wide = layout.narrow, layout.wide
            table = gpu_panel(self.snapshot, layout.right_width, rows, self.look, narrow=narrow, wide=wide)
            found["gpus"] = Panel(table, rows)
        if layout.right_lower_rows:
            zoom = Zoom.RUN if layout.middle is Middle.LAUNCH else Zoom.SHORT
            curves = self._chart(Metric.MEMORY, layout.right_width, layout.right_lower_rows, zoom=zoom)
            found["memory"] = Panel(curves, layout.right_lower_rows)
        return found

    def _main(self, width: int, rows: int) -> View:
        layout = self.layout
        if layout.middle is Middle.LAUNCH:
            return launch_panel(self.snapshot, width, rows, self.look, narrow=layout.narrow)
        if layout.middle is Middle.WHY:
            return why_panel(self.snapshot, width, self.look, narrow=layout.narrow)[:rows]
        # Loss and queue, or what is shown in its place, may have panels of their own.
        metric = self.choice.metric
        has_own = layout.lower_rows and metric in (Metric.LOSS, self.choice.beside)
        return self._chart(Metric.TOK_S if has_own else metric, width, rows)

    def _lower(self) -> dict[str, Panel]:
        """What stands under the left panel: nothing after a failure that left nothing to plot."""
        layout = self.layout
        rows, width = layout.lower_rows, layout.left_width
        if not rows or (layout.middle is Middle.WHY and not any(len(each) for each in self.series.values())):
            return {}
        if layout.middle is Middle.LAUNCH:
            return {"lower-a": Panel(process_panel(self.snapshot, width, rows, self.look), rows, width)}
        if layout.middle is Middle.WHY:
            return {"lower-a": Panel(self._chart(self.choice.metric, width, rows), rows, width)}
        half = width // 2
        return {
            name: Panel(self._chart(metric, share, rows, clock_row=False), rows, share)
            for name, metric, share in (("lower-a", Metric.LOSS, half), ("lower-b", self.choice.beside, width - half))
        }

    def _chart(self, metric: str, width: int, rows: int, *, zoom: Zoom | None = None, clock_row: bool = True) -> View:
        return charts.chart_panel(
            metric, self.snapshot, self.series, width, rows, self.look, zoom=zoom or self.choice.zoom,
            axis=self.choice.axis, against=self.choice.against,
            narrow=self.layout.narrow, clock_row=clock_row, memory=self.plots,
        )  # fmt: skip
