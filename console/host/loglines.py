"""Whole lines out of any part of a log, however large: forward, backward, or only those that match.

A line of more than BLOCK_BYTES is given by its head and its end, wherever it is met, so what a line looks like never
depends on the range in which it was read. Reads files and nothing else; the agent has a child do this, since a network
filesystem may hang. Offsets are bytes.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from . import logquery

BLOCK_BYTES = 1 << 20
KEPT_BYTES = 16 << 10
"""Of a line that is longer than a block: so much of its head, and of its end."""
MOST_BYTES = 1 << 20
MOST_LINES = 5000
MOST_HITS = 20000
_SLICE_S = 1.0

Answer = Dict[str, Any]


class Chunk(NamedTuple):
    """Lines that follow each other in a file: `data` are their bytes, or the head of the only one."""

    offset: int
    data: bytes
    end: int
    """Where the last of them ends, its newline included."""
    tail: bytes = b""
    """Where `data` is only a head: the last bytes of the line."""

    @property
    def is_cut(self) -> bool:
        return self.end > self.offset + len(self.data)


class Opened:
    """A log opened for one answer; `ident` tells whether it is still the file that was meant."""

    def __init__(self, path: str, pid: Optional[int] = None) -> None:
        """Raises: OSError, also where it is no regular file."""
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            self.fd = os.open(path, flags)
        except FileNotFoundError:
            if pid is None:
                raise
            self.fd = os.open("/proc/%d/fd/1" % pid, flags)  # deleted while it is open
        status = os.fstat(self.fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(self.fd)
            raise OSError(22, "not a regular file", path)
        self.size, self.ident = status.st_size, (status.st_dev, status.st_ino)

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def head(self) -> Answer:
        return {"size": self.size, "dev": self.ident[0], "inode": self.ident[1]}

    def read(self, start: int, stop: int) -> bytes:
        return os.pread(self.fd, stop - start, start)

    # -- where lines begin and end ----------------------------------------------------------------------------------

    def line_start(self, offset: int) -> int:
        """Return where the line that holds the byte at `offset` begins."""
        stop = min(max(0, offset), self.size)
        while stop > 0:
            start = max(0, stop - BLOCK_BYTES)
            if not self._is_hole(start, stop):
                found = self.read(start, stop).rfind(b"\n")
                if found >= 0:
                    return start + found + 1
            stop = start
        return 0

    def line_end(self, offset: int) -> int:
        """Return the end of the line that goes on at `offset`, past its newline."""
        start = offset
        while start < self.size:
            start = max(start, self._data_from(start))
            data = self.read(start, min(self.size, start + BLOCK_BYTES))
            if not data:
                break
            found = data.find(b"\n")
            if found >= 0:
                return start + found + 1
            start += len(data)
        return self.size

    def _data_from(self, offset: int) -> int:
        """Return where the next written byte is: a hole holds no newline, and may be huge."""
        try:
            return os.lseek(self.fd, offset, os.SEEK_DATA)
        except OSError as error:
            return self.size if error.errno == errno.ENXIO else offset  # else the filesystem can't say

    def _is_hole(self, start: int, stop: int) -> bool:
        return self._data_from(start) >= stop

    # -- lines ------------------------------------------------------------------------------------------------------

    def forward(self, start: int) -> Iterator[Chunk]:
        """Give the lines from a line's start to the end of the file, the unfinished last one included."""
        while start < self.size:
            data = self.read(start, min(self.size, start + BLOCK_BYTES))
            if not data:
                return  # shorter than it was
            end = start + len(data)
            if end < self.size:
                end = start + data.rfind(b"\n") + 1
            if end > start:
                yield Chunk(start, data[: end - start], end)
            else:
                end = self.line_end(start + len(data))
                yield self._cut(start, end)
            start = end

    def backward(self, end: int) -> Iterator[Chunk]:
        """Give the lines before a line's start (or the end of the file), the last chunk first."""
        end = min(end, self.size)
        while end > 0:
            start = max(0, end - BLOCK_BYTES)
            data = self.read(start, end)
            if len(data) < end - start:
                return  # shorter than it was
            # The newline at the very end closes the last line; it begins none.
            newline = data.find(b"\n", 0, len(data) - 1)
            if self._begins_line(start):
                first = start
            elif newline >= 0:
                first = start + newline + 1
            else:
                first = self.line_start(start)
            whole = first >= start
            yield Chunk(first, data[first - start :], end) if whole else self._cut(first, end)
            end = first

    def _begins_line(self, offset: int) -> bool:
        return offset == 0 or self.read(offset - 1, offset) == b"\n"

    def _cut(self, start: int, end: int) -> Chunk:
        return Chunk(start, self.read(start, start + KEPT_BYTES), end, self.read(end - KEPT_BYTES, end))


