"""What is really there, read from /proc and the run directories: nothing of agent or engine stands in between."""

from __future__ import annotations

import fcntl
import math
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.host import files

IN_TRANSIT = ("accepted", "killing", "cache", "spawned")
_STEP = re.compile(r"^step (\d+)/", re.MULTILINE)


def start_ticks(pid: int) -> int | None:
    """Return when a process began, None for one that is dead or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def lives(ident: dict[str, int] | None) -> bool:
    return ident is not None and start_ticks(ident["pid"]) == ident["start"]


def words_of(pid: int, name: str) -> list[str]:
    """Return the NUL-separated words of /proc/PID/`name`."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return []


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


@dataclass(frozen=True)
class Record:
    """One run directory's files, as they are now."""

    id: str
    request: dict[str, Any]
    status: dict[str, Any]
    exit: dict[str, Any] | None

    @property
    def state(self) -> str:
        return str(self.status.get("state", ""))

    @property
    def was_taken(self) -> bool:
        return self.state not in ("", "refused")

    @property
    def keeper_lives(self) -> bool:
        return lives(self.status.get("keeper"))

    @property
    def main_lives(self) -> bool:
        return lives(self.status.get("main"))

    @property
    def is_interrupted(self) -> bool:
        return self.state in IN_TRANSIT and not self.keeper_lives

    @property
    def is_under_way(self) -> bool:
        return self.state in IN_TRANSIT and self.keeper_lives

    @property
    def accepted_bt(self) -> float:
        return float(self.request.get("accepted_bt", 0.0))

    def stage(self, name: str) -> str:
        entry = (self.status.get("stages") or {}).get(name) or {}
        return str(entry.get("state", ""))

    def steps(self) -> int:
        """Return how many step lines stand in the log."""
        try:
            return len(_STEP.findall(Path(self.request["log_path"]).read_text()))
        except (OSError, KeyError):
            return 0


@dataclass(frozen=True)
class Ground:
    """The whole truth about one target at one moment."""

    records: tuple[Record, ...] = ()
    """The newest first."""
    trainers: dict[int, str] = field(default_factory=dict)
    """Pid of each living trainer, and the id of its run."""
    lock_is_held: bool = False

    def record(self, run: str | None) -> Record | None:
        return next((each for each in self.records if each.id == run), None)

    @property
    def newest(self) -> Record | None:
        return next((each for each in self.records if each.was_taken and each.request["action"] == "restart"), None)

    @property
    def is_settled(self) -> bool:
        """Nothing is on its way, and a run that lives makes steps."""
        if self.lock_is_held or any(each.is_under_way for each in self.records):
            return False
        living = [self.record(run) for run in self.trainers.values()]
        return all(each is not None and each.steps() >= 2 for each in living)

    def key(self) -> object:
        return self.trainers, [(each.id, each.state, each.keeper_lives) for each in self.records]


class Place:
    """One target's home and state directory."""

    def __init__(self, home: Path, target: str) -> None:
        self.home, self.folder = home, home / "state" / "targets" / target
        self.script = str(home / "train_dflash_pipeline.py")
        self._accepted_bt: dict[str, float] = {}

    def look(self, newest: int = 6) -> Ground:
        """Look at the newest runs: a look that grew dearer with each cut would slow the consoles, which live here."""
        known = sorted(self.run_ids(), key=self._accepted, reverse=True)[:newest]
        records = [record for record in map(self.run, known) if record is not None]
        return Ground(tuple(records), self.trainers(), self._lock_is_held())

    def _accepted(self, run: str) -> float:
        """Return when a run was accepted, as it said first; the latest of all where it hasn't yet."""
        if run not in self._accepted_bt:
            record = self.run(run)
            if record is None:
                return math.inf
            self._accepted_bt[run] = record.accepted_bt
        return self._accepted_bt[run]

    def run_ids(self) -> set[str]:
        try:
            return {name for name in os.listdir(self.folder / "runs") if name.startswith("r-")}
        except OSError:
            return set()

    def run(self, name: str) -> Record | None:
        return _record(self.folder / "runs" / name)

    def trainers(self) -> dict[int, str]:
        """Return the living trainers, by their own witness: cheap enough to be asked ten times a second."""
        found = {}
        for what, run, pid in self._witness()[-20:]:
            if what == "start" and self.script in words_of(int(pid), "cmdline") and start_ticks(int(pid)) is not None:
                found[int(pid)] = run
        return found

    def all_trainers(self) -> dict[int, str]:
        """Return every living process of the trainer's script, of all processes that there are."""
        found = {}
        for pid in pids():
            if self.script in words_of(pid, "cmdline") and start_ticks(pid) is not None:
                mark = [word for word in words_of(pid, "environ") if word.startswith("DFLASH_RUN_ID=")]
                found[pid] = mark[0].partition("=")[2] if mark else ""
        return found

    def agents(self) -> list[int]:
        """Return the agents that work for this place, without the helpers that they fork."""
        named = [pid for pid in pids() if words_of(pid, "cmdline")[:1] == ["dflash-agent"] and self._is_here(pid)]
        return [pid for pid in named if parent(pid) not in named]

    def _is_here(self, pid: int) -> bool:
        try:
            return os.readlink(f"/proc/{pid}/cwd") == str(self.home)
        except OSError:
            return False

    def starts(self) -> Counter[str]:
        """Return how often each run was started, by its own witness."""
        return Counter(run for what, run, _ in self._witness() if what == "start")

    def was_double(self) -> list[str]:
        return [run for what, run, _ in self._witness() if what == "two"]

    def _witness(self) -> list[list[str]]:
        try:
            return [line.split() for line in (self.home / "witness").read_text().splitlines() if line.count(" ") == 2]
        except OSError:
            return []

    def _lock_is_held(self) -> bool:
        try:
            descriptor = os.open(self.folder / "lock", os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False


def _record(folder: Path) -> Record | None:
    request = _json(folder / "request.json")
    if request is None:
        return None
    return Record(folder.name, request, _json(folder / "status.json") or {}, _json(folder / "exit.json"))


def _json(path: Path) -> dict[str, Any] | None:
    # As the agent does: what is read while the keeper writes its next two versions is of none of them.
    return files.read_json(str(path.parent), path.name) if path.exists() else None
