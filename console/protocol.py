"""The words between console and agent, and the files that the keeper leaves: one schema for both.

One JSON object a line. The console sends *operations* (`op`, `id`), the agent answers each with a reply (`re`, `ok`)
and sends *events* (`ev`) on its own. A reply or event with `n` is followed by exactly `n` raw bytes. The host side is
written in plain dicts (standard library only); these structs are what the console decodes them into, and the
documentation of their fields. Times named `*_bt` are seconds of the host's CLOCK_BOOTTIME, `*_wall` its wall clock.
Unknown fields are ignored and every field that may be absent has a default, since a keeper can be older than its
console.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from console.model import Script

PROTOCOL_VERSION = 1
MAX_LINE_BYTES = 4 * 1024 * 1024


class ProcId(Struct, frozen=True, kw_only=True):
    """A process by pid and start ticks (field 22 of /proc/PID/stat), never by pid alone."""

    pid: int
    start: int


# -- what the console sends -------------------------------------------------------------------------------------------


class GpuSpec(Struct, frozen=True, kw_only=True):
    expected: int | None = None
    simulated: str | None = None
    """Path of a GPU state file: the demo's source."""


class PreflightSpec(Struct, frozen=True, kw_only=True):
    free_gib: float | None = None
    files: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


class RunSpec(Struct, frozen=True, kw_only=True):
    """What to run and how to recognise it: the config of a target merged with one restart's overrides."""

    target: str
    name: str
    """Template (`slammed{n}`) or final name."""
    command: tuple[str, ...]
    cwd: str
    log: str
    """Template with `{name}`."""
    env: dict[str, str] = {}
    unset: tuple[str, ...] = ()
    match: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    keep_cache: bool = False
    stop_signal: str = "TERM"
    grace_s: float = 20.0
    start_s: float = 1.0
    """Alive for this long after exec means spawned."""
    preflight: PreflightSpec = PreflightSpec()
    gpus: GpuSpec = GpuSpec()


class Watch(Struct, frozen=True, kw_only=True, tag_field="op", tag="watch"):
    """First operation on the control connection: what to watch, for how long without a word from us."""

    id: int
    spec: RunSpec
    state_dir: str | None = None
    interval_s: float = 1.0
    lease_s: float = 20.0


class Ping(Struct, frozen=True, kw_only=True, tag_field="op", tag="ping"):
    """Renews the lease; answered with Pong fields `bt` and `wall`."""

    id: int


class MakePlan(Struct, frozen=True, kw_only=True, tag_field="op", tag="plan"):
    """Answered with a WirePlan. Touches nothing."""

    id: int
    action: str  # "restart" | "stop"
    spec: RunSpec
    compare_to: str | None = None
    """Id of the run to tell the differences from: the last one known to have reached stepping; None: the last one."""
    state_dir: str | None = None


class Examine(Struct, frozen=True, kw_only=True, tag_field="op", tag="doctor"):
    """Answered with a WireExamination: what the host is like. Touches nothing but a probe in the state directory."""

    id: int
    spec: RunSpec
    state_dir: str | None = None


class Diagnose(Struct, frozen=True, kw_only=True, tag_field="op", tag="diagnose"):
    """Answered with what is seen of the live run: raw UTF-8 text, secrets scrubbed. Touches nothing.

    Either connection takes it.
    Refused with nothing_runs where no process of a run is there.
    """

    id: int
    spec: RunSpec
    state_dir: str | None = None


class Execute(Struct, frozen=True, kw_only=True, tag_field="op", tag="execute"):
    """Carry a plan out. Answered when a keeper has taken it (`state`), or refused with a reason.

    `request` is also the run's id; a resend with the same one answers as the first did and starts nothing. It names the
    state directory itself: it may reach a new agent before the Watch does, and elsewhere it would be a second request.
    """

    id: int
    request: str
    action: str
    spec: RunSpec
    name: str
    log_path: str
    replaces: tuple[ProcId, ...]
    replaced_id: str | None
    operator: str
    origin: str
    ttl_s: float = 60.0
    note: str = ""
    state_dir: str | None = None


