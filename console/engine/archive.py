"""The runs of one target as faces ask for them: the ledger's rows with what is watched now, and their curves.

Reads through the same book as `Past`, which writes; what is due there is written first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from console.engine.oldlogs import OldLogs
from console.engine.past import Past
from console.engine.unknown import unknown_run
from console.engine.unwatched import Unwatched
from console.history import ledger
from console.history.entry import Entry, Runs
from console.history.samples import Curves
from console.model import LinkState, Snapshot
from console.protocol import RunRecord
from console.reasons import ConsoleError, Exit, Reason

T = TypeVar("T")
_LOOK_EVERY_S = 60.0


class Archive:
    """Answers from the ledger. Every method raises ConsoleError(LEDGER_UNUSABLE, RUN_UNKNOWN)."""

    def __init__(
        self,
        past: Past,
        target: str,
        snapshot: Callable[[], Snapshot],
        logs: OldLogs,
        unwatched: Unwatched,
        records: Callable[[], Sequence[RunRecord]],
    ) -> None:
        """`records`: the runs that the host tells of."""
        self._past, self._target, self._snapshot = past, target, snapshot
        self._logs, self._looked_at, self._has_looked = logs, float("-inf"), False
        self._unwatched, self._records = unwatched, records
        self._unread: frozenset[str] = frozenset()

    async def look_at_logs(self) -> None:
        """Take up logs of which no run is known, and runs that nobody watched, once a minute at most; nothing where
        the host can't be asked."""
        now = self._snapshot()
        if now.at - self._looked_at < _LOOK_EVERY_S:
            return
        self._looked_at = now.at
        done = False
        try:
            done = await self._read_logs(now)
        finally:  # whoever asked may have gone meanwhile
            if done:
                self._has_looked = True
            else:
                self._looked_at = float("-inf")

    async def _read_logs(self, now: Snapshot, run: str | None = None) -> bool:
        if not self._past.place or now.link.state is not LinkState.UP:
            return False
        current = now.run.log_path if now.run is not None else None
        taken = self._past.log_paths | {current or "", now.log.path or ""}
        self._unread = await self._unwatched.update(self._past.place, self._records())
        return await self._logs.update(self._past.place, taken, run)

    @property
    def unread(self) -> frozenset[str]:
        """Ids of runs that are over and whose logs and keepers' notes are still to be read, as of the last look."""
        return self._unread

    @property
    def unwritten(self) -> str:
        """Why what was to be noted of the runs could not be; empty where it was."""
        return self._past.book.unwritten

    async def _flush(self) -> None:
        """Have what is known by now of the live run written down, within a moment."""
        await self._past.flush(self._snapshot())

    async def runs(self, limit: int = 100, since: int = 0) -> Runs:
        """Return the newest runs; with `since` those that have changed after that seq."""
        await self._flush()
        await self.look_at_logs()
        rows = await self._ask(lambda book, place: book.entries(place, self._target, limit, since))
        seq = max((row.seq for row in rows), default=since)
        return Runs(
            rows=tuple(rows), seq=seq, logs_read=self._has_looked, unread=self._unread, unwritten=self.unwritten
        )

    async def run(self, which: str) -> tuple[Entry, Curves]:
        """Return the newest run of this id or name with its curves, as far as they are kept."""
        await self._flush()
        await self.look_at_logs()

        def read(book: ledger.Ledger, place: str) -> tuple[Entry, Curves] | None:
            row = book.entry(place, self._target, which)
            return (row, book.curves(place, self._target, row.id)) if row is not None else None

        found = await self._ask(read)
        if found is None and await self._read_logs(self._snapshot(), which):
            found = await self._ask(read)
        if found is None:
            raise await self._unknown(which)
        return found

    async def _unknown(self, which: str) -> ConsoleError:
        rows = await self._ask(lambda book, place: book.entries(place, self._target))
        return unknown_run(which, self._target, (word for row in rows for word in (row.name, row.id)))

    async def log_of(self, which: str) -> str | None:
        """Return where the newest run of this id or name has its log, by the ledger alone; None where it can't say."""
        row = await self._ask(lambda book, place: book.entry(place, self._target, which))
        return row.log_path if row is not None else None

    async def annotate(self, run_id: str, text: str) -> None:
        """Put a note on a run, in the place of an earlier one."""
        await self._flush()
        if not await self._ask(lambda book, place: book.annotate(place, self._target, run_id, text)):
            raise await self._unknown(run_id)

    async def _ask(self, job: Callable[[ledger.Ledger, str], T]) -> T:
        """Run a job with the place of the target's records: the one that is watched, else the last known."""

        def work(book: ledger.Ledger) -> T:
            return job(book, self._past.place or book.place_of(self._target) or "")

        try:
            return await self._past.book.work(work)
        except (ledger.LedgerError, TimeoutError) as exc:
            raise ConsoleError(Reason.LEDGER_UNUSABLE, str(exc), Exit.REFUSED) from exc
