"""Hand-written moments of one target, with a fake source: what the screens are looked at and tested with."""

from __future__ import annotations

import copy
import functools
import math
import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from console.config import Target
from console.engine.pastsource import PastSource, read_end
from console.history.entry import Entry, Runs
from console.history.pastview import past_series, past_snapshot
from console.history.samples import Curves
from console.model import (
    Accepted,
    Ages,
    CachePlan,
    Change,
    Changes,
    Check,
    CheckState,
    Diagnosis,
    ExitStatus,
    Fact,
    Gpu,
    GpuHolder,
    GpuNote,
    GpuPanel,
    GpuTrouble,
    LinkState,
    LinkStatus,
    Lock,
    LogState,
    LogStatus,
    Overrides,
    PastRun,
    Plan,
    Process,
    Progress,
    Queue,
    Rate,
    ReasonView,
    Run,
    Settings,
    Severity,
    Snapshot,
    Stage,
    StageState,
    StageStatus,
    Verdict,
)
from console.reasons import ConsoleError, Reason
from console.state.events import RingBell
from console.state.lines import RawLine
from console.state.logbuffer import LogBuffer
from console.state.metrics import Parser
from console.state.series import Series
from console.ui.source import Archive, LogSource, Playback

NOW = datetime(2025, 8, 20, 14, 34, 6, tzinfo=UTC).timestamp()
GIB = 1024**3
_S, _D = StageState, Stage
replace = msgspec.structs.replace


class EmptyArchive:
    """A ledger without any run."""

    async def runs(self, limit: int = 100, since: int = 0) -> Runs:
        return Runs()

    async def run(self, which: str) -> tuple[Entry, Curves]:
        raise ConsoleError(Reason.RUN_UNKNOWN, which)

    async def annotate(self, run_id: str, text: str) -> None:
        raise ConsoleError(Reason.RUN_UNKNOWN, run_id)


class NoLogs:
    """A host that can't be reached: what was read before is all there is."""

    async def _refused(self, *_: object, **__: object) -> Any:
        raise ConsoleError(Reason.NO_LINK, "there is no connection to the host now")

    lines = matching = count = files = raw = _refused


class FakeSource:
    """A source that plays back what a test puts into it, and remembers what was asked of it."""

    def __init__(
        self, snapshot: Snapshot, log: LogBuffer | None = None, series: Mapping[str, Series] | None = None
    ) -> None:
        self.snapshot = snapshot
        self.on_change: list[Callable[[], None]] = []
        self.on_lines: list[Callable[[], None]] = []
        self.log = log if log is not None else LogBuffer()
        self.logs: LogSource = NoLogs()
        self.bells: list[RingBell] = []
        self.playback: Playback | None = None
        self.archive: Archive = EmptyArchive()
        self.series: Mapping[str, Series] = series if series is not None else {}
        self.declared_env: Mapping[str, str] = {
            "DFLASH_PROFILE_INTERVAL": "60",
            "DFLASH_SPLIT_FC_LAYERS": "0",
            "WANDB_API_KEY": "0123456789abcdef",
        }
        self.target = Target(host="10.1.2.6", env=dict(self.declared_env))
        self.plans: list[Plan] = []
        self.baselines: list[tuple[float | None, str]] = []
        self.baseline_scope: str | None = None
        self.asked: list[tuple[str, Overrides]] = []
        self.executed: list[tuple[Plan, Overrides]] = []
        self.retries = self.diagnosed = self.attended = 0
        self.refuse: ConsoleError | None = None

    def change(self, **changes: Any) -> None:
        """Replace parts of the snapshot and tell the screens."""
        self.snapshot = replace(self.snapshot, **changes)
        for callback in list(self.on_change):
            callback()

    def choose_baseline(self, tok_s: float | None, name: str, scope: str | None = None) -> None:
        self.baseline_scope = scope
        progress = self.snapshot.progress
        self.baselines.append((tok_s, name))
        self.change(progress=replace(progress, rate=replace(progress.rate, baseline=tok_s, baseline_name=name)))

    async def plan(self, action: str, overrides: Overrides = Overrides()) -> Plan:  # noqa: B008 - frozen
        self.asked.append((action, overrides))
        if self.refuse is not None:
            raise self.refuse
        plan = self.plans[0] if self.plans else (RESTART_PLAN if action == "restart" else STOP_PLAN)
        if len(self.plans) > 1:
            self.plans.pop(0)
        changed = {**plan.env_changed}
        for name, value in overrides.env.items():
            changed[name] = (self.declared_env.get(name), value)
        for name in overrides.unset:
            changed[name] = (self.declared_env.get(name), None)
        again = overrides.base.name if overrides.base is not None else None
        if again:
            changed = {}
        return replace(
            plan,
            name=overrides.name or plan.name,
            env_changed=changed,
            keep_cache=overrides.keep_cache,
            from_run=again,
            from_env={"DFLASH_SPLIT_FC_LAYERS": ("1", "0")} if again else {},
        )

    async def execute(self, plan: Plan, overrides: Overrides = Overrides()) -> Accepted:  # noqa: B008 - frozen
        if self.refuse is not None:
            raise self.refuse
        self.executed.append((plan, overrides))
        return Accepted(run_id="r-0043", name=plan.name, action=plan.action)

    async def view(self, run_id: str) -> PastSource:
        entry, curves = await self.archive.run(run_id)
        rows = (await self.archive.runs()).rows
        older = [row for row in rows if row.accepted_wall < entry.accepted_wall]
        log = LogBuffer()
        status, entry = await read_end(self.logs, entry, log, Parser("auto"))
        past = past_snapshot(entry, self.snapshot, curves=curves, older=older, log=status)
        return PastSource(self, entry, past, past_series(entry, curves, self.snapshot), log)

    async def diagnose(self) -> Diagnosis:
        self.diagnosed += 1
        if self.refuse is not None:
            raise self.refuse
        return Diagnosis(path="/home/ops/slammed5.diagnosis.txt", bytes=40_000, run="slammed5", run_id="r-0041")

    def redeclare(self, env: Mapping[str, str], arguments: tuple[str, ...]) -> None:
        self.declared_env = dict(env)

    def attend(self) -> None:
        self.attended += 1

    def retry_link(self) -> None:
        self.retries += 1


