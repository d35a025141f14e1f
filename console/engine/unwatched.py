"""Runs that have ended while no console was there: the ledger gets what their logs and their keepers' notes tell.

Each is looked at once; one whose usual speed a console has seen for its GPUs and the end of its log alone: what it did
after the console had turned to the run that replaces it. That a console has seen steps is not enough: one that was
opened afterwards has read the end of the log, and knows of no rate of a run that is over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from console import formatfile
from console.config import Target
from console.engine.book import Book
from console.engine.growth import GrowthIndex
from console.engine.logpieces import read_pieces
from console.engine.logreader import LogReader
from console.history import ledger, oldlog
from console.history.entry import Entry, is_launch
from console.history.samples import Curves
from console.history.unwatched import rebuilt, wall_of
from console.model import Stage
from console.protocol import Growth, RunRecord
from console.reasons import ConsoleError, Exit, Reason
from console.state.logquery import Place
from console.state.metrics import Parser

_log = logging.getLogger(__name__)

MOST_RUNS = 4
"""Of one look, the newest; the next one takes older ones."""
LOOK_S = 6.0
"""A script waits for `history`: what isn't done by then is done at the next look."""


class Unwatched:
    """Brings the ledger's rows of such runs up to date."""

    def __init__(
        self,
        reader: LogReader,
        book: Book,
        name: str,
        target: Target,
        recorded: Callable[[str], Awaitable[list[Growth]]],
    ) -> None:
        """`recorded` asks the host for a run's flight recorder; it raises ConsoleError."""
        self._reader, self._book, self._name, self._target, self._recorded = reader, book, name, target, recorded
        self.utc_offset_s = 0.0
        self._format = formatfile.resolve(target.metrics.format)

    async def update(self, place: str, records: Sequence[RunRecord]) -> frozenset[str]:
        """Look at the newest of these runs that are over and were not looked at; what can't be told stays as it is.

        Return the ids of those that are still to be looked at.
        """
        over = sorted(filter(_is_over, records), key=lambda each: -each.accepted_wall)
        left = {each.id for each in over}
        try:
            async with asyncio.timeout(LOOK_S):
                rows = await self._book.work(
                    lambda book: {each.id: book.entry(place, self._name, each.id) for each in over}
                )
                due = [each for each in over if (row := rows[each.id]) is None or row.log_size is None]
                left = {each.id for each in due}
                shared = _shared_logs(records)
                for record in due[:MOST_RUNS]:
                    row, curves = await self._look_at(record, rows[record.id], shared)
                    await self._book.work(self._writing(place, row, curves))
                    left.discard(record.id)
        except (ConsoleError, ledger.LedgerError, TimeoutError) as error:
            _log.warning("runs that nobody watched were not looked at: %s", error)
        return frozenset(left)

    def _writing(self, place: str, row: Entry, curves: Curves) -> Callable[[ledger.Ledger], None]:
        kept = {row.id: curves} if curves.digests else {}
        return lambda book: book.record(place, self._name, [row], kept)

    async def _look_at(self, record: RunRecord, known: Entry | None, shared: set[str]) -> tuple[Entry, Curves]:
        notes, roles = await self._recorded(record.id), self._target.gpus.roles
        path = record.log.path if record.log is not None else None
        if path is None or path in shared:
            return rebuilt(record, notes, roles, known=known)
        was_watched = known is not None and known.steady_tok_s is not None
        try:
            place, size_bytes = await self._placed(record, path)
            # Of a run that was watched: its format, and how far it came.
            data = await read_pieces(self._reader, place, size_bytes, ends_alone=was_watched)
        except ConsoleError as error:
            if error.exit_code in (Exit.LINK, Exit.ENTRY):
                raise
            _log.info("the log of %s is not there any more: %s", record.name, error)
            return rebuilt(record, notes, roles, known=known)
        growth, at_of = GrowthIndex(notes), wall_of(record)

        def written(end_offset: int) -> float | None:
            bt = growth.written_bt(end_offset)
            return at_of(bt) if bt is not None else None

        parser = Parser(self._format, self._target.metrics.tokens_per_step)
        dated = written if growth and not growth.was_truncated else None
        steps, checkpoint = oldlog.read(data, parser, self.utc_offset_s, dated)
        if was_watched:
            return rebuilt(record, notes, roles, known=known, log_end=(steps, checkpoint, size_bytes))
        return rebuilt(record, notes, roles, log=(steps, checkpoint, size_bytes))

    async def _placed(self, record: RunRecord, path: str) -> tuple[Place, int]:
        """Return the run's log and its size. Raises: ConsoleError, also where another file has its name now."""
        found = await self._reader.lines(Place(path=path), -1, 1, back=True)
        place = Place(path=path, identity=found.identity)
        if record.log is not None and record.log.inode not in (None, found.identity.inode):
            raise ConsoleError(Reason.LOG_REPLACED, path)
        return place, found.size_bytes


def _is_over(record: RunRecord) -> bool:
    spawned = record.stages.get(Stage.SPAWNED)
    has_run = spawned is not None and spawned.state == "done"
    return is_launch(record) and has_run and record.exit is not None and record.alive is not True


def _shared_logs(records: Sequence[RunRecord]) -> set[str]:
    """Return the logs to which more than one run has written: whose a line is nobody knows."""
    paths = [record.log.path for record in records if record.log is not None and is_launch(record)]
    return {path for path in paths if paths.count(path) > 1}
