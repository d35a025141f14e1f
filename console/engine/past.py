"""What the console remembers of earlier launches, kept in step with what the host says and what was observed.

Everything that touches the disk happens in a thread, one batch at a time; a ledger that can't be used is told once and
tried again a minute later, and nothing else suffers from it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from console.engine.book import WORK_S, Book
from console.engine.observing import is_progress_alone, observed
from console.engine.recording import Recording
from console.engine.unknown import unknown_run
from console.history import ledger
from console.history.entry import CLEARED, KEPT, Entry, Observed, cache_kind, entry, is_launch
from console.history.samples import Curves
from console.history.usual import Outlook
from console.link.tasks import started
from console.model import Overrides, PastRun, Plan, Snapshot
from console.protocol import GpusEvent, RunRecord, StateEvent
from console.reasons import ConsoleError, Exit, Reason
from console.state import events
from console.state.baseline import Baseline
from console.state.changes import settings_of
from console.state.training import Training

_log = logging.getLogger(__name__)

_Job = Callable[[ledger.Ledger], tuple[Outlook, ledger.NotWritten | None]]
_AGAIN_S = 60.0
_CLOSE_S = 2.0
_READY_S = 2.0  # a plan goes without rather than wait for a disk
_PROGRESS_EVERY_S = 60.0
_DRIFT_S = 0.2
_MOST_RECORDS = 64  # the host tells of 21


class Past:
    """The ledger of one target, as the engine uses it. Lives in the event loop."""

    def __init__(
        self,
        target: str,
        *,
        clears_cache: bool,
        baseline: str | None = None,
        feed: Callable[[events.Event], None],
        now: Callable[[], float],
        path: Path | None = None,
    ) -> None:
        self.tasks: asyncio.TaskGroup | None = None
        self.outlook = Outlook()
        self._target, self._clears_cache, self._baseline = target, clears_cache, baseline
        self._feed, self._now = feed, now
        self.book = Book(path)
        self.place = ""
        """Where the host keeps its records; empty before it was heard of."""
        self._spoken_of: str | None = None
        self._records: dict[str, RunRecord] = {}
        self._seen: dict[str, Observed] = {}
        self._seen_at = -_PROGRESS_EVERY_S
        self._recording: Recording | None = None
        self._known: dict[str, Entry] = {}
        self._due: dict[str, Entry] = {}
        self._curves: dict[str, Curves] = {}
        self._training = Training()
        self._is_stale = False
        self._working: asyncio.Task[None] | None = None
        self._again_at = 0.0
        self._warned = False
        self._loaded = asyncio.Event()
        self._told: events.HistoryKnown | None = None

    def compare_with_nothing(self) -> None:
        """The operator has chosen what to compare with: the configured run is asked for no more."""
        self._baseline = None
        self.outlook = replace(self.outlook, baseline_tok_s=None, baseline_scope=None)

    # -- what comes in ------------------------------------------------------------------------------------------------

    def reached(self, place: str) -> None:
        """The link is up: `place` is where this host keeps its records."""
        self.place = place
        self._is_stale = True
        self._work_soon()

    def host_said(self, said: StateEvent, spoken_of: str | None) -> None:
        """Note the host's records, those of others' launches among them."""
        for record in filter(is_launch, (*reversed(said.last), *([said.run] if said.run is not None else []))):
            self._records.pop(record.id, None)
            self._records[record.id] = record
            self._note(record.id)
        while len(self._records) > _MOST_RECORDS:
            gone = next(iter(self._records))
            for kept in (self._records, self._seen, self._known):
                kept.pop(gone, None)
        if spoken_of != self._spoken_of:
            self._spoken_of, self._is_stale = spoken_of, True
            self._keep_recording()
            self._recording = Recording(spoken_of) if spoken_of in self._records else None
        self._tell()
        self._work_soon()

    def watched(self, snapshot: Snapshot, *, is_last: bool = False) -> None:
        """Note what the run's log proves: that it steps, how long that took, how it ended.

        Progress alone is noted once a minute, and when nothing will come any more.
        """
        run = snapshot.run
        if run is None or run.id is None or run.id not in self._records:
            return
        before = self._seen.get(run.id)
        seen = _steadied(observed(snapshot), before)
        if seen == before or seen == Observed():
            self._work_soon()
            return
        progress_alone = before is not None and is_progress_alone(before, seen)
        if progress_alone and not is_last and self._now() - self._seen_at < _PROGRESS_EVERY_S:
            return
        self._seen[run.id], self._seen_at = seen, self._now()
        self._keep_recording()
        self._note(run.id)
        self._work_soon()

    def samples(self, event: events.SamplesSeen, training: Training) -> None:
        """Note steps whose time is known of the run that is spoken of."""
        if self._recording is not None:
            self._recording.samples(event, training)
            self._training = training

    def gpus(self, event: GpusEvent, roles: Mapping[str, tuple[int, ...]]) -> None:
        if self._recording is not None:
            self._recording.gpus(event, roles, self._now())

    def _keep_recording(self) -> None:
        """Have the curves so far written with the next batch."""
        recording = self._recording
        if recording is not None and recording.has_news:
            self._curves[recording.run] = recording.curves(self._training)

    def _note(self, run: str) -> None:
        row = entry(self._records[run], self._seen.get(run))
        if self._known.get(run) != row:
            self._due[run] = row

    @property
    def log_paths(self) -> frozenset[str]:
        """The logs of the runs that the host tells of."""
        return frozenset(each.log.path for each in self._records.values() if each.log is not None)

    # -- what is asked ------------------------------------------------------------------------------------------------

    def cache_of(self, overrides: Overrides) -> str:
        return CLEARED if self._clears_cache and not overrides.keep_cache else KEPT

    def with_times(self, plan: Plan, overrides: Overrides, *, has_gpus: bool) -> Plan:
        """Return the plan with how long launches of its kind take, and those of the other kind."""
        if plan.action != "restart":
            return plan
        cache, kinds = self.cache_of(overrides), self.outlook.following
        own, other = kinds.of(cache), kinds.of(KEPT if cache == CLEARED else CLEARED)
        kills = bool(plan.replaces)
        return replace(
            plan,
            usual_launch_s=own.total_s(kills=kills, has_gpus=has_gpus),
            usual_launches=own.launches,
            usual_other_s=other.total_s(kills=kills, has_gpus=has_gpus) if self._clears_cache else None,
        )

    async def ready(self) -> None:
        """Wait, within a moment, until the ledger was asked for the first time."""
        try:
            async with asyncio.timeout(_READY_S):
                await self._loaded.wait()
        except TimeoutError:
            _log.warning("the ledger has not answered within %s s", _READY_S)

    async def find(self, run: str) -> PastRun:
        """Return the newest run of this id or name, of the host's records or of older ones in the ledger.

        Raises: ConsoleError(RUN_UNKNOWN).
        """
        for record in reversed(self._records.values()):
            if run in (record.id, record.name):
                seen = self._seen.get(record.id)
                stepped = bool(seen and seen.stepped)
                return PastRun(id=record.id, name=record.name, settings=settings_of(record), stepped=stepped)
        try:
            found = await self.book.work(lambda book: book.past(self.place, self._target, run))
        except (ledger.LedgerError, TimeoutError) as exc:
            raise ConsoleError(Reason.LEDGER_UNUSABLE, str(exc), Exit.REFUSED) from exc
        if found is None:
            records = reversed(self._records.values())
            raise unknown_run(run, self._target, (word for each in records for word in (each.name, each.id)))
        if not found.settings.argv:
            detail = f"{run}: only its log is known, not what was run and with which settings"
            raise ConsoleError(Reason.RUN_UNKNOWN, detail, Exit.REFUSED)
        return found

    # -- the work -----------------------------------------------------------------------------------------------------

    def _work_soon(self) -> None:
        is_due = bool(self._due or self._curves) or self._is_stale
        if not is_due or not self.place or self.tasks is None or self._now() < self._again_at:
            return
        if self._working is None or self._working.done():
            self._working = started(self.tasks, self._work(), "ledger")

    async def _work(self) -> None:
        while self._due or self._curves or self._is_stale:
            batch, self._due, self._is_stale = self._due, {}, False
            curves, self._curves = self._curves, {}
            try:
                self.outlook, unwritten = await self.book.work(self._job(list(batch.values()), curves))
            except (ledger.LedgerError, TimeoutError) as exc:
                self._put_back(batch, curves)
                self._is_stale = True
                self._give_up_for_now(exc)
                return
            except asyncio.CancelledError:
                self._put_back(batch, curves)  # `close` writes it once more, should it not have got there
                raise
            finally:
                self._loaded.set()
            if unwritten is not None:  # the past is known all the same
                self._put_back(batch, curves)
                self._tell()
                self._give_up_for_now(unwritten)
                return
            self._known |= batch
            self._tell()

    def _put_back(self, batch: dict[str, Entry], curves: dict[str, Curves]) -> None:
        self._due, self._curves = batch | self._due, curves | self._curves

    def _job(self, batch: Sequence[Entry], curves: Mapping[str, Curves]) -> _Job:
        place, target, spoken_of, baseline = self.place, self._target, self._spoken_of, self._baseline

        def work(book: ledger.Ledger) -> tuple[Outlook, ledger.NotWritten | None]:
            unwritten = None
            if batch or curves:
                try:
                    book.record(place, target, batch, curves)
                except ledger.NotWritten as exc:
                    unwritten = exc
            outlook = book.outlook(place, target, spoken_of=spoken_of)
            if baseline is not None and (row := book.entry(place, target, baseline)) is not None:
                outlook = replace(outlook, baseline_tok_s=row.steady_tok_s, baseline_scope=row.scope)
            return outlook, unwritten

        return work

    def _give_up_for_now(self, error: Exception) -> None:
        self._again_at = self._now() + _AGAIN_S
        _log.warning("the ledger can't be used: %s", error)
        if not self._warned:
            self._warned = True
            detail = str(error) or f"{self.book.path}: no answer within {WORK_S:.0f} s"
            self._feed(events.ConsoleWarned(at=self._now(), reason=Reason.LEDGER_UNUSABLE, detail=detail))

    def _tell(self) -> None:
        """Tell the machine what past launches say of the run that is spoken of, when that is news."""
        record = self._records.get(self._spoken_of or "")
        cache = cache_kind(record) if record is not None else None
        usual = self.outlook.current.of(cache or self.cache_of(Overrides()))
        known = events.HistoryKnown(
            at=0.0,
            usual_s=usual.usual_s,
            longest_s=usual.longest_s,
            launches=usual.launches,
            good=self.outlook.before,
            baseline=Baseline(
                tok_s=self.outlook.baseline_tok_s, name=self._baseline or "", scope=self.outlook.baseline_scope
            ),
        )
        if known != self._told:
            self._told = known
            self._feed(replace(known, at=self._now()))

    async def flush(self, snapshot: Snapshot) -> None:
        """Have all that is known by now written, within a moment; a ledger that can't be used is for others to tell."""
        self.watched(snapshot, is_last=True)
        if self._working is not None:
            await asyncio.wait([self._working], timeout=_READY_S)

    async def close(self) -> None:
        """Write what is due, within a moment: a command that only hands a request over is gone at once."""
        if self._working is not None:
            self._working.cancel()
        self._keep_recording()
        if not (self._due or self._curves) or not self.place or self._now() < self._again_at:
            return
        try:
            _, unwritten = await self.book.work(self._job(list(self._due.values()), self._curves), _CLOSE_S)
            if unwritten is not None:
                _log.warning("the ledger was not brought up to date: %s", unwritten)
        except (ledger.LedgerError, TimeoutError) as exc:
            _log.warning("the ledger was not brought up to date: %s", exc)


def _steadied(seen: Observed, before: Observed | None) -> Observed:
    """Keep a time that only the clocks' drift against each other has moved: else each second would have its row."""
    if before is None or before.first_step_wall is None or seen.first_step_wall is None:
        return seen
    if abs(seen.first_step_wall - before.first_step_wall) >= _DRIFT_S:
        return seen
    return replace(seen, first_step_wall=before.first_step_wall)
