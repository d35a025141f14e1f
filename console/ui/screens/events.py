"""The events screen: what happened on the target, and what came while the operator was away."""

from __future__ import annotations

from textual import work
from textual.app import ComposeResult

from console.history.entry import Entry
from console.reasons import ConsoleError
from console.state.happenings import Happening
from console.ui.present.events import as_report, events_page, of_past_run, of_past_runs
from console.ui.present.overview import Panel
from console.ui.screens.target import TargetScreen
from console.ui.situation import Face
from console.ui.widgets.lines import LinesView

_FILLS = ("fail", "warn", "busy", "link")
_RUNS = 20
_PAGE_ROWS = 10


class EventsScreen(TargetScreen):
    """What has happened."""

    FACE = Face.EVENTS

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[Entry, ...] = ()
        self._back = 0

    def compose(self) -> ComposeResult:
        yield LinesView(id="banner")
        yield LinesView(id="header")
        yield LinesView(id="band")
        yield LinesView(id="page")
        yield LinesView(id="footer")

    def on_screen_resume(self) -> None:
        self._load()

    @work(exclusive=True, group="events")
    async def _load(self) -> None:
        try:
            self._rows = (await self.source.archive.runs(_RUNS)).rows
        except ConsoleError:
            return  # what was seen since the start is there all the same
        self.lay_out()

    @property
    def _events(self) -> list[Happening]:
        snapshot = self.snapshot
        if self.viewing is not None:
            return of_past_run(self.viewing.entry, snapshot)
        seen = self.face.chronicle.events
        return [*of_past_runs(self._rows, but=snapshot.run_id, me=snapshot.operator, told=seen), *seen]

    def lay_out(self) -> None:
        width, height = self.size
        if not width or not height or not self.is_mounted:
            return
        self.put_footer()
        left_at = self.face.chronicle.left_at(self.snapshot.at) if self.viewing is None else None
        rows = height - self.footer_rows
        page = events_page(self.snapshot, self._events, left_at, self._back, width, rows, self.look)
        self._back = page.back
        band = self.query_one("#band", LinesView)
        for fill in _FILLS:
            band.set_class(page.fill == fill, f"-{fill}")
        self.put("header", Panel(page.header))
        self.put("band", Panel((page.band,)))
        self.put("page", Panel(page.body, rows - len(page.header) - 1))

    def to_copy(self) -> tuple[str, str]:
        return as_report(self._events, self.look), "the events"

    # --- keys ---

    def act_event_up(self) -> None:
        self._scroll(1)

    def act_event_down(self) -> None:
        self._scroll(-1)

    def act_event_page_up(self) -> None:
        self._scroll(_PAGE_ROWS)

    def act_event_page_down(self) -> None:
        self._scroll(-_PAGE_ROWS)

    def act_event_first(self) -> None:
        self._scroll(1_000_000)

    def act_event_last(self) -> None:
        self._scroll(-self._back)

    def _scroll(self, rows: int) -> None:
        self._back = max(0, self._back + rows)
        self.lay_out()
