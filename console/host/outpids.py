"""Whose process a host pid is, seen from outside of a container: in it, on the host, in another one, or nobody's.

A container is known by its pid namespace, and that only as long as a process of it that we know by pid *and* start
ticks lives there: numbers of namespaces are used again, and a prefix may lead to another machine. Only processes that
somebody names are looked at; all of /proc is read once to find the container, and again when the run has got processes
that are not known yet. Reading only. Only the helper outside of the container (outside.py) imports this module.
"""

from __future__ import annotations

import os
import re
import time
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from . import holders, procfs

Ident = Tuple[int, int]

SCAN_AGAIN_S = 10.0
"""A scan is 40 ms of CPU with 2,000 processes."""
LOOK_AGAIN_S = 10.0
"""A training process has thousands of descriptors, and who it is doesn't change."""
_REMEMBERED = 512
_LXC = re.compile(r"/(?:lxc\.payload\.|lxc/)([^/]+)")
_OTHER = re.compile(r"/(?:docker[-/]|libpod-|crio-|cri-containerd-)([0-9a-f]{12})")


class NotFound(Exception):
    """The container can't be found, and why."""


class Container:
    """The container in which the process `agent` (pid and start as seen inside) lives in pid namespace `space`."""

    def __init__(self, space: str, agent: Ident) -> None:
        """Raises: NotFound."""
        if not space:
            raise NotFound("the agent inside could not tell its pid namespace")
        self.space, self._agent = space, agent
        self.is_apart = space != procfs.pid_namespace_here()
        """It has a pid namespace of its own, so that its pids are others than the host's."""
        self.agent_pid = 0
        self.init_pid = 0
        self.inner: Dict[int, Ident] = {}
        """Pid and start inside by host pid, also of processes that have ended since."""
        self._sought: Set[Ident] = set()
        self._looked: Dict[Ident, Tuple[float, Dict[str, Any]]] = {}
        self._scanned = float("-inf")
        self.scan()
        if not self.agent_pid:
            raise NotFound(self._why_not())

    def scan(self) -> None:
        """Find every process of the container."""
        if not self.is_apart:
            stat = procfs.read_stat(self._agent[0])
            self.agent_pid = self._agent[0] if stat is not None and stat.start == self._agent[1] else 0
            return
        for pid in procfs.all_pids():
            if procfs.pid_namespace(pid) != self.space:
                continue
            names, stat = namespaced(pid), procfs.read_stat(pid)
            if not names or stat is None:
                continue
            self._remember(pid, (names[-1], stat.start))
            if (names[-1], stat.start) == self._agent:
                self.agent_pid = pid
            if names[-1] == 1:
                self.init_pid = pid

    def know(self, inside: Iterable[Ident]) -> None:
        """See to it that these processes of the container are known by their host pids, with a scan at times."""
        missing = set(inside) - set(self.inner.values()) - self._sought
        if missing and self.is_apart and time.monotonic() - self._scanned >= SCAN_AGAIN_S:
            self._sought |= missing  # one that has ended before is never found
            self.scan()
            self._scanned = time.monotonic()

    def is_there(self) -> bool:
        """Whether what was found still holds."""
        return procfs.is_alive(self.agent_pid, self._agent[1])

    def look(self, pid: int) -> Dict[str, Any]:
        """Return {"pid", "start", "inner", "place", "name", "user", "label", "uvm"} of a host pid.

        `place`: `container`, `host`, `elsewhere` (`label` says where), `gone`, or `unknown` where we may not look.
        """
        stat = procfs.read_stat(pid)
        told: Dict[str, Any] = {"pid": pid, "place": "gone"}
        if stat is None or procfs.is_gone(stat):
            return told
        now, key = time.monotonic(), (pid, stat.start)
        known = self._looked.get(key)
        if known is None or now - known[0] >= LOOK_AGAIN_S:
            if len(self._looked) >= _REMEMBERED:
                self._looked.clear()
            told.update(start=stat.start, name=stat.comm, user=holders.user_of(pid), uvm=procfs.holds_uvm(pid))
            known = self._looked[key] = now, dict(told, **self._place(pid, stat.start))
        return known[1]

    def _place(self, pid: int, start: int) -> Dict[str, Any]:
        space = procfs.pid_namespace(pid)
        if space and space == self.space:
            names = namespaced(pid)
            inner = names[-1] if self.is_apart and names else pid
            self._remember(pid, (inner, start))
            return {"place": "container", "inner": inner}
        self.inner.pop(pid, None)  # the number is another process's now
        if not space:
            return {"place": "unknown"}
        if space == procfs.pid_namespace_here():
            return {"place": "host"}
        return {"place": "elsewhere", "label": label_of(procfs.cgroup_lines(pid))}

    def _remember(self, pid: int, inside: Ident) -> None:
        if len(self.inner) >= _REMEMBERED and pid not in self.inner:
            del self.inner[next(iter(self.inner))]
        self.inner[pid] = inside

    def _why_not(self) -> str:
        if not self.is_apart:
            return "the agent is no process of this machine"
        if os.geteuid() != 0:
            return "we are not root there, and may not look at processes of others"
        return "no process of this machine is in the agent's pid namespace: the prefix may lead to another machine"


def namespaced(pid: int) -> List[int]:
    """Return what a process is called in each pid namespace that it is in, the innermost last."""
    try:
        with open("/proc/%d/status" % pid) as file:
            line = next(line for line in file if line.startswith("NSpid:"))
        return [int(word) for word in line.split()[1:]]
    except (OSError, StopIteration, ValueError):
        return []


def label_of(cgroups: Iterable[str]) -> str:
    """Return the name of the container that these lines of /proc/PID/cgroup are of, "" where they name none."""
    text = "\n".join(cgroups)
    found: Optional["re.Match[str]"] = _LXC.search(text) or _OTHER.search(text)
    return "container %s" % found.group(1) if found else ""