# --- stages ----------------------------------------------------------------------------------------------------------


def stage(which: Stage, state: StageState, took: float | None = None, **more: Any) -> StageStatus:
    return StageStatus(stage=which, state=state, took_s=took, **more)


DONE = (
    stage(_D.KILLING, _S.DONE, 12.4, usual_s=12.0, evidence="2 pids, 574 GiB", detail="2 pids gone, 574 GiB freed"),
    stage(_D.CACHE, _S.DONE, 0.01, usual_s=0.01, evidence="3.1 GiB set aside"),
    stage(_D.SPAWNED, _S.DONE, 0.8, usual_s=0.8, evidence="pid 84933"),
    stage(_D.CUDA, _S.DONE, 112.0, usual_s=112.0, evidence="8/8 contexts", have=8, want=8),
    stage(_D.STEPPING, _S.DONE, 96.0, usual_s=98.0, evidence="steps 1, 2 seen"),
)
LAUNCH = (
    replace(DONE[0], took_s=11.8),
    DONE[1],
    replace(DONE[2], evidence="pid 90112"),
    stage(
        _D.CUDA,
        _S.ACTIVE,
        None,
        began_at=NOW - 64,
        usual_s=112.0,
        deadline_s=300.0,
        evidence="6/8, not yet: 6, 7",
        have=6,
        want=8,
        missing=(6, 7),
    ),
    stage(_D.STEPPING, _S.PENDING, None, usual_s=98.0, why="wants 2 steps"),
)
FAILED = (
    replace(DONE[0], took_s=11.8),
    DONE[1],
    stage(_D.SPAWNED, _S.FAILED, 0.2, evidence="exit 126, pid 90112", reason="exec_not_permitted"),
    stage(_D.CUDA, _S.NOT_REACHED),
    stage(_D.STEPPING, _S.NOT_REACHED),
)

# --- parts -----------------------------------------------------------------------------------------------------------

LINK = LinkStatus(
    state=LinkState.UP,
    rtt_s=0.023,
    last_word_at=NOW - 0.4,
    clock_offset_s=0.4,
    label="root@10.1.2.6 · via ops@jump · pct 200",
)
LIVE = Ages(link=0.4, log=0.5, gpu=0.7, process=0.6)
OLD = Ages(link=42.0, log=42.5, gpu=42.7, process=42.6)
RUN = Run(
    id="r-0041",
    name="slammed5",
    alive=True,
    keeper_alive=True,
    pid=84933,
    argv=("/root/run.sh",),
    cwd="/root",
    log_path="/workspace/train_slammed5.log",
    operator="ops1",
    accepted_at=NOW - 8161.2 - 96,
    spawned_at=NOW - 8200,
    launch_s=221.2,
)
RUN6 = Run(
    id="r-0042",
    name="slammed6",
    alive=True,
    keeper_alive=True,
    pid=90112,
    argv=("/root/run.sh",),
    cwd="/root",
    log_path="/workspace/train_slammed6.log",
    operator="ops1",
    accepted_at=NOW - 77,
    spawned_at=NOW - 64,
    replaced="slammed5",
)
PROGRESS = Progress(
    format="dflash",
    lines_seen=41210,
    lines_understood=40386,
    step=18420,
    total_steps=60000,
    first_step_at=NOW - 8040,
    last_step_at=NOW - 1.2,
    loss=1.192,
    rate=Rate(
        now=21480.0,
        steady=21440.0,
        mad=210.0,
        n=290,
        scope="global",
        baseline=21000.0,
        baseline_name="slammed4",
        delta_pct=2.1,
    ),
    queue=Queue(min_ready=6, max_depth=16, lowest=6, highest=16, empty_pct=0.0, full_pct=0.0, bound="balanced"),
    checkpoint_step=18000,
    checkpoint_at=NOW - 190,
    usual_step_s=2.0,
    stall_budget_s=60.0,
)
LOG5 = LogStatus(
    state=LogState.FOLLOWING,
    path="/workspace/train_slammed5.log",
    size_bytes=412 * 1024**2,
    inode=5511020,
    at=NOW - 0.5,
    grew_at=NOW - 1.2,
)
LOG6 = LogStatus(
    state=LogState.FOLLOWING,
    path="/workspace/train_slammed6.log",
    size_bytes=6246,
    inode=5512034,
    at=NOW - 0.5,
    grew_at=NOW - 2.0,
)
_USED = (71.2, 71.2, 71.1, 71.4, 71.9, 118.4, 118.6, 118.4)
_PEAK = (72.3, 72.3, 72.2, 72.5, 73.0, 133.3, 137.9, 133.3)
_BUSY = (97, 96, 95, 97, 96, 88, 86, 84)
_WATTS = (612.0, 603.0, 594.0, 585.0, 612.0, 553.0, 541.0, 547.0)
_HEAT = (61, 66, 62, 67, 63, 68, 64, 69)
HEADROOM = "GPU 6 peak 137.9 of 139.8 GiB · 1.9 GiB headroom"