class LogFollow(Struct, frozen=True, kw_only=True, tag_field="op", tag="log_follow"):
    """Bulk connection: send this file from `offset` on (negative: that many bytes before its end), and go on.

    With `dev`, `inode` and `fingerprint` (hex of the up to 1,024 bytes before `offset`) the agent proves that it is
    still the same content; else it answers with state `rotated` or `truncated` and starts at 0.
    Only one file is followed at a time; a new LogFollow replaces the old one.
    """

    id: int
    path: str
    offset: int
    pid: int | None = None
    """Fall back to /proc/PID/fd/1 where the path is gone (deleted while open)."""
    dev: int | None = None
    inode: int | None = None
    fingerprint: str | None = None
    credit_bytes: int = 262144


class LogCredit(Struct, frozen=True, kw_only=True, tag_field="op", tag="log_credit"):
    """No reply: allows `bytes` more of LogChunk data to be sent."""

    bytes: int


class LogRead(Struct, frozen=True, kw_only=True, tag_field="op", tag="log_read"):
    """Answered with raw bytes (`n`) of the range, and `size` of the file now."""

    id: int
    path: str
    offset: int
    length: int


class LogSample(Struct, frozen=True, kw_only=True, tag_field="op", tag="log_sample"):
    """Answered with `count` ranges of `length` bytes, spread evenly over [first, last): raw bytes (`n`), one range
    after the other, and their `offsets` and `sizes`. Costs the same whatever the file's size."""

    id: int
    path: str
    first: int
    last: int
    """Below 0: before the file's end."""
    count: int
    length: int
    larger_than: int = 0
    """Of a file of at most so many bytes nothing is sent."""


class ErrorRule(Struct, frozen=True, kw_only=True):
    """What makes a line an error, as data: regular expressions that every Python from 3.8 on reads the same way."""

    words: tuple[str, ...]
    """A line that holds none of them is no error, but for its level."""
    prefix: str
    """Time stamps, ranks and logger names that may stand before a record (verbose syntax)."""
    here: str
    """An error where the prefix ends."""
    anywhere: str
    after: str
    """An error anywhere, unless `unless` is there, too."""
    unless: str
    level: str
    """Group `level`, where the prefix ends, is E or F."""


class LogQuery(Struct, frozen=True, kw_only=True):
    """Which lines are meant: those that a pattern is found in, or, with a rule, those that are errors."""

    pattern: str = ""
    """A regular expression, or with `literal` a text."""
    literal: bool = False
    ignore_case: bool = False
    needle: str = ""
    """An ASCII text without which a regular expression can't match: lines without it are passed over."""
    errors: ErrorRule | None = None


class LogLines(Struct, frozen=True, kw_only=True, tag_field="op", tag="log_lines"):
    """Answered with whole lines from (or, with `back`, before) `offset`, as raw bytes and their `pieces` (WireLines).

    The offset is a line's start or -1, the end of the file; with `align` it may be any byte of the line that is meant.
    With a query only lines that match; it looks for a second at most, and `scanned_to` says how far it came.
    """

    id: int
    path: str
    offset: int
    length: int
    pid: int | None = None
    """Fall back to /proc/PID/fd/1 where the path is gone."""
    back: bool = False
    align: bool = False
    query: LogQuery | None = None
    limit: int = 0
    """Lines at most; 0: as many as the agent gives."""
    slice_s: float = 0.5


class LogCount(Struct, frozen=True, kw_only=True, tag_field="op", tag="log_count"):
    """Answered with a WireCount: how many lines from a line's start on match, and where; it looks for a slice only."""

    id: int
    path: str
    offset: int
    query: LogQuery
    pid: int | None = None
    slice_s: float = 0.5


class LogFiles(Struct, frozen=True, kw_only=True, tag_field="op", tag="log_files"):
    """Answered with the WireFiles that the template of a log could have made."""

    id: int
    template: str


class Outside(Struct, frozen=True, kw_only=True, tag_field="op", tag="outside"):
    """To the helper on the host itself: which container is meant, and which pids. Answered with {}, and OutsideEvents.

    The container is the one in which a process of this pid and start (as seen inside) lives in this pid namespace.
    """

    id: int
    agent: ProcId
    pid_ns: str
    pids: tuple[int, ...] = ()
    """Pids that the driver lists, to be looked up as the host's."""
    tree: tuple[ProcId, ...] = ()
    """The run's processes as seen inside: known so to the helper, they are recognised in the kernel log."""


