# ruff: noqa: ASYNC240 - small local files
"""A log on this machine, read by the host's own code without a link: what a pane shows of a file of any size."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from console.engine.logreader import _wire
from console.host import loglines
from console.reasons import ConsoleError, Exit, Reason
from console.state.lines import LineSplitter
from console.state.logbuffer import LogBuffer
from console.state.logquery import Counted, LogFile, Place, Query
from console.state.stretch import Identity, Stretch, cut


class FileLogs:
    """Fulfils LogSource. `gate` holds answers back while it is cleared."""

    def __init__(self, *paths: Path) -> None:
        self.paths = list(paths)
        self.asked: list[str] = []
        self.slice_s = 0.5
        self.gate = asyncio.Event()
        self.gate.set()

    async def lines(
        self, place: Place, offset: int, length: int, *, back: bool = False, align: bool = False
    ) -> Stretch:
        return await self._lines(place, "lines", offset=offset, length=length, back=back, align=align)

    async def matching(
        self, place: Place, query: Query, offset: int, *, back: bool = False, limit: int = 200, length: int = 256 << 10
    ) -> Stretch:
        wire = msgspec.to_builtins(_wire(query))
        return await self._lines(place, "matching", offset=offset, length=length, back=back, limit=limit, query=wire)

    async def count(self, place: Place, query: Query, offset: int) -> Counted:
        wire = msgspec.to_builtins(_wire(query))
        got = await self._ask("count", loglines.count, place, offset=offset, query=wire)
        found = tuple((where, before) for where, before in got["found"])
        return Counted(
            to=got["to"], hits=got["hits"], lines=got["lines"], found=found, size_bytes=got["size"],
            identity=self._identity(place, got),
        )  # fmt: skip

    async def files(self) -> tuple[LogFile, ...]:
        return tuple(
            LogFile(path=str(path), size_bytes=path.stat().st_size, written_wall=0.0, run=path.stem)
            for path in self.paths
        )

    async def raw(self, place: Place, offset: int, length: int) -> bytes:
        return Path(place.path).read_bytes()[offset : offset + length]

    async def _lines(self, place: Place, name: str, **more: Any) -> Stretch:
        got = await self._ask(name, loglines.lines, place, **more)
        lines, breaks, before = cut([tuple(piece) for piece in got["pieces"]], got["raw"].encode("latin-1"), 0.0)
        return Stretch(
            lines=tuple(lines), breaks=tuple(breaks), before=tuple(before), begin=got["begin"], end=got["scanned_to"],
            size_bytes=got["size"], identity=self._identity(place, got),
        )  # fmt: skip

    async def _ask(self, name: str, work: Any, place: Place, **more: Any) -> dict[str, Any]:
        self.asked.append(name)
        await self.gate.wait()
        try:
            answer: dict[str, Any] = work({"path": place.path, "slice_s": self.slice_s, **more})
        except OSError as error:
            raise ConsoleError(Reason.LOG_UNREADABLE, str(error), Exit.REFUSED) from error
        return answer

    @staticmethod
    def _identity(place: Place, got: dict[str, Any]) -> Identity:
        found = Identity(got["dev"], got["inode"])
        if place.identity not in (None, found):
            raise ConsoleError(Reason.LOG_REPLACED, place.path)
        return found


def tail_of(path: Path, kept_bytes: int) -> LogBuffer:
    """What the console holds that came to a log when it was already there."""
    data = path.read_bytes()
    start = max(0, len(data) - kept_bytes)
    buffer, splitter = LogBuffer(), LineSplitter(start, mid_line=start > 0)
    buffer.append(splitter.feed(data[start:], start, 0.0))
    buffer.set_live(splitter.live())
    return buffer


def grow(path: Path, buffer: LogBuffer, text: str) -> None:
    """Write to the file and let the console read it."""
    at = path.stat().st_size
    with path.open("ab") as file:
        file.write(text.encode())
    buffer.append(LineSplitter(at).feed(text.encode(), at, 0.0))
