"""What the command line remembers between two calls: plans that were shown, and which target a run id belongs to.

Files of 0600 under the user's state directory. A plan is never trusted: it only keeps the overrides, and the host is
asked for a new plan whose id must be the same. What has happened already is told whether or not it could be noted.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import msgspec
import platformdirs

from console.configfile import APP
from console.model import Overrides, Snapshot
from console.reasons import ConsoleError, Exit, Reason

_KEEP_S = 7 * 24 * 3600.0
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class StoredPlan(msgspec.Struct, frozen=True, kw_only=True):
    target: str
    action: str
    overrides: Overrides


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    target: str


class StoredWatch(msgspec.Struct, frozen=True, kw_only=True):
    """Where the last watch of a target ended."""

    seq: int
    snapshot: Snapshot


def save_watch(target: str, seq: int, snapshot: Snapshot) -> str | None:
    """Note where a watch ended; return why that can't be done."""
    return _noted("watches", target, msgspec.json.encode(StoredWatch(seq=seq, snapshot=snapshot)))


def load_watch(target: str) -> StoredWatch | None:
    """Return where the last watch ended; None where that isn't known, or was noted by another version."""
    data = _load("watches", target)
    try:
        return msgspec.json.decode(data, type=StoredWatch) if data is not None else None
    except msgspec.DecodeError:
        return None


def save_plan(plan_id: str, plan: StoredPlan) -> None:
    """Keep a plan for `--plan-id`. Raises: ConsoleError(NOTES_UNUSABLE)."""
    _save("plans", plan_id, msgspec.json.encode(plan))


def load_plan(plan_id: str) -> StoredPlan:
    """Return the plan that was shown under this id.

    Raises: ConsoleError(PLAN_UNKNOWN).
    """
    data = _load("plans", plan_id)
    if data is None:
        raise ConsoleError(Reason.PLAN_UNKNOWN, f"no plan {plan_id} was made here", Exit.REFUSED)
    return msgspec.json.decode(data, type=StoredPlan)


def save_run(run_id: str, target: str) -> str | None:
    """Note which target a run belongs to; return why that can't be done."""
    return _noted("runs", run_id, msgspec.json.encode(StoredRun(target=target)))


def target_of_run(run_id: str) -> str | None:
    data = _load("runs", run_id)
    return msgspec.json.decode(data, type=StoredRun).target if data else None


def _folder(kind: str) -> Path:
    return platformdirs.user_state_path(APP) / kind


def _noted(kind: str, key: str, data: bytes) -> str | None:
    try:
        _save(kind, key, data)
    except ConsoleError as error:
        return error.detail
    return None


def _save(kind: str, key: str, data: bytes) -> None:
    folder = _folder(kind)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _sweep(folder)
        temporary = folder / f".{key}.{os.getpid()}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        temporary.rename(folder / f"{key}.json")
    except OSError as exc:
        raise ConsoleError(Reason.NOTES_UNUSABLE, f"{folder}: {exc.strerror}", Exit.USAGE) from exc


def _load(kind: str, key: str) -> bytes | None:
    if not _ID.fullmatch(key):
        return None
    try:
        return (_folder(kind) / f"{key}.json").read_bytes()
    except OSError:
        return None


def _sweep(folder: Path) -> None:
    oldest = time.time() - _KEEP_S
    for path in folder.glob("*.json"):
        try:
            if path.stat().st_mtime < oldest:
                path.unlink()
        except OSError:
            continue