class Recorder(Struct, frozen=True, kw_only=True, tag_field="op", tag="recorder"):
    """Answered with the flight recorder of a run: `records` (see Growth). Megabytes: to be asked over bulk.

    `target`: "" is the one that is watched; the bulk agent watches none.
    """

    id: int
    run: str
    target: str = ""
    state_dir: str | None = None


class Bye(Struct, frozen=True, kw_only=True, tag_field="op", tag="bye"):
    """Ends the agent at once."""


# -- what the agent says ----------------------------------------------------------------------------------------------


class Hello(Struct, frozen=True, kw_only=True):
    """First line after the bootstrap."""

    v: int
    pid: int
    start: int | None = None
    pid_ns: str = ""
    """Its pid namespace, `pid:[4026532211]`: what the host itself knows the container by."""
    python: str
    boot: str
    """`boot_id/start ticks of pid 1`: changes when the host or the container restarts."""
    user: str
    uid: int
    node: str
    bt: float
    wall: float
    booted_wall: float
    utc_offset_s: int = 0
    """How far local time there is ahead of UTC: what the time stamps of a log mean."""
    systemd: bool
    systemd_system: bool = False
    """A system manager answers, so services can be started."""
    state_dir: str = ""


class HostStage(Struct, frozen=True, kw_only=True):
    """A stage as the keeper journals it, written before and after the deed."""

    state: str  # active | done | skipped | failed
    began_wall: float | None = None
    began_bt: float | None = None
    ended_wall: float | None = None
    ended_bt: float | None = None
    evidence: str = ""
    detail: str = ""
    why: str = ""
    reason: str | None = None


class LogIdent(Struct, frozen=True, kw_only=True):
    path: str
    dev: int | None = None
    inode: int | None = None
    opened: str = ""
    """The log that was opened for the run, where its run.sh writes to `path` instead."""


class ExitRecord(Struct, frozen=True, kw_only=True):
    code: int | None = None
    signal: int | None = None
    ended_wall: float | None = None
    ended_bt: float | None = None
    lived_s: float | None = None
    by: str | None = None
    by_request: str | None = None
    oom: str = "unknown"
    oom_detail: str = ""
    all_gone: bool = False
    """ECHILD was reached: nothing of the run is left."""
    stragglers: tuple[str, ...] = ()
    exec_errno: int | None = None


class CudaRecord(Struct, frozen=True, kw_only=True):
    contexts: tuple[int, ...] = ()
    parts: tuple[str, ...] = ()
    """UUIDs of the MIG instances that hold one."""
    have: int | None = None
    """How many devices of CUDA's hold one where they are MIG instances; else as many as `contexts`."""
    expected: int | None = None
    rule: str = ""
    source: str = ""
    why: str = ""
    first_bt: float | None = None
    complete_bt: float | None = None


class RunRecord(Struct, frozen=True, kw_only=True):
    """A run directory's files in one object: run.json, status.json, exit.json."""

    id: str
    action: str = "restart"
    name: str = ""
    target: str = ""
    boot: str = ""
    state: str = ""
    """accepted | killing | cache | spawned | running | ended | stopped | refused | failed | interrupted"""
    operator: str = ""
    origin: str = ""
    note: str = ""
    accepted_wall: float = 0.0
    accepted_bt: float = 0.0
    argv: tuple[str, ...] = ()
    cwd: str = ""
    env: dict[str, str] = {}
    """What the config and the operator declared; secret-looking values as keyed hashes."""
    unset: tuple[str, ...] = ()
    scripts: dict[str, Script] = {}
    keep_cache: bool | None = None
    """Whether no cache was to be cleared; None where the record is too old to say."""
    log: LogIdent | None = None
    stages: dict[str, HostStage] = {}
    """Of a run that was stopped, `killing` is its own end."""
    launch_killing: HostStage | None = None
    """What its launch killed, where it was stopped since."""
    replaced_id: str | None = None
    replaced_name: str | None = None
    keeper: ProcId | None = None
    keeper_alive: bool | None = None
    main: ProcId | None = None
    main_alive: bool | None = None
    alive: bool | None = None
    """Something of the run's process tree lives."""
    cuda: CudaRecord | None = None
    gpu_peak: dict[str, int] = {}
    """GPU index -> highest bytes used while the run lived."""
    exit: ExitRecord | None = None
    reason: str | None = None
    detail: str = ""
    stopping: str | None = None
    """Operator whose stop or restart is being carried out on this run."""
    stopping_text: str = ""
    """How far the keeper is with it: `TERM, 14 s of 20 s left`."""
    spawned_bt: float | None = None


