"""Lines of a log into samples: step, loss, rate, queue, checkpoints.

Finds out which format the log has, keeps to it, and looks again when it stops fitting. What no single line can tell is
decided here: which bar is the training, which step a record without one belongs to, and tokens/s where no line states
them:

    tokens/s = tokens per step / seconds per step

with the tokens per step from the config, else from the log's header (stated there, or global batch size x sequence
length), and the seconds per step from the line where it states them, else from the times at which live step lines
arrived. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

import msgspec

from console.state.arrivals import Arrivals
from console.state.checkpoints import CheckpointLine, CheckpointState, read_checkpoint
from console.state.formatrules import Format, FormatError, Kind, Reading, Scope, is_candidate, read, skip_prefix
from console.state.formats import FORMATS, find_format
from console.state.linekind import LineKind, classify
from console.state.lines import RawLine

__all__ = [
    "CheckpointState",
    "FormatError",
    "Kind",
    "LineKind",
    "Parser",
    "Sample",
    "Scope",
    "Understood",
    "classify",
]

SWITCH_AFTER: Final = 3
"""Step lines of one other format, with none of the chosen format between, that change the choice."""
UNPROVEN_BAR_STEPS: Final = 50
"""An unlabelled bar shorter than this is taken for a loading bar while nothing else speaks for it."""
UNPROVEN_BAR_RATE: Final = 20.0
"""An unlabelled bar quicker than this many iterations a second is taken for data preparation, likewise."""


class Sample(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one line reports. Every number is finite; absent is None."""

    kind: Kind
    format: str
    offset: int
    end_offset: int
    """Where its line ends: when the log was that long, all of it was written."""
    at: float
    step: int | None = None
    """The training step: of this line, or for a record without one that of its progress bar."""
    total_steps: int | None = None
    loss: float | None = None
    """Training loss; on an `eval` sample the validation loss."""
    loss_state: str | None = None
    """`nan`, or `inf`: the loss is not a number, whether or not `loss` has a value."""
    tok_s: float | None = None
    scope: Scope | None = None
    """Whose tokens `tok_s` counts. `rank` with `tok_s` None: a worker's own line, its numbers are in `extra`."""
    lr: float | None = None
    grad_norm: float | None = None
    queue_min: float | None = None
    queue_max: float | None = None
    checkpoint: CheckpointState | None = None
    checkpoint_step: int | None = None
    step_s: float | None = None
    """Seconds per step as the line states them."""
    extra: dict[str, float] = {}


class Understood(msgspec.Struct, frozen=True, gc=False):
    """How much of the log the parser can read."""

    lines: int
    matched: int
    """Lines of these that gave a sample, of whatever kind."""
    steps: int
    """Step samples, those of a bar's states included."""
    format: str | None
    """The chosen format; None while nothing fitted."""


