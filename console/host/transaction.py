"""What the stages of a restart or stop have in common: the request on its way, whom it replaces, how it ends early.

admission.py, killstage.py, cachestage.py and spawnstage.py are its stages, keeper.py has their order. What goes wrong
before the first kill is `Refused` (nothing was touched), later it is `Failed` at a stage.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, Iterable, List, NamedTuple, Optional

from . import files, gpuwatch, journal, lock, procfs, request

Ident = request.Ident


class Refused(Exception):
    """Nothing was touched."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class Failed(Exception):
    """A stage failed; what was done before stays done."""

    def __init__(self, stage: str, reason: str, detail: str, number: Optional[int] = None) -> None:
        super().__init__(detail)
        self.stage = stage
        self.reason = reason
        self.detail = detail
        self.number = number


class Cancelled(Exception):
    """A stop arrived before anything was spawned."""


class Transaction(NamedTuple):
    """One request on its way. Each stage is journalled before and after."""

    asked: request.Request
    journal: journal.Journal
    gpus: gpuwatch.GpuWatch
    lock: lock.TargetLock
    pump: Callable[[], None]
    """To be called while a stage waits. Raises: Cancelled where a stop has come."""
    spared: FrozenSet[int]
    """The keeper and what it hangs from: never a run, never signalled."""

    def enter(self, stage: str) -> None:
        """Tell the others on this target how far it is."""
        self.lock.update(stage=stage)

    @property
    def late_s(self) -> float:
        """How long ago the request has expired; 0 while it is valid."""
        return max(0.0, procfs.boottime() - self.asked.expires_bt)

    @property
    def precious(self) -> List[str]:
        """What must not lie in a directory that is cleared."""
        command = self.asked.spec["command"][0] if self.asked.spec.get("command") else ""
        return [self.asked.spec.get("cwd") or "", self.asked.log_path, self.asked.state_dir, command]

    def replaced_keeper(self) -> Optional[Ident]:
        """Return the keeper of the run to replace, if it lives."""
        status = self._replaced_status()
        keeper = status.get("keeper")
        if not keeper or status.get("boot") != self.asked.boot:
            return None
        ident = (keeper["pid"], keeper["start"])
        return ident if procfs.is_alive(*ident) else None

    def replaced_baseline(self) -> Dict[int, int]:
        """Return the bytes that each GPU held before the run to replace was launched, as its keeper noted them."""
        return {int(index): amount for index, amount in (self._replaced_status().get("gpu_baseline") or {}).items()}

    def _replaced_status(self) -> Dict[str, Any]:
        if self.asked.replaced_id is None:
            return {}
        return files.read_json(self.asked.other_run_dir(self.asked.replaced_id), journal.NAME) or {}


def living(idents: Iterable[Ident]) -> List[Ident]:
    return [ident for ident in idents if procfs.is_alive(*ident)]


def counted(number: int, size_bytes: int) -> str:
    words = plural(number, "pid")
    return "%s, %s" % (words, gpuwatch.size_text(size_bytes)) if size_bytes else words


def plural(number: int, noun: str) -> str:
    return "%d %s" % (number, noun if number == 1 else noun + "s")
