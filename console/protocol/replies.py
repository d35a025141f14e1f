"""What the agent replies: the frame of every reply, and the data of those that aren't about logs."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from console.protocol.processes import ProcId, WireProcess
from console.protocol.records import LockHolder


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


class Taken(Struct, frozen=True, kw_only=True):
    """Reply data of Execute: the keeper runs and has taken the request."""

    run: str
    name: str
    keeper: ProcId | None = None
    state: str = ""
