"""What the console remembers of earlier launches, kept in step with what the host says and what was observed.

Everything that touches the disk happens in a thread, one batch at a time; a ledger that can't be used is told once and
tried again a minute later, and nothing else suffers from it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from console.history import ledger
from console.history.entry import CLEARED, KEPT, Entry, Observed, cache_kind, entry, is_launch
from console.history.usual import Outlook
from console.link.tasks import started
from console.model import Overrides, PastRun, Plan, Snapshot, Stage, StageState, Verdict
from console.protocol import RunRecord, StateEvent
from console.reasons import ConsoleError, Exit, Reason
from console.state import events
from console.state.changes import settings_of

_log = logging.getLogger(__name__)
T = TypeVar("T")

_WORK_S = 20.0  # four times what one console may wait for another
_AGAIN_S = 60.0
_CLOSE_S = 2.0
_READY_S = 2.0  # a plan goes without rather than wait for a disk
_PROGRESS_EVERY_S = 60.0
_DRIFT_S = 0.2
_MOST_RECORDS = 64  # the host tells of 21
_OVER = frozenset(
    {
        Verdict.FAILED,
        Verdict.ENDED,
        Verdict.FINISHED,
        Verdict.STOPPED,
        Verdict.INTERRUPTED,
        Verdict.HOST_RESTARTED,
    }
)


class Past:
    """The ledger of one target, as the engine uses it. Lives in the event loop."""

    def __init__(
        self,
        target: str,
        *,
        clears_cache: bool,
        feed: Callable[[events.Event], None],
        now: Callable[[], float],
        path: Path | None = None,
    ) -> None:
        self.tasks: asyncio.TaskGroup | None = None
        self.outlook = Outlook()
        self._target, self._clears_cache = target, clears_cache
        self._feed, self._now = feed, now
        self._path = path or ledger.default_path()
        self._place = ""
        self._spoken_of: str | None = None
        self._records: dict[str, RunRecord] = {}
        self._seen: dict[str, Observed] = {}
        self._seen_at = 0.0
        self._known: dict[str, Entry] = {}
        self._due: dict[str, Entry] = {}
        self._is_stale = False
        self._working: asyncio.Task[None] | None = None
        self._again_at = 0.0
        self._warned = False
        self._loaded = asyncio.Event()
        self._told: events.HistoryKnown | None = None

    # -- what comes in ------------------------------------------------------------------------------------------------

    def reached(self, place: str) -> None:
        """The link is up: `place` is where this host keeps its records."""
        self._place = place
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
        self._tell()
        self._work_soon()

    def watched(self, snapshot: Snapshot) -> None:
        """Note what the run's log proves: that it steps, how long that took, how it ended."""
        run = snapshot.run
        if run is None or run.id is None or run.id not in self._records:
            return
        before = self._seen.get(run.id)
        seen = _steadied(observed(snapshot), before)
        if seen == before or seen == Observed():
            self._work_soon()
            return
        progress_alone = before is not None and replace(seen, last_step=before.last_step) == before
        if progress_alone and self._now() - self._seen_at < _PROGRESS_EVERY_S:
            return
        self._seen[run.id], self._seen_at = seen, self._now()
        self._note(run.id)
        self._work_soon()

    def _note(self, run: str) -> None:
        row = entry(self._records[run], self._seen.get(run))
        if self._known.get(run) != row:
            self._due[run] = row

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
            await asyncio.wait_for(self._loaded.wait(), _READY_S)
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
            found = await self._in_thread(lambda book: book.past(self._place, self._target, run))
        except (ledger.LedgerError, TimeoutError) as exc:
            raise ConsoleError(Reason.LEDGER_UNUSABLE, str(exc), Exit.REFUSED) from exc
        if found is None:
            raise ConsoleError(Reason.RUN_UNKNOWN, f"{run}: no such run of {self._target}", Exit.REFUSED)
        return found

    # -- the work -----------------------------------------------------------------------------------------------------

    def _work_soon(self) -> None:
        is_due = bool(self._due) or self._is_stale
        if not is_due or not self._place or self.tasks is None or self._now() < self._again_at:
            return
        if self._working is None or self._working.done():
            self._working = started(self.tasks, self._work(), "ledger")

    async def _work(self) -> None:
        while self._due or self._is_stale:
            batch, self._due, self._is_stale = self._due, {}, False
            try:
                self.outlook = await self._in_thread(self._job(list(batch.values()), self._spoken_of))
            except (ledger.LedgerError, TimeoutError) as exc:
                self._due, self._is_stale = batch | self._due, True
                self._give_up_for_now(exc)
                return
            except asyncio.CancelledError:
                self._due = batch | self._due  # `close` writes it once more, should it not have got there
                raise
            finally:
                self._loaded.set()
            self._known |= batch
            self._tell()

    def _job(self, batch: Sequence[Entry], spoken_of: str | None) -> Callable[[ledger.Ledger], Outlook]:
        place, target = self._place, self._target

        def work(book: ledger.Ledger) -> Outlook:
            if batch:
                book.record(place, target, batch)
            return book.outlook(place, target, spoken_of=spoken_of)

        return work

    async def _in_thread(self, job: Callable[[ledger.Ledger], T], within_s: float = _WORK_S) -> T:
        """Run a job on the ledger in a thread of its own: a disk that hangs may keep that, and nothing else.

        Raises: ledger.LedgerError, TimeoutError.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def deliver(result: T | None, error: BaseException | None) -> None:
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(result)  # type: ignore[arg-type]  # without an error there is a result

        def run() -> None:
            result, error = None, None
            try:
                with ledger.opened(self._path) as book:
                    result = job(book)
            except Exception as exc:  # noqa: BLE001 - the thread's root: handed to whoever waits
                error = exc
            try:
                loop.call_soon_threadsafe(deliver, result, error)
            except RuntimeError:
                pass  # the loop has ended meanwhile, nobody waits

        threading.Thread(target=run, name="ledger", daemon=True).start()
        return await asyncio.wait_for(answer, within_s)

    def _give_up_for_now(self, error: Exception) -> None:
        self._again_at = self._now() + _AGAIN_S
        _log.warning("the ledger can't be used: %s", error)
        if not self._warned:
            self._warned = True
            detail = str(error) or f"{self._path}: no answer within {_WORK_S:.0f} s"
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
        )
        if known != self._told:
            self._told = known
            self._feed(replace(known, at=self._now()))

    async def close(self) -> None:
        """Write what is due, within a moment: a command that only hands a request over is gone at once."""
        if self._working is not None:
            self._working.cancel()
        if not self._due or not self._place or self._now() < self._again_at:
            return
        try:
            await self._in_thread(self._job(list(self._due.values()), self._spoken_of), _CLOSE_S)
        except (ledger.LedgerError, TimeoutError) as exc:
            _log.warning("the ledger was not brought up to date: %s", exc)


def _steadied(seen: Observed, before: Observed | None) -> Observed:
    """Keep a time that only the clocks' drift against each other has moved: else each second would have its row."""
    if before is None or before.first_step_wall is None or seen.first_step_wall is None:
        return seen
    if abs(seen.first_step_wall - before.first_step_wall) >= _DRIFT_S:
        return seen
    return replace(seen, first_step_wall=before.first_step_wall)


def observed(snapshot: Snapshot) -> Observed:
    """Return what a snapshot proves of its run beyond the keeper's record."""
    run = snapshot.run
    stages = {status.stage: status for status in snapshot.stages}
    stepping = stages.get(Stage.STEPPING)
    stepped = stepping is not None and stepping.state is StageState.DONE
    failed = next((status.stage for status in snapshot.stages if status.state is StageState.FAILED), None)
    over = snapshot.verdict in _OVER
    reason = snapshot.reason if over else None
    first_at = snapshot.progress.first_step_at if stepped else None
    return Observed(
        stepped=stepped,
        stepping_s=stepping.took_s if stepping is not None and stepped else None,
        launch_s=run.launch_s if run is not None else None,
        first_step_wall=None if first_at is None else first_at + (snapshot.link.clock_offset_s or 0.0),
        last_step=snapshot.progress.step if stepped else None,
        outcome=str(snapshot.verdict) if over else None,
        failed_stage=str(failed) if failed is not None and over else None,
        reason=reason.slug if reason is not None else None,
        detail=reason.detail if reason is not None else "",
    )
