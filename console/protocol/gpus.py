"""What the agent says of the GPUs, as the driver states it, and of who holds their memory."""

from __future__ import annotations

from msgspec import Struct


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


class GpusEvent(Struct, frozen=True, kw_only=True, tag_field="ev", tag="gpus"):
    bt: float
    source: str
    why: str = ""
    driver: str = ""
    rule: str = ""
    gpus: tuple[WireGpu, ...] = ()
    cuda_env: dict[str, str] | None = None
    """CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER as the trainer was started with them; None: not known."""
