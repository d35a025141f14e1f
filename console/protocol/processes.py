"""Processes as both sides name them: by pid and start, never by a pattern."""

from __future__ import annotations

from msgspec import Struct


class ProcId(Struct, frozen=True, kw_only=True):
    """A process by pid and start ticks (field 22 of /proc/PID/stat), never by pid alone."""

    pid: int
    start: int


class WireProcess(Struct, frozen=True, kw_only=True):
    pid: int
    start: int
    ppid: int | None = None
    argv: tuple[str, ...] = ()
    state: str = ""
    age_s: float | None = None
    rss: int | None = None
    cpu_pct: float | None = None
    uvm: bool = False
