"""The configuration as frozen structs: one Target per training host.

Only the shape lives here; reading, checking and writing files is `configfile`. Units stand in the names.
"""

from __future__ import annotations

from msgspec import Struct, field


class Stop(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    signal: str = "TERM"
    grace_s: float = 20.0


class Preflight(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    free_gib: float | None = None
    files: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


class Gpus(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    expected: int | None = None
    """How many GPUs the run must open; None means all that the source lists."""
    roles: dict[str, tuple[int, ...]] = {}
    simulated: str | None = None
    """A GPU state file on the host instead of NVML: the demo's source."""


class Metrics(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: str = "auto"
    tokens_per_step: int | None = None
    baseline: float | str | None = None
    show: str | None = None
    """The number of the step lines that is plotted where the queue is."""


class Deadlines(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seconds after which a stage is called late. A deadline passed is a warning, never a kill."""

    killing: float = 90.0
    cache: float = 30.0
    spawned: float = 15.0
    cuda: float = 300.0
    stepping: float = 1200.0


class Target(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One place where one run at a time lives."""

    host: str = "local"
    """Address or a Host of ~/.ssh/config; `local` runs without SSH."""
    user: str | None = None
    port: int | None = None
    jump: str | None = None
    identity: str | None = None
    known_hosts: str | None = None
    exec: tuple[str, ...] = ()
    """Prefix that enters the container: `["pct", "exec", "200", "--"]`."""
    python: str = "python3"
    host_helper: bool | None = None
    """Whether a second agent looks from the host itself, outside of the container; None: with `exec`, over SSH."""
    state_dir: str | None = None
    command: tuple[str, ...] = ()
    cwd: str = "/root"
    env: dict[str, str] = {}
    name: str = "run{n}"
    log: str = "/tmp/{name}.log"
    match: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    stop: Stop = field(default_factory=Stop)
    preflight: Preflight = field(default_factory=Preflight)
    gpus: Gpus = field(default_factory=Gpus)
    metrics: Metrics = field(default_factory=Metrics)
    deadlines: Deadlines = field(default_factory=Deadlines)
    color: str | None = None

    @property
    def wants_host_helper(self) -> bool:
        if not self.exec:
            return False  # the agent itself is on the host
        return self.host != "local" if self.host_helper is None else self.host_helper


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    default_target: str | None = None
    targets: dict[str, Target] = {}
