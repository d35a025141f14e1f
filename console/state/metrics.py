"""Lines of a log into samples: step, loss, rate, queue, checkpoints.

Which lines are one record is decided here. What else no single line can tell, others know: `formatchoice` which format
the log has, `stepcounter` which step a line belongs to, `rates` the tokens/s where no line states them. Pure.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from console.state.checkpoints import CheckpointLine, CheckpointState, read_checkpoint
from console.state.formatchoice import FormatChoice
from console.state.formatrules import (
    Format,
    FormatError,
    Kind,
    Reading,
    Scope,
    read,
    read_more,
)
from console.state.formats import find_format
from console.state.linekind import LineKind, classify
from console.state.lines import RawLine
from console.state.prefix import label_end, skip_prefix, without_json_after
from console.state.rates import Rates, finite, step_seconds
from console.state.startup import STARTUP, read_startup
from console.state.stepcounter import StepCounter, count_of, stated_step, training_step

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

MAX_RECORD_LINES: Final = 500
"""Lines of one record that are read; what still follows is no record of a trainer."""


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
    stated_step: int | None = None
    """The step that the line itself states; within an epoch where its counter begins anew with each."""
    continues: bool = False
    """More numbers of the record whose first line came before; `step` is that record's."""
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
    eta_s: float | None = None
    """Seconds to the end, as the line states them."""
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


class _Record(msgspec.Struct):
    """A record whose further lines may follow."""

    format: Format
    reading: Reading
    line: RawLine
    rank: str | None
    live: bool
    step: int | None = None
    told: bool = False
    """Its step was handed out; what follows are more numbers of it."""
    lines: int = 1


