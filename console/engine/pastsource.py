"""A run of before as a source that the screens show like any other: nothing of it changes any more.

What is asked of the target (plans, restarts, the archive, the link) is asked of the engine that watches it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from console import formatfile
from console.config import Target
from console.engine import gpucurves
from console.engine.logreader import is_gone
from console.history.entry import Entry
from console.history.pastview import past_series, past_snapshot, with_last_gpus
from console.model import Accepted, Diagnosis, LogState, LogStatus, Overrides, PastRun, Plan, Snapshot
from console.protocol import Growth, RunRecord
from console.reasons import ConsoleError, Exit
from console.state.events import RingBell
from console.state.formatrules import Kind
from console.state.lines import RawLine
from console.state.logbuffer import LogBuffer
from console.state.logquery import Place
from console.state.metrics import Parser
from console.state.series import Series

if TYPE_CHECKING:
    from console.ui.source import Archive, LogSource, PastView, Source

_OLDER_RUNS = 200
"""Of which those that the shown one is compared with are looked for."""
TAIL_BYTES = 256 * 1024
"""Of the log's end: some 2,000 lines, the rest is looked up when somebody scrolls there."""


class PastSource:
    """Fulfils `console.ui.source.Source`."""

    playback = None

    def __init__(
        self, live: Source, entry: Entry, snapshot: Snapshot, series: Mapping[str, Series], log: LogBuffer
    ) -> None:
        self.entry = entry
        self._live = live
        self.snapshot = snapshot
        self.series = series
        self.log = log
        self.on_change: list[Callable[[], None]] = []
        self.on_lines: list[Callable[[], None]] = []
        self.bells: list[RingBell] = []

    @property
    def settings(self) -> PastRun | None:
        """What it was started with; None where nobody knows."""
        entry = self.entry
        if entry.is_log_only or not entry.settings.argv:
            return None
        return PastRun(id=entry.id, name=entry.name, settings=entry.settings, stepped=entry.stepped)

    def attend(self) -> None:
        self._live.attend()

    @property
    def logs(self) -> LogSource:
        return self._live.logs

    @property
    def target(self) -> Target:
        return self._live.target

    @property
    def archive(self) -> Archive:
        return self._live.archive

    @property
    def declared_env(self) -> Mapping[str, str]:
        return self._live.declared_env

    def redeclare(self, env: Mapping[str, str], arguments: tuple[str, ...]) -> None:
        self._live.redeclare(env, arguments)

    def choose_baseline(self, tok_s: float | None, name: str, scope: str | None = None) -> None:
        self._live.choose_baseline(tok_s, name, scope)

    async def plan(self, action: str, overrides: Overrides = Overrides()) -> Plan:  # noqa: B008 - frozen
        return await self._live.plan(action, overrides)

    async def execute(self, plan: Plan, overrides: Overrides = Overrides()) -> Accepted:  # noqa: B008 - frozen
        return await self._live.execute(plan, overrides)

    async def diagnose(self) -> Diagnosis:
        return await self._live.diagnose()

    async def view(self, run_id: str) -> PastView:
        return await self._live.view(run_id)

    def retry_link(self) -> None:
        self._live.retry_link()


async def past_source(
    live: Source, run_id: str, records: Sequence[RunRecord], recorded: Callable[[str], Awaitable[list[Growth]]]
) -> PastSource:
    """Return a run of before as it was at its end, with its log as far as the host still has it.

    `records` are the host's, `recorded` asks for what a run's keeper noted. Raises: ConsoleError(RUN_UNKNOWN,
    LEDGER_UNUSABLE).
    """
    entry, curves = await live.archive.run(run_id)
    rows = (await live.archive.runs(_OLDER_RUNS)).rows
    older = [row for row in rows if row.accepted_wall < entry.accepted_wall]
    record = next((each for each in records if each.id == entry.id), None)
    buffer, now = LogBuffer(), live.snapshot
    metrics = live.target.metrics
    parser = Parser(formatfile.resolve(metrics.format), metrics.tokens_per_step)
    log, entry = await read_end(live.logs, entry, buffer, parser)
    series = dict(past_series(entry, curves, now))
    past = past_snapshot(entry, now, curves=curves, older=older, record=record, log=log)
    if record is not None:
        notes, wall = await recorded(record.id), _wall_of(record, now)
        gpucurves.join(series, notes, wall)
        if (last := next((note for note in reversed(notes) if note.k == "gpu" and note.held), None)) is not None:
            past = with_last_gpus(past, last.gpus, last.held, wall(last.bt))
    return PastSource(live, entry, past, series, buffer)


def _wall_of(record: RunRecord, now: Snapshot) -> Callable[[float], float]:
    """Return what turns the record's boot times into the console's clock."""
    offset_s = record.accepted_wall - record.accepted_bt - (now.link.clock_offset_s or 0.0)
    return lambda bt: bt + offset_s


async def read_end(logs: LogSource, entry: Entry, buffer: LogBuffer, parser: Parser) -> tuple[LogStatus, Entry]:
    """Read the end of a past run's log into a buffer; return what is to be said of the log, and the row with what its
    last step lines add: the ledger takes a run's progress down once a minute only.

    A log that is gone, or can't be asked for, is named.
    """
    path = entry.log_path
    if not path:
        return LogStatus(state=LogState.NONE, detail="no log is known of this run"), entry
    try:
        found = await logs.lines(Place(path=path), -1, TAIL_BYTES, back=True)
    except ConsoleError as error:
        if error.exit_code in (Exit.LINK, Exit.ENTRY):
            detail = f"{path} can't be read without a link"
            return LogStatus(state=LogState.UNREADABLE, path=path, detail=detail), entry
        detail = f"the log {'is gone' if is_gone(error) else 'can not be read'}: {error.detail or path}"
        state = LogState.DELETED if is_gone(error) else LogState.UNREADABLE
        return LogStatus(state=state, path=path, detail=detail), entry
    buffer.append(found.lines)
    status = LogStatus(state=LogState.FOLLOWING, path=path, size_bytes=found.size_bytes, caught_up=True)
    return status, _brought_up_to_date(entry, found.lines, parser)


def _brought_up_to_date(entry: Entry, lines: Iterable[RawLine], parser: Parser) -> Entry:
    for line in lines:
        for sample in parser.feed(line, live=False):
            if sample.kind is Kind.CKPT and sample.checkpoint_step is not None:
                entry = replace(entry, checkpoint_step=max(entry.checkpoint_step or 0, sample.checkpoint_step))
            if sample.kind is not Kind.STEP or sample.step is None or sample.step < (entry.last_step or 0):
                continue
            entry = replace(entry, last_step=sample.step)
            if sample.loss is not None or sample.loss_state is not None:
                entry = replace(entry, last_loss=sample.loss, loss_state=sample.loss_state or "ok")
    return entry
