"""What a process costs: CPU seconds in nanosecond steps, and resident bytes, from /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

from console.host import procfs

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    cpu_share: float
    """Of one core, children that ended meanwhile included."""
    rss_bytes: int


def cpu_s(pid: int) -> float:
    """Return CPU seconds of all threads and of children that were waited for."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        nanoseconds = sum(int(_read(f"/proc/{pid}/task/{each}/schedstat").split()[0]) for each in threads)
        fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    except (OSError, IndexError):
        return 0.0
    return nanoseconds / 1e9 + (int(fields[13]) + int(fields[14])) * _TICK_S  # cutime, cstime


def rss_bytes(pid: int) -> int:
    try:
        return int(_read(f"/proc/{pid}/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def watch(pids: Iterable[int], seconds: float) -> dict[int, Cost]:
    """Return what each process cost while `seconds` passed."""
    before, began = {pid: cpu_s(pid) for pid in pids}, time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - began
    # One that ended meanwhile has no figures: its parent's are to have them.
    return {pid: Cost(max(0.0, cpu_s(pid) - cpu) / passed, rss_bytes(pid)) for pid, cpu in before.items()}


def below(root: int) -> dict[int, str]:
    """Return pid -> name of every descendant of a process."""
    stats = procfs.table()
    return {pid: stats[pid].comm for pid in procfs.descendants([root], stats) if pid in stats}


def children(parent: int, name: str) -> list[int]:
    return [pid for pid, stat in procfs.table().items() if stat.ppid == parent and stat.comm == name]


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
