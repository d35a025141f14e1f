"""What the machine is told (events, past tense) and what it asks for (effects, imperative).

Only frozen structs live here. The engine is the only maker of events and the only one to carry effects out.

`at` is the console's clock at which the event was received. It must come from a clock that doesn't jump (the wall
clock read once, plus a monotonic one that also counts suspended time), since ages are differences of it. Times named
`*_bt` are the host's CLOCK_BOOTTIME, untouched; the machine converts them by what LinkWentUp and LinkRtt say.

What comes from a log carries the `follow` of the FollowLog effect that asked for it: bytes of a log that is no longer
followed prove nothing about the run that is watched now.
"""

from __future__ import annotations

from msgspec import Struct

from console import protocol
from console.model import PastRun, Stage
from console.state.baseline import Baseline
from console.state.metrics import Sample

# -- the link ---------------------------------------------------------------------------------------------------------


class LinkWentUp(Struct, frozen=True, kw_only=True):
    """A Hello has come over the control connection: its `bt`, `wall`, `boot`, `booted_wall`."""

    at: float
    bt: float
    wall: float
    boot: str
    booted_wall: float | None = None
    rtt_s: float | None = None
    label: str = ""


class LinkWentDown(Struct, frozen=True, kw_only=True):
    """The control connection broke or could not be made; sent again for each failed attempt."""

    at: float
    reason: str
    detail: str = ""
    attempt: int = 0
    retry_at: float | None = None
    """None: refused, not tried again by itself."""
    held: bool = False
    """The attempt stays open and goes on by itself: a frozen container."""


class BulkWentDown(Struct, frozen=True, kw_only=True):
    """The connection that carries the log is gone, control goes on; the next LogSaid says that it is back."""

    at: float
    detail: str = ""


class LinkRtt(Struct, frozen=True, kw_only=True):
    """A Pong has come: the host's clocks and how long the round trip took."""

    at: float
    rtt_s: float
    bt: float
    wall: float


# -- what the host says -----------------------------------------------------------------------------------------------


class HostSaid(Struct, frozen=True, kw_only=True):
    at: float
    state: protocol.StateEvent


class ProcsSaid(Struct, frozen=True, kw_only=True):
    at: float
    procs: protocol.ProcsEvent


class GpusSaid(Struct, frozen=True, kw_only=True):
    at: float
    gpus: protocol.GpusEvent


class OutsideSaid(Struct, frozen=True, kw_only=True):
    """The helper on the host itself, outside of the container, has spoken."""

    at: float
    outside: protocol.OutsideEvent


class OutsideLost(Struct, frozen=True, kw_only=True):
    """There is no helper on the host (any more), and why: what it said last holds no longer."""

    at: float
    detail: str


class HostWarned(Struct, frozen=True, kw_only=True):
    at: float
    warn: protocol.Warn


# -- the log of the run that is watched -------------------------------------------------------------------------------


class LogLine(Struct, frozen=True):
    """A line as the splitter cleaned it, and the byte offset of its start."""

    offset: int
    text: str


class LogSaid(Struct, frozen=True, kw_only=True):
    """A LogEvent of the bulk connection, its bytes left out."""

    at: float
    follow: int
    log: protocol.LogEvent


class SamplesSeen(Struct, frozen=True, kw_only=True):
    """What the parser made of lines, in the log's order; sent for lines without a sample, too, for the counts.

    `live` is False for what stood in the log before it was followed: its arrival tells nothing of when it was written.
    """

    at: float
    follow: int
    samples: tuple[Sample, ...] = ()
    live: bool = True
    dated: bool = False
    """Each sample's `at` is when its line was written, by the flight recorder: as good as having watched."""
    after_gap: bool = False
    """Much between the log's start and these lines was not read: the run's first steps may stand there."""
    format: str | None = None
    lines_seen: int = 0
    """Lines read since the follow began, and those of them that gave a step (Parser.understood, minus its start)."""
    lines_understood: int = 0


class PhaseSeen(Struct, frozen=True, kw_only=True):
    """What the log says it does before the first step: the newest live or loading line, cleaned."""

    at: float
    follow: int
    text: str


