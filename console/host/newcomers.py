"""Whether a process that came up lately could be a run: the question before looking through all processes.

Costs a listing of /proc at most, and a link or two a process that is new: a hundredth of what looking for runs costs.
Never reads a command line, which can hang. Only watcher.py imports this module.
"""

from __future__ import annotations

import re
from typing import Dict, FrozenSet, Optional, Set, Tuple

from . import listing, procfs

YOUNG_S = 10.0
"""So long may it take until everything about a new process says what it is: a shell becomes a trainer by exec."""
OLD_LOOK_S = 10.0
"""How often old shells are looked at again: `sleep 60; exec python train.py`."""
_LOOKS = 2
"""How often runs are looked for because of one process: one look may fall into the middle of its exec."""
_TRAINER_PROGRAM = re.compile(r"python|pypy|torchrun|accelerate|deepspeed|^pt_")
_SHELL = re.compile(r"^(ba|da|a|z|k|mk|c|tc|fi)?sh$|^busybox$")
_KERNEL = "a thread of the kernel"
_OURS = frozenset({"dflash-agent", "dflash-keeper", "dflash-gpu"})

Image = Tuple[int, int, int]


class Newcomers:
    """Remembers who was there before, and for whom runs were looked for already."""

    def __init__(self) -> None:
        self.possible: Set[int] = set()
        """Because of whom the last answer was yes."""
        self._listing = listing.Listing()
        self._pids: FrozenSet[int] = frozenset()
        self._seen: Dict[int, float] = {}
        self._young: Set[int] = set()
        self._shells: Set[int] = set()
        self._looks: Dict[Image, int] = {}
        self._old_at = float("-inf")

    def may_be_runs(self, now: float, accounted: Set[int]) -> bool:
        """Whether to look for runs now. `accounted`: processes of runs that are known, whose workers come and go."""
        pids = self._listing.pids()
        if pids is not self._pids:
            self._young.update(pid for pid in pids if pid not in self._seen)
            self._pids, self._seen = pids, {pid: self._seen.get(pid, now) for pid in pids}
        self._young = {pid for pid in self._young & pids if now - self._seen[pid] <= YOUNG_S}
        asked = set(self._young)
        if now - self._old_at >= OLD_LOOK_S:
            self._old_at = now
            asked |= self._shells & pids
        programs = {pid: _program(pid) for pid in asked - accounted}
        self._young.difference_update([pid for pid, program in programs.items() if program == _KERNEL])
        self._shells = {pid for pid in self._shells & pids if pid not in programs}
        self._shells |= {pid for pid, program in programs.items() if _SHELL.search(program)}
        possible = [_image(pid) for pid, program in programs.items() if _TRAINER_PROGRAM.search(program)]
        looks, self._looks = self._looks, {}
        self._looks = {image: looks.get(image, 0) for image in possible if image is not None}
        wanted = [image for image, count in self._looks.items() if count < _LOOKS]
        for image in wanted:
            self._looks[image] += 1
        self.possible = {pid for pid, _, _ in wanted}
        return bool(wanted)


def _program(pid: int) -> str:
    """The file that `pid` executes; its command name where that may not be read. Neither can hang."""
    path = procfs.exe(pid)
    if path:
        return path.rpartition("/")[2]
    stat = procfs.read_stat(pid)
    if stat is None:
        return ""
    return _KERNEL if stat.is_kernel else stat.comm


def _image(pid: int) -> Optional[Image]:
    """Return what changes with each exec of a process; None for agents, keepers and their helpers."""
    stat = procfs.read_stat(pid)
    if stat is None or stat.comm in _OURS:
        return None
    return pid, stat.start, stat.stack
