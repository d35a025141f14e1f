"""Everything that is known of one target, as one frozen value.

Only the shape lives here, with the conversions between the host's clocks and the console's. `machine` alone makes new
ones; `health`, `verdict` and `snapshot` read them. Pure.
"""

from __future__ import annotations

from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from console import config, protocol
from console.model import LinkState, PastRun, Stage
from console.state.baseline import Baseline
from console.state.cudaorder import cuda_order
from console.state.events import LogLine
from console.state.launch import Launch
from console.state.symptoms import Download
from console.state.training import Training


class Clock(Struct, frozen=True, kw_only=True):
    """How the host's clocks relate to the console's."""

    bt_offset: float | None = None
    """Console clock minus the host's CLOCK_BOOTTIME."""
    wall_offset: float | None = None
    """Host's wall clock minus the console's clock."""
    best_rtt_s: float | None = None

    def at(self, bt: float | None) -> float | None:
        return None if bt is None or self.bt_offset is None else bt + self.bt_offset

    def bt(self, at: float | None) -> float | None:
        return None if at is None or self.bt_offset is None else at - self.bt_offset

    def at_wall(self, wall: float | None) -> float | None:
        return None if wall is None else wall - (self.wall_offset or 0.0)


class LinkFacts(Struct, frozen=True, kw_only=True):
    state: LinkState = LinkState.CONNECTING
    rtt_s: float | None = None
    last_word_at: float | None = None
    attempt: int = 0
    retry_at: float | None = None
    reason: str | None = None
    detail: str = ""
    label: str = ""
    log_lost: str | None = None
    """Why the connection of the log alone is down; None while it isn't."""
    log_lost_at: float | None = None


class HostFacts(Struct, frozen=True, kw_only=True):
    boot: str = ""
    booted_wall: float | None = None
    said: protocol.StateEvent | None = None
    """The host's last word on what runs."""
    said_boot: str = ""
    is_fresh: bool = False
    """It was said over the link that is up now."""
    runs: tuple[protocol.RunRecord, ...] = ()
    """Older runs, newest first, as last sent."""


class Subject(Struct, frozen=True, kw_only=True):
    """The run that the console speaks of: one of our records, or one that was started by hand."""

    key: str
    record: protocol.RunRecord | None = None
    hand: protocol.HandRun | None = None
    hand_start_bt: float | None = None
    is_gone: bool = False
    """A hand-started run that was there and is not any more."""
    gone_bt: float | None = None

    @property
    def is_own(self) -> bool:
        return self.record is not None

    @property
    def name(self) -> str:
        if self.record is not None:
            return self.record.name or self.record.replaced_name or self.record.id
        return self.hand.matched if self.hand is not None else ""

    @property
    def log(self) -> protocol.LogIdent | None:
        return self.record.log if self.record is not None else self.hand.log if self.hand is not None else None

    @property
    def main(self) -> protocol.ProcId | None:
        return self.record.main if self.record is not None else self.hand.main if self.hand is not None else None


class Follow(Struct, frozen=True, kw_only=True):
    """The log that is being followed for the subject."""

    id: int
    path: str
    began_at: float


class LogFacts(Struct, frozen=True, kw_only=True):
    event: protocol.LogEvent | None = None
    sized: protocol.LogEvent | None = None
    """The last word that told a size: an unreadable or a missing file has none."""
    at: float | None = None
    grew_at: float | None = None
    tail: tuple[LogLine, ...] = ()
    first_error: LogLine | None = None
    lines_at_cuda: int | None = None
    """Lines read when CUDA was complete: those before are the loading's."""
    done: LogLine | None = None
    """The line by which the trainer says that it is done, where no step followed it."""
    done_at: float | None = None
    """When that was first read."""
    download: Download | None = None
    """The download that the newest line shows, where it is not complete."""
    recompile: LogLine | None = None
    """The first line that says that dynamo has stopped compiling."""
    recompile_at: float | None = None
    """When it was written; None where nobody saw that."""
    mishap: str = ""
    """`truncated` or `rotated`: what happened last to the file, at `mishap_at`."""
    mishap_at: float | None = None
    is_catching_up: bool = False
    """The link was away: what comes now was written meanwhile, nobody saw when."""

    is_unread: bool = False
    """What stood in it when it was asked for last is still being read: how the run does can't be told from it yet."""

    @property
    def has_caught_up(self) -> bool:
        return not self.is_unread and self.has_reached_end

    @property
    def has_reached_end(self) -> bool:
        event = self.event
        return event is not None and event.size is not None and event.offset + event.n >= event.size


class GpuFacts(Struct, frozen=True, kw_only=True):
    event: protocol.GpusEvent | None = None
    at: float | None = None
    peaks: dict[int, int] = {}
    """Highest use of each GPU while this run lived."""
    saw_fewer: bool = False
    """Over the link that is up now, this run was seen with fewer contexts than it wants: we see the last one come."""
    stepping_w: tuple[float, ...] = ()
    """Mean board draw of the run's GPUs while steps came, newest last: what work looks like."""
    since: dict[str, float] = {}
    """Since when each condition that must last has held: see gpunotes.lasting."""
    busy: dict[int, float] = {}
    """Percent busy, smoothed over half a minute."""


