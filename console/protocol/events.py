"""What the agent says on its own: who it is, what runs, what is written, what a person should know."""

from __future__ import annotations

from msgspec import Struct

from console.protocol.gpus import GpusEvent
from console.protocol.outside import OutsideEvent
from console.protocol.processes import ProcId, WireProcess
from console.protocol.records import LockHolder, LogIdent, RunRecord


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


AgentEvent = StateEvent | ProcsEvent | GpusEvent | LogEvent | OutsideEvent | Warn
