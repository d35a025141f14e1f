"""The values that every part of the console shares: stages, verdicts, GPUs, plans and the snapshot.

Only frozen, serialisable structs live here, and no behaviour beyond trivial derivations. Anybody may import this
module; it imports nothing of ours. Times named `*_at` are Unix seconds (UTC) on the console's clock; durations end in
`_s`, sizes in `_bytes`. Absent is `None`, never 0.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from console.severity import Severity as Severity


class Stage(StrEnum):
    """The five stages of a launch, in order; the values are the slugs of the command line."""

    KILLING = "killing"
    CACHE = "cache"
    SPAWNED = "spawned"
    CUDA = "cuda"
    STEPPING = "stepping"

    @property
    def label(self) -> str:
        return _STAGE_LABELS[self]


_STAGE_LABELS = {
    Stage.KILLING: "killing",
    Stage.CACHE: "clearing cache",
    Stage.SPAWNED: "spawned",
    Stage.CUDA: "CUDA initialized",
    Stage.STEPPING: "stepping",
}


class StageState(StrEnum):
    """What is known of one stage (UI specification, section 3)."""

    PENDING = "pending"
    ACTIVE = "active"
    LATE = "late"  # active beyond its deadline: a warning, never a kill
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    NOT_REACHED = "not_reached"
    UNKNOWN = "unknown"


class StageStatus(Struct, frozen=True, kw_only=True):
    """One stage with the proof for it."""

    stage: Stage
    state: StageState
    began_at: float | None = None
    ended_at: float | None = None
    took_s: float | None = None
    usual_s: float | None = None
    """Median of past launches of the same kind; None while none is known."""
    longest_s: float | None = None
    """The longest of those launches."""
    deadline_s: float | None = None
    evidence: str = ""
    """Short form for the rail, at most about 17 cells: `2 pids, 574 GiB`."""
    detail: str = ""
    """Long form for `--json` and progress lines: `2 pids gone, 574 GiB freed`."""
    why: str = ""
    """Why it was skipped, failed or can't be known."""
    reason: str | None = None
    have: int | None = None
    want: int | None = None
    missing: tuple[int, ...] = ()
    """GPUs that hold no context yet (stage CUDA only)."""
    noted: bool = False
    """`ended_at` is what the keeper noted, the same for every console; else when this one saw it."""


class Verdict(StrEnum):
    """The word that the screen shows first (UI specification, section 2)."""

    NO_WORD = "no_word"  # connected or connecting, the host has not told its state yet
    IDLE = "idle"
    LAUNCHING = "launching"
    STEPPING = "stepping"
    RUNNING = "running"  # alive, but its steps can't be seen: buffered, elsewhere, no connection, unknown format
    SLOW = "slow"
    STALLED = "stalled"
    NAN = "nan"
    SPIKE = "spike"  # the loss has jumped and stays up
    SUSPENDED = "suspended"  # stopped by a signal, or held by a debugger
    NOT_EXITED = "not_exited"  # it said that it is done, and its process is still there
    FAILED = "failed"
    ENDED = "ended"
    FINISHED = "finished"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"  # the keeper was lost in the middle of a transaction
    LINK_LOST = "link_lost"
    FROZEN = "frozen"  # the container is: nothing in it goes on, and nothing in it answers
    HOST_RESTARTED = "host_restarted"


OUT_OF_REACH = frozenset({Verdict.LINK_LOST, Verdict.FROZEN})
"""Nothing new is heard of the run: all that is shown of it is as old as it says."""


class Fact(Struct, frozen=True, kw_only=True):
    """One piece of evidence: `log, last line` / `/root/run.sh: line 12: ...`."""

    label: str
    text: str
    severity: Severity = Severity.INFO


class ReasonView(Struct, frozen=True, kw_only=True):
    """Why something is not well, with the facts that it rests on, first cause first."""

    slug: str
    title: str
    detail: str = ""
    facts: tuple[Fact, ...] = ()
    safe: str = ""
    next: tuple[str, ...] = ()
    severity: Severity = Severity.ERROR
    brief: str = ""
    """The detail in at most 17 cells, for the rail; empty where the rail has its own words."""


