"""A log file alone, and perhaps how its process ended, into a verdict with the lines it rests on.

The whole of what `explain` knows: bytes are cut into lines, steps are found, the rest is `judging`. The bytes come as
pieces with their offsets, so that of a huge file the middle may be left out. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from console.reasons import Reason
from console.state.events import LogLine
from console.state.judging import Ended, Judged, Told, judge
from console.state.lines import LineSplitter, RawLine
from console.state.metrics import Parser, Sample
from console.state.symptoms import Course, course_of, symptoms

MAX_EVIDENCE: Final = 4


class Piece(Struct, frozen=True):
    """Bytes that stand at an offset; `lines_before` is None where nobody counted the newlines before them."""

    offset: int
    data: bytes
    lines_before: int | None = 0


class Evidence(Struct, frozen=True):
    """A line of the log: its number from 1, or None where it can't be known cheaply."""

    line: int | None
    text: str


class Finding(Struct, frozen=True, kw_only=True):
    reason: Reason | None
    detail: str
    evidence: tuple[Evidence, ...]
    step: int | None
    total_steps: int | None


def examine(pieces: Sequence[Piece], ended: Ended) -> Finding:
    """Return the verdict on a log."""
    lines, samples = _read(pieces)
    course = course_of(lines, samples)
    told = Told(
        lines=lines,
        steps_at=course.steps_at,
        step=course.step,
        total_steps=course.total_steps,
        symptoms=symptoms(lines, course),
    )
    found = judge(ended, told)
    number = _Numbers(pieces)
    shown = [Evidence(number.of(line.offset), line.text) for line in _shown(found, told, course)]
    reason = found.reason
    if reason is Reason.EXIT_WITHOUT_STEP and any(line.text.strip() for line in lines):
        # A log alone doesn't say what should have been written to it, only that it isn't finished.
        reason = Reason.INCOMPLETE_EXIT0
    return Finding(
        reason=reason,
        detail=found.detail,
        evidence=tuple(shown[:MAX_EVIDENCE]),
        step=course.step,
        total_steps=course.total_steps,
    )


def _read(pieces: Sequence[Piece]) -> tuple[list[LogLine], dict[int, Sample]]:
    parser, splitter = Parser(), LineSplitter()
    lines: list[LogLine] = []
    samples: dict[int, Sample] = {}
    last_frame: RawLine | None = None

    def take(raw: RawLine) -> None:
        nonlocal last_frame
        for sample in parser.feed(raw, live=False):
            samples[sample.offset] = sample
        if not raw.frame and raw.cr and last_frame is not None and raw.text == last_frame.text:
            return  # the line that a bar collapsed to
        lines.append(LogLine(raw.offset, raw.text))
        last_frame = raw if raw.frame else None

    for piece in pieces:
        for raw in splitter.feed(piece.data, piece.offset, 0.0):
            take(raw)
    if splitter.live() is not None:  # a last line without its newline
        for raw in splitter.feed(b"\n", splitter.next_offset, 0.0):
            take(raw)
    return lines, samples


class _Numbers:
    """Line numbers from byte offsets."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._starts = [piece.offset for piece in pieces]

    def of(self, offset: int) -> int | None:
        at = bisect_right(self._starts, offset) - 1
        if at < 0 or self._pieces[at].lines_before is None:
            return None
        piece = self._pieces[at]
        return (piece.lines_before or 0) + piece.data.count(b"\n", 0, offset - piece.offset) + 1


def _shown(found: Judged, told: Told, course: Course) -> list[LogLine]:
    """The lines that the verdict rests on, the first cause first; then where the training stood."""
    shown = list(found.evidence)
    words = [line for line in told.lines if line.text.strip()]
    if course.figures:
        shown.append(told.lines[course.figures[-1].index])
    if words:
        shown.append(words[-1])
    return list({line.offset: line for line in shown}.values())
