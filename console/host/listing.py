"""The pids that there are, without listing /proc each second: who is new takes a number, and the kernel tells the last.

It stands in `kernel.ns_last_pid`, of the pid namespace of whoever reads it; threads take numbers, too. Those who are
gone may still be named. For watching: who is about to be signalled must be found by a listing of its own.
"""

from __future__ import annotations

import os
import time
from typing import FrozenSet, Optional

from . import procfs

SETTLED_S = 0.5
"""A process gets its number a moment before it can be listed."""
WHOLE_S = 10.0
"""All are listed again after this, whatever the kernel says."""


class Listing:
    """`pids` is the same object as before where nobody can have come."""

    def __init__(self) -> None:
        self._pids: FrozenSet[int] = frozenset()
        self._newest: Optional[int] = None
        self._newest_since = self._listed_at = float("-inf")
        # A /proc of another namespace than ours: its newcomers take no number here.
        self._is_ours = _own_number() == os.getpid()

    def pids(self) -> FrozenSet[int]:
        """Return everybody who is there, and maybe some who are gone."""
        now, newest = time.monotonic(), procfs.last_pid() if self._is_ours else None
        if newest is None or newest != self._newest:
            self._newest, self._newest_since = newest, now
        elif self._listed_at - self._newest_since >= SETTLED_S and now - self._listed_at < WHOLE_S:
            return self._pids
        self._listed_at = now
        self._pids = frozenset(procfs.all_pids())
        return self._pids


def _own_number() -> int:
    try:
        return int(os.readlink("/proc/self"))
    except (OSError, ValueError):
        return -1
