"""A run: its processes, how it ended, and who is at work on it."""

from __future__ import annotations

from msgspec import Struct

from console.model.stages import Stage


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


class LostRestart(Struct, frozen=True, kw_only=True):
    """A restart whose keeper was lost before it had killed the run that it was to replace, which lives on."""

    id: str
    name: str
    operator: str
    stage: Stage