class LinkState(StrEnum):
    CONNECTING = "connecting"  # never been up yet
    UP = "up"
    LOST = "lost"  # was up or failed to come up; being retried
    REFUSED = "refused"  # login, host key, container: not retried by itself


class LinkStatus(Struct, frozen=True, kw_only=True):
    state: LinkState
    rtt_s: float | None = None
    last_word_at: float | None = None
    """When the host was last heard of."""
    attempt: int = 0
    retry_at: float | None = None
    reason: str | None = None
    detail: str = ""
    clock_offset_s: float | None = None
    """Host wall clock minus console wall clock."""
    label: str = ""
    """Where the target is: `root@10.1.2.6 · via ops@jump · pct 200`."""


class Queue(Struct, frozen=True, kw_only=True):
    min_ready: float
    max_depth: float | None = None
    lowest: float | None = None
    """Lowest min_ready of the last 10 minutes."""
    highest: float | None = None
    """Highest min_ready of the last 10 minutes."""
    empty_pct: float | None = None
    full_pct: float | None = None
    bound: str = "balanced"
    """`balanced`, `targets` (drafters wait for targets) or `drafters` (targets wait for drafters)."""


class Rate(Struct, frozen=True, kw_only=True):
    last: float | None = None
    """As the newest step line that was read states it, however old that is."""
    """Tokens per second with the scope that it was stated in."""

    now: float | None = None
    steady: float | None = None
    mad: float | None = None
    n: int = 0
    covered_s: float | None = None
    """From the first to the last of the steps that `steady` is from: 10 minutes of a run that is old enough."""
    scope: str | None = None
    """`global`, `per_device`, `rank` or `derived`."""
    baseline: float | None = None
    baseline_name: str = ""
    delta_pct: float | None = None
    """Steady (else now) against the baseline, in percent."""


class Progress(Struct, frozen=True, kw_only=True):
    """What the log says about the training."""

    format: str | None = None
    lines_seen: int = 0
    lines_understood: int = 0
    step: int | None = None
    total_steps: int | None = None
    first_step_at: float | None = None
    last_step_at: float | None = None
    loss: float | None = None
    loss_state: str | None = None
    """`nan` when the last step's loss is not a number."""
    bad_since_step: int | None = None
    last_good_loss: float | None = None
    last_good_step: int | None = None
    rate: Rate = Rate()
    queue: Queue | None = None
    checkpoint_step: int | None = None
    checkpoint_at: float | None = None
    phase: str = ""
    """What the log says it is doing before the first step: `Loading checkpoint shards 5/12 42 %`."""
    usual_step_s: float | None = None
    stall_budget_s: float | None = None


class GpuTrouble(StrEnum):
    """What can be wrong with a GPU, the gravest first."""

    LOST = "lost"
    ERRORS = "errors"
    SPINNING = "spinning"  # busy, and draws far less than work does
    FOREIGN = "foreign"
    NOBODY = "nobody"
    UNTOLD = "untold"  # memory is in use, and whose it is can't be told
    HEADROOM = "headroom"
    HOT = "hot"
    SLOWED = "slowed"
    UNEVEN = "uneven"


class GpuNote(Struct, frozen=True, kw_only=True):
    """One sentence about GPUs; it names them."""

    kind: GpuTrouble
    gpus: tuple[int, ...]
    text: str


class GpuHolder(Struct, frozen=True, kw_only=True):
    """A process on a GPU that isn't the run's."""

    pid: int
    bytes: int | None = None
    name: str = ""
    user: str = ""
    seen: bool = False
    """It was found where the agent looks; else the pid is only what the driver states."""
    place: str = ""
    """Where it runs, as the host itself says: `in this container`, `on the host`, `in container 201`."""


class ContainerView(Struct, frozen=True, kw_only=True):
    """The run's container as its host sees it; every field may be unavailable alone."""

    frozen: bool | None = None
    memory_limit_bytes: int | None = None
    """None: no limit, or not told."""
    memory_used_bytes: int | None = None
    oom_kills: int | None = None
    """Processes of it that were killed for want of memory since it was started."""
    why: str = ""
    """Why the host can't be asked, or not all of it."""


class GpuPart(Struct, frozen=True, kw_only=True):
    """A MIG instance of a divided GPU."""

    index: int
    uuid: str = ""
    name: str = ""
    cuda_index: int | None = None
    used_bytes: int | None = None
    total_bytes: int | None = None
    pids: tuple[int, ...] = ()
    context: bool | None = None
    """Whether the run holds a context on it; None when that can't be told."""


