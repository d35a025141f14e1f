"""A run of which nothing is left but its log: its row and its curves, from the log's head, its end and pieces between.

Times are those that the lines bear; where they bear none, only rates, losses and steps are known, no curve over time.
The steady rate is that of the last 10 minutes, of logs without times that of the last 300 steps; warm-up and the step
after a checkpoint are left out as with a run that is watched. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from console.history.entry import LOG_ONLY, Entry
from console.history.samples import Curves
from console.state import steadiness
from console.state.digest import Digest, Digester
from console.state.formatrules import Kind
from console.state.lines import LineSplitter
from console.state.metrics import Parser, Sample
from console.state.series import WARM_UP_STEPS, WINDOW_S
from console.state.stamps import read_stamp

LAST_STEPS: Final = 300
PREFIX: Final = "log:"


class Seen(Struct, frozen=True):
    """A step of the log with the time that its line bears."""

    sample: Sample
    at: float | None
    counts: bool
    """It tells the usual speed: no warm-up, not the first after a checkpoint."""


def row_id(path: str) -> str:
    """Return the id under which a run without any other goes in the ledger."""
    return PREFIX + path


_CLOCK: Final = re.compile(r"(?<![\d:])([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?![\d:])")
_CLOCK_WITHIN: Final = 40
_DAY_S: Final = 86400.0


class _Times:
    """When lines were written: by their stamps, or by the time of day alone, days counted by the steps between."""

    def __init__(self, utc_offset_s: float) -> None:
        self._offset_s = utc_offset_s
        self._first: tuple[int, float] | None = None
        self._last: tuple[int, float] | None = None

    def of(self, text: str, step: int) -> float | None:
        """Return the time of a step's line; of a time of day it counts from midnight before the first line."""
        at = read_stamp(text, self._offset_s)
        if at is None:
            found = _CLOCK.search(text[:_CLOCK_WITHIN])
            if found is None:
                return None
            hours, minutes, seconds = (int(part) for part in found.groups())
            at = self._on_its_day(hours * 3600.0 + minutes * 60.0 + seconds, step)
        if self._first is None:
            self._first = (step, at)
        self._last = (step, at)
        return at

    def _on_its_day(self, clock_s: float, step: int) -> float:
        if self._first is None or self._last is None:
            return clock_s
        (first, began), (last, then) = self._first, self._last
        pace_s = (then - began) / (last - first) if last > first else 0.0
        expected = then + max(0, step - last) * pace_s
        days = max(0, round((expected - clock_s) / _DAY_S))
        at = clock_s + days * _DAY_S
        return at + _DAY_S if at < then - 1.0 else at


def read(
    pieces: Iterable[tuple[int, bytes]],
    parser: Parser,
    utc_offset_s: float,
    dated: Callable[[int], float | None] | None = None,
) -> tuple[list[Seen], int | None]:
    """Read pieces in the order of the file; return its steps and the last checkpoint's.

    `dated`: what tells when the bytes before an offset were there, in place of what lines say of themselves.
    """
    steps: list[Seen] = []
    checkpoint: int | None = None
    first: int | None = None  # of this launch: one log may hold several
    splitter = LineSplitter()
    follows_checkpoint = False
    times = _Times(utc_offset_s)
    for offset, data in pieces:
        if offset != splitter.next_offset:
            splitter.reset(offset, mid_line=True)
            follows_checkpoint = True  # whatever stood between isn't known
        for line in splitter.feed(data, offset, 0.0):
            for sample in parser.feed(line, live=False):
                if sample.kind is Kind.CKPT:
                    follows_checkpoint = True
                    checkpoint = sample.checkpoint_step if sample.checkpoint_step is not None else checkpoint
                if sample.kind is not Kind.STEP or sample.step is None:
                    continue
                if first is None or (steps and sample.step < (steps[-1].sample.step or 0)):
                    first = sample.step
                counts = sample.step - first >= WARM_UP_STEPS and not follows_checkpoint
                follows_checkpoint = False
                at = dated(line.end_offset) if dated is not None else times.of(line.text, sample.step)
                steps.append(Seen(sample, at, counts))
    return steps, checkpoint


def summary(
    path: str, name: str, size_bytes: int, written_wall: float, steps: Sequence[Seen], checkpoint: int | None
) -> tuple[Entry, Curves]:
    """Return the row and the curves of a log's run."""
    first_at, last_at = (next((s.at for s in order if s.at is not None), None) for order in (steps, steps[::-1]))
    is_timed = first_at is not None and last_at is not None and last_at > first_at
    if is_timed and last_at is not None and first_at is not None and first_at < _DAY_S:
        # Of times of day only the last one's day is known: that of the last write.
        steps = [Seen(s.sample, None if s.at is None else s.at + written_wall - last_at, s.counts) for s in steps]
        first_at, last_at = first_at + written_wall - last_at, written_wall
    rates = _steady(steps, last_at if is_timed else None)
    figure = steadiness.estimate(rates)
    last = steps[-1].sample if steps else None
    losses = [s.sample for s in steps if s.sample.loss is not None or s.sample.loss_state is not None]
    lived_s = last_at - first_at if is_timed and first_at is not None and last_at is not None else None
    row = Entry(
        id=row_id(path),
        name=name,
        state=LOG_ONLY,
        outcome=LOG_ONLY,
        is_over=True,
        stepped=bool(steps),
        accepted_wall=first_at if is_timed and first_at is not None else written_wall,
        first_step_wall=first_at if is_timed else None,
        ended_wall=written_wall,
        lived_s=lived_s,
        first_step=steps[0].sample.step if steps else None,
        last_step=last.step if last is not None else None,
        total_steps=last.total_steps if last is not None else None,
        steady_tok_s=figure.median if figure is not None else None,
        steady_mad=figure.mad if figure is not None else None,
        steady_n=figure.n if figure is not None else None,
        scope=next((str(s.sample.scope) for s in reversed(steps) if s.sample.tok_s is not None), None),
        last_loss=losses[-1].loss if losses else None,
        loss_state=(losses[-1].loss_state or "ok") if losses else None,
        checkpoint_step=checkpoint,
        log_path=path,
        log_size=size_bytes,
        log_mtime=written_wall,
    )
    return row, Curves(digests=_digests(steps, first_at) if is_timed else {}, steady=_window(rates, lived_s))


def _steady(steps: Sequence[Seen], until: float | None) -> list[float]:
    scope = next((s.sample.scope for s in reversed(steps) if s.sample.tok_s is not None), None)
    counted = [s for s in steps if s.counts and s.sample.tok_s is not None and s.sample.scope == scope]
    if until is not None:
        counted = [s for s in counted if s.at is not None and until - WINDOW_S <= s.at <= until]
    else:
        counted = counted[-LAST_STEPS:]
    return [s.sample.tok_s for s in counted if s.sample.tok_s is not None]


def _window(rates: Sequence[float], lived_s: float | None) -> steadiness.Window:
    return steadiness.window([(lived_s or 0.0, rate) for rate in rates])


def _digests(steps: Sequence[Seen], first_at: float | None) -> dict[str, Digest]:
    digesters: dict[str, Digester] = {}
    for each in steps:
        if each.at is None or first_at is None:
            continue
        sample, since_s = each.sample, each.at - first_at
        loss = sample.loss if sample.loss_state is None else None
        for name, value in (("tok_s", sample.tok_s), ("loss", loss), ("queue", sample.queue_min)):
            if value is not None:
                digesters.setdefault(name, Digester()).add(since_s, value, sample.step)
    return {name: digester.digest for name, digester in digesters.items()}
