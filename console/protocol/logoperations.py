"""What the console asks of a log: to follow it, for its ranges and lines, to search it, to count."""

from __future__ import annotations

from msgspec import Struct


class LogFollow(Struct, frozen=True, kw_only=True, tag_field="op", tag="log_follow"):
    """Bulk connection: send this file from `offset` on (negative: that many bytes before its end), and go on.

    With `dev`, `inode` and `fingerprint` (hex of the up to 1,024 bytes before `offset`) the agent proves that it is
    still the same content; else it answers with state `rotated` or `truncated` and starts at 0.
    Only one file is followed at a time; a new LogFollow replaces the old one.
    """

    id: int
    path: str
    offset: int
    pid: int | None = None
    """Fall back to /proc/PID/fd/1 where the path is gone (deleted while open)."""
    dev: int | None = None
    inode: int | None = None
    fingerprint: str | None = None
    credit_bytes: int = 262144


class LogCredit(Struct, frozen=True, kw_only=True, tag_field="op", tag="log_credit"):
    """No reply: allows `bytes` more of LogChunk data to be sent."""

    bytes: int


class LogRead(Struct, frozen=True, kw_only=True, tag_field="op", tag="log_read"):
    """Answered with raw bytes (`n`) of the range, and `size` of the file now."""

    id: int
    path: str
    offset: int
    length: int


class LogSample(Struct, frozen=True, kw_only=True, tag_field="op", tag="log_sample"):
    """Answered with `count` ranges of `length` bytes, spread evenly over [first, last): raw bytes (`n`), one range
    after the other, and their `offsets` and `sizes`. Costs the same whatever the file's size."""

    id: int
    path: str
    first: int
    last: int
    """Below 0: before the file's end."""
    count: int
    length: int
    larger_than: int = 0
    """Of a file of at most so many bytes nothing is sent."""


class ErrorRule(Struct, frozen=True, kw_only=True):
    """What makes a line an error, as data: regular expressions that every Python from 3.8 on reads the same way."""

    words: tuple[str, ...]
    """A line that holds none of them is no error, but for its level."""
    prefix: str
    """Time stamps, ranks and logger names that may stand before a record (verbose syntax)."""
    here: str
    """An error where the prefix ends."""
    anywhere: str
    after: str
    """An error anywhere, unless `unless` is there, too."""
    unless: str
    level: str
    """Group `level`, where the prefix ends, is E or F."""


class LogQuery(Struct, frozen=True, kw_only=True):
    """Which lines are meant: those that a pattern is found in, or, with a rule, those that are errors."""

    pattern: str = ""
    """A regular expression, or with `literal` a text."""
    literal: bool = False
    ignore_case: bool = False
    needle: str = ""
    """An ASCII text without which a regular expression can't match: lines without it are passed over."""
    errors: ErrorRule | None = None


class LogLines(Struct, frozen=True, kw_only=True, tag_field="op", tag="log_lines"):
    """Answered with whole lines from (or, with `back`, before) `offset`, as raw bytes and their `pieces` (WireLines).

    The offset is a line's start or -1, the end of the file; with `align` it may be any byte of the line that is meant.
    With a query only lines that match; it looks for a second at most, and `scanned_to` says how far it came.
    """

    id: int
    path: str
    offset: int
    length: int
    pid: int | None = None
    """Fall back to /proc/PID/fd/1 where the path is gone."""
    back: bool = False
    align: bool = False
    query: LogQuery | None = None
    limit: int = 0
    """Lines at most; 0: as many as the agent gives."""
    slice_s: float = 0.5


class LogCount(Struct, frozen=True, kw_only=True, tag_field="op", tag="log_count"):
    """Answered with a WireCount: how many lines from a line's start on match, and where; it looks for a slice only."""

    id: int
    path: str
    offset: int
    query: LogQuery
    pid: int | None = None
    slice_s: float = 0.5


class LogFiles(Struct, frozen=True, kw_only=True, tag_field="op", tag="log_files"):
    """Answered with the WireFiles that the template of a log could have made."""

    id: int
    template: str