class HandRun(Struct, frozen=True, kw_only=True):
    """A run that no keeper of ours started, recognised by an exact argv element."""

    main: ProcId
    argv: tuple[str, ...]
    matched: str
    cwd: str = ""
    age_s: float | None = None
    started_by: str = ""
    session: str = ""
    pids: tuple[ProcId, ...] = ()
    """The main process and its kin: descendants, holders of its log or of nvidia-uvm that descend from it."""
    log: LogIdent | None = None


class WireProcess(Struct, frozen=True, kw_only=True):
    pid: int
    start: int
    ppid: int | None = None
    argv: tuple[str, ...] = ()
    state: str = ""
    age_s: float | None = None
    rss: int | None = None
    cpu_pct: float | None = None
    uvm: bool = False


class WireHolder(Struct, frozen=True, kw_only=True):
    """A process on a GPU that isn't the run's."""

    pid: int
    bytes: int | None = None
    name: str = ""
    user: str = ""
    seen: bool = False
    """It can be seen from where we look, by proof; else the pid is only what the driver states."""
    place: str = ""
    """Where it runs, once the host itself has said so: `in this container`, `on the host`, `in container 201`."""


class WireInstance(Struct, frozen=True, kw_only=True):
    """A MIG instance of a divided GPU."""

    i: int
    uuid: str | None = None
    name: str | None = None
    used: int | None = None
    total: int | None = None
    procs: tuple[tuple[int, int | None], ...] | None = None
    context: bool | None = None
    """Whether the current run holds a context on it."""


class WireGpu(Struct, frozen=True, kw_only=True):
    i: int
    uuid: str = ""
    name: str = ""
    bus: str = ""
    used: int | None = None
    total: int | None = None
    reserved: int | None = None
    """What the driver keeps for itself; not in `used`."""
    util: int | None = None
    power_mw: int | None = None
    limit_mw: int | None = None
    temp: int | None = None
    hot_at: int | None = None
    """Degrees at which it slows itself down."""
    sm_mhz: int | None = None
    sm_max_mhz: int | None = None
    throttle: int | None = None
    """Mask of NVML's clock event reasons."""
    ecc: int | None = None
    """Uncorrected memory errors since the driver was loaded."""
    retired: int | None = None
    """Pages or rows of memory that were taken out of use."""
    pending: bool | None = None
    """More of them wait for a reset."""
    xid: int | None = None
    """The newest error that the driver reported while somebody looked."""
    mig: tuple[WireInstance, ...] | None = None
    """Its instances; None: not divided, or not told."""
    lost: str = ""
    """`gone from the bus`, `needs a reset`: it answers nothing any more."""
    procs: tuple[tuple[int, int | None], ...] | None = None
    """(pid, bytes or None) as the source states them; None where it can't list processes."""
    context: bool | None = None
    """Whether the current run holds a context here."""
    owner: str = "unknown"
    owner_why: str = ""
    """Why the owner can't be told or proven."""
    others: tuple[WireHolder, ...] = ()
    peak: int | None = None
    warning: str = ""


class LockHolder(Struct, frozen=True, kw_only=True):
    operator: str = ""
    origin: str = ""
    run: str = ""
    name: str = ""
    stage: str = ""
    since_wall: float | None = None
    since_bt: float | None = None
    action: str = ""


class StateEvent(Struct, frozen=True, kw_only=True, tag_field="ev", tag="state"):
    """What runs on this target: sent at the start and whenever anything in it changes."""

    bt: float
    wall: float
    run: RunRecord | None = None
    """The newest accepted restart's record, alive or ended; None where there is none."""
    hand: tuple[HandRun, ...] = ()
    lock: LockHolder | None = None
    last: tuple[RunRecord, ...] = ()
    """Older runs, newest first, at most 20 (sent with the first event and when a run ends)."""