class Gpu(Struct, frozen=True, kw_only=True):
    """One GPU as last sampled; every field may be unavailable alone."""

    index: int
    """As the driver counts, by place on the bus."""
    cuda_index: int | None = None
    """As the run counts, by its environment; None: it does not see this one."""
    name: str = ""
    uuid: str = ""
    bus: str = ""
    role: str | None = None
    used_bytes: int | None = None
    total_bytes: int | None = None
    reserved_bytes: int | None = None
    """What the driver keeps for itself, beside `used_bytes`."""
    peak_bytes: int | None = None
    """Highest use seen in this run."""
    util_pct: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: int | None = None
    hot_at_c: int | None = None
    """Where it slows itself down."""
    clock_mhz: int | None = None
    clock_max_mhz: int | None = None
    throttle: str | None = None
    """Why the clock is held back, "" where it isn't; None: not told."""
    ecc_errors: int | None = None
    """Uncorrected ones since the driver was loaded."""
    retired: int | None = None
    """Pages or rows of memory out of use."""
    retirement_pending: bool | None = None
    xid: int | None = None
    """The newest error that the driver reported while somebody looked."""
    parts: tuple[GpuPart, ...] | None = None
    """Its MIG instances; None: it isn't divided."""
    lost: str = ""
    """Why it answers nothing any more."""
    owner: str = "unknown"
    """`run`, `other`, `free`, `nobody` (memory without a visible process) or `unknown`."""
    owner_why: str = ""
    """Why the owner can't be told or proven."""
    pids: tuple[int, ...] = ()
    held_bytes: dict[int, int | None] | None = None
    """What each process holds, by pid; None where the driver lists no processes."""
    others: tuple[GpuHolder, ...] = ()
    context: bool | None = None
    """Whether the run holds a context here; None when that can't be told."""

    @property
    def left_bytes(self) -> int | None:
        """What the run left free at its peak; None where that isn't known."""
        if self.total_bytes is None or self.peak_bytes is None:
            return None
        return max(0, self.total_bytes - self.peak_bytes)


class GpuPanel(Struct, frozen=True, kw_only=True):
    source: str = "unknown"
    """`nvml`, `nvidia-smi`, `simulated`, `none`, or `unknown` before the first sample."""
    why: str = ""
    driver: str = ""
    at: float | None = None
    expected: int | None = None
    contexts: tuple[int, ...] = ()
    rule: str = ""
    """The rule by which contexts were told, for the evidence."""
    order_why: str = ""
    """Why it isn't certain how the run numbers the GPUs, or why it sees none."""
    gpus: tuple[Gpu, ...] = ()
    notes: tuple[GpuNote, ...] = ()
    """What is wrong, the gravest first."""


class LogState(StrEnum):
    UNKNOWN = "unknown"
    NONE = "none"  # no log is known for this run
    MISSING = "missing"
    EMPTY = "empty"
    FOLLOWING = "following"
    TRUNCATED = "truncated"
    ROTATED = "rotated"
    DELETED = "deleted"
    UNREADABLE = "unreadable"


class LogStatus(Struct, frozen=True, kw_only=True):
    state: LogState = LogState.UNKNOWN
    path: str | None = None
    size_bytes: int | None = None
    inode: int | None = None
    detail: str = ""
    at: float | None = None
    """When the file was last looked at."""
    grew_at: float | None = None
    """When it last grew."""
    caught_up: bool = False
    """Everything up to `size_bytes` has been read."""
    unread: bool = False
    """What stood in it when it was opened is still being read: how far the run has come can't be told from it yet."""
    mishap: LogState | None = None
    """That it was truncated or rotated last, and when; the state itself says so only in that moment."""
    mishap_at: float | None = None
    filesystem: str = ""
    """Its type where that is a network's: `nfs4`."""
    lost: str | None = None
    """Why the connection that carries the log is down while the link is up; None where it isn't."""


class Process(Struct, frozen=True, kw_only=True):
    pid: int
    start_ticks: int
    parent: int | None = None
    argv: tuple[str, ...] = ()
    state: str = ""
    age_s: float | None = None
    rss_bytes: int | None = None
    cpu_pct: float | None = None
    gpu_bytes: int | None = None


