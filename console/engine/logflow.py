"""One run's log as it arrives: bytes into lines, samples and series, with the place to resume from.

Lines are shown first and understood later (`show`, `understand`): what they mean takes ten times as long to find out.
Knows nothing of connections: it says which operation to send (`follow_operation`) and takes what comes back (`take`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from console import formatfile
from console.bounded import given_up
from console.config import Metrics
from console.protocol import LogEvent, LogFollow
from console.state.formatrules import Format, Kind, Scope
from console.state.lazy import lazy
from console.state.lines import LineSplitter, RawLine
from console.state.logbuffer import LogBuffer
from console.state.metrics import Parser, Sample
from console.state.series import Series

FINGERPRINT_BYTES = 1024
WHOLE_BYTES = 3 << 20
"""A log up to this size is read whole; of a longer one the head, the end, and pieces between."""
HEAD_BYTES = 1 << 18  # enough for the start-up lines and the first steps of any trainer in the format table
TAIL_BYTES = 1 << 18  # about 2,500 step lines; what is scrolled to beyond them is asked of the host
LAST_BYTES = 1 << 19
"""Of the log of a run that is over: between its first error and its end its ranks may have said a lot."""
PIECES = 96  # a plot is some 60 to 100 cells wide
PIECE_BYTES = 2048  # some ten step lines: their lowest and highest are drawn
CREDIT_BYTES = 256 * 1024  # at 2 MB/s a full credit is 0.13 s of link time
_SHARDS = lazy(r"(?P<what>[A-Z][\w .-]{2,40}?):\s+(?P<pct>\d{1,3})%\|.*?\|\s*(?P<have>\d+)/(?P<want>\d+)")

MAIN_SERIES = ("tok_s", "loss", "queue")
NAMED_MAX = 32
"""Further numbers of the step lines that are kept for a plot; a trainer may write hundreds."""
_NAMED_POINTS = 1024
_NAMED_RECENT = 64

_STRIDE = 8
"""Lines between two looks at the clock: half a millisecond of step lines."""

Clock = Callable[[RawLine], float | None]
"""A line -> when it was written, console wall clock; None where nobody knows."""


@dataclass(slots=True)
class Shown:
    """A chunk whose lines are in the buffer, and what is needed to understand them later."""

    event: LogEvent
    now: float
    came_bytes: int
    lines: list[RawLine] = field(default_factory=list)
    live_from: int = 0
    """Index of the first line that was written while we watched; those before it are history."""
    timed: list[bool] = field(default_factory=list)
    """For each line of history whether somebody knows when it was written."""
    unfinished: RawLine | None = None
    first_number: int = 0
    """That of its first line in the buffer."""
    history_until: int | None = None
    has_jumped: bool = False
    """Bytes were left out before it."""
    understood: int = 0
    """Lines of it that were understood."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a part of the log brought; one that spans the place where history ends brings both kinds."""

    history: tuple[Sample, ...] = ()
    """Of lines written before we came."""
    live: tuple[Sample, ...] = ()
    lines: tuple[RawLine, ...] = ()
    """The lines that it stands for, the overwritten states of bars left out."""
    first_number: int = 0
    """That of the first of them in the buffer."""
    read_until: int = 0
    """Byte offset."""
    is_whole: bool = True
    """Nothing of the chunk is left to be understood."""
    phase: str = ""

    @property
    def samples(self) -> tuple[Sample, ...]:
        return self.history + self.live


