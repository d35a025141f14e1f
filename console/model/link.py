"""The way to a target: the connection, the container at its end, and how old is what came over it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class LinkState(StrEnum):
    CONNECTING = "connecting"  # never been up yet
    UP = "up"
    LOST = "lost"  # was up or failed to come up; being retried
    REFUSED = "refused"  # login, host key, container: not retried by itself


class LinkStatus(Struct, frozen=True, kw_only=True):
    state: LinkState
    rtt_s: float | None = None
    last_word_at: float | None = None
    """When the host was last heard of."""
    attempt: int = 0
    retry_at: float | None = None
    reason: str | None = None
    detail: str = ""
    clock_offset_s: float | None = None
    """Host wall clock minus console wall clock."""
    label: str = ""
    """Where the target is: `root@10.1.2.6 · via ops@jump · pct 200`."""


class ContainerView(Struct, frozen=True, kw_only=True):
    """The run's container as its host sees it; every field may be unavailable alone."""

    frozen: bool | None = None
    memory_limit_bytes: int | None = None
    """None: no limit, or not told."""
    memory_used_bytes: int | None = None
    oom_kills: int | None = None
    """Processes of it that were killed for want of memory since it was started."""
    why: str = ""
    """Why the host can't be asked, or not all of it."""


class Ages(Struct, frozen=True, kw_only=True):
    """Seconds since each source last spoke; None when it never did."""

    link: float | None = None
    log: float | None = None
    gpu: float | None = None
    process: float | None = None
