"""What to run and how to recognise it: what the console tells a host of a target."""

from __future__ import annotations

from msgspec import Struct


class GpuSpec(Struct, frozen=True, kw_only=True):
    expected: int | None = None
    simulated: str | None = None
    """Path of a GPU state file: the demo's source."""


class PreflightSpec(Struct, frozen=True, kw_only=True):
    free_gib: float | None = None
    files: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


class RunSpec(Struct, frozen=True, kw_only=True):
    """What to run and how to recognise it: the config of a target merged with one restart's overrides."""

    target: str
    name: str
    """Template (`slammed{n}`) or final name."""
    command: tuple[str, ...]
    cwd: str
    log: str
    """Template with `{name}`."""
    env: dict[str, str] = {}
    unset: tuple[str, ...] = ()
    match: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    keep_cache: bool = False
    stop_signal: str = "TERM"
    grace_s: float = 20.0
    start_s: float = 1.0
    """Alive for this long after exec means spawned."""
    preflight: PreflightSpec = PreflightSpec()
    gpus: GpuSpec = GpuSpec()