@dataclass(slots=True)
class LogFlow:
    """State of following one log file."""

    metrics: Metrics
    buffer: LogBuffer
    series: dict[str, Series]
    path: str = ""
    pid: int | None = None
    dev: int | None = None
    inode: int | None = None
    history_until: int | None = None
    """Bytes before this were written before we came: their arrival tells nothing. None until the first word of it."""
    _before: bytes = b""
    _splitter: LineSplitter = field(default_factory=LineSplitter)
    _format: str | Format = field(init=False)
    _parser: Parser = field(init=False)
    _told_given_up: bool = False

    def __post_init__(self) -> None:
        self._format = formatfile.resolve(self.metrics.format)
        self._parser = Parser(self._format, self.metrics.tokens_per_step)

    # -- where to go on -----------------------------------------------------------------------------------------------

    def begin(self, path: str, pid: int | None) -> None:
        """Forget the last log; another run's is read next."""
        self.path, self.pid, self.dev, self.inode = path, pid, None, None
        self.history_until, self._before = None, b""
        self._splitter = LineSplitter()
        self._parser = Parser(self._format, self.metrics.tokens_per_step)
        self.buffer.clear()
        for name in [name for name in self.series if not name.startswith("gpu_")]:
            del self.series[name]

    @property
    def next_offset(self) -> int:
        return self._splitter.next_offset

    @property
    def can_resume(self) -> bool:
        return self.inode is not None

    def follow_operation(self, request_id: int, *, tail_bytes: int = 0) -> LogFollow:
        """Return the operation that goes on at the exact byte, or begins: at the start or so far before the end."""
        if self.can_resume:
            return LogFollow(
                id=request_id,
                path=self.path,
                pid=self.pid,
                offset=self.next_offset,
                dev=self.dev,
                inode=self.inode,
                fingerprint=self._before.hex(),
                credit_bytes=CREDIT_BYTES,
            )
        return LogFollow(id=request_id, path=self.path, pid=self.pid, offset=-tail_bytes, credit_bytes=CREDIT_BYTES)

    # -- what comes in ------------------------------------------------------------------------------------------------

    def take_head(
        self, data: bytes, clock: Clock, now: float, *, offset: int = 0, is_last: bool = True
    ) -> tuple[Sample, ...]:
        """Read the start of a log whose middle is left out: its first steps and what its header says.

        It may come in parts that begin with a line each.
        """
        samples: list[Sample] = []
        for line in LineSplitter(offset).feed(data, offset, now):
            samples += self._history(line, clock)
        if is_last:
            self.gap()
        return tuple(samples)

    def gap(self) -> None:
        """What is read next doesn't follow on what was read: the plots don't join them."""
        for name, series in self.series.items():
            if not name.startswith("gpu_"):
                series.gap()

    def take_between(self, pieces: Iterable[tuple[int, bytes]], clock: Clock, now: float) -> None:
        """Draw what stands at some places between the head and what is followed, given in the order of the log.

        For the plots alone: nothing is learned of the run from it.
        """
        for offset, data in pieces:
            self._parser.jumped()
            for line in LineSplitter(offset, mid_line=True).feed(data, offset, now):
                if not line.partial:
                    self._history(line, clock)
        self._parser.jumped()

    def take(self, event: LogEvent, data: bytes, clock: Clock, now: float) -> Taken:
        """Take a chunk (or a pure status) of the followed file."""
        return self.understand(self.show(event, data, clock, now))

    def show(self, event: LogEvent, data: bytes, clock: Clock, now: float) -> Shown:
        """Put a chunk's lines into the buffer, a tenth of the work: who opens a log sees its newest lines at once.

        Every chunk is to be given to `understand`, in this order.
        """
        if event.state in ("truncated", "rotated"):
            self._restart(event, now)
        if self.history_until is None and event.size is not None:
            self.history_until = event.size
        if event.dev is not None:
            self.dev, self.inode = event.dev, event.inode
        shown = Shown(event, now, len(data), history_until=self.history_until, first_number=self.buffer.end)
        if not data:
            return shown
        if event.offset > self.next_offset:
            self._jump(event, now)
            shown.has_jumped = True
        elif event.offset < self.next_offset:  # sent twice: an answer that came late, and that of the next request
            data = data[self.next_offset - event.offset :]
            shown.event = event = msgspec.structs.replace(event, offset=self.next_offset, n=len(data))
        self._before = (self._before + data)[-FINGERPRINT_BYTES:]
        for line in self._splitter.feed(data, event.offset, now):
            if not self._is_live(line):
                at = clock(line)
                shown.timed.append(at is not None)
                line = line if at is None else msgspec.structs.replace(line, at=at)
            shown.lines.append(line)
        shown.live_from = len(shown.timed)
        shown.first_number = self.buffer.end
        self.buffer.append(shown.lines)
        shown.unfinished = self._splitter.live()
        self.buffer.set_live(shown.unfinished)
        return shown

    def understand(self, shown: Shown, has_time: Callable[[], bool] = lambda: True) -> Taken:
        """Read samples from what was shown, until it is done or there is no more time: then it is to be called again.

        At least `_STRIDE` lines are read.
        """
        if shown.has_jumped:
            self.gap()
            shown.has_jumped = False
        samples: dict[bool, list[Sample]] = {False: [], True: []}
        first, count = shown.understood, len(shown.lines)
        while shown.understood < count:
            index = shown.understood
            is_live = index >= shown.live_from
            samples[is_live] += self._sample(shown.lines[index], live=is_live, timed=is_live or shown.timed[index])
            shown.understood += 1
            if (shown.understood - first) % _STRIDE == 0 and not has_time():
                break
        is_whole = shown.understood == count
        unfinished = shown.unfinished if is_whole else None
        if unfinished is not None:
            is_live = shown.history_until is None or unfinished.end_offset > shown.history_until
            samples[is_live] += self._sample(unfinished, live=is_live)
        self._tell_given_up(shown.now)
        read = shown.lines[first : shown.understood]
        return Taken(
            history=tuple(samples[False]),
            live=tuple(samples[True]),
            lines=tuple(line for line in read if not line.frame),
            first_number=shown.first_number + sum(not line.frame for line in shown.lines[:first]),
            read_until=shown.event.offset + shown.event.n if is_whole else read[-1].end_offset,
            is_whole=is_whole,
            phase=self._phase(read, unfinished),
        )

    def _tell_given_up(self, now: float) -> None:
        """Say once that the format of the config is not used any more."""
        if self._told_given_up or isinstance(self._format, str) or (source := given_up(self._format)) is None:
            return
        self._told_given_up = True
        self.buffer.note(f"metrics.format takes too long on lines of this log and is not used any more: {source}", now)

    @property
    def understood(self) -> tuple[int, int, str | None]:
        """Lines seen, those of them that gave a step, and the format in use."""
        seen = self._parser.understood
        return seen.lines, seen.steps, seen.format

    def _is_live(self, line: RawLine) -> bool:
        return self.history_until is None or line.end_offset > self.history_until

    def _restart(self, event: LogEvent, now: float) -> None:
        self.buffer.append(self._splitter.reset(0))
        self.buffer.set_live(None)
        text = "was truncated" if event.state == "truncated" else "was replaced by a new file"
        self.buffer.begin_anew(f"log {text}{': ' + event.detail if event.detail else ''}", now)
        self._before, self.history_until = b"", 0  # a file that begins while we watch has no history

    def _jump(self, event: LogEvent, now: float) -> None:
        """Bytes are left out before this chunk: say so, unless it is where we begin."""
        if event.skipped_from is not None and self.can_resume:
            self.buffer.gap(event.offset - event.skipped_from, now)
        elif self.next_offset == 0:
            self.buffer.note(f"the log begins {event.offset:,} bytes above this line", now)
        self.buffer.append(self._splitter.reset(event.offset, mid_line=event.skipped_from is None))
        self._before = b""

    def _history(self, line: RawLine, clock: Clock) -> Iterable[Sample]:
        at = clock(line)
        dated = line if at is None else msgspec.structs.replace(line, at=at)
        return self._sample(dated, live=False, timed=at is not None)

    def _sample(self, line: RawLine, *, live: bool, timed: bool = True) -> Iterable[Sample]:
        samples = self._parser.feed(line, live=live)
        for sample in samples:
            self._plot(sample, timed=timed)
        return samples

    def _plot(self, sample: Sample, *, timed: bool) -> None:
        """Add a step's numbers to their series; a validation loss is never drawn as training loss."""
        if sample.kind is Kind.CKPT:
            for series in self.series.values():
                series.checkpoint(sample.checkpoint_step)
            return
        if sample.kind is Kind.EVAL and sample.loss is not None:
            step = sample.step if sample.step is not None else self._parser.last_step
            self._add("validation loss", sample, sample.loss, step, timed=timed)
        if sample.kind is not Kind.STEP and not (sample.continues and sample.kind is Kind.OTHER):
            return
        named = {
            "tok_s": sample.tok_s,
            "loss": sample.loss,
            "queue": sample.queue_min,
            "learning rate": sample.lr,
            "gradient norm": sample.grad_norm,
            "seconds per step": sample.step_s,
            **(sample.extra if sample.scope is not Scope.RANK or sample.tok_s is not None else {}),
        }
        for name, value in named.items():
            if value is not None:
                self._add(name, sample, value, sample.step, timed=timed)

    def _add(self, name: str, sample: Sample, value: float, step: int | None, *, timed: bool) -> None:
        series = self.series.get(name)
        if series is None:
            if name not in MAIN_SERIES and sum(not one.startswith("gpu_") for one in self.series) >= NAMED_MAX:
                return
            small = name not in MAIN_SERIES
            series = Series(_NAMED_POINTS, recent=_NAMED_RECENT) if small else Series()
            self.series[name] = series
        series.untimed = series.untimed or not timed
        series.add(sample.at, value, step, sample.scope if name == "tok_s" else None)

    @staticmethod
    def _phase(lines: list[RawLine], live: RawLine | None) -> str:
        """Return what the newest progress bar says is being loaded, such as `Loading checkpoint shards 5/12 42 %`."""
        newest = [*lines[-3:], *([live] if live else [])]
        for line in reversed(newest):
            if found := _SHARDS.search(line.text):
                return f"{found['what']} {found['have']}/{found['want']} {found['pct']} %"
        return ""
