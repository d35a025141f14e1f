"""What the helper on the host itself sees that nobody inside of the container can."""

from __future__ import annotations

from msgspec import Struct


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