# -- answers ----------------------------------------------------------------------------------------------------------


class _Gathered:
    """What is sent of the file: pieces of (offset, bytes of the head, bytes of the tail, end), and their bytes."""

    def __init__(self) -> None:
        self.pieces: List[Tuple[Chunk, int]] = []
        self.bytes = self.lines = 0

    def add(self, chunk: Chunk, lines_before: int = -1) -> None:
        self.pieces.append((chunk, lines_before))
        self.bytes += len(chunk.data) + len(chunk.tail)
        self.lines += 1

    def answer(self, *, back: bool) -> Answer:
        pieces = self.pieces[::-1] if back else self.pieces
        raw = b"".join(chunk.data + chunk.tail for chunk, _ in pieces)
        told = [[c.offset, len(c.data), len(c.tail), c.end, before] for c, before in pieces]
        return {"pieces": told, "raw": raw.decode("latin-1")}


def lines(operation: Dict[str, Any]) -> Answer:
    """Answer a LogLines: up to `length` bytes of whole lines from (or, with `back`, before) an offset.

    With a query only lines that match, and `scanned_to` says how far was looked: for a second at most. Raises: OSError.
    """
    length = max(1, min(int(operation["length"]), MOST_BYTES))
    back = bool(operation.get("back"))
    with Opened(operation["path"], operation.get("pid")) as log:
        offset = int(operation["offset"])
        offset = log.size if offset < 0 else min(offset, log.size)
        if operation.get("align") and offset < log.size:
            offset = log.line_start(offset)
        if operation.get("query"):
            return dict(_matching(log, operation, offset, length, back=back), **log.head())
        gathered = _Gathered()
        for chunk in log.backward(offset) if back else log.forward(offset):
            fitting = _fewer(_within(chunk, length - gathered.bytes, back=back), back=back)
            if gathered.pieces and gathered.bytes + len(fitting.data) > length:
                break
            gathered.add(fitting)
            if gathered.bytes >= length or fitting != chunk:
                break
        ends = [chunk.offset if back else chunk.end for chunk, _ in gathered.pieces]
        return dict(gathered.answer(back=back), begin=offset, scanned_to=ends[-1] if ends else offset, **log.head())


def _within(chunk: Chunk, room: int, *, back: bool) -> Chunk:
    """Return the nearest lines of a chunk that fit, at least one."""
    if chunk.is_cut or len(chunk.data) <= room:
        return chunk
    if back:
        start = chunk.data.find(b"\n", max(0, len(chunk.data) - max(1, room)) - 1) + 1
        if start <= 0 or start >= len(chunk.data):
            start = chunk.data.rfind(b"\n", 0, len(chunk.data) - 1) + 1
        return Chunk(chunk.offset + start, chunk.data[start:], chunk.end)
    stop = chunk.data.rfind(b"\n", 0, max(1, room)) + 1
    if stop == 0:
        stop = chunk.data.find(b"\n") + 1 or len(chunk.data)
    return Chunk(chunk.offset, chunk.data[:stop], chunk.offset + stop)