class ProcsEvent(Struct, frozen=True, kw_only=True, tag_field="ev", tag="procs"):
    bt: float
    procs: tuple[WireProcess, ...] = ()
    cpu_cores: float | None = None
    writes: str = ""
    """Another text file that the run writes to, while its log is silent or it has none."""
    writes_pid: int | None = None


class GpusEvent(Struct, frozen=True, kw_only=True, tag_field="ev", tag="gpus"):
    bt: float
    source: str
    why: str = ""
    driver: str = ""
    rule: str = ""
    gpus: tuple[WireGpu, ...] = ()
    cuda_env: dict[str, str] | None = None
    """CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER as the trainer was started with them; None: not known."""


class LogEvent(Struct, frozen=True, kw_only=True, tag_field="ev", tag="log"):
    """Bulk: a chunk (`n` raw bytes follow, 0 for a pure status) of the followed file."""

    bt: float
    path: str
    state: str
    """missing | empty | following | truncated | rotated | deleted | unreadable"""
    offset: int = 0
    size: int | None = None
    dev: int | None = None
    inode: int | None = None
    n: int = 0
    skipped_from: int | None = None
    """With this set, bytes [skipped_from, offset) were left out because the follower was too far behind."""
    full: bool = False
    """Not a block is free where the file lies: what the run says now can't be written."""
    fs: str = ""
    """The type of its filesystem where that is a network's: sizes and ends may be seconds old."""
    detail: str = ""


class Warn(Struct, frozen=True, kw_only=True, tag_field="ev", tag="warn"):
    """Something on the host that a person should know: slug and sentence."""

    bt: float
    reason: str
    detail: str = ""


class OutsidePid(Struct, frozen=True, kw_only=True):
    """Who a pid is, as the host counts."""

    pid: int
    place: str = "unknown"
    """container | host | elsewhere | gone | unknown (we may not look)"""
    start: int | None = None
    inner: int | None = None
    """Its pid inside of the container."""
    name: str = ""
    user: str = ""
    label: str = ""
    """Which other container it is in, where that can be told."""
    uvm: bool = False


class OutsideContainer(Struct, frozen=True, kw_only=True):
    """The container's cgroup; None each where that can't be told, and `limit` where there is none."""

    frozen: bool | None = None
    limit: int | None = None
    used: int | None = None
    oom_kills: int | None = None


class KernelNote(Struct, frozen=True, kw_only=True):
    """A line of the host's kernel log: kind `xid` or `oom`."""

    kind: str
    bt: float
    text: str = ""
    pid: int | None = None
    inner: int | None = None
    """The pid inside of the container, where it is known to be one of its processes."""
    name: str = ""
    bus: str = ""
    xid: int | None = None
    group: str = ""
    limit: str = ""
    """The cgroup whose limit was met; "": the whole machine was out of memory."""


class OutsideEvent(Struct, frozen=True, kw_only=True, tag_field="ev", tag="outside"):
    """What the helper on the host itself sees, all of it, whenever something changes."""

    bt: float
    apart: bool = False
    """The container has a pid namespace of its own."""
    pids: tuple[OutsidePid, ...] = ()
    container: OutsideContainer | None = None
    kernel: tuple[KernelNote, ...] = ()
    cannot: dict[str, str] = {}
    """What can't be told, and why: `container`, `kernel`."""


AgentEvent = StateEvent | ProcsEvent | GpusEvent | LogEvent | OutsideEvent | Warn


class WireError(Struct, frozen=True, kw_only=True):
    reason: str
    detail: str = ""
    data: dict[str, Any] = {}


class Reply(Struct, frozen=True, kw_only=True):
    """`{"re": id, "ok": true, "data": {...}}` or `{"re": id, "ok": false, "error": {...}}`."""

    re: int
    ok: bool
    data: dict[str, Any] = {}
    error: WireError | None = None
    n: int = 0


class WireCheck(Struct, frozen=True, kw_only=True):
    id: str
    state: str  # ok | warn | refuse
    detail: str = ""
    reason: str | None = None
    label: str = ""


class WireFinding(Struct, frozen=True, kw_only=True):
    """One check of the host. `id` is `host.python`, `gpu.nvml`, ...; `next`: what to do, where the reason's own advice
    is too general."""

    id: str
    state: str  # ok | warn | refuse | unknown
    detail: str = ""
    reason: str | None = None
    next: str = ""
    took_s: float = 0.0