class Parser:
    """Reads lines in the order of the log."""

    def __init__(self, format: str = "auto", tokens_per_step: int | None = None) -> None:  # noqa: A002
        """`format` is `auto`, a format's name, or a regex with named groups. Raises: FormatError."""
        self._fixed = None if format == "auto" else find_format(format)
        self._tokens_config = tokens_per_step
        self._lines = self._matched = self._steps = 0
        self.reset()

    def reset(self) -> None:
        """Forget what was learned of the log (another run's log is read next); the counts go on."""
        self._format: Format | None = self._fixed
        self._rival: tuple[str, int] = ("", 0)
        self._total: int | None = None
        self._header: dict[str, float] = {}
        self._bar: tuple[int, int] | None = None  # step and total of the training's bar
        self._bar_proven = False
        self._last_step: int | None = None
        self._last_rank: str | None = None
        self._last_state: tuple[int, str] = (-1, "")
        self._arrivals = Arrivals()

    @property
    def format(self) -> str | None:
        """The name of the format in use, or None while none is known."""
        return self._format.name if self._format is not None else None

    @property
    def understood(self) -> Understood:
        return Understood(self._lines, self._matched, self._steps, self.format)

    def feed(self, line: RawLine, *, live: bool = True) -> list[Sample]:
        """Return the samples of a line, a bar's state or the live line.

        `live=False` says that the line was read from what stood in the log already: its arrival time tells nothing
        about the speed. The live line may be fed as often as one likes: only complete bars are read from it, and each
        step once.
        """
        if not line.partial:
            if line.cr and self._seen_as_state(line):
                return []
            self._lines += not line.frame
        samples = self._read(line, live=live)
        if samples:
            self._matched += not line.frame and not line.partial
            self._steps += samples[0].kind is Kind.STEP
        return samples

    def _seen_as_state(self, line: RawLine) -> bool:
        """A bar's last state is handed out once as a state and once more as the line it collapsed to."""
        offset, text = self._last_state
        if line.frame:
            self._last_state = (line.offset, line.text)
            return False
        return line.text == text and line.offset <= offset < line.end_offset

    def _read(self, line: RawLine, *, live: bool) -> list[Sample]:
        text = line.text
        if not line.partial and (checkpoint := read_checkpoint(text)) is not None:
            return [self._checkpoint(checkpoint, line)]
        formats = self._in_order(text)
        first = next(formats, None)
        if first is None:
            return []
        start, rank = skip_prefix(text)
        found = self._match(chain((first,), formats), text, start, line.partial)
        if found is None:
            return []
        sample = self._sample(*found, line, rank, live=live)
        return [sample] if sample is not None else []

    # Which format

    def _in_order(self, text: str) -> Iterator[Format]:
        """Yield the formats that a line may be of, the one in use first: mostly the others need not be asked."""
        current = self._format
        if current is not None and is_candidate(current, text):
            yield current
        for fmt in FORMATS if self._fixed is None else (self._fixed,):
            if fmt is not current and is_candidate(fmt, text):
                yield fmt

    def _match(self, formats: Iterable[Format], text: str, start: int, partial: bool) -> tuple[Format, Reading] | None:
        for fmt in formats:
            if (reading := self._try(fmt, text, start, partial)) is not None:
                return (fmt, reading) if self._choose(fmt, reading) else None
        return None

    def _try(self, fmt: Format, text: str, start: int, partial: bool) -> Reading | None:
        reading = read(fmt, text, start)
        if reading is None or (partial and not reading.rule.bar):
            return None
        return reading if not reading.rule.unlabelled or self._is_training(reading) else None

    def _choose(self, fmt: Format, reading: Reading) -> bool:
        """Whether a line of this format counts, changing the current format where it should."""
        is_step = reading.rule.kind is Kind.STEP
        if self._format is None or fmt is self._format:
            if is_step:
                self._format, self._rival = fmt, ("", 0)
            return True
        if not is_step:
            return False
        name, count = self._rival
        self._rival = (fmt.name, count + 1 if name == fmt.name else 1)
        if self._rival[1] < SWITCH_AFTER:
            return False
        self._format, self._rival = fmt, ("", 0)
        self._arrivals = Arrivals()
        return True

    def _is_training(self, reading: Reading) -> bool:
        """Whether an unlabelled bar is that of the training."""
        step, total = int(reading.fields.get("step", 0)), int(reading.fields.get("total", 0))
        if step <= 0 or step > total:
            return False  # nothing was done yet
        if self._total is not None:
            return total == self._total
        if self._bar is not None and (self._bar_proven or total == self._bar[1]):
            return total == self._bar[1]
        if self._fixed is not None:
            return True
        per_s = reading.fields.get("steps_per_s")
        if per_s is None and "step_s" not in reading.fields:
            return False
        return total >= UNPROVEN_BAR_STEPS and (per_s or 0.0) <= UNPROVEN_BAR_RATE

    # Samples

    def _checkpoint(self, found: CheckpointLine, line: RawLine) -> Sample:
        step = found.step
        if step is None and self._format is not None and self._format.checkpoint_at_last_step:
            step = self._last_step
        return Sample(
            kind=Kind.CKPT,
            format=self.format or "any",
            offset=line.offset,
            end_offset=line.end_offset,
            at=line.at,
            step=found.step,
            checkpoint=found.state,
            checkpoint_step=step,
        )

    def _sample(self, fmt: Format, reading: Reading, line: RawLine, rank: str | None, *, live: bool) -> Sample | None:
        kind, fields = reading.rule.kind, reading.fields
        step = int(fields["step"]) if "step" in fields else None
        if kind is Kind.STEP:
            if step is not None and not self._is_news(step, rank, reading):
                return None
            step = self._follow(fmt, reading, step)
            self._last_rank = rank
        if kind is Kind.HEADER:
            self._header.update(fields)
        if "total" in fields and (kind is Kind.HEADER or self._total is None) and not reading.rule.unlabelled:
            self._total = int(fields["total"])
        total = int(fields["total"]) if "total" in fields else self._total
        tok_s, scope = self._rate(reading, step, line, live=live)
        extra = {key: value for key, value in reading.extra.items() if math.isfinite(value)}
        if reading.rule.scope is Scope.RANK:
            extra |= {f"worker_{key}": value for key, value in fields.items() if math.isfinite(value)}
        return Sample(
            kind=kind,
            format=fmt.name,
            offset=line.offset,
            end_offset=line.end_offset,
            at=line.at,
            step=step,
            total_steps=total,
            loss=_finite(fields.get("loss")),
            loss_state=_loss_state(fmt, fields),
            tok_s=tok_s,
            scope=scope,
            lr=_finite(fields.get("lr")),
            grad_norm=_finite(fields.get("grad_norm")),
            queue_min=_finite(fields.get("queue_min")),
            queue_max=_finite(fields.get("queue_max")),
            step_s=_step_seconds(fields),
            extra=extra,
        )

    def _is_news(self, step: int, rank: str | None, reading: Reading) -> bool:
        """False for a bar that was redrawn, and for another rank's copy of a step line."""
        if reading.rule.bar and self._bar is not None and self._bar[0] == step:
            return False
        return not (rank is not None and self._last_rank not in (None, rank) and step == self._last_step)

    def _follow(self, fmt: Format, reading: Reading, step: int | None) -> int | None:
        """Note a step line, and return the step that it belongs to."""
        if reading.rule.bar and step is not None:
            self._bar = (step, int(reading.fields["total"]))
        elif step is None and fmt.step_from_bar and self._bar is not None:
            self._bar_proven = True
            step = self._bar[0]
        if step is not None:
            self._last_step = step
        return step

    # Rates

    def _rate(
        self, reading: Reading, step: int | None, line: RawLine, *, live: bool
    ) -> tuple[float | None, Scope | None]:
        if reading.rule.kind is not Kind.STEP or reading.rule.scope is Scope.RANK:
            return None, reading.rule.scope
        arrival_s = self._arrivals.step_seconds(step, line.at) if live and step is not None else None
        if not live:
            self._arrivals = Arrivals()
        stated = _finite(reading.fields.get("tok_s"))
        if "tok_s" in reading.fields:
            return stated, reading.scope if stated is not None else None
        tokens = self._tokens_per_step(reading.fields)
        seconds = _step_seconds(reading.fields) or arrival_s
        if tokens is None or not seconds:
            return None, None
        return tokens / seconds, Scope.DERIVED

    def _tokens_per_step(self, fields: dict[str, float]) -> float | None:
        if self._tokens_config is not None:
            return float(self._tokens_config)
        if (stated := self._header.get("tokens_per_step")) is not None:
            return stated
        batch = fields.get("global_batch", self._header.get("global_batch"))
        seq_len = self._header.get("seq_len")
        return batch * seq_len if batch is not None and seq_len is not None else None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _step_seconds(fields: dict[str, float]) -> float | None:
    seconds = fields.get("step_s")
    if seconds is None and (milliseconds := fields.get("step_ms")) is not None:
        seconds = milliseconds / 1000
    if seconds is None and (per_s := fields.get("steps_per_s")):
        seconds = 1 / per_s
    return seconds if seconds is not None and 0 < seconds < math.inf else None


def _loss_state(fmt: Format, fields: dict[str, float]) -> str | None:
    loss = fields.get("loss")
    if loss is None:
        return "nan" if fmt.vanished_loss_is_nan and fields.get("nan_count", 0) > 0 else None
    if math.isnan(loss) or (fmt.zero_loss_is_nan and loss == 0 and math.isnan(fields.get("grad_norm", 0.0))):
        return "nan"
    return "inf" if math.isinf(loss) else None