def _fewer(chunk: Chunk, *, back: bool) -> Chunk:
    """Return the nearest MOST_LINES lines of a chunk: a megabyte may be nothing but newlines."""
    if chunk.is_cut or chunk.data.count(b"\n") <= MOST_LINES:
        return chunk
    at = len(chunk.data) - 1 if back else -1
    for _ in range(MOST_LINES):
        at = chunk.data.rfind(b"\n", 0, at) if back else chunk.data.find(b"\n", at + 1)
    if back:
        return Chunk(chunk.offset + at + 1, chunk.data[at + 1 :], chunk.end)
    return Chunk(chunk.offset, chunk.data[: at + 1], chunk.offset + at + 1)


def _matching(log: Opened, operation: Dict[str, Any], offset: int, length: int, *, back: bool) -> Answer:
    matcher = logquery.Matcher(operation["query"])
    limit = max(1, min(int(operation.get("limit") or MOST_LINES), MOST_LINES))
    until = time.monotonic() + float(operation.get("slice_s") or _SLICE_S)
    gathered, reached, before = _Gathered(), offset, 0
    for chunk in log.backward(offset) if back else log.forward(offset):
        hits = matcher.hits(chunk.data, chunk.tail)
        counted = 0
        for start, stop in reversed(hits) if back else hits:
            if not back:
                before += chunk.data.count(b"\n", counted, start)
                counted = start
            gathered.add(_line_of(chunk, start, stop), -1 if back else before)
            reached = chunk.offset + start if back else min(chunk.end, chunk.offset + stop)
            reached = chunk.end if chunk.is_cut and not back else reached
            if gathered.lines >= limit or gathered.bytes >= length:
                return dict(gathered.answer(back=back), begin=offset, scanned_to=reached)
        before += 1 if chunk.is_cut else chunk.data.count(b"\n", counted)
        reached = chunk.offset if back else chunk.end
        if time.monotonic() >= until:
            break
    return dict(gathered.answer(back=back), begin=offset, scanned_to=reached)


def _line_of(chunk: Chunk, start: int, stop: int) -> Chunk:
    if chunk.is_cut:
        return chunk
    if stop - start > 2 * KEPT_BYTES:
        data = chunk.data
        return Chunk(
            chunk.offset + start, data[start : start + KEPT_BYTES], chunk.offset + stop, data[stop - KEPT_BYTES : stop]
        )
    return Chunk(chunk.offset + start, chunk.data[start:stop], chunk.offset + stop)


def count(operation: Dict[str, Any]) -> Answer:
    """Answer a LogCount: how many lines there are from a line's start on and where those are that match.

    Looks for a second at most; `to` is where it stopped, at a line's start or the end of the file. Of the hits, the
    first MOST_HITS are told by offset and by the lines before each. Raises: OSError.
    """
    matcher = logquery.Matcher(operation["query"])
    until = time.monotonic() + float(operation.get("slice_s") or _SLICE_S)
    found: List[List[int]] = []
    total = newlines = 0
    with Opened(operation["path"], operation.get("pid")) as log:
        to = min(int(operation["offset"]), log.size)
        for chunk in log.forward(to):
            if chunk.end == log.size and not (chunk.tail or chunk.data).endswith(b"\n"):
                whole = chunk.data.rfind(b"\n") + 1 if not chunk.is_cut else 0
                if whole == 0:
                    break  # the unfinished line is counted when it is whole
                chunk = Chunk(chunk.offset, chunk.data[:whole], chunk.offset + whole)
            counted = 0
            for start, _ in matcher.hits(chunk.data, chunk.tail):
                total += 1
                if len(found) < MOST_HITS:
                    newlines += chunk.data.count(b"\n", counted, start)
                    counted = start
                    found.append([chunk.offset + start, newlines])
            newlines += 1 if chunk.is_cut else chunk.data.count(b"\n", counted)
            to = chunk.end
            if time.monotonic() >= until:
                break
        return dict(log.head(), to=to, hits=total, lines=newlines, found=found)
