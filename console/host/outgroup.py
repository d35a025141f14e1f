"""A container's cgroup as its host sees it: memory limit, use and kills, and whether it is frozen. v1, v2 and both.

Reading only. Only the helper outside of the container (outside.py) imports this module.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple

from . import procfs

ROOT = "/sys/fs/cgroup"
_UNLIMITED_BYTES = 1 << 62
"""v1 states no limit as the largest multiple of a page."""


class Groups:
    """The directories of the cgroup that holds all of a container, by two of its processes: init and the agent.

    What both have in common is the container's: inside, systemd gives init a cgroup of its own, and lxc-attach puts
    the agent into another.
    """

    def __init__(self, init_pid: int, agent_pid: int, root: str = ROOT) -> None:
        init, agent = _paths(init_pid), _paths(agent_pid)
        both = {name: _common(path, agent.get(name, path)) for name, path in init.items()} if init else agent
        unified = os.path.join(root, "unified")
        unified = unified if os.path.isdir(unified) else root
        self.memory_name = both.get("memory") or both.get("", "")
        """The memory cgroup as the kernel log calls it; "" where there is none."""
        self._v1 = _join(os.path.join(root, "memory"), both.get("memory"))
        self._v2 = _join(unified, both.get(""))
        self._freezer = _join(os.path.join(root, "freezer"), both.get("freezer"))

    def look(self) -> Dict[str, Any]:
        """Return {"frozen", "limit", "used", "oom_kills"}; None each where that can't be told."""
        limit, used, kills = self._memory_v1() if self._v1 else self._memory_v2()
        return {"frozen": self._is_frozen(), "limit": limit, "used": used, "oom_kills": kills}

    def _is_frozen(self) -> Optional[bool]:
        old = _text(self._freezer, "freezer.state")
        new = _counter(_text(self._v2, "cgroup.events"), "frozen")
        if old is None and new is None:
            return None
        return (old or "").strip() == "FROZEN" or new == 1

    def _memory_v1(self) -> Tuple[Optional[int], Optional[int], Optional[int]]:
        limit = _counter(_text(self._v1, "memory.stat"), "hierarchical_memory_limit")
        kills = _counter(_text(self._v1, "memory.oom_control"), "oom_kill")
        used = _number(_text(self._v1, "memory.usage_in_bytes"))
        return (None if limit is None or limit >= _UNLIMITED_BYTES else limit), used, kills

    def _memory_v2(self) -> Tuple[Optional[int], Optional[int], Optional[int]]:
        limits = [_number(_text(each, "memory.max")) for each in _with_parents(self._v2)]
        known = [limit for limit in limits if limit is not None]
        kills = _counter(_text(self._v2, "memory.events"), "oom_kill")
        return (min(known) if known else None), _number(_text(self._v2, "memory.current")), kills


def _paths(pid: int) -> Dict[str, str]:
    """Return cgroup paths by controller; "" is v2's."""
    found: Dict[str, str] = {}
    for line in procfs.cgroup_lines(pid) if pid else []:
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(","):
            found[name] = path
    return found


def _common(one: str, other: str) -> str:
    """The cgroup that both are in; the first one's where that would be the root of all."""
    if one == other:
        return one
    parts = []
    for left, right in zip(one.split("/"), other.split("/")):
        if left != right:
            break
        parts.append(left)
    return "/".join(parts) or one


def _join(root: str, path: Optional[str]) -> str:
    """The directory of a cgroup; "" where there is none, or it is the whole machine."""
    if not path or path == "/":
        return ""
    full = os.path.join(root, path.lstrip("/"))
    return full if os.path.isdir(full) else ""


def _with_parents(directory: str) -> List[str]:
    found = []
    while directory and os.path.exists(os.path.join(directory, "cgroup.events")):  # the root has none
        found.append(directory)
        directory = os.path.dirname(directory)
    return found


def _text(directory: str, name: str) -> Optional[str]:
    if not directory:
        return None
    try:
        with open(os.path.join(directory, name)) as file:
            return file.read()
    except OSError:
        return None


def _number(text: Optional[str]) -> Optional[int]:
    return int(text) if text and text.strip().isdigit() else None


def _counter(text: Optional[str], name: str) -> Optional[int]:
    for line in (text or "").splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == name and words[1].isdigit():
            return int(words[1])
    return None