def _bytes(gib: float) -> int:
    return int(gib * GIB)


def gpu(index: int, used: float, busy: int, watts: float, heat: int, **more: Any) -> Gpu:
    return Gpu(
        index=index,
        name="NVIDIA H200",
        role="target" if index < 5 else "drafter",
        used_bytes=_bytes(used),
        total_bytes=_bytes(139.8),
        util_pct=busy,
        power_w=watts,
        power_limit_w=700.0,
        temperature_c=heat,
        **{"owner": "run", "context": True, "cuda_index": index, "clock_mhz": 1755, "clock_max_mhz": 1980, **more},
    )


GPUS = GpuPanel(
    source="nvml",
    driver="550.90",
    at=NOW - 0.7,
    expected=8,
    contexts=tuple(range(8)),
    rule="nvml pid in tree",
    gpus=tuple(
        gpu(
            i,
            _USED[i],
            _BUSY[i],
            _WATTS[i],
            _HEAT[i],
            peak_bytes=_bytes(_PEAK[i]),
            pids=(84941 + i,),
        )
        for i in range(8)
    ),
    notes=(GpuNote(kind=GpuTrouble.HEADROOM, gpus=(6,), text=HEADROOM),),
)
GPUS_LOADING = replace(
    GPUS,
    contexts=tuple(range(6)),
    gpus=tuple(
        gpu(i, u, b, w, h, context=i < 6, owner="run" if i < 6 else "free")
        for i, (u, b, w, h) in enumerate(
            [
                (62.1, 34, 178, 38),
                (61.8, 31, 171, 39),
                (60.4, 36, 180, 40),
                (60.9, 30, 169, 38),
                (58.2, 33, 175, 39),
                (24.6, 12, 131, 40),
                (0.5, 0, 78, 38),
                (0.5, 0, 77, 39),
            ]
        )
    ),
)
GPUS_FREE = replace(
    GPUS,
    contexts=(),
    gpus=tuple(gpu(i, 0.5, 0, 76.0 + i % 3, 33 + i % 3, context=False, owner="free") for i in range(8)),
)
GPUS_SPINNING = replace(
    GPUS,
    gpus=tuple(
        gpu(
            i,
            _USED[i],
            100,
            128.0 + i % 4,
            44 + i % 3,
            peak_bytes=_bytes(_PEAK[i]),
        )
        for i in range(8)
    ),
    notes=(
        GpuNote(
            kind=GpuTrouble.SPINNING,
            gpus=tuple(range(8)),
            text="all 100 % busy at 130 W: spinning, not computing · a collective waits?",
        ),
    ),
)
GPUS_TROUBLED = replace(
    GPUS,
    gpus=tuple(
        replace(
            each,
            clock_mhz=1410 if each.index == 2 else 1755,
            throttle="power cap" if each.index == 2 else "",
            others=(GpuHolder(pid=7712, bytes=int(1.2 * GIB), name="jupyter", user="root", seen=True),)
            if each.index == 3
            else (),
        )
        for each in GPUS.gpus
    ),
    notes=(
        GpuNote(kind=GpuTrouble.FOREIGN, gpus=(3,), text="GPU 3: pid 7712 (jupyter, root) holds 1.2 GiB, not ours"),
        GpuNote(kind=GpuTrouble.HEADROOM, gpus=(6,), text=HEADROOM),
        GpuNote(kind=GpuTrouble.SLOWED, gpus=(2,), text="GPU 2 clock 1,410 of 1,755 MHz: power cap"),
    ),
)
GPUS_32 = replace(
    GPUS,
    expected=32,
    contexts=tuple(range(32)),
    gpus=tuple(
        replace(
            GPUS.gpus[i % 8],
            index=i,
            cuda_index=i,
            role="target" if i < 20 else "drafter",
            pids=(84941 + i,),
            lost="gone from the bus" if i == 17 else "",
            **(dict.fromkeys(("used_bytes", "util_pct", "power_w", "temperature_c", "clock_mhz")) if i == 17 else {}),
        )
        for i in range(32)
    ),
    notes=(
        GpuNote(kind=GpuTrouble.LOST, gpus=(17,), text="GPU 17: gone from the bus (Xid 79)"),
        GpuNote(kind=GpuTrouble.HEADROOM, gpus=(30,), text="GPU 30 peak 137.9 of 139.8 GiB · 1.9 GiB headroom"),
    ),
)
GPUS_NONE = GpuPanel(
    source="none",
    why="NVML: driver and library have different versions: 550.54.15 is loaded; reload the driver or restart the host; "
    "no nvidia-smi on the PATH",
    at=NOW - 0.7,
    expected=8,
)
PROCESSES = (
    Process(
        pid=84933, start_ticks=1000, parent=1, argv=("bash", "/root/run.sh"), state="S", age_s=8160.0, rss_bytes=4 << 20
    ),
    Process(
        pid=84941,
        start_ticks=1040,
        parent=84933,
        argv=("python", "-u", "train_dflash_pipeline.py", "--gpus", "8"),
        state="S",
        age_s=8160.0,
        rss_bytes=212 * GIB,
        cpu_pct=1140.0,
        gpu_bytes=574 * GIB,
    ),
)

