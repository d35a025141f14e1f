"""The GPU screen: every GPU with all that is known of it, and its history or its processes below."""

from __future__ import annotations

from textual.app import ComposeResult

from console.ui.present.gpucharts import GpuMetric
from console.ui.present.gpuscreen import GpuChoice, GpuPainter, as_report, by_role
from console.ui.present.overview import Panel
from console.ui.screens.target import TargetScreen
from console.ui.situation import Face
from console.ui.widgets.lines import LinesView

_FILLS = ("fail", "warn", "busy", "link")


class GpuScreen(TargetScreen):
    """All GPUs of one target."""

    FACE = Face.GPUS

    def __init__(self) -> None:
        super().__init__()
        self._painter = GpuPainter(self.look)
        self._metric = GpuMetric.MEMORY
        self._whole = True
        self._chosen: int | None = None
        self._detail = False

    def compose(self) -> ComposeResult:
        yield LinesView(id="banner")
        yield LinesView(id="header")
        yield LinesView(id="band")
        yield LinesView(id="page")
        yield LinesView(id="footer")

    def rebound(self) -> None:
        self._painter = GpuPainter(self.look)

    @property
    def choice(self) -> GpuChoice:
        return GpuChoice(metric=self._metric, whole=self._whole, chosen=self._chosen, detail=self._detail)

    def lay_out(self) -> None:
        width, height = self.size
        if not width or not height or not self.is_mounted:
            return
        self.put_footer()
        rows = height - self.footer_rows
        page = self._painter.paint(self.snapshot, self.source.series, width, rows, self.choice)
        self.put("header", Panel(page.header))
        band = self.query_one("#band", LinesView)
        for fill in _FILLS:
            band.set_class(page.fill == fill, f"-{fill}")
        self.put("band", Panel((page.band,)))
        self.put("page", Panel(page.body, rows - len(page.header) - 1))

    def to_copy(self) -> tuple[str, str]:
        return as_report(self.snapshot, self.look), "the GPUs"

    # --- keys ---

    def act_gpu_metric(self) -> None:
        every = list(GpuMetric)
        self._metric = every[(every.index(self._metric) + 1) % len(every)]
        self._detail = False
        self.lay_out()

    def act_gpu_zoom(self) -> None:
        self._whole = not self._whole
        self.lay_out()

    def act_gpu_down(self) -> None:
        self._choose(1)

    def act_gpu_up(self) -> None:
        self._choose(-1)

    def _choose(self, step: int) -> None:
        indices = [gpu.index for gpu in by_role(self.snapshot.gpus.gpus)]
        if not indices:
            return
        if self._chosen in indices:
            self._chosen = indices[(indices.index(self._chosen) + step) % len(indices)]
        else:
            self._chosen = indices[0 if step > 0 else -1]
        self.lay_out()

    def act_gpu_detail(self) -> None:
        indices = [gpu.index for gpu in by_role(self.snapshot.gpus.gpus)]
        if self._chosen not in indices and indices:
            self._chosen = indices[0]
        self._detail = not self._detail
        self.lay_out()

    def key_escape(self) -> None:
        if self._detail:
            self._detail = False
            self.lay_out()
            return
        super().key_escape()