class LogTail(Struct, frozen=True, kw_only=True):
    """The newest lines of the log, at most 400, for the diagnosis; replaces the tail before.

    Sent when a line of kind error has come, and when the run is over or the log has gone silent; at most 4 a second.
    """

    at: float
    follow: int
    lines: tuple[LogLine, ...]
    first_error: LogLine | None = None
    """The first error line since the last step, where it has left `lines`."""


class LinesNoted(Struct, frozen=True, kw_only=True):
    """Lines whose meaning lasts beyond the tail (`lasting.is_noteworthy`), as they are read."""

    at: float
    follow: int
    lines: tuple[LogLine, ...]
    live: bool = True


class HistoryRead(Struct, frozen=True, kw_only=True):
    """All that stood in the log when it was asked for has been told, or there is none; sent once each time it is asked.

    Before that the newest step that is known is just the newest one that was read so far.
    """

    at: float
    follow: int


class StepTime(Struct, frozen=True):
    step: int
    bt: float


class StepTimesKnown(Struct, frozen=True, kw_only=True):
    """When steps were written: from their places and the flight recorder's notes of how the log grew.

    The answer to ReadHead; `first` are the two steps that it named, None where the notes don't reach them (the keeper
    was lost). A console opened late learns so, and shows the same times as one that watched.
    """

    at: float
    run: str
    first: tuple[StepTime, StepTime] | None = None
    last: StepTime | None = None
    grew_bt: float | None = None
    """When the log last grew."""


# -- from the console's side ------------------------------------------------------------------------------------------


class HistoryKnown(Struct, frozen=True, kw_only=True):
    """What past launches of the same kind (cache cleared or kept) say: medians and the longest, in seconds.

    A baseline without a rate leaves the one that is known.
    """

    at: float
    usual_s: dict[Stage, float] = {}
    longest_s: dict[Stage, float] = {}
    launches: int = 0
    """How many launches that reached stepping the figures are from."""
    good: PastRun | None = None
    """The last run before the one that is spoken of that reached stepping."""
    baseline: Baseline = Baseline()


class BaselineChosen(Struct, frozen=True, kw_only=True):
    """The operator compares with this from now on; where it has no rate, with nothing."""

    at: float
    baseline: Baseline


class ConsoleWarned(Struct, frozen=True, kw_only=True):
    """Something on the console's own side that a person should know; the host has no part in it."""

    at: float
    reason: str
    detail: str = ""


class Tick(Struct, frozen=True, kw_only=True):
    """Time has passed. Once a second; deadlines and health move on by it."""

    at: float


Event = (
    LinkWentUp
    | LinkWentDown
    | BulkWentDown
    | LinkRtt
    | HostSaid
    | ProcsSaid
    | GpusSaid
    | OutsideSaid
    | OutsideLost
    | HostWarned
    | LogSaid
    | SamplesSeen
    | PhaseSeen
    | LogTail
    | LinesNoted
    | HistoryRead
    | StepTimesKnown
    | HistoryKnown
    | BaselineChosen
    | ConsoleWarned
    | Tick
)


# -- effects ----------------------------------------------------------------------------------------------------------


class FollowLog(Struct, frozen=True, kw_only=True):
    """Follow this file instead of any other, and mark all that comes from it with `follow`.

    `from_start`: the run is young, so its whole log is wanted; else the newest part is enough. With the link down the
    effect holds: it is carried out as soon as the bulk connection is up, and again after each reconnect.
    """

    follow: int
    path: str
    pid: int | None
    from_start: bool
    run: str
    """Key of the run: its id, or `hand:PID/START`."""


class StopFollowing(Struct, frozen=True, kw_only=True):
    follow: int


class ReadHead(Struct, frozen=True, kw_only=True):
    """Find out by the run's flight recorder when its first two steps were written: answered with StepTimesKnown."""

    run: str
    path: str
    steps: tuple[int, int]
    ends: tuple[int, int]
    """Where the lines of both end in the log."""


class RingBell(Struct, frozen=True, kw_only=True):
    """Something failed while we watched: one bell, and the pane's title."""

    verdict: str
    title: str


Effect = FollowLog | StopFollowing | ReadHead | RingBell
