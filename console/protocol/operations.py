"""What the console asks of a host, one line each; what it asks of logs is in `logoperations`."""

from __future__ import annotations

from msgspec import Struct

from console.protocol.processes import ProcId
from console.protocol.spec import RunSpec


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