class Parser:
    """Reads lines in the order of the log."""

    def __init__(
        self,
        format: str | Format = "auto",  # noqa: A002
        tokens_per_step: int | None = None,
        *,
        each_line: bool = False,
    ) -> None:
        """`format` is `auto`, a format's name, a regex with named groups, or a format.

        `each_line` reads each line for what it is, also where it is of another format than the log or was there before.
        Raises: FormatError.
        """
        self._named = (None if format == "auto" else find_format(format)) if isinstance(format, str) else format
        self._tokens_config = tokens_per_step
        self._each_line = each_line
        self._lines = self._matched = self._steps = 0
        self.reset()

    def reset(self) -> None:
        """Forget what was learned of the log (another run's log is read next); the counts go on."""
        self._rates = Rates(self._tokens_config)
        self._counter = StepCounter(is_named=self._named is not None)
        self._choice = FormatChoice(
            self._named,
            each_line=self._each_line,
            is_training=self._counter.is_training,
            on_switch=self._rates.forget_arrivals,
        )
        self._record: _Record | None = None
        self._last_state: tuple[int, str] = (-1, "")

    @property
    def in_record(self) -> bool:
        """Whether the line that was read last belongs to the record of a line before."""
        return self._record is not None and self._record.lines > 1

    @property
    def last_step(self) -> int | None:
        """The training step that was read last."""
        return self._counter.last

    @property
    def format(self) -> str | None:
        """The name of the format in use, or None while none is known."""
        return self._choice.format.name if self._choice.format is not None else None

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
        if self._record is not None and not line.partial:
            more = self._read_more(self._record, line, live=live)
            if more is not None:
                return more
            before = self.flush()
            return [*before, *self._read_first(line, text, live=live)]
        return self._read_first(line, text, live=live)

    def _read_first(self, line: RawLine, text: str, *, live: bool) -> list[Sample]:
        """Read a line that is no continuation of the one before."""
        if not line.partial and (checkpoint := read_checkpoint(text)) is not None:
            return [self._checkpoint(checkpoint, line), *self._step_beside(line, text, live=live)]
        start, rank = skip_prefix(text)
        text = without_json_after(text, start)
        found = self._choice.match(text, start, partial=line.partial)
        if found is None:
            return [] if line.partial else self._start_up(line, text, start)
        fmt, reading = found
        if reading.rule.opens and not line.partial:
            self._record = _Record(fmt, reading, line, rank, live)
            return self._open(self._record)
        sample = self._sample(fmt, reading, line, rank, live=live)
        return [sample] if sample is not None else []

    def _step_beside(self, line: RawLine, text: str, *, live: bool) -> list[Sample]:
        """Read the step of a line that tells of a checkpoint, too, as the log's own format writes them."""
        start, rank = skip_prefix(text)
        found = self._choice.match_own(text, start)
        if found is None:
            return []
        fmt, reading = found
        if reading.rule.kind is not Kind.STEP or reading.rule.opens:
            return []
        sample = self._sample(fmt, reading, line, rank, live=live)
        return [sample] if sample is not None else []

    def _start_up(self, line: RawLine, text: str, start: int) -> list[Sample]:
        reading = read_startup(text, start)
        if reading is None:
            return []
        sample = self._sample(STARTUP, reading, line, None, live=False)
        return [sample] if sample is not None else []

    # Records of several lines

    def _open(self, record: _Record) -> list[Sample]:
        """Hand out a record's step as soon as it is known."""
        if count_of(record.reading.fields, "step") is None:
            return []
        sample = self._sample(record.format, record.reading, record.line, record.rank, live=record.live)
        record.told = True
        record.step = sample.step if sample is not None else None
        return [sample] if sample is not None else []

    def _read_more(self, record: _Record, line: RawLine, *, live: bool) -> list[Sample] | None:
        """Read a line as one of the open record; None where it is none."""
        if record.lines >= MAX_RECORD_LINES:
            return None
        start, _ = skip_prefix(line.text)
        reading = read_more(
            record.format, record.reading.rule, line.text, label_end(record.line.text, line.text, start)
        )
        if reading is None:
            reading = read(record.format, line.text, start)
            if reading is None or not reading.rule.continues:
                return None
        record.lines += 1
        if not record.told:
            record.reading.fields = reading.fields | record.reading.fields
            record.reading.extra = reading.extra | record.reading.extra
            record.reading.scope = record.reading.scope or reading.scope
            return self._open(record)
        sample = self._more(record, reading, line, live=live)
        return [sample] if sample is not None else []

    def _more(self, record: _Record, reading: Reading, line: RawLine, *, live: bool) -> Sample | None:
        if not reading.fields and not reading.extra:
            return None
        rate = finite(reading.fields.get("tok_s"))
        alone = reading.rule.continues
        return self._build(
            record.format,
            reading,
            line if alone else msgspec.structs.replace(line, offset=record.line.offset),
            step=record.step,
            stated=None,
            rate=(rate, reading.scope if rate is not None else None),
            continues=True,
        )

    def jumped(self) -> None:
        """The next line is not the one after the last: what is known of the log's format stays."""
        self._record = None
        self._rates.forget_arrivals()
        self._counter.last = None

    def flush(self) -> list[Sample]:
        """Close the open record and return what it has not told yet."""
        record, self._record = self._record, None
        if record is None or record.told:
            return []
        sample = self._sample(record.format, record.reading, record.line, record.rank, live=record.live)
        return [sample] if sample is not None else []

    # Samples

    def _checkpoint(self, found: CheckpointLine, line: RawLine) -> Sample:
        step = found.step
        if step is None and self._choice.format is not None and self._choice.format.checkpoint_at_last_step:
            step = self._counter.last
        return Sample(
            kind=Kind.CKPT,
            format=self.format or "any",
            offset=line.offset,
            end_offset=line.end_offset,
            at=line.at,
            step=found.step,
            stated_step=found.step,
            checkpoint=found.state,
            checkpoint_step=step,
        )

    def _sample(self, fmt: Format, reading: Reading, line: RawLine, rank: str | None, *, live: bool) -> Sample | None:
        kind, stated = reading.rule.kind, stated_step(reading.fields)
        step = training_step(reading, stated)
        if kind is Kind.STEP:
            if step is not None and not self._counter.is_news(step, rank, reading) and not self._each_line:
                return None
            step = self._counter.follow(fmt, reading, step, rank)
        if kind is Kind.HEADER:
            self._rates.learn(reading)
        self._counter.learn_total(fmt, reading)
        rate = self._rates.of(reading, step, line.at, live=live)
        return self._build(fmt, reading, line, step=step, stated=stated, rate=rate)

    def _build(
        self,
        fmt: Format,
        reading: Reading,
        line: RawLine,
        *,
        step: int | None,
        stated: int | None,
        rate: tuple[float | None, Scope | None],
        continues: bool = False,
    ) -> Sample:
        fields = reading.fields
        extra = {key: value for key, value in reading.extra.items() if math.isfinite(value)}
        of_worker = reading.rule.scope is Scope.RANK
        if of_worker:
            extra |= {f"worker_{key}": value for key, value in fields.items() if math.isfinite(value)}
        return Sample(
            kind=reading.rule.kind,
            format=fmt.name,
            offset=line.offset,
            end_offset=line.end_offset,
            at=line.at,
            step=step,
            stated_step=stated,
            continues=continues or reading.rule.continues,
            total_steps=self._counter.total(fmt, reading),
            loss=finite(fields.get("loss")) if not of_worker else None,
            loss_state=_loss_state(fmt, fields) if not of_worker else None,
            tok_s=rate[0],
            scope=rate[1],
            lr=finite(fields.get("lr")),
            grad_norm=finite(fields.get("grad_norm")),
            queue_min=finite(fields.get("queue_min")),
            queue_max=finite(fields.get("queue_max")),
            step_s=step_seconds(fields),
            eta_s=finite(fields.get("eta_s")),
            extra=extra,
        )


def _loss_state(fmt: Format, fields: dict[str, float]) -> str | None:
    loss = fields.get("loss")
    if loss is None:
        return "nan" if fmt.vanished_loss_is_nan and fields.get("nan_count", 0) > 0 else None
    if math.isnan(loss) or (fmt.zero_loss_is_nan and loss == 0 and math.isnan(fields.get("grad_norm", 0.0))):
        return "nan"
    return "inf" if math.isinf(loss) else None
