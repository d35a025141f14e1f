"""The runs screen: a table of runs, and two of them side by side. What it shows comes from the ledger, by workers."""

from __future__ import annotations

from collections.abc import Sequence

from textual import work
from textual.app import ComposeResult

from console.history.comparing import Comparison, compare
from console.history.entry import Entry
from console.history.samples import Curves
from console.model import Overrides, PastRun
from console.reasons import ConsoleError
from console.ui.present import words
from console.ui.present.overview import Panel
from console.ui.present.runplot import Beside, Curve, shared_curves
from console.ui.present.runs import RunsPainter, report
from console.ui.present.runtable import RunList, name_of
from console.ui.screens.prompt import PromptScreen
from console.ui.screens.target import TargetScreen
from console.ui.situation import Face, Situation, situation_of
from console.ui.widgets.lines import LinesView

_FILLS = ("fail", "warn", "busy", "link")
_READ_EVERY_S, _LOOK_EVERY_S = 5.0, 1.0
_MOST = 200


class RunsScreen(TargetScreen):
    """The runs of one target."""

    FACE = Face.RUNS

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[Entry, ...] = ()
        self._chosen: str | None = None
        """Id of the run under the cursor: rows that come above must not move it."""
        self._marked: list[str] = []
        """Ids of A and B."""
        self._pair: tuple[Comparison, Curves, Curves] | None = None
        self._version = 0
        self._painter = RunsPainter(self.look)
        self._curve, self._by_step = Curve.TOK_S, False
        self._read, self._complaint, self._has_older = False, "", False
        self._unread: frozenset[str] = frozenset()
        self._logs_read, self._loading, self._waited = False, False, 0

    def compose(self) -> ComposeResult:
        yield LinesView(id="header")
        yield LinesView(id="band")
        yield LinesView(id="page")
        yield LinesView(id="footer")

    def ready(self) -> None:
        self.set_interval(_LOOK_EVERY_S, self.look_again)
        self._load()

    def look_again(self) -> None:
        """Read the list anew where it is due; one look at a time: a dozen logs take longer than it stays fresh."""
        self._waited += 1
        is_due = not self._logs_read or self._waited * _LOOK_EVERY_S >= _READ_EVERY_S
        if self.is_shown and is_due and not self._loading:
            self._load()

    def on_screen_resume(self) -> None:
        if not self._loading:
            self._load()

    # --- what is shown ---

    @property
    def situation(self) -> Situation:
        return situation_of(
            self.snapshot, face=self.FACE, read_only=self.face.read_only, comparing=self._beside is not None,
            settings_known=self.settings_known,
        )  # fmt: skip

    @property
    def settings_known(self) -> bool:
        row = self._list.at_cursor
        return row is None or (bool(row.settings.argv) and not row.is_log_only)

    @property
    def _cursor(self) -> int:
        return next((index for index, row in enumerate(self._rows) if row.id == self._chosen), 0)

    @property
    def _list(self) -> RunList:
        snapshot = self.snapshot
        marks = [*self._marked, None, None]
        return RunList(
            rows=self._rows, cursor=self._cursor, a=marks[0], b=marks[1], live=snapshot.run_id,
            verdict=str(snapshot.verdict), me=snapshot.operator, target=snapshot.target, read=self._read,
            logs_read=self._logs_read, complaint=self._complaint, unread=self._unread,
            has_older=self._has_older,
        )  # fmt: skip

    @property
    def _beside(self) -> Beside | None:
        if self._pair is None or len(self._marked) < 2:
            return None
        found, a, b = self._pair
        return Beside(found=found, a=a, b=b, curve=self._curve, by_step=self._by_step, version=self._version)

    def lay_out(self) -> None:
        width, height = self.size
        if not width or not height or not self.is_mounted:
            return
        self.put_footer()
        shown = self._painter.paint(self.snapshot, self._list, self._beside, width, height - 1)
        band = self.query_one("#band", LinesView)
        for fill in _FILLS:
            band.set_class(shown.fill == fill, f"-{fill}")
        self.put("header", Panel(shown.header))
        self.put("band", Panel((shown.band,)))
        self.put("page", Panel(shown.body, height - 2 - len(shown.header)))

    def to_copy(self) -> tuple[str, str]:
        return report(self._list, self._beside, self.snapshot, self.look), "the runs"

    # --- reading ---

    @work(exclusive=True, group="runs")
    async def _load(self) -> None:
        self._waited, self._loading = 0, True
        try:
            runs = await self.source.archive.runs(_MOST + 1)
            marked = [await self.source.archive.run(run) for run in self._marked]
        except ConsoleError as error:
            self._complaint = words.one_line(error.detail or str(error.reason))
        else:
            path, _, why = words.one_line(runs.unwritten).partition(": ")
            self._complaint = f"nothing new is noted: {why} ({path})" if runs.unwritten else ""
            self._read, self._logs_read = True, runs.logs_read
            self._rows, self._has_older = runs.rows[:_MOST], len(runs.rows) > _MOST
            self._unread = runs.unread
            self._set_pair(marked)
            if self._chosen is None and self._rows:
                self._chosen = self._rows[0].id
        self._loading = False
        self.lay_out()

    def _set_pair(self, marked: Sequence[tuple[Entry, Curves]]) -> None:
        if len(marked) < 2:
            self._pair = None
            return
        a, b = marked
        before = self._pair
        if before is None or (before[0].a, before[0].b, before[1:]) != (a[0], b[0], (a[1], b[1])):
            self._pair = compare(a, b), a[1], b[1]
            self._version += 1

    # --- keys ---

    def act_mark(self) -> None:
        """Mark the chosen run: A first, then B; a third mark takes the place of B."""
        run = self._chosen
        if run is None:
            return
        if run in self._marked:
            self._marked.remove(run)
        else:
            self._marked = [*self._marked[:1], run]
        self._pair = None
        self._load()
        self.lay_out()

    def act_run_again(self) -> None:
        row = self._list.at_cursor
        if row is None:
            return
        if not self.settings_known:
            self.face.toast(f"{name_of(row)}: its settings are not known")
            return
        past = PastRun(id=row.id, name=row.name, settings=row.settings, stepped=row.stepped)
        self.open_plan("restart", Overrides(base=past))

    @work(exclusive=True, group="note")
    async def act_note(self) -> None:
        row = self._list.at_cursor
        if row is None:
            return
        text = await self.app.push_screen_wait(PromptScreen(f"note on {name_of(row)}", row.remark))
        if text is None:
            return
        try:
            await self.source.archive.annotate(row.id, text.strip())
        except ConsoleError as error:
            self.face.toast(f"no note: {words.one_line(error.detail or str(error.reason))}")
            return
        self.face.toast("note saved")
        self._load()

    def act_run_metric(self) -> None:
        beside = self._beside
        shared = shared_curves(beside.a.digests, beside.b.digests) if beside is not None else []
        if shared:
            self._curve = shared[(shared.index(self._curve) + 1) % len(shared)] if self._curve in shared else shared[0]
        self.lay_out()

    def act_by_step(self) -> None:
        self._by_step = not self._by_step
        self.lay_out()

    def act_run_down(self) -> None:
        self._choose(self._cursor + 1)

    def act_run_up(self) -> None:
        self._choose(self._cursor - 1)

    def act_run_first(self) -> None:
        self._choose(0)

    def act_run_last(self) -> None:
        self._choose(len(self._rows) - 1)

    def _choose(self, index: int) -> None:
        if self._rows:
            self._chosen = self._rows[max(0, min(len(self._rows) - 1, index))].id
            self.lay_out()