# --- moments ---------------------------------------------------------------------------------------------------------

HEALTHY = Snapshot(
    target="ct200",
    at=NOW,
    link=LINK,
    verdict=Verdict.STEPPING,
    stages=DONE,
    run=RUN,
    progress=PROGRESS,
    gpus=GPUS,
    log=LOG5,
    processes=PROCESSES,
    ages=LIVE,
    operator="ops1",
)
LAUNCHING = replace(
    HEALTHY,
    verdict=Verdict.LAUNCHING,
    stages=LAUNCH,
    active_stage=Stage.CUDA,
    usual_launches=5,
    run=RUN6,
    gpus=GPUS_LOADING,
    log=LOG6,
    progress=Progress(phase="Loading checkpoint shards 5/12 42 %"),
)
LATE = replace(
    LAUNCHING,
    stages=(*LAUNCH[:3], replace(LAUNCH[3], state=_S.LATE, began_at=NOW - 302, longest_s=160.0), LAUNCH[4]),
    reason=ReasonView(
        slug="stage_late",
        title="a stage takes longer than usual",
        severity=Severity.WARNING,
        detail="GPU 6, 7 hold no context; log silent 3m; CPU 0.1 cores",
        safe="nothing was killed: a deadline that passed is a warning.",
        next=("s stops it", "e shows errors"),
    ),
)
GOOD = PastRun(
    id="r-0041",
    name="slammed5",
    settings=Settings(
        argv=("/root/run.sh",),
        cwd="/root",
        env={"DFLASH_PROFILE_INTERVAL": "60", "DFLASH_SPLIT_FC_LAYERS": "0", "WANDB_API_KEY": "hmac:51c0"},
    ),
    stepped=True,
)
CHANGES = Changes(
    since="slammed5",
    since_id="r-0041",
    items=(
        Change(kind="env", what="DFLASH_SPLIT_FC_LAYERS", then="0", now="1"),
        Change(kind="file", what="/venv/bin/python", then="mode 0755", now="0644"),
    ),
    same=("run.sh", "train_dflash_pipeline.py", "argv", "cwd", "6 env names"),
)
_PERMISSION = "/root/run.sh: line 12: /venv/bin/python: Permission denied"
LAUNCH_FAILED = replace(
    HEALTHY,
    verdict=Verdict.FAILED,
    stages=FAILED,
    gpus=GPUS_FREE,
    log=replace(LOG6, size_bytes=211),
    processes=(),
    progress=Progress(),
    run=replace(RUN6, alive=False, exit=ExitStatus(code=126, at=NOW - 125, lived_s=0.2, oom="no")),
    reason=ReasonView(
        slug="exec_not_permitted",
        title="a program in run.sh may not be executed",
        detail=_PERMISSION,
        facts=(
            Fact(label="log, last line", text=_PERMISSION, severity=Severity.ERROR),
            Fact(label="exit record", text="status 126 (found, but may not be executed), no signal"),
            Fact(label="lived", text="0.2 s after exec; start_secs is 5 s"),
            Fact(label="GPUs", text="no context was opened · 8/8 free since 14:31:58"),
        ),
        safe="slammed5 was stopped at 14:31:49 as planned. Nothing runs, 8/8 GPUs are free.",
        next=("chmod +x /venv/bin/python on the host, then r.", "slammed5's settings again (o)"),
    ),
    good=GOOD,
    changes=CHANGES,
)
ENDED = replace(
    HEALTHY,
    verdict=Verdict.ENDED,
    gpus=GPUS_FREE,
    processes=(),
    progress=replace(PROGRESS, step=9311),
    run=replace(RUN, alive=False, exit=ExitStatus(signal=9, at=NOW - 30, lived_s=9600.0, oom="unknown")),
    reason=ReasonView(
        slug="sigkill_unknown",
        title="killed by signal 9, by whom is unknown",
        detail="checked: kernel OOM count unchanged, session alive, no stop by an operator",
        facts=(
            Fact(label="exit record", text="signal 9 after 2h 40m, main process 84941", severity=Severity.ERROR),
            Fact(label="out of memory", text="oom_kill of its cgroup and of the host unchanged since the spawn"),
            Fact(label="log, last line", text="[14:33:31] step 9311/60000 | loss 1.402 | tok/s 21,480"),
        ),
        safe="the checkpoint of step 9,000 is complete; 311 steps are lost.",
        next=("r starts it again",),
    ),
)
FINISHED = replace(
    HEALTHY,
    verdict=Verdict.FINISHED,
    gpus=GPUS_FREE,
    processes=(),
    progress=replace(PROGRESS, step=60000),
    run=replace(RUN, alive=False, exit=ExitStatus(code=0, at=NOW - 1900, lived_s=90000.0, oom="no")),
)
STOPPED = replace(
    HEALTHY,
    verdict=Verdict.STOPPED,
    gpus=GPUS_FREE,
    processes=(),
    stages=(stage(_D.KILLING, _S.DONE, 4.2, evidence="TERM was enough", detail="TERM was enough, 4.2 s"), *DONE[1:]),
    run=replace(RUN, alive=False, exit=ExitStatus(signal=15, at=NOW - 180, lived_s=8000.0, by="ops1", oom="no")),
)
STOPPING = replace(
    HEALTHY,
    verdict=Verdict.LAUNCHING,
    active_stage=Stage.KILLING,
    run=replace(RUN, stopping_by="ops1"),
    stages=(
        stage(_D.KILLING, _S.ACTIVE, began_at=NOW - 6, usual_s=12.0, evidence="TERM, 14 s of 20 s left"),
        *DONE[1:],
    ),
)
STALLED = replace(
    HEALTHY,
    verdict=Verdict.STALLED,
    gpus=GPUS_SPINNING,
    log=replace(LOG5, grew_at=NOW - 370),
    progress=replace(PROGRESS, last_step_at=NOW - 372),
    stages=(*DONE[:4], stage(_D.STEPPING, _S.LATE, 372.0, evidence="last: step 18,420")),
    reason=ReasonView(
        slug="stalled",
        title="no step for longer than this run ever took",
        severity=Severity.WARNING,
        detail="GPUs 100 % busy at 128 W, usual 612 W · a collective waits?",
        safe="left alone. Last checkpoint: step 18,000, 9m 22s ago (420 steps).",
        next=("r restart", "y copies what is known"),
    ),
)
SLOW = replace(
    HEALTHY,
    verdict=Verdict.SLOW,
    progress=replace(
        PROGRESS,
        rate=replace(PROGRESS.rate, now=17900.0, steady=17900.0, delta_pct=-17.0),
        queue=Queue(min_ready=0, max_depth=16, lowest=0, highest=9, empty_pct=12.0, full_pct=0.0, bound="targets"),
    ),
    reason=ReasonView(
        slug="slow",
        title="slower than the baseline",
        severity=Severity.WARNING,
        detail="17.9K for 4m, 17 % under slammed4 · since step 18,020",
    ),
)
NAN = replace(
    HEALTHY,
    verdict=Verdict.NAN,
    progress=replace(
        PROGRESS,
        step=9400,
        loss=None,
        loss_state="nan",
        bad_since_step=9311,
        last_good_loss=1.402,
        last_good_step=9310,
        checkpoint_step=9000,
    ),
    reason=ReasonView(
        slug="nan_loss",
        title="the loss is not a number",
        detail="loss is NaN since step 9,311",
        safe="the run goes on; the checkpoint of step 9,000 is before it.",
        next=("s stops it", "r restarts"),
    ),
)
LINK_LOST = replace(
    HEALTHY,
    verdict=Verdict.LINK_LOST,
    last_known=Verdict.STEPPING,
    ages=OLD,
    stages=(*DONE[:4], stage(_D.STEPPING, _S.UNKNOWN, None, evidence="was at step 18,420")),
    link=replace(
        LINK,
        state=LinkState.LOST,
        last_word_at=NOW - 42,
        attempt=4,
        retry_at=NOW + 8,
        reason="jump_failed",
        detail="jump host ops@jump does not answer",
    ),
)
_NOTHING = tuple(stage(which, _S.PENDING) for which in Stage)
CONNECTING = Snapshot(
    target="ct200",
    at=NOW,
    verdict=Verdict.NO_WORD,
    stages=_NOTHING,
    operator="ops1",
    link=LinkStatus(state=LinkState.CONNECTING, attempt=1, label=LINK.label),
)
REFUSED = replace(
    CONNECTING,
    verdict=Verdict.LINK_LOST,
    link=replace(
        CONNECTING.link,
        state=LinkState.REFUSED,
        attempt=1,
        reason="host_key_unknown",
        detail="the host key of 10.1.2.6 is not known: SHA256:mQ5f0b7r1VtJmQ5f0b7r1VtJmQ5f0b7r1VtJ",
    ),
    reason=ReasonView(
        slug="host_key_unknown", title="the host key is not known", next=("ssh root@10.1.2.6 once, then c",)
    ),
)
IDLE = replace(
    HEALTHY,
    verdict=Verdict.IDLE,
    stages=_NOTHING,
    gpus=GPUS_FREE,
    progress=Progress(),
    processes=(),
    log=LogStatus(),
    run=STOPPED.run,
)
BY_HAND = replace(
    HEALTHY,
    stages=tuple(
        stage(which, _S.UNKNOWN, evidence="started by hand") if index < 3 else replace(DONE[index], took_s=None)
        for index, which in enumerate(Stage)
    ),
    run=Run(
        id=None,
        name="train_slammed4",
        by_hand=True,
        alive=True,
        pid=84941,
        argv=PROCESSES[1].argv,
        cwd="/root",
        log_path="/workspace/train_slammed4.log",
        session="session-12.scope",
    ),
    log=replace(LOG5, path="/workspace/train_slammed4.log"),
)
INTERRUPTED = replace(
    LAUNCH_FAILED,
    verdict=Verdict.INTERRUPTED,
    run=replace(RUN6, alive=False, keeper_alive=False),
    stages=(
        LAUNCH[0],
        stage(_D.CACHE, _S.UNKNOWN, why="not recorded"),
        *(stage(w, _S.NOT_REACHED) for w in list(Stage)[2:]),
    ),
    reason=ReasonView(
        slug="interrupted",
        title="the transaction was cut short",
        detail="interrupted after killing, nothing runs",
        facts=(Fact(label="journal", text="killing done 14:31:59, cache begun", severity=Severity.ERROR),),
        safe="slammed5 was stopped; nothing was started.",
        next=("r plans it anew",),
    ),
)
HOST_RESTARTED = replace(
    LAUNCH_FAILED,
    verdict=Verdict.HOST_RESTARTED,
    run=replace(RUN, alive=False),
    host_started_at=NOW - 846,
    stages=tuple(stage(which, _S.UNKNOWN, why="before the restart") for which in Stage),
    reason=ReasonView(
        slug="host_restarted",
        title="the host was restarted",
        facts=(Fact(label="boot id", text="9f0c… then, 41ab… now", severity=Severity.ERROR),),
        safe="files and checkpoints are where they were.",
        next=("r starts slammed6",),
    ),
)
BUFFERED = replace(
    HEALTHY,
    verdict=Verdict.RUNNING,
    progress=Progress(lines_seen=3),
    log=replace(LOG5, size_bytes=412, grew_at=NOW - 240),
    stages=(*DONE[:4], stage(_D.STEPPING, _S.UNKNOWN, why="output is buffered?")),
    reason=ReasonView(
        slug="output_buffered",
        title="no log output for 4m, but GPUs work at 604 W",
        severity=Severity.INFO,
        detail="output is buffered?",
    ),
)
UNKNOWN_FORMAT = replace(
    BUFFERED,
    log=LOG5,
    progress=Progress(lines_seen=412),
    reason=ReasonView(
        slug="format_unknown",
        title="412 lines, none is a known step line",
        severity=Severity.INFO,
        detail="set metrics.format in the config",
    ),
)
KEEPER_LOST = replace(HEALTHY, run=replace(RUN, keeper_alive=False))

