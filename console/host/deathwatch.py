"""Whose end is told at once: a pidfd of each process whose death is news, for the loop to wait on.

Where there are none (before Linux 5.3, or no descriptor left) it is looked at instead, at each look around. Nobody is
signalled. Only watcher.py imports this module.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Set, Tuple

from . import procfs

Ident = Tuple[int, int]

_MOST_OF_A_RUN = 32


class DeathWatch:
    """In a loop: wait on `fds`, `heard` with what is ready; at each look `missed`, then `watch` whom it is about."""

    def __init__(self) -> None:
        self._pidfds: Dict[int, Ident] = {}
        self._watched: Set[Ident] = set()
        self._without_pidfd: Set[Ident] = set()

    def fds(self) -> Iterable[int]:
        return self._pidfds

    def heard(self, ready: Set[int]) -> bool:
        """Forget whoever has died; return whether anybody has."""
        dead = [fd for fd in self._pidfds if fd in ready]
        for fd in dead:
            self._forget(fd)
        return bool(dead)

    def missed(self) -> bool:
        """Return whether somebody has died of whom no descriptor tells."""
        return any(not procfs.is_alive(*each) for each in self._without_pidfd)

    def watch(self, wanted: Set[Ident]) -> bool:
        """Watch these and nobody else; return whether one of them has died just now, before it could be watched."""
        for fd in [fd for fd, ident in self._pidfds.items() if ident not in wanted]:
            self._forget(fd)
        self._without_pidfd &= wanted
        dead = False
        for ident in wanted - self._watched:
            try:
                pidfd = procfs.pidfd_of(*ident)
            except OSError:
                self._without_pidfd.add(ident)
                continue
            if pidfd is None:
                dead = True
            else:
                self._pidfds[pidfd] = ident
                self._watched.add(ident)
        return dead

    def close(self) -> None:
        for fd in list(self._pidfds):
            self._forget(fd)

    def _forget(self, fd: int) -> None:
        self._watched.discard(self._pidfds.pop(fd))
        os.close(fd)


def whose_death_is_news(found: Iterable[Dict[str, Any]], hand: Iterable[Dict[str, Any]]) -> Set[Ident]:
    """Return the keepers and main processes of our runs, and the first ones of each run started by hand, that live."""
    wanted: Set[Ident] = set()
    for record in found:
        if record["keeper_alive"]:
            wanted.add(_ident(record["keeper"]))
        if record["main_alive"]:
            wanted.add(_ident(record["main"]))
    for run in hand:
        living = [_ident(each) for each in run["pids"]]
        wanted.update(living[:_MOST_OF_A_RUN])
        wanted |= {_ident(run["main"])} & set(living)
    return wanted


def _ident(process: Dict[str, Any]) -> Ident:
    return process["pid"], process["start"]
