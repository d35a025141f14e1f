"""What a log's lines are, one by one, and which format the whole log has: for people who teach or doubt a format.

Each physical line gives one row; the further lines of a record that say nothing by themselves are part of the row of
its first line. Rows say only what their own line states: a step that is taken from the bar beside it is `at_step`.
Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from console.state.formatrules import Format, Kind, Scope
from console.state.lines import LineSplitter
from console.state.metrics import Parser, Sample
from console.state.startup import STARTUP

_RANK: Final = {Kind.OTHER: 0, Kind.HEADER: 1, Kind.STEP: 2, Kind.EVAL: 3, Kind.CKPT: 4}
"""A line that holds two things, a bar and a record behind it, is what the graver of them is."""


class Row(msgspec.Struct, kw_only=True):
    """What one line says."""

    line: int
    """Counted from 1."""
    text: str
    kind: Kind = Kind.OTHER
    step: int | None = None
    at_step: int | None = None
    """The training step that it belongs to: of its record, its bar, or the epochs before."""
    total_steps: int | None = None
    loss: float | None = None
    loss_state: str | None = None
    tok_s: float | None = None
    """Tokens/s of the whole run, where the line states them."""
    rate: float | None = None
    """Tokens/s of whatever scope, stated or derived."""
    scope: Scope | None = None
    lr: float | None = None
    grad_norm: float | None = None
    queue_min: float | None = None
    queue_max: float | None = None
    eta_s: float | None = None
    extra: dict[str, float] = {}
    format: str | None = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Which format the log has, and why."""

    format: str | None
    why: str
    lines: int
    understood: int
    """Lines of any kind but `other`."""
    steps: int
    counts: dict[str, int]
    """Step lines of each format."""


class Recogniser:
    """Takes a log's bytes in order; hands out rows when they are complete."""

    def __init__(self, chosen: str | Format = "auto", tokens_per_step: int | None = None) -> None:
        """`chosen` is as for `Parser`. Raises: FormatError."""
        self._parser = Parser(chosen, tokens_per_step, each_line=True)
        self._chosen = None if chosen == "auto" else self._parser.format
        self._splitter = LineSplitter()
        self._place = self._number = 0
        self._row: Row | None = None
        self._began = 0
        self._samples: list[Sample] = []
        self._texts: list[str] = []
        self._steps: Counter[str] = Counter()
        self._first: dict[str, int] = {}
        self._understood = self._step_lines = 0

    def feed(self, data: bytes) -> Iterator[Row]:
        """Take the next bytes of the log."""
        start = 0
        while start < len(data):
            end = data.find(b"\n", start) + 1 or len(data)
            yield from self._take(data[start:end])
            start = end

    def end(self) -> Iterator[Row]:
        """The log ends here: hand out what is still open."""
        if self._place > self._began:
            yield from self._take(b"\n")
        if self._row is not None:
            _fold(self._row, self._parser.flush())
            yield self._done(self._row)
            self._row = None

    def _take(self, piece: bytes) -> Iterator[Row]:
        for line in self._splitter.feed(piece, self._place, 0.0):
            self._texts.append(line.text)
            self._samples += self._parser.feed(line, live=False)
        self._place += len(piece)
        if piece.endswith(b"\n"):
            yield from self._end_line()

    def _end_line(self) -> Iterator[Row]:
        self._number += 1
        samples, text = self._samples, self._texts[-1] if self._texts else ""
        began, self._began, self._samples, self._texts = self._began, self._place, [], []
        if self._row is not None:
            _fold(self._row, [sample for sample in samples if sample.offset < began])
            if self._parser.in_record and not any(sample.offset >= began for sample in samples):
                return
            yield self._done(self._row)
        self._row = Row(line=self._number, text=text)
        _fold(self._row, [sample for sample in samples if sample.offset >= began])

    def _done(self, row: Row) -> Row:
        self._understood += row.kind is not Kind.OTHER
        if row.kind is Kind.STEP and row.format is not None:
            self._step_lines += 1
            self._steps[row.format] += 1
            self._first.setdefault(row.format, row.line)
        return row

    def verdict(self) -> Verdict:
        """Say which format the log has."""
        name, why = self._won()
        return Verdict(
            format=name,
            why=why,
            lines=self._number,
            understood=self._understood,
            steps=self._step_lines,
            counts=dict(self._steps.most_common()),
        )

    def _won(self) -> tuple[str | None, str]:
        if self._chosen is not None:
            return self._chosen, f"it was asked for; it reads {self._steps[self._chosen]:,} step lines"
        ranking = self._steps.most_common()
        if not ranking:
            return None, "no line is a step line of a known format" if self._number else "there is no line"
        (name, count), *others = ranking
        why = f"{count:,} step lines, the first is line {self._first[name]:,}"
        if others:
            why += "; others: " + ", ".join(f"{other} {number:,}" for other, number in others)
        return name, why


def _fold(row: Row, samples: Iterable[Sample]) -> None:
    """Add what a line's samples say to its row; what came last wins."""
    for sample in samples:
        if _RANK[sample.kind] < _RANK[row.kind]:
            row.step = row.step if row.step is not None else sample.stated_step
            continue
        if _RANK[sample.kind] > _RANK[row.kind]:
            row.kind, row.loss, row.loss_state = sample.kind, None, None
        row.format = sample.format if sample.format not in ("any", STARTUP.name) else row.format
        stated = sample.stated_step
        row.step = stated if stated is not None else row.step
        row.at_step = sample.step if sample.step is not None else row.at_step
        row.total_steps = sample.total_steps if sample.total_steps is not None else row.total_steps
        if sample.loss is not None or sample.loss_state is not None:
            row.loss, row.loss_state = sample.loss, sample.loss_state
        _fold_rate(row, sample)
        for name in ("lr", "grad_norm", "queue_min", "queue_max", "eta_s"):
            value = getattr(sample, name)
            if value is not None:
                setattr(row, name, value)
        row.extra = row.extra | sample.extra


def _fold_rate(row: Row, sample: Sample) -> None:
    if sample.tok_s is None:
        row.scope = row.scope or sample.scope
        return
    row.rate, row.scope = sample.tok_s, sample.scope
    if sample.scope is Scope.GLOBAL:
        row.tok_s = sample.tok_s