RESTART_PLAN = Plan(
    plan_id="7f3a91c2",
    action="restart",
    target="ct200",
    name="slammed6",
    argv=("/root/run.sh",),
    cwd="/root",
    log_path="/workspace/train_slammed6.log",
    replaces=PROCESSES,
    replaced_name="slammed5",
    replaced_id="r-0041",
    lost_steps=420,
    checkpoint_step=18000,
    gpu_bytes=574 * GIB,
    bystanders=tuple(Process(pid=p, start_ticks=1, argv=("x",)) for p in (7712, 7713, 7714)),
    caches=(CachePlan(path="/tmp/torchinductor_root", exists=True, bytes=int(3.1 * GIB), files=18204),),
    env_changed={"DFLASH_SPLIT_FC_LAYERS": ("0", "1")},
    env_same=7,
    files_changed=("train_dflash_pipeline.py edited 14:20, 31 lines",),
    checks=(
        *(
            Check(id=f"c{i}", state=CheckState.OK, label=label)
            for i, label in enumerate(
                ("run.sh and its interpreter", "cwd", "log dir", "812 GiB free", "/models/target", "torch", "8 GPUs")
            )
        ),
        Check(
            id="gpu_memory_foreign",
            state=CheckState.WARN,
            label="lock",
            detail="GPU 3: pid 7712 (jupyter, root) holds 1.2 GiB · it stays",
            reason="gpu_memory_foreign",
        ),
    ),
    since="slammed5",
    since_stepped=True,
    usual_launch_s=225.0,
    usual_launches=5,
    usual_other_s=80.0,
    made_at=NOW,
)
STOP_PLAN = replace(RESTART_PLAN, action="stop", name="", caches=(), checks=(), env_changed={}, files_changed=())
START_PLAN = replace(RESTART_PLAN, replaces=(), replaced_name=None, replaced_id=None, lost_steps=None, gpu_bytes=None)
REFUSED_PLAN = replace(
    RESTART_PLAN,
    checks=(
        Check(
            id="interpreter",
            state=CheckState.REFUSE,
            label="run.sh and its interpreter",
            reason="exec_not_permitted",
            detail="/root/run.sh may not be executed: mode 0644, owner root; chmod +x /root/run.sh",
        ),
        *RESTART_PLAN.checks,
    ),
)
LOCKED_PLAN = replace(
    RESTART_PLAN,
    under_way=Lock(operator="ops1", origin="pts/3, jump", name="slammed6", stage="CUDA 6/8", since_at=NOW - 64),
)

