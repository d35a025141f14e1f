"""Looks into any part of a log over the bulk connection: ranges of lines, what matches, how much matches, which logs
there are.

Each look is one short request, so it can be given up between two of them, and the host works for nobody who has left.
Ranges that can't change any more are kept, the least used go first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from console import protocol
from console.engine import requests
from console.engine.replay import Replay
from console.link.link import Link
from console.reasons import ConsoleError, Reason
from console.state.linekind import error_shape
from console.state.logquery import Counted, LogFile, Place, Query
from console.state.needle import required
from console.state.stretch import Identity, Stretch, cut

_REQUEST_S = 25.0  # the agent gives itself 20 s
_KEPT_BYTES = 8 << 20
_SLICE_S = 0.5
_ERRORS = protocol.ErrorRule(**error_shape()._asdict())

_Key = tuple[str, int, int, bool]


class LogReader:
    """Every method raises `ConsoleError`: no link, or a file that isn't there or can't be read."""

    def __init__(self, link: Link | Replay, template: str, now: Callable[[], float]) -> None:
        self._link, self._template, self._now = link, template, now
        self._kept: OrderedDict[_Key, Stretch] = OrderedDict()
        self._kept_bytes = 0

    async def lines(
        self, place: Place, offset: int, length: int, *, back: bool = False, align: bool = False
    ) -> Stretch:
        """Return about `length` bytes of whole lines from, or before, a line's start (-1: the end of the file).

        With `align` any byte of a line stands for its start.
        """
        key = (place.path, offset, length, back)
        kept = self._kept.get(key)
        if kept is not None and not align and kept.identity == place.identity:
            self._kept.move_to_end(key)
            return kept
        found = await self._lines(place, offset, length, back=back, align=align)
        if not align and offset >= 0 and found.end < found.size_bytes:
            self._keep(key, found)
        return found

    async def matching(
        self, place: Place, query: Query, offset: int, *, back: bool = False, limit: int = 200, length: int = 256 << 10
    ) -> Stretch:
        """Return the nearest lines that match; it looks for half a second, and `end` says how far it came."""
        return await self._lines(place, offset, length, back=back, query=query, limit=limit)

    async def count(self, place: Place, query: Query, offset: int) -> Counted:
        """Count what matches from a line's start on, for half a second; `to` says how far it came."""
        operation = protocol.LogCount(
            id=self._link.next_id(), path=place.path, pid=place.pid, offset=offset, query=_wire(query), slice_s=_SLICE_S
        )
        reply, _ = await self._link.bulk_request(operation, timeout_s=_REQUEST_S)
        wire = requests.checked(reply, protocol.WireCount)
        identity = self._same(place, wire.dev, wire.inode)
        return Counted(
            to=wire.to, hits=wire.hits, lines=wire.lines, found=wire.found, size_bytes=wire.size, identity=identity
        )

    async def files(self) -> tuple[LogFile, ...]:
        """Return the logs that the target's template could have made, the newest first."""
        operation = protocol.LogFiles(id=self._link.next_id(), template=self._template)
        reply, _ = await self._link.bulk_request(operation, timeout_s=_REQUEST_S)
        wire = requests.checked(reply, protocol.WireFiles)
        return tuple(
            LogFile(path=each.path, size_bytes=each.size, written_wall=each.mtime, run=self._run_of(each.path))
            for each in wire.files
        )

    def place_of(self, run: str) -> Place | None:
        """Return where the log of a run of that name would be; None where the template doesn't tell runs apart."""
        if "{name}" not in self._template:
            return None
        return Place(path=self._template.replace("{name}", run.replace("/", "_")))

    async def raw(self, place: Place, offset: int, length: int) -> bytes:
        """Return bytes as they stand in the file: at most 1 MiB, fewer at its end."""
        operation = protocol.LogRead(id=self._link.next_id(), path=place.path, offset=offset, length=length)
        reply, data = await self._link.bulk_request(operation, timeout_s=_REQUEST_S)
        requests.checked(reply, dict)
        return data

    async def sample(self, place: Place, first: int, last: int, count: int, length: int) -> list[tuple[int, bytes]]:
        """Return bytes from `count` places that are spread evenly over [first, last), each with where it begins."""
        operation = protocol.LogSample(
            id=self._link.next_id(), path=place.path, first=first, last=last, count=count, length=length
        )
        reply, data = await self._link.bulk_request(operation, timeout_s=_REQUEST_S)
        return requests.pieces(reply, data)

    def _run_of(self, path: str) -> str:
        head, mark, tail = self._template.partition("{name}")
        fits = mark and len(path) > len(head) + len(tail) and path.startswith(head) and path.endswith(tail)
        return path[len(head) : len(path) - len(tail)] if fits else ""

    async def _lines(
        self,
        place: Place,
        offset: int,
        length: int,
        *,
        back: bool,
        align: bool = False,
        query: Query | None = None,
        limit: int = 0,
    ) -> Stretch:
        operation = protocol.LogLines(
            id=self._link.next_id(), path=place.path, pid=place.pid, offset=offset, length=length, back=back,
            align=align, query=_wire(query) if query is not None else None, limit=limit, slice_s=_SLICE_S,
        )  # fmt: skip
        reply, raw = await self._link.bulk_request(operation, timeout_s=_REQUEST_S)
        wire = requests.checked(reply, protocol.WireLines)
        identity = self._same(place, wire.dev, wire.inode)
        lines, breaks, before = cut(wire.pieces, raw, self._now())
        return Stretch(
            lines=tuple(lines), breaks=tuple(breaks), before=tuple(before), begin=wire.begin, end=wire.scanned_to,
            size_bytes=wire.size, identity=identity,
        )  # fmt: skip

    @staticmethod
    def _same(place: Place, dev: int, inode: int) -> Identity:
        found = Identity(dev, inode)
        if place.identity is not None and place.identity != found:
            raise ConsoleError(Reason.LOG_REPLACED, place.path)
        return found

    def _keep(self, key: _Key, stretch: Stretch) -> None:
        if (old := self._kept.pop(key, None)) is not None:
            self._kept_bytes -= _cost(old)
        self._kept[key] = stretch
        self._kept_bytes += _cost(stretch)
        while self._kept_bytes > _KEPT_BYTES and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._kept_bytes -= _cost(oldest)


def is_gone(error: ConsoleError) -> bool:
    """Whether a look has failed since there is no such file, by the host's errno."""
    return "No such file" in error.detail


def _cost(stretch: Stretch) -> int:
    return sum(len(line.text) + 200 for line in stretch.lines)


def _wire(query: Query) -> protocol.LogQuery:
    if query.errors:
        return protocol.LogQuery(errors=_ERRORS)
    needle = "" if query.literal else required(query.text)
    needle = needle if needle.isascii() else ""
    return protocol.LogQuery(
        pattern=query.text,
        literal=query.literal,
        ignore_case=query.ignore_case,
        needle=needle,
    )
