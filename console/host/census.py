"""Who belongs to a tree of processes, found without reading what every process of the machine says each time.

Known members and processes that are new are read; whoever was seen twice outside of the tree stays outside, until all
are looked at again. Good for watching. Who is about to be signalled must be found by a full look (`procfs.table`).
"""

from __future__ import annotations

from typing import AbstractSet, Callable, Set

from . import listing, procfs

WHOLE_S = 60.0
"""All are looked at again after this: a number may have been given to another process meanwhile.

For that all numbers there are must have been given out between two listings: it hardly happens.
"""

Choose = Callable[[procfs.Table], Set[int]]


class Census:
    """The members of one tree, as of the last `take`. Another tree wants another census."""

    def __init__(self) -> None:
        self._listing = listing.Listing()
        self._members: Set[int] = set()
        self._strangers: Set[int] = set()
        self._fresh: Set[int] = set()
        """Strangers seen once: a process whose parent died while it was read looks like one."""
        self._whole_at = float("-inf")

    def take(self, choose: Choose, now: float, named: AbstractSet[int] = frozenset()) -> procfs.Table:
        """Return the members, which `choose` picks from a table that holds all who could be one.

        `named`: who is in that table in any case, as far as they live.
        """
        if now - self._whole_at >= WHOLE_S:
            self._whole_at = now
            self._strangers = set()
        self._strangers -= named
        pids = self._listing.pids()
        found = {pid: procfs.read_stat(pid) for pid in pids - self._strangers}
        table = {pid: stat for pid, stat in found.items() if stat is not None}
        members = choose(table)
        outside = set(table) - members
        self._strangers = {*(self._strangers & pids), *(outside & self._fresh)}
        self._fresh = outside
        self._members = members
        return {pid: table[pid] for pid in members if pid in table}

    def again(self) -> procfs.Table:
        """Return the members of before, those that are gone left out: no newcomer is looked for."""
        found = {pid: procfs.read_stat(pid) for pid in self._members}
        return {pid: stat for pid, stat in found.items() if stat is not None}

    def __len__(self) -> int:
        return len(self._members)
