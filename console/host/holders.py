"""Who the processes are that a driver lists on a GPU: this run's, another's with name and owner, or nobody seen here.

A pid that the driver states may be of another namespace, and so the number of an innocent process here: it is believed
only where that process holds /dev/nvidia-uvm. Reading only. Agent alone imports this module.
"""

from __future__ import annotations

import pwd
import time
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from . import procfs

_AGAIN_S = 10.0
_MOST = 16
"""Holders of one GPU that are told; more than that are counted by the driver's own figure."""


class Holders:
    """Looks pids up and remembers for a while what it found."""

    def __init__(self) -> None:
        self._known: Dict[int, Tuple[float, Dict[str, Any]]] = {}

    def others(self, procs: Optional[Iterable[List[Optional[int]]]], tree: Set[int], *, simulated: bool) -> List[Any]:
        """Return those that aren't of the run: {"pid", "bytes", "name", "user", "seen": surely it}."""
        found = []
        for pid, used in procs or ():
            if pid is None or pid in tree:
                continue
            found.append({"pid": pid, "bytes": used, **self._who(pid, simulated)})
        return found[:_MOST]

    def _who(self, pid: int, simulated: bool) -> Dict[str, Any]:
        now = time.monotonic()
        known = self._known.get(pid)
        if known is not None and now - known[0] < _AGAIN_S:
            return known[1]
        if len(self._known) > 256:
            self._known.clear()
        told = who(pid, simulated)
        self._known[pid] = (now, told)
        return told


def who(pid: int, simulated: bool = False) -> Dict[str, Any]:
    """Return name and user of a process that surely is the one which the driver means; neither where it isn't."""
    stat = procfs.read_stat(pid)
    if stat is None or not (simulated or procfs.holds_uvm(pid)):
        return {"name": "", "user": "", "seen": False}
    return {"name": stat.comm, "user": user_of(pid), "seen": True}


def user_of(pid: int) -> str:
    uid = procfs.owner_uid(pid)
    if uid is None:
        return ""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return "uid %d" % uid
