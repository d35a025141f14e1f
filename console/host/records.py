"""Run directories read back: request, run, status and exit merged into one RunRecord, judged by what lives now.

Reading only. `Runs` keeps what it has read and looks again only at files that changed, so that asking twenty times a
second costs next to nothing. A record's identity is boot + pid + start ticks; a pattern or a bare pid is never trusted.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import files, procfs, secretenv

Record = Dict[str, Any]

FILES = ("request.json", "run.json", "status.json", "exit.json")
IN_TRANSIT = frozenset({"accepted", "killing", "cache", "spawned"})
"""States in which a keeper carries a transaction out: without a living keeper it was interrupted."""
NEVER_TAKEN = frozenset({"", "refused"})
# A keeper says its first word within milliseconds of its start, and has to start within 5 s (startkeeper).
_FIRST_WORD_S = 10.0
MAX_OLDER = 20
_LATEST = 3

_FROM_REQUEST = ("action", "name", "operator", "origin", "note", "accepted_wall", "accepted_bt", "boot", "replaced_id")
_FIELDS = (
    *_FROM_REQUEST,
    *("target", "state", "argv", "cwd", "env", "log", "stages", "replaced_name", "keeper", "main", "cuda", "gpu_peak"),
    *("reason", "detail", "stopping", "stopping_text", "spawned_bt", "launch_killing"),
)

IsAlive = Callable[[int, int], bool]


def load(directory: str, boot: str, is_alive: IsAlive = procfs.is_alive) -> Optional[Record]:
    """Return the record that the files in `directory` make up now, or None where there is no request in it."""
    return judge(merge(directory, [files.read_json(directory, name) for name in FILES]), boot, is_alive)


def merge(directory: str, contents: List[Optional[Dict[str, Any]]]) -> Optional[Record]:
    """Return what the four files say, nothing judged. `_request` holds request.json, for plans."""
    request, run, status, end = contents
    if request is None:
        return None
    spec = request.get("spec") or {}
    record: Record = {
        "id": str(request.get("request") or os.path.basename(directory)),
        "target": spec.get("target", ""),
        "argv": spec.get("command", []),
        "cwd": spec.get("cwd", ""),
        "env": spec.get("env", {}),
        "unset": spec.get("unset", []),
        "keep_cache": bool(spec.get("keep_cache") or not spec.get("caches")),
        "scripts": request.get("scripts") or {},
        "state": "",
    }
    if request.get("log_path"):
        record["log"] = {"path": request["log_path"]}
    record.update({key: request[key] for key in _FROM_REQUEST if request.get(key) is not None})
    for content in (run, status):
        record.update({key: content[key] for key in _FIELDS if content and content.get(key) is not None})
    record["exit"] = {key: value for key, value in end.items() if key != "schema"} if end else None
    record["_request"] = request
    record["_status"] = status or {}
    return record


def judge(record: Optional[Record], boot: str, is_alive: IsAlive = procfs.is_alive) -> Optional[Record]:
    """Return `record` with what can only be said by looking at the processes: who lives, what was interrupted."""
    if record is None:
        return None
    judged = dict(record)
    here = judged.get("boot") == boot
    state = judged.get("state", "")
    judged["keeper_alive"] = here and _lives(judged.get("keeper"), is_alive)
    judged["main_alive"] = here and _lives(judged.get("main"), is_alive)
    gone = bool((judged.get("exit") or {}).get("all_gone"))
    has_tree = judged.get("main") is not None and judged["keeper_alive"] and not gone
    judged["alive"] = judged["main_alive"] or has_tree
    if judged["keeper_alive"]:
        return judged
    if state in IN_TRANSIT:
        judged["state"] = "interrupted"
        judged["detail"] = judged.get("detail") or f"the keeper was lost while it was at: {state}"
    elif state == "" and not (here and procfs.boottime() - judged.get("accepted_bt", 0.0) < _FIRST_WORD_S):
        judged["state"], judged["reason"] = "refused", "keeper_not_started"
    return judged


def _lives(ident: Optional[Dict[str, Any]], is_alive: IsAlive) -> bool:
    return ident is not None and is_alive(ident["pid"], ident["start"])


def wire(record: Optional[Record]) -> Optional[Record]:
    """Return the record as it is sent: without what begins with an underscore, and without a secret.

    A request that no keeper has scrubbed yet still holds them in plain text.
    """
    if record is None:
        return None
    sent = {key: value for key, value in record.items() if not key.startswith("_")}
    sent["env"] = secretenv.covered(record.get("env") or {})
    return sent


class Runs:
    """All run directories of one target, newest first."""

    def __init__(self, state: str, target: str, boot: str) -> None:
        self.directory = files.runs_dir(state, target)
        self._boot = boot
        self._stamps: Dict[str, Tuple[Any, ...]] = {}
        self._merged: Dict[str, Record] = {}
        self._listed: Any = None
        self._names: List[str] = []
        self.changes = 0
        """Counts what `refresh` has found: what the files say is the same while it is."""

    def refresh(self, thorough: bool = True) -> bool:
        """Look for what changed; return whether anything did. Not thorough: only at new runs and the latest ones."""
        changed = self._list()
        names = self._names if thorough else self._names[:_LATEST]
        for name in names:
            changed = self._look_at(name) or changed
        if changed:
            self.changes += 1
            self._names.sort(key=self._age_key, reverse=True)
        return changed

    def latest(self) -> List[str]:
        """Return the directories of the runs that something may still happen in."""
        return [os.path.join(self.directory, name) for name in self._names[:_LATEST]]

    def all(self) -> List[Record]:
        """Return every record, judged now, the newest accepted first."""
        found = (judge(self._merged.get(name), self._boot) for name in self._names)
        return [record for record in found if record is not None]

    def newest(self, count: int = MAX_OLDER + 1) -> List[Record]:
        found = (judge(self._merged.get(name), self._boot) for name in self._names[:count])
        return [record for record in found if record is not None]

    def get(self, run: str) -> Optional[Record]:
        """Return the record of one run, read anew."""
        return load(os.path.join(self.directory, files.safe_name(run)), self._boot)

    def _list(self) -> bool:
        try:
            found = os.stat(self.directory)
        except OSError:
            return False
        listed = (found.st_ino, found.st_mtime_ns)
        if listed == self._listed:
            return False
        names = set(os.listdir(self.directory))
        # Directory times tick every 4 ms or so: a second change within one tick shows only when looked at again.
        settled = abs(time.time_ns() - found.st_mtime_ns) > 20_000_000
        self._listed = listed if settled else None
        fresh = [name for name in names if name not in self._stamps]
        gone = [name for name in self._stamps if name not in names]
        for name in gone:
            self._stamps.pop(name)
            self._merged.pop(name, None)
        for name in fresh:
            self._look_at(name)
        self._names = [name for name in self._names if name in names] + fresh
        return bool(fresh or gone)

    def _look_at(self, name: str) -> bool:
        directory = os.path.join(self.directory, name)
        stamps = tuple(files.stamp(directory, each) for each in FILES)
        if self._stamps.get(name) == stamps:
            return False
        record = merge(directory, [files.read_json(directory, each) for each in FILES])
        self._stamps[name] = stamps
        if record is not None:
            self._merged[name] = record
        return True

    def _age_key(self, name: str) -> Tuple[bool, float]:
        """Order by the host's boot clock within this boot (wall clocks jump), by wall clock before it."""
        record = self._merged.get(name) or {}
        here = record.get("boot") == self._boot
        return here, float(record.get("accepted_bt" if here else "accepted_wall") or 0.0)


def current(records: List[Record]) -> Optional[Record]:
    """Return the newest restart that a keeper has taken."""
    return next((r for r in records if r.get("action", "restart") == "restart" and r["state"] not in NEVER_TAKEN), None)


def is_under_way(record: Record) -> bool:
    """Whether a living keeper carries out this transaction right now."""
    return bool(record["keeper_alive"]) and record["state"] in IN_TRANSIT


def live(records: List[Record]) -> Optional[Record]:
    """Return the newest run of which something lives: during a restart this is the one being replaced."""
    return next((record for record in records if record["alive"]), None)