class ExitStatus(Struct, frozen=True, kw_only=True):
    """How the main process ended, as its keeper recorded it."""

    code: int | None = None
    signal: int | None = None
    at: float | None = None
    lived_s: float | None = None
    by: str | None = None
    """The operator who asked for it; None when nobody of ours did."""
    oom: str = "unknown"
    """`proven`, `likely`, `no` or `unknown`."""


class Script(Struct, frozen=True, kw_only=True):
    """A file that a run is made of, as it was when the run was asked for."""

    sha256: str = ""
    mode: int | None = None
    mtime: float | None = None


class Settings(Struct, frozen=True, kw_only=True):
    """What a run was started with: what makes it another run than the one before."""

    argv: tuple[str, ...] = ()
    cwd: str = ""
    env: dict[str, str] = {}
    """What was declared; secret-looking values as keyed hashes."""
    unset: tuple[str, ...] = ()
    scripts: dict[str, Script] = {}


class PastRun(Struct, frozen=True, kw_only=True):
    """A run of before, with its settings."""

    id: str
    name: str
    settings: Settings = Settings()
    stepped: bool = False
    """It is known to have reached stepping."""


class Change(Struct, frozen=True, kw_only=True):
    """One difference between the settings of two runs; None: it was or is not there."""

    kind: str
    """`env`, `argv`, `cwd` or `file`."""
    what: str = ""
    """The variable's or the file's name."""
    then: str | None = None
    now: str | None = None
    edited_at: float | None = None
    """When the file was written to, on the host's clock."""


class Changes(Struct, frozen=True, kw_only=True):
    """What differs from the last run that reached stepping."""

    since: str
    since_id: str
    items: tuple[Change, ...] = ()
    same: tuple[str, ...] = ()
    """What doesn't differ, in words: `run.sh`, `argv`, `6 env names`."""


class Run(Struct, frozen=True, kw_only=True):
    """The run that the console speaks of: the live one, else the last one."""

    id: str | None
    name: str
    by_hand: bool = False
    alive: bool | None = None
    """None when that isn't known (link lost before the first word, for instance)."""
    keeper_alive: bool | None = None
    pid: int | None = None
    argv: tuple[str, ...] = ()
    cwd: str = ""
    log_path: str | None = None
    operator: str = ""
    accepted_at: float | None = None
    spawned_at: float | None = None
    launch_s: float | None = None
    """Accepted to first step."""
    replaced: str | None = None
    exit: ExitStatus | None = None
    session: str = ""
    """Login scope that a hand-started run lives in and may die with."""
    stopping_by: str | None = None
    stopped_how: str = ""
    """What its stop came to, where `killing` is what its launch killed: `9 pids gone, 708 GiB freed`."""


class Lock(Struct, frozen=True, kw_only=True):
    """Who holds the target's lock."""

    operator: str
    origin: str = ""
    run_id: str = ""
    name: str = ""
    stage: str = ""
    since_at: float | None = None
    mine: bool = False


class Ages(Struct, frozen=True, kw_only=True):
    """Seconds since each source last spoke; None when it never did."""

    link: float | None = None
    log: float | None = None
    gpu: float | None = None
    process: float | None = None


class LostRestart(Struct, frozen=True, kw_only=True):
    """A restart whose keeper was lost before it had killed the run that it was to replace, which lives on."""

    id: str
    name: str
    operator: str
    stage: Stage


