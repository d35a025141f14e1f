"""The processes below a keeper: who they are, which one is the trainer, and with what status each ended.

The keeper is their subreaper, so whoever loses its parent becomes its child; the tree is empty for certain when waiting
says that there is no child left. Only the keeper imports this module.
"""

from __future__ import annotations

import os
import resource
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from . import bounded, census, detach, discover, procfs, uvm

Ident = Tuple[int, int]
_HELPERS = frozenset({detach.TITLE, "dflash-gpu"})
_ARGV_PATIENCE_S = 2.0
_ARGV_AGAIN_S = 3.0
"""Processes that were no trainer are asked for their command lines again after this, or when one of them is another."""


class Reaped(NamedTuple):
    """How a child ended, by waitpid's word."""

    ident: Ident
    code: Optional[int]
    signal: Optional[int]
    bt: float
    rusage: resource.struct_rusage

    @property
    def clean(self) -> bool:
        return self.code == 0


class RunTree:
    """Main process, trainer and everything else of one run, as of the last `scan`."""

    def __init__(self, main: Ident, match: Sequence[str]) -> None:
        self.main = main
        self.trainer: Optional[Ident] = None
        self.trainer_argv: List[str] = []
        self.had_trainer = False
        self.members: procfs.Table = {}
        self.spared: Set[int] = set()
        """Helpers of the keeper, never part of the run."""
        self._match = match
        self._own = os.getpid()
        self._reaped: Dict[int, Reaped] = {}
        self._census = census.Census()
        self._asked: Any = None
        self._uvm = uvm.Holders()

    def scan(self) -> None:
        """Look at all of /proc; finds the trainer while none is known."""
        self._take(procfs.table())

    def glance(self) -> None:
        """The same for the members and whoever is new: for watching. Ending a run takes a `scan`."""
        self._take(self._census.take(self._below, procfs.boottime()))

    def _below(self, stats: procfs.Table) -> Set[int]:
        return procfs.descendants([self._own], stats)

    def _take(self, table: procfs.Table) -> None:
        stats = {pid: stat for pid, stat in table.items() if not procfs.is_gone(stat)}
        own = set(procfs.children(self._own, stats))
        helpers = {pid for pid in own if pid in self.spared or stats[pid].comm in _HELPERS}
        roots = own - helpers
        self.members = {pid: stats[pid] for pid in roots | procfs.descendants(roots, stats)}
        if self.trainer is not None and not self._lives(self.trainer) and self.trainer[0] not in self._reaped:
            self.trainer = None  # reaped by its own parent: a run.sh that may start another
        if self.trainer is None and self.members:
            self._find_trainer()

    def find(self) -> Set[Ident]:
        """Scan, and return everything alive: what a KillJob asks."""
        self.scan()
        return {(stat.pid, stat.start) for stat in self.members.values()}

    def reap(self) -> List[Reaped]:
        """Collect every child that ended, with the time that it is noticed."""
        ended: List[Reaped] = []
        while True:
            try:
                pid, status, rusage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return ended
            if pid == 0:
                return ended
            signalled = os.WIFSIGNALED(status)
            one = Reaped(
                ident=(pid, self._start_of(pid)),
                code=None if signalled else os.WEXITSTATUS(status),
                signal=os.WTERMSIG(status) if signalled else None,
                bt=procfs.boottime(),
                rusage=rusage,
            )
            self._reaped[pid] = one
            ended.append(one)

    def verdict(self) -> Optional[Reaped]:
        """Return the end that is the run's: the trainer's where we saw it, else the main process's; None before that.

        A launcher that ended well while others live, before a trainer was ever seen, has merely handed over to them.
        """
        if self.trainer is not None:
            return self._reaped.get(self.trainer[0])
        main = self._reaped.get(self.main[0])
        if main is None or (main.clean and self.members and not self.had_trainer):
            return None
        return main

    def main_end(self) -> Optional[Reaped]:
        return self._reaped.get(self.main[0])

    def trainer_end(self) -> Optional[Reaped]:
        return self._reaped.get(self.trainer[0]) if self.trainer is not None else None

    def uvm_holders(self) -> Set[int]:
        return self._uvm.among(self.members, again=True)

    def names(self) -> List[str]:
        """Who is left, for people: `tensorboard, pid 4711`."""
        return ["%s, pid %d" % (stat.comm, pid) for pid, stat in sorted(self.members.items())]

    def _lives(self, ident: Ident) -> bool:
        stat = self.members.get(ident[0])
        return stat is not None and stat.start == ident[1]

    def _start_of(self, pid: int) -> int:
        known: Dict[int, int] = {self.main[0]: self.main[1]}
        if self.trainer is not None:
            known[self.trainer[0]] = self.trainer[1]
        stat = self.members.get(pid)
        return known.get(pid, stat.start if stat is not None else 0)

    def _find_trainer(self) -> None:
        pids = sorted(self.members, key=lambda pid: (self.members[pid].start, pid))
        now, who = procfs.boottime(), {(pid, self.members[pid].start, self.members[pid].comm) for pid in pids}
        if self._asked is not None and self._asked[0] == who and now < self._asked[1] + _ARGV_AGAIN_S:
            return  # asking forks, and a script that is no trainer would be asked all the time
        self._asked = (who, now)
        try:
            argvs: Dict[str, Any] = bounded.call(lambda: {str(pid): procfs.argv(pid) for pid in pids}, _ARGV_PATIENCE_S)
        except (bounded.TookTooLong, bounded.ChildFailed, OSError):
            argvs = {}
        matched = [pid for pid in pids if discover.matched_element(argvs.get(str(pid)) or [], self._match)]
        holders = [] if matched else [pid for pid in pids if procfs.holds_uvm(pid)]
        for pid in (matched or holders)[:1]:
            self.trainer = (pid, self.members[pid].start)
            self.trainer_argv = list(argvs.get(str(pid)) or [])
            self.had_trainer = True
