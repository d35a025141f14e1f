"""Whether the kernel killed for memory: proven, likely, no or unknown, each with the counter that says so.

Proven only by a cgroup that was made for this run; a counter that others share rising near the death is "likely".
Only the keeper imports this module.
"""

from __future__ import annotations

import os
from typing import Dict, List, NamedTuple, Optional, Tuple

from . import procfs

_NEAR_S = 30.0
_MAX_POINTS = 64


class _Point(NamedTuple):
    bt: float
    counts: Dict[str, int]


class OomWatch:
    """Remembers the kernel's counts of OOM kills over the last half minute and at the start."""

    def __init__(self) -> None:
        self._own, self._shared = _memory_cgroup()
        self._points: List[_Point] = []
        self.take()

    def take(self) -> None:
        """Read the counters; to be called every few seconds and at the death."""
        counts: Dict[str, int] = {}
        for name, path in (("own", self._own), ("shared", self._shared), ("vmstat", "/proc/vmstat")):
            count = _oom_kills(path) if path else None
            if count is not None:
                counts[name] = count
        now = procfs.boottime()
        recent = [point for point in self._points[1:] if now - point.bt <= _NEAR_S]
        self._points = self._points[:1] + recent[-_MAX_POINTS:] + [_Point(now, counts)]

    def verdict(self) -> Tuple[str, str]:
        """Return the word and its evidence."""
        self.take()
        first, last = self._points[0], self._points[-1]
        near = self._points[1] if len(self._points) > 2 else first
        own = _rise(first, last, "own")
        if own:
            return "proven", "the run's own cgroup counted %d OOM kill%s" % (own, "s"[: own != 1])
        for name, label in (("shared", "the memory cgroup it shares"), ("vmstat", "the kernel (vmstat oom_kill)")):
            rise = _rise(near, last, name)
            if rise:
                return "likely", "%s counted %d OOM kill%s near the death" % (label, rise, "s"[: rise != 1])
        if "vmstat" in last.counts or "own" in last.counts:
            return "no", "the kernel's count of OOM kills did not change"
        return "unknown", "the kernel's count of OOM kills can't be read here"


def _rise(before: _Point, after: _Point, name: str) -> Optional[int]:
    if name not in before.counts or name not in after.counts:
        return None
    return after.counts[name] - before.counts[name]


def _oom_kills(path: str) -> Optional[int]:
    try:
        with open(path) as file:
            return next(int(line.split()[1]) for line in file if line.startswith("oom_kill "))
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _memory_cgroup() -> Tuple[str, str]:
    """Return (counter file of a cgroup made for this run, counter file of one that is shared); one of them is ""."""
    for line in procfs.cgroup_lines(os.getpid()):
        _, controllers, path = line.split(":", 2)
        if not controllers:
            counter = os.path.join("/sys/fs/cgroup", path.lstrip("/"), "memory.events")
        elif "memory" in controllers.split(","):
            counter = os.path.join("/sys/fs/cgroup/memory", path.lstrip("/"), "memory.oom_control")
        else:
            continue
        if _oom_kills(counter) is not None:
            return (counter, "") if os.path.basename(path).startswith("dflash-") else ("", counter)
    return "", ""