class WireExamination(Struct, frozen=True, kw_only=True):
    """Reply data of Examine."""

    findings: tuple[WireFinding, ...] = ()
    log: str | None = None
    """The newest log: of the run, of a run started by hand, or of those that the template could have made."""


class WireCache(Struct, frozen=True, kw_only=True):
    path: str
    exists: bool
    bytes: int | None = None
    files: int | None = None
    partial: bool = False
    refused: str | None = None


class WirePlan(Struct, frozen=True, kw_only=True):
    """Reply data of MakePlan. `plan_id` hashes what compare-and-swap compares: pids with starts, argv, cwd, log, name,
    env, caches, script hashes; not ages or sizes."""

    plan_id: str
    action: str
    name: str = ""
    argv: tuple[str, ...] = ()
    cwd: str = ""
    log_path: str = ""
    replaces: tuple[WireProcess, ...] = ()
    replaced_id: str | None = None
    replaced_name: str | None = None
    by_hand: bool = False
    bystanders: tuple[WireProcess, ...] = ()
    caches: tuple[WireCache, ...] = ()
    checks: tuple[WireCheck, ...] = ()
    since_id: str | None = None
    since_name: str = ""
    """The run that the differences are from; None: there is none to compare with."""
    env_changed: dict[str, tuple[str | None, str | None]] = {}
    env_same: int = 0
    argv_before: tuple[str, ...] | None = None
    cwd_before: str | None = None
    """What they were, where they have changed."""
    files_changed: tuple[str, ...] = ()
    gpu_bytes: int | None = None
    lock: LockHolder | None = None


class WireLines(Struct, frozen=True, kw_only=True):
    """Reply data of LogLines; the bytes of the pieces follow each other in the raw bytes of the reply."""

    size: int
    dev: int
    inode: int
    begin: int = 0
    """The offset that was meant, once aligned."""
    scanned_to: int = 0
    """Where the next look goes on."""
    pieces: tuple[tuple[int, int, int, int, int], ...] = ()
    """Each: offset, bytes, bytes of the tail where those are only the head of one long line, end in the file, and
    how many lines stand between `begin` and it (-1: not counted)."""


class WireCount(Struct, frozen=True, kw_only=True):
    """Reply data of LogCount."""

    size: int
    dev: int
    inode: int
    to: int = 0
    """Where it stopped, at a line's start; what is behind it and unfinished isn't counted."""
    hits: int = 0
    lines: int = 0
    found: tuple[tuple[int, int], ...] = ()
    """Of the first hits: offset, and lines before it since the offset asked for."""


class WireFile(Struct, frozen=True, kw_only=True):
    path: str
    size: int = 0
    mtime: float = 0.0
    """The host's wall clock."""


class WireFiles(Struct, frozen=True, kw_only=True):
    """Reply data of LogFiles, newest first."""

    files: tuple[WireFile, ...] = ()
    total: int = 0


class Taken(Struct, frozen=True, kw_only=True):
    """Reply data of Execute: the keeper runs and has taken the request."""

    run: str
    name: str
    keeper: ProcId | None = None
    state: str = ""


class Growth(Struct, frozen=True, kw_only=True):
    """A line of recorder.ndjson. `k` is `log` (size of the log), `stage`, `gpukind`, `gpu`, `who`, `proc` or `exit`."""

    k: str
    bt: float
    wall: float = 0.0
    size: int | None = None
    stage: str | None = None
    state: str | None = None
    detail: str = ""
    gpus: list[list[int | None]] = []
    """For `gpu`: [index, used_bytes, util_pct, power_mw, temp, sm_mhz, throttle] each; older keepers wrote four."""
    held: list[int] = []
    """For `gpu`: where the run has a context."""
    kinds: list[list[Any]] = []
    """For `gpukind`: [index, uuid, name, total, limit_mw, hot_at, sm_max_mhz, lost] each."""
    source: str | None = None
    driver: str | None = None
    why: str | None = None
    who: list[tuple[int, int, int, str]] = []
    """For `who`: pid, start ticks, parent, command name."""
    procs: list[tuple[int, str, int, int]] = []
    """For `proc`: pid, state, bytes, ticks of CPU time."""
