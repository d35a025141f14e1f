"""The file that a run's log is: whether it is there, and how far it has been read."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class LogState(StrEnum):
    UNKNOWN = "unknown"
    NONE = "none"  # no log is known for this run
    MISSING = "missing"
    EMPTY = "empty"
    FOLLOWING = "following"
    TRUNCATED = "truncated"
    ROTATED = "rotated"
    DELETED = "deleted"
    UNREADABLE = "unreadable"


class LogStatus(Struct, frozen=True, kw_only=True):
    state: LogState = LogState.UNKNOWN
    path: str | None = None
    size_bytes: int | None = None
    inode: int | None = None
    detail: str = ""
    at: float | None = None
    """When the file was last looked at."""
    grew_at: float | None = None
    """When it last grew."""
    caught_up: bool = False
    """Everything up to `size_bytes` has been read."""
    unread: bool = False
    """What stood in it when it was opened is still being read: how far the run has come can't be told from it yet."""
    mishap: LogState | None = None
    """That it was truncated or rotated last, and when; the state itself says so only in that moment."""
    mishap_at: float | None = None
    filesystem: str = ""
    """Its type where that is a network's: `nfs4`."""
    lost: str | None = None
    """Why the connection that carries the log is down while the link is up; None where it isn't."""