# --- log and series --------------------------------------------------------------------------------------------------

_STEP_LINES = """\
[14:31:03] step 18390/60000 | loss 1.1958 | acc 0.548 | lr 5.12e-04 | tok/s 21,402 | hs_queue min_ready=6 max_depth=15
[14:31:05] step 18391/60000 | loss 1.1951 | acc 0.549 | lr 5.12e-04 | tok/s 21,455 | hs_queue min_ready=6 max_depth=15
W0820 14:31:06.331000 84941 torch/_dynamo/convert_frame.py:1551] [2/8] recompile: cache_size 3 of 8
[14:31:07] step 18392/60000 | loss 1.1949 | acc 0.548 | lr 5.12e-04 | tok/s 21,380 | hs_queue min_ready=5 max_depth=14
[14:31:09] step 18393/60000 | loss 1.1952 | acc 0.549 | lr 5.12e-04 | tok/s 21,497 | hs_queue min_ready=6 max_depth=15
[drafter 6] step 18393 local_loss 1.1962 7.2K tok/s
Checkpoint saved at step 18000 → /workspace/ckpt/slammed5/step_18000 (41.2 GiB, 12.4 s)
[14:31:11] step 18394/60000 | loss 1.1947 | acc 0.549 | lr 5.12e-04 | tok/s 21,466 | hs_queue min_ready=6 max_depth=15
[14:31:13] step 18395/60000 | loss 1.1941 | acc 0.550 | lr 5.12e-04 | tok/s 21,512 | hs_queue min_ready=7 max_depth=15
[14:31:15] step 18396/60000 | loss 1.1944 | acc 0.549 | lr 5.12e-04 | tok/s 21,490 | hs_queue min_ready=6 max_depth=15
[drafter 5] step 18396 local_loss 1.1933 7.1K tok/s
[14:31:17] step 18397/60000 | loss 1.1938 | acc 0.550 | lr 5.12e-04 | tok/s 21,533 | hs_queue min_ready=6 max_depth=16
[14:31:19] step 18398/60000 | loss 1.1935 | acc 0.550 | lr 5.12e-04 | tok/s 21,488 | hs_queue min_ready=6 max_depth=16
[14:31:21] step 18399/60000 | loss 1.1939 | acc 0.549 | lr 5.12e-04 | tok/s 21,501 | hs_queue min_ready=6 max_depth=16
[14:31:23] step 18400/60000 | loss 1.1927 | acc 0.551 | lr 5.12e-04 | tok/s 21,524 | hs_queue min_ready=7 max_depth=16
[14:31:25] step 18420/60000 | loss 1.1920 | acc 0.551 | lr 5.12e-04 | tok/s 21,480 | hs_queue min_ready=6 max_depth=16
"""
_LAUNCH_LINES = """\
+ export DFLASH_SPLIT_FC_LAYERS=1 DFLASH_PROFILE_INTERVAL=60
+ exec /venv/bin/python -u train_dflash_pipeline.py --gpus 8 --targets 5 --drafters 3
[14:33:02] roles: target=[0,1,2,3,4] drafter=[5,6,7]  seq_len=4096 batch=8
W0820 14:33:04.118000 90121 torch/distributed/run.py:774] Setting OMP_NUM_THREADS=1 for each process
[14:33:05] target 0: loading Qwen3.5-27B (bf16) from /models/target
[14:33:05] target 1: loading Qwen3.5-27B (bf16) from /models/target
[14:33:06] target 2..4: loading Qwen3.5-27B (bf16) from /models/target
[14:33:41] drafter 5: building 5-layer drafter, split_fc_layers=1
"""


