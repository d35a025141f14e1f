"""Logs on the host of which no run is known: read in pieces, once, and again when they have grown."""

from __future__ import annotations

import logging

from console import formatfile
from console.config import Metrics
from console.engine.book import Book
from console.engine.logpieces import read_pieces
from console.engine.logreader import LogReader
from console.history import ledger, oldlog
from console.history.entry import Entry
from console.history.samples import Curves
from console.reasons import ConsoleError
from console.state.logquery import LogFile, Place
from console.state.metrics import Parser

_log = logging.getLogger(__name__)

MOST_LOGS = 12
_KNOWN = 2000


class OldLogs:
    """Brings the ledger's rows of logs without a run up to date."""

    def __init__(self, reader: LogReader, book: Book, target: str, metrics: Metrics) -> None:
        self._reader, self._book, self._target = reader, book, target
        self._format, self._tokens_per_step = formatfile.resolve(metrics.format), metrics.tokens_per_step
        self.utc_offset_s = 0.0

    async def update(self, place: str, taken: frozenset[str], run: str | None = None) -> bool:
        """Read the newest logs that are new or have grown; `taken`: the logs of runs that are known otherwise.

        With `run` only that of this run, however many are newer.
        Return whether that could be done; what can't be read is left as it is, nothing else depends on it.
        """
        try:
            files = await self._reader.files()
            known = await self._book.work(lambda book: book.entries(place, self._target, _KNOWN))
            paths = taken | {row.log_path for row in known if row.log_path and not row.is_log_only}
            before = {row.log_path: row for row in known if row.is_log_only}
            wanted = [file for file in files if file.path not in paths and not _is_same(file, before.get(file.path))]
            asked = wanted if run is None else [file for file in wanted if file.run == run]
            found = [await self._read(file) for file in asked[:MOST_LOGS]]
            if found:
                rows = [row for row, _ in found]
                curves = {row.id: each for row, each in found}
                await self._book.work(lambda book: book.replace(place, self._target, rows, curves))
        except (ConsoleError, ledger.LedgerError, TimeoutError) as error:
            _log.warning("logs without a run were not read: %s", error)
            return False
        return True

    async def _read(self, file: LogFile) -> tuple[Entry, Curves]:
        pieces = await read_pieces(self._reader, Place(path=file.path), file.size_bytes)
        parser = Parser(self._format, self._tokens_per_step)
        steps, checkpoint = oldlog.read(pieces, parser, self.utc_offset_s)
        name = file.run or file.path.rpartition("/")[2]
        return oldlog.summary(file.path, name, file.size_bytes, file.written_wall, steps, checkpoint)


def _is_same(file: LogFile, row: Entry | None) -> bool:
    return row is not None and (row.log_size, row.log_mtime) == (file.size_bytes, file.written_wall)