class Snapshot(Struct, frozen=True, kw_only=True):
    """Everything a face needs to know about one target at one moment."""

    schema: int = 1
    target: str
    at: float
    link: LinkStatus
    verdict: Verdict
    stages: tuple[StageStatus, ...]
    """Always the five stages in order."""
    active_stage: Stage | None = None
    run: Run | None = None
    last_known: Verdict | None = None
    """With the link lost: the verdict before that."""
    reason: ReasonView | None = None
    warnings: tuple[ReasonView, ...] = ()
    lost_restart: LostRestart | None = None
    usual_launches: int = 0
    """How many past launches of this kind, the cache cleared or kept, the usual times are from."""
    good: PastRun | None = None
    """The last run before this one that reached stepping, as far as the console knows of it."""
    changes: Changes | None = None
    """After a failure: what differs from `good`."""
    progress: Progress = Progress()
    gpus: GpuPanel = GpuPanel()
    container: ContainerView | None = None
    """None: nobody looks from the host itself, since there is no container or none is wanted."""
    log: LogStatus = LogStatus()
    processes: tuple[Process, ...] = ()
    lock: Lock | None = None
    ages: Ages = Ages()
    operator: str = ""
    read_only: bool = False
    host_started_at: float | None = None
    color: str | None = None
    """The target's accent from the config (`red` marks production)."""

    @property
    def run_id(self) -> str | None:
        return self.run.id if self.run is not None else None

    @property
    def steps_at_stake(self) -> int | None:
        """Steps since the last checkpoint, which a stop now would lose; None where no step is known of a live run."""
        if self.run is None or not self.run.alive or self.progress.step is None:
            return None
        return self.progress.step - (self.progress.checkpoint_step or 0)


class CheckState(StrEnum):
    OK = "ok"
    WARN = "warn"
    REFUSE = "refuse"


class Check(Struct, frozen=True, kw_only=True):
    """One preflight check with its outcome."""

    id: str
    state: CheckState
    detail: str = ""
    reason: str | None = None
    label: str = ""
    """A noun for the list of what was checked: `run.sh and its interpreter`."""


class CachePlan(Struct, frozen=True, kw_only=True):
    path: str
    exists: bool
    bytes: int | None = None
    files: int | None = None
    partial: bool = False
    """True when counting was cut short: the figures are lower bounds."""
    refused: str | None = None


class Plan(Struct, frozen=True, kw_only=True):
    """What a restart or a stop would do, before anything is touched."""

    plan_id: str
    action: str
    """`restart` or `stop`."""
    target: str
    name: str = ""
    argv: tuple[str, ...] = ()
    cwd: str = ""
    log_path: str = ""
    replaces: tuple[Process, ...] = ()
    replaced_name: str | None = None
    replaced_id: str | None = None
    replaced_by_hand: bool = False
    lost_steps: int | None = None
    checkpoint_step: int | None = None
    gpu_bytes: int | None = None
    """GPU memory that the replaced processes hold."""
    bystanders: tuple[Process, ...] = ()
    caches: tuple[CachePlan, ...] = ()
    keep_cache: bool = False
    stop_signal: str = "TERM"
    grace_s: float = 20.0
    env_changed: dict[str, tuple[str | None, str | None]] = {}
    """Against the last run: name -> (then, now); secret-looking values masked."""
    env_same: int = 0
    argv_before: tuple[str, ...] | None = None
    cwd_before: str | None = None
    """What they were in the run compared with, where they have changed."""
    files_changed: tuple[str, ...] = ()
    since: str = ""
    """The run that the differences are from: the last one known to have reached stepping, else the last one."""
    since_stepped: bool = False
    from_run: str | None = None
    """Name of the past run whose settings are taken again."""
    from_env: dict[str, tuple[str | None, str | None]] = {}
    """With `from_run`: name -> (config, that run), where they differ; secret-looking values masked."""
    checks: tuple[Check, ...] = ()
    usual_launch_s: float | None = None
    """Median time to the first step of past launches of this kind."""
    usual_launches: int = 0
    usual_other_s: float | None = None
    """The same for the other kind: with the cache kept where this plan clears it, and the other way round."""
    under_way: Lock | None = None
    made_at: float = 0.0

    @property
    def refused(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.state is CheckState.REFUSE)


class Overrides(Struct, frozen=True, kw_only=True):
    """What one restart changes against the config."""

    base: PastRun | None = None
    """Take command, directory and environment from this run instead of the config's; `env` and `args` come on top."""
    name: str | None = None
    env: dict[str, str] = {}
    unset: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    keep_cache: bool = False
    note: str = ""


class Accepted(Struct, frozen=True, kw_only=True):
    """The keeper has taken a request; nothing is promised beyond that."""

    run_id: str
    name: str
    action: str = "restart"


class Diagnosis(Struct, frozen=True, kw_only=True):
    """What a hung run could tell, saved on the operator's machine."""

    path: str
    bytes: int
    run: str | None = None
    run_id: str | None = None