def raw(text: str, offset: int = 0) -> RawLine:
    return RawLine(text=text, offset=offset, end_offset=offset + len(text.encode()) + 1, at=NOW)


def step_log(before: int = 24) -> LogBuffer:
    log = LogBuffer()
    early = [
        f"[14:30:{n:02d}] step {18360 + n}/60000 | loss 1.19{60 + n} | acc 0.548 | lr 5.12e-04 | tok/s 21,4{n:02d}"
        " | hs_queue min_ready=6 max_depth=15"
        for n in range(before)
    ]
    log.append([raw(text) for text in [*early, *_STEP_LINES.splitlines()]])
    return log


def launch_log() -> LogBuffer:
    log = LogBuffer()
    log.mark("spawned  pid 90112 in dflash-slammed6.scope, log opened (inode 5512034)", NOW - 64)
    log.append([raw(text) for text in _LAUNCH_LINES.splitlines()])
    bar = "Loading checkpoint shards:  42%|████      | 5/12 [00:48<01:06,  9.51s/it]"
    log.set_live(replace(raw(bar), cr=True, partial=True))
    return log


def failed_log() -> LogBuffer:
    log = LogBuffer()
    log.mark("spawned  pid 90112 in dflash-slammed6.scope, log opened (inode 5512034)", NOW - 126)
    log.append(
        [
            raw(text)
            for text in (
                "+ export DFLASH_SPLIT_FC_LAYERS=1 DFLASH_PROFILE_INTERVAL=60",
                "+ ulimit -n 1048576",
                "+ cd /root",
                _PERMISSION,
            )
        ]
    )
    log.mark("exited   status 126, 0.2 s after exec, no step seen", NOW - 125)
    return log


