"""A target's story told in events: the host's words, GPUs and log lines, at times that the story sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from console import config, protocol
from console.model import Snapshot, Stage, StageState, StageStatus, Verdict
from console.protocol import CudaRecord, ExitRecord, HandRun, HostStage, LogIdent, ProcId, RunRecord
from console.state import events, machine
from console.state.formatrules import Kind, Scope
from console.state.metrics import CheckpointState, Sample
from console.state.outcome import Outcome, judge
from console.state.snapshot import snapshot
from console.state.target import TargetState

T0 = 1_800_000_000.0
BT0 = 50_000.0
BOOT = "b00t/17"
LOG = "/workspace/train_slammed6.log"
GIB = 1024**3


def gpu(index: int, **fields: Any) -> protocol.WireGpu:
    known: dict[str, Any] = {
        "used": 71 * GIB,
        "total": 140 * GIB,
        "util": 97,
        "power_mw": 612_000,
        "limit_mw": 700_000,
        "context": True,
        "owner": "run",
    }
    return protocol.WireGpu(i=index, **(known | fields))


def sample(step: int, **fields: Any) -> Sample:
    known: dict[str, Any] = {
        "kind": Kind.STEP,
        "format": "dflash",
        "offset": step * 100,
        "end_offset": step * 100 + 40,
        "at": 0.0,
        "loss": 1.2,
    }
    return Sample(step=step, **(known | fields))


def done(began_bt: float, took_s: float, evidence: str, detail: str = "") -> HostStage:
    return HostStage(state="done", began_bt=began_bt, ended_bt=began_bt + took_s, evidence=evidence, detail=detail)


@dataclass
class Story:
    """Time is `now` seconds after the beginning, on both clocks."""

    target: config.Target = field(
        default_factory=lambda: config.Target(gpus=config.Gpus(expected=8), metrics=config.Metrics(baseline=14_500))
    )
    now: float = 0.0
    effects: list[events.Effect] = field(default_factory=list)
    is_read_at_once: bool = True
    """What stands in the log is read as soon as the host has spoken."""
    record: RunRecord = field(
        default_factory=lambda: RunRecord(
            id="r-6",
            name="slammed6",
            boot=BOOT,
            state="accepted",
            operator="ops1",
            accepted_bt=BT0,
            accepted_wall=T0,
            replaced_id="r-5",
            replaced_name="slammed5",
            keeper=ProcId(pid=100, start=1),
            keeper_alive=True,
        )
    )

    def __post_init__(self) -> None:
        self.state: TargetState = machine.start("ct200", self.target, operator="ops1", origin="jump")
        self.lines = 0

    # -- telling ------------------------------------------------------------------------------------------------------

    @property
    def at(self) -> float:
        return T0 + self.now

    @property
    def bt(self) -> float:
        return BT0 + self.now

    def tell(self, event: events.Event) -> Story:
        self.state, effects = machine.step(self.state, event)
        self.effects += effects
        return self

    def after(self, seconds: float) -> Story:
        self.now += seconds
        return self

    def ticks(self, seconds: float) -> Story:
        for _ in range(round(seconds)):
            self.after(1.0).tell(events.Tick(at=self.at))
        return self

    def up(self, boot: str = BOOT) -> Story:
        event = events.LinkWentUp(at=self.at, bt=self.bt, wall=self.at, boot=boot, booted_wall=T0 - BT0, rtt_s=0.0)
        return self.tell(event)

    def down(self, reason: str = "link_lost", retry_in_s: float | None = 8.0, attempt: int = 1) -> Story:
        retry = self.at + retry_in_s if retry_in_s is not None else None
        return self.tell(events.LinkWentDown(at=self.at, reason=reason, detail="cut", attempt=attempt, retry_at=retry))

    def said(self, record: RunRecord | None, **fields: Any) -> Story:
        state = protocol.StateEvent(bt=self.bt, wall=self.at, run=record, **fields)
        self.tell(events.HostSaid(at=self.at, state=state))
        log = self.state.log
        return self.read() if self.is_read_at_once and log.is_unread and not log.is_catching_up else self

    def read(self) -> Story:
        """The log's end is reached."""
        return self.tell(events.HistoryRead(at=self.at, follow=self.follow_id()))

    def host(self, **changes: Any) -> Story:
        self.record = replace(self.record, **changes)
        return self.said(self.record)

    def hand(self, *, last: tuple[RunRecord, ...] = (), **fields: Any) -> Story:
        known: dict[str, Any] = {
            "main": ProcId(pid=84941, start=77),
            "argv": ("python", "-u", "train.py"),
            "matched": "train.py",
            "age_s": 8160.0,
            "session": "session-12.scope",
            "log": LogIdent(path="/workspace/hand.log", inode=9),
        }
        return self.said(None, hand=(HandRun(**(known | fields)),), last=last)

    def journal(self, stage: Stage, entry: HostStage, state: str) -> Story:
        return self.host(stages={**self.record.stages, str(stage): entry}, state=state)

    def gpus(self, contexts: int = 8, count: int = 8, **fields: Any) -> Story:
        listed = tuple(gpu(i, **({"context": i < contexts} | fields)) for i in range(count))
        event = protocol.GpusEvent(bt=self.bt, source="nvml", rule="nvml pid in tree", gpus=listed)
        return self.tell(events.GpusSaid(at=self.at, gpus=event))

    def procs(self, *states: str, main: str = "S", cores: float | None = None, writes: str = "") -> Story:
        """Tell of the run's processes: its main one and one for each of `states`."""
        pids = [(84933, 9, main), *((85000 + index, 10 + index, state) for index, state in enumerate(states))]
        seen = tuple(
            protocol.WireProcess(pid=pid, start=start, argv=("python", "train.py"), state=state)
            for pid, start, state in pids
        )
        event = protocol.ProcsEvent(
            bt=self.bt, procs=seen, cpu_cores=cores, writes=writes, writes_pid=84933 if writes else None
        )
        return self.tell(events.ProcsSaid(at=self.at, procs=event))

    def bulk_down(self, detail: str = "the agent ended") -> Story:
        return self.tell(events.BulkWentDown(at=self.at, detail=detail))

    def noted(self, *texts: str, live: bool = True) -> Story:
        lines = tuple(events.LogLine(number, text) for number, text in enumerate(texts))
        return self.tell(events.LinesNoted(at=self.at, follow=self.follow_id(), lines=lines, live=live))

    def follow_id(self) -> int:
        assert self.state.follow is not None
        return self.state.follow.id

    def log(self, size: int = 0, state: str = "following", n: int = 0, *, full: bool = False) -> Story:
        event = protocol.LogEvent(
            bt=self.bt, path=LOG, state=state, offset=size - n, size=size, n=n, inode=5, full=full
        )
        return self.tell(events.LogSaid(at=self.at, follow=self.follow_id(), log=event))

    def samples(self, *samples: Sample, live: bool = True, lines: int | None = None) -> Story:
        self.lines += len(samples) if lines is None else lines
        self.tell(
            events.SamplesSeen(
                at=self.at,
                follow=self.follow_id(),
                samples=samples,
                live=live,
                format="dflash" if samples else None,
                lines_seen=self.lines,
                lines_understood=len(samples),
            )
        )
        return self.read() if self.is_read_at_once and self.state.log.is_unread else self

    def steps(self, first: int, last: int, *, every_s: float = 2.0, tok_s: float = 21_500.0, **fields: Any) -> Story:
        for step in range(first, last + 1):
            self.after(every_s).samples(sample(step, tok_s=tok_s, scope=Scope.GLOBAL, **fields)).gpus()
        return self

    def checkpoint(self, step: int, state: CheckpointState = CheckpointState.COMPLETED) -> Story:
        found = Sample(
            kind=Kind.CKPT,
            format="dflash",
            offset=step * 100 + 50,
            end_offset=step * 100 + 90,
            at=0.0,
            checkpoint=state,
            checkpoint_step=step,
        )
        return self.samples(found)

    def tail(self, *texts: str, offset: int = 0) -> Story:
        lines = []
        for text in texts:
            lines.append(events.LogLine(offset, text))
            offset += len(text) + 1
        return self.tell(events.LogTail(at=self.at, follow=self.follow_id(), lines=tuple(lines)))

    # -- whole chapters -----------------------------------------------------------------------------------------------

    def killed(self) -> Story:
        entry = done(self.bt, 11.8, "2 pids, 574 GiB", "2 pids gone, 574 GiB freed")
        return self.after(11.8).journal(Stage.KILLING, entry, "killing")

    def cleared(self) -> Story:
        return self.journal(Stage.CACHE, done(self.bt, 0.01, "3.1 GiB set aside"), "cache")

    def spawned(self) -> Story:
        entry = done(self.bt, 0.8, "pid 84933", "pid 84933, log opened inode 5512034")
        self.after(0.8)
        self.record = replace(
            self.record,
            log=LogIdent(path=LOG, inode=5512034),
            main=ProcId(pid=84933, start=9),
            main_alive=True,
            alive=True,
            spawned_bt=self.bt - 0.8,
        )
        return self.journal(Stage.SPAWNED, entry, "running")

    def cuda(self, took_s: float = 112.0) -> Story:
        spawned = self.bt
        self.after(took_s)
        known = CudaRecord(
            contexts=tuple(range(8)), expected=8, rule="nvml pid in tree", source="nvml", first_bt=spawned + 5,
            complete_bt=self.bt,
        )  # fmt: skip
        return self.host(cuda=known).gpus()

    def launched(self) -> Story:
        return self.up().host().killed().cleared().spawned()

    def stepping(self, steps: int = 2, *, every_s: float = 2.0) -> Story:
        return self.launched().cuda().after(94.0).steps(1, steps, every_s=every_s)

    def exited(self, *, state: str = "ended", **fields: Any) -> Story:
        known: dict[str, Any] = {"ended_bt": self.bt, "lived_s": 10.0, "all_gone": True, "oom": "no"}
        end = ExitRecord(**(known | fields))
        return self.host(exit=end, state=state, alive=False, main_alive=False)

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        return snapshot(self.state, self.at)

    def verdict(self) -> Verdict:
        """A method, since mypy would hold on to what a property was found to be."""
        return self.snapshot.verdict

    def stage(self, stage: Stage) -> StageStatus:
        return next(status for status in self.snapshot.stages if status.stage is stage)

    @property
    def states(self) -> list[StageState]:
        return [status.state for status in self.snapshot.stages]

    def outcome(self, wanted: str = "stepping", **known: Any) -> Outcome:
        return judge(self.snapshot, wanted, **known)

    def effects_of(self, kind: type[events.Effect]) -> list[Any]:
        return [effect for effect in self.effects if isinstance(effect, kind)]
