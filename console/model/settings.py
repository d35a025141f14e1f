"""What a run was started with, and what differs from a run before."""

from __future__ import annotations

from msgspec import Struct


class Script(Struct, frozen=True, kw_only=True):
    """A file that a run is made of, as it was when the run was asked for."""

    sha256: str = ""
    mode: int | None = None
    mtime: float | None = None


class Settings(Struct, frozen=True, kw_only=True):
    """What a run was started with: what makes it another run than the one before."""

    argv: tuple[str, ...] = ()
    cwd: str = ""
    env: dict[str, str] = {}
    """What was declared; secret-looking values as keyed hashes."""
    unset: tuple[str, ...] = ()
    scripts: dict[str, Script] = {}


class PastRun(Struct, frozen=True, kw_only=True):
    """A run of before, with its settings."""

    id: str
    name: str
    settings: Settings = Settings()
    stepped: bool = False
    """It is known to have reached stepping."""


class Change(Struct, frozen=True, kw_only=True):
    """One difference between the settings of two runs; None: it was or is not there."""

    kind: str
    """`env`, `argv`, `cwd` or `file`."""
    what: str = ""
    """The variable's or the file's name."""
    then: str | None = None
    now: str | None = None
    edited_at: float | None = None
    """When the file was written to, on the host's clock."""


class Changes(Struct, frozen=True, kw_only=True):
    """What differs from the last run that reached stepping."""

    since: str
    since_id: str
    items: tuple[Change, ...] = ()
    same: tuple[str, ...] = ()
    """What doesn't differ, in words: `run.sh`, `argv`, `6 env names`."""