def run_series(end: float = NOW) -> dict[str, Series]:
    """Two hours of a run that starts slowly, is steady, and dips at checkpoints; the same numbers each time."""
    return _own(_run_series(end))


def _own(found: Mapping[str, Series]) -> dict[str, Series]:
    """Return series that may be added to: what was made once is kept as it is."""
    return {name: _twin(series) for name, series in found.items()}


def _twin(series: Series) -> Series:
    twin = copy.copy(series)
    twin.__dict__.update({name: copy.copy(value) for name, value in vars(series).items()})
    return twin


@functools.cache
def _run_series(end: float) -> dict[str, Series]:
    noise = random.Random(5)
    tok, loss, queue = Series(), Series(), Series()
    start = NOW - 8000
    n = int((end - start) / 4)
    for index in range(n):
        at, step = start + index * 4, 1 + index * 2
        ramp = 1 - math.exp(-index / 110)
        value = 21480 * ramp + 200 * math.sin(index / 90) + noise.gauss(0, 280)
        if index % 540 == 500:
            value = 9000.0
        tok.add(at, max(900.0, value), step, "global")
        loss.add(at, 1.19 + 2.4 * math.exp(-index / 170) + noise.gauss(0, 0.012), step)
        queue.add(at, max(0.0, round(6 + 4 * math.sin(index / 85) + noise.gauss(0, 1.4))), step)
    found = {"tok_s": tok, "loss": loss, "queue": queue}
    for index in range(8):
        found |= gpu_series(index, start, end)
    return found


def gpu_series(index: int, start: float, end: float) -> dict[str, Series]:
    """A GPU that loads for ten minutes and then works, with a spike now and then where the drafter is."""
    return _own(_gpu_series(index, start, end))


@functools.cache
def _gpu_series(index: int, start: float, end: float) -> dict[str, Series]:
    memory, power, busy = Series(), Series(), Series()
    noise = random.Random(index)
    for second in range(0, int(end - start), 20):
        at, loaded = start + second, min(1.0, second / 600)
        spike = 19 * math.exp(-((((second + 700 * index) % 3400 - 3000) / 30) ** 2)) if index >= 5 else 0.0
        memory.add(at, (0.5 + (_USED[index % 8] - 0.5) * loaded + spike) * GIB)
        power.add(at, 80 + (_WATTS[index % 8] - 80) * (loaded == 1.0) + noise.gauss(0, 8))
        busy.add(at, max(0.0, min(100.0, _BUSY[index % 8] * (loaded == 1.0) + noise.gauss(0, 2))))
    return {f"gpu_memory:{index}": memory, f"gpu_power:{index}": power, f"gpu_busy:{index}": busy}


def launch_series() -> dict[str, Series]:
    found = {}
    for index, final in enumerate((62.1, 61.8, 60.4, 60.9, 58.2, 24.6, 0.5, 0.5)):
        memory = Series()
        for second in range(64):
            memory.add(NOW - 64 + second, max(0.5, final * (second / 64) ** 1.6) * GIB)
        found[f"gpu_memory:{index}"] = memory
    return found


Scene = Callable[[], FakeSource]


def _stepping(snapshot: Snapshot, end: float = NOW) -> Scene:
    return lambda: FakeSource(snapshot, step_log(), run_series(end))


def _empty(snapshot: Snapshot) -> Scene:
    return lambda: FakeSource(snapshot)


SCENES: dict[str, Scene] = {
    "healthy": _stepping(HEALTHY),
    "troubled": _stepping(replace(HEALTHY, gpus=GPUS_TROUBLED)),
    "many": lambda: FakeSource(
        replace(HEALTHY, gpus=GPUS_32),
        step_log(),
        run_series()
        | {name: one for index in range(8, 32) for name, one in gpu_series(index, NOW - 8000, NOW).items()},
    ),
    "no-driver": _stepping(replace(HEALTHY, gpus=GPUS_NONE)),
    "launching": lambda: FakeSource(LAUNCHING, launch_log(), launch_series()),
    "late": lambda: FakeSource(LATE, launch_log(), launch_series()),
    "failed": lambda: FakeSource(LAUNCH_FAILED, failed_log()),
    "ended": _stepping(ENDED),
    "finished": _stepping(FINISHED),
    "stopped": _stepping(STOPPED),
    "stopping": _stepping(STOPPING),
    "stalled": _stepping(STALLED, NOW - 372),
    "slow": _stepping(SLOW),
    "nan": _stepping(NAN),
    "link": _stepping(LINK_LOST, NOW - 42),
    "connecting": _empty(CONNECTING),
    "refused": _empty(REFUSED),
    "idle": _empty(IDLE),
    "by-hand": _stepping(BY_HAND),
    "interrupted": lambda: FakeSource(INTERRUPTED, failed_log()),
    "host-restarted": _empty(HOST_RESTARTED),
    "buffered": lambda: FakeSource(BUFFERED, launch_log()),
    "unknown-format": lambda: FakeSource(UNKNOWN_FORMAT, launch_log()),
    "keeper-lost": _stepping(KEEPER_LOST),
    "read-only": _stepping(replace(HEALTHY, read_only=True)),
}
