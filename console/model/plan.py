"""What a restart or a stop would do, what the operator changes about it, and what came of asking for it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from console.model.run import Lock, Process
from console.model.settings import PastRun


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
