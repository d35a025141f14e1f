"""The GPUs of a target as last sampled, whose memory it is, and what is wrong with them."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


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
    is_kept: bool = False
    """What was kept of a run of before, at its end: no source answers, and no process is listed."""
    gpus: tuple[Gpu, ...] = ()
    notes: tuple[GpuNote, ...] = ()
    """What is wrong, the gravest first."""
