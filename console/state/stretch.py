"""A stretch of a log: whole lines of one range of the file, cut from the bytes that the host sent.

Which range a line came with never changes what it looks like. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from console.state.lines import LineSplitter, RawLine, cut_line

Piece = tuple[int, int, int, int, int]
"""As in protocol.WireLines: offset, bytes, bytes of the tail, end, lines before."""


class Identity(msgspec.Struct, frozen=True):
    """Which file it is: another one behind the same name has another."""

    dev: int
    inode: int


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """What one look brought."""

    lines: tuple[RawLine, ...] = ()
    breaks: tuple[int, ...] = ()
    """For each of `lines` 1 where a newline ends it, 0 where the next one stands in the same line of the file."""
    before: tuple[int, ...] = ()
    """For each of `lines` how many lines of the file stand between `begin` and it; -1: not counted."""
    begin: int
    """The offset from which on (or before which) was looked."""
    end: int
    """How far was looked: where the next look goes on."""
    size_bytes: int
    """Of the whole file."""
    identity: Identity
    left_out: int = 0
    """Lines of what was looked at that are hidden, and so are not among `lines`."""

    def line_end(self, index: int) -> int:
        """Return where the line of the file ends in which one of `lines` stands, as far as it came."""
        last = next((at for at in range(index, len(self.lines)) if self.breaks[at]), len(self.lines) - 1)
        return self.lines[last].end_offset


def cut(pieces: Iterable[Piece], raw: bytes, at: float) -> tuple[list[RawLine], list[int], list[int]]:
    """Cut the bytes of pieces into lines without the overwritten states of bars; return them, breaks and befores."""
    lines: list[RawLine] = []
    breaks: list[int] = []
    befores: list[int] = []
    place = 0
    for offset, head_bytes, tail_bytes, end, before in pieces:
        head = raw[place : place + head_bytes]
        tail = raw[place + head_bytes : place + head_bytes + tail_bytes]
        place += head_bytes + tail_bytes
        if tail_bytes:
            for line in cut_line(head, tail, offset, end, at):
                lines.append(line)
                breaks.append(int(line.end_offset == end and tail.endswith(b"\n")))
                befores.append(before)
            continue
        for line in _whole(head, offset, at):
            lines.append(line)
            last = line.end_offset - offset
            breaks.append(int(0 < last <= len(head) and head[last - 1] == 0x0A))
            befores.append(before)
            before += breaks[-1] if before >= 0 else 0
    return lines, breaks, befores


def _whole(data: bytes, offset: int, at: float) -> list[RawLine]:
    splitter = LineSplitter(offset)
    lines = [line for line in splitter.feed(data, offset, at) if not line.frame]
    live = splitter.live()
    return [*lines, live] if live is not None else lines
