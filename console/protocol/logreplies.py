"""What the agent replies when it is asked about logs."""

from __future__ import annotations

from msgspec import Struct


class WireLines(Struct, frozen=True, kw_only=True):
    """Reply data of LogLines; the bytes of the pieces follow each other in the raw bytes of the reply."""

    size: int
    dev: int
    inode: int
    begin: int = 0
    """The offset that was meant, once aligned."""
    scanned_to: int = 0
    """Where the next look goes on."""
    pieces: tuple[tuple[int, int, int, int, int], ...] = ()
    """Each: offset, bytes, bytes of the tail where those are only the head of one long line, end in the file, and
    how many lines stand between `begin` and it (-1: not counted)."""


class WireCount(Struct, frozen=True, kw_only=True):
    """Reply data of LogCount."""

    size: int
    dev: int
    inode: int
    to: int = 0
    """Where it stopped, at a line's start; what is behind it and unfinished isn't counted."""
    hits: int = 0
    lines: int = 0
    found: tuple[tuple[int, int], ...] = ()
    """Of the first hits: offset, and lines before it since the offset asked for."""


class WireFile(Struct, frozen=True, kw_only=True):
    path: str
    size: int = 0
    mtime: float = 0.0
    """The host's wall clock."""


class WireFiles(Struct, frozen=True, kw_only=True):
    """Reply data of LogFiles, newest first."""

    files: tuple[WireFile, ...] = ()
    total: int = 0


class WireSample(Struct, frozen=True, kw_only=True):
    """Reply data of LogSample; what stands at the offsets follows each other in the raw bytes of the reply."""

    offsets: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    """In bytes, one for each offset."""
