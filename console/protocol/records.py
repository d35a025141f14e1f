"""What a keeper leaves on the host's disk: a run directory's files, the lock, the flight recorder."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from console.model import Script
from console.protocol.processes import ProcId


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
    untold: str = ""
    """Why the run's contexts can't be told: that none is listed here says nothing then."""
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


class LockHolder(Struct, frozen=True, kw_only=True):
    operator: str = ""
    origin: str = ""
    run: str = ""
    name: str = ""
    stage: str = ""
    since_wall: float | None = None
    since_bt: float | None = None
    action: str = ""


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
