"""Screen 3: the log, with the verdict in one row above it, or whole while it needs somebody."""

from __future__ import annotations

from textual.app import ComposeResult

from console.model import OUT_OF_REACH
from console.ui.present.band import band_row, draw_band
from console.ui.present.frame import header
from console.ui.present.layout import HEIGHTS, WIDTHS
from console.ui.present.logtitle import empty_log
from console.ui.present.overview import Panel
from console.ui.present.verdict import verdict_facts
from console.ui.screens.logkeys import LogKeys
from console.ui.situation import Face, Situation, situation_of
from console.ui.widgets.lines import LinesView
from console.ui.widgets.logpane import LogPane

_FILLS = ("fail", "warn", "busy", "link")
_LEAST_LOG_ROWS = 6


class LogScreen(LogKeys):
    """The log on the whole screen."""

    FACE = Face.LOG

    def compose(self) -> ComposeResult:
        yield LinesView(id="banner")
        yield LinesView(id="header")
        yield LinesView(id="band")
        yield LinesView(id="log-title")
        yield LogPane(self.source.log, self.source.logs, self.look.glyphs, id="log")
        yield from self.search_line()
        yield LinesView(id="footer")

    @property
    def situation(self) -> Situation:
        pane = self.log_pane
        return situation_of(
            self.snapshot, face=self.FACE, read_only=self.face.read_only,
            searching=pane.searching, following=pane.following,
            replay=self.source.playback is not None, past=self.viewing is not None, settings_known=self.settings_known,
        )  # fmt: skip

    def lay_out(self) -> None:
        width, height = self.size
        if not width or not height or not self.is_mounted:
            return
        snapshot, pane = self.snapshot, self.log_pane
        facts = verdict_facts(snapshot, self.look)
        # A verdict that needs somebody is never cut down to a word: the reason stays.
        whole = facts.fill in ("fail", "warn", "link")
        rows = draw_band(facts, width, big_letters=False) if whole else (band_row(facts, width),)
        self.put("header", Panel((header(snapshot, width, self.look),) if height >= HEIGHTS[0] else ()))
        self.put("band", Panel(rows[: max(1, height - _LEAST_LOG_ROWS - 2)]))
        band = self.query_one("#band", LinesView)
        for fill in _FILLS:
            band.set_class(facts.fill == fill, f"-{fill}")
        pane.seen(snapshot)
        pane.placeholder = empty_log(snapshot)
        pane.stale = snapshot.verdict in OUT_OF_REACH
        pane.narrow = width < WIDTHS[1]
        self.show_title_and_keys()

    def show_title_and_keys(self) -> None:
        width = self.size.width
        self.put("log-title", Panel((self.title_line(width, narrow=width < WIDTHS[1]),)))
        self.put_footer()