class OutsideFacts(Struct, frozen=True, kw_only=True):
    """What the host itself says, from outside of the container."""

    event: protocol.OutsideEvent | None = None
    """None: there is no helper, or none any more."""
    at: float | None = None
    why: str = ""
    """Why there is none."""
    kernel: tuple[protocol.KernelNote, ...] = ()
    """The notes of the kernel log, also of a helper that is gone: what has happened has happened."""
    oom_rose_bt: float | None = None
    """When the container's own count of kills for want of memory was last seen to rise."""
    oom_rise: int = 0
    ran_key: str = ""
    ran: frozenset[int] = frozenset()
    """Pids, as seen inside, that the subject of this key has had."""


class ProcFacts(Struct, frozen=True, kw_only=True):
    event: protocol.ProcsEvent | None = None
    at: float | None = None
    stopped: tuple[protocol.WireProcess, ...] = ()
    """Those of the run that are stopped (state T) or held by a debugger (t)."""
    stopped_since_at: float | None = None
    stop_was_seen: bool = False
    """They were seen to run before; else they may have been stopped for long when we came."""
    resumed_at: float | None = None
    """When the last of them went on: what happened before says nothing of its pace."""


class HostWarning(Struct, frozen=True, kw_only=True):
    at: float
    reason: str
    detail: str


class History(Struct, frozen=True, kw_only=True):
    """What is known of earlier runs (events.HistoryKnown)."""

    usual_s: dict[Stage, float] = {}
    longest_s: dict[Stage, float] = {}
    launches: int = 0
    good: PastRun | None = None
    baseline: Baseline = Baseline()


class TargetState(Struct, frozen=True, kw_only=True):
    name: str
    target: config.Target
    operator: str = ""
    origin: str = ""
    read_only: bool = False
    at: float = 0.0
    """The newest time that was told; time never goes back."""
    link: LinkFacts = LinkFacts()
    clock: Clock = Clock()
    host: HostFacts = HostFacts()
    subject: Subject | None = None
    launch: Launch | None = None
    seen_at: float | None = None
    """When this subject was first seen."""
    follow: Follow | None = None
    follows: int = 0
    head_asked: bool = False
    """ReadHead was sent over the link that is up now."""
    log: LogFacts = LogFacts()
    training: Training = Training()
    gpus: GpuFacts = GpuFacts()
    procs: ProcFacts = ProcFacts()
    outside: OutsideFacts = OutsideFacts()
    history: History = History()
    warnings: tuple[HostWarning, ...] = ()
    alarm: str | None = None
    """What the bell was last rung for; None before the host's first word."""


def expected_gpus(state: TargetState) -> int | None:
    """How many GPUs the run must open: what the config says, else what the host lists."""
    if state.target.gpus.expected is not None:
        return state.target.gpus.expected
    said = state.gpus.event
    if said is not None and said.cuda_env is not None and "MIG-" in said.cuda_env.get("CUDA_VISIBLE_DEVICES", ""):
        order = cuda_order(said.gpus, said.cuda_env)  # CUDA sees those that are named, and no others
        return len(order.indices) + len(order.parts) or None
    record = state.subject.record if state.subject is not None else None
    if record is not None and record.cuda is not None and record.cuda.expected is not None:
        return record.cuda.expected
    return len(state.gpus.event.gpus) if state.gpus.event is not None and state.gpus.event.gpus else None


def is_this_boot(state: TargetState, record: protocol.RunRecord) -> bool:
    """Whether the record is from the time since the host's last start; its `*_bt` mean nothing here otherwise."""
    return not record.boot or not state.host.boot or record.boot == state.host.boot


def record_at(state: TargetState, record: protocol.RunRecord, bt: float | None) -> float | None:
    """A time of a record on the console's clock, also for a record from before the host restarted."""
    if bt is None:
        return None
    if is_this_boot(state, record) and state.clock.bt_offset is not None:
        return state.clock.at(bt)
    accepted = state.clock.at_wall(record.accepted_wall or None)
    return None if accepted is None else accepted + bt - record.accepted_bt


def run_power_w(state: TargetState) -> float | None:
    """Mean board draw of the GPUs that the run holds a context on (all of them where that isn't told)."""
    if state.gpus.event is None:
        return None
    ours = [gpu for gpu in state.gpus.event.gpus if gpu.context] or list(state.gpus.event.gpus)
    draws = [gpu.power_mw / 1000 for gpu in ours if gpu.power_mw is not None]
    return sum(draws) / len(draws) if draws else None


def deadline_s(deadlines: config.Deadlines, stage: Stage) -> float:
    match stage:
        case Stage.KILLING:
            return deadlines.killing
        case Stage.CACHE:
            return deadlines.cache
        case Stage.SPAWNED:
            return deadlines.spawned
        case Stage.CUDA:
            return deadlines.cuda
        case Stage.STEPPING:
            return deadlines.stepping
        case _:
            assert_never(stage)


def heard(state: TargetState) -> TargetState:
    """The host has been heard of."""
    return replace(state, link=replace(state.link, last_word_at=state.at))
