"""The kernel log's word on GPUs and memory: Xid errors, and processes that were killed for want of memory.

/dev/kmsg is read without blocking: at the start what is younger than ten minutes, then what comes. Only the helper
outside of a container (outside.py) imports this module: inside the log may mostly not be read.
"""

from __future__ import annotations

import errno
import os
import re
import time
from typing import Any, Dict, List, Optional, Tuple

from . import procfs

PATH = "/dev/kmsg"
YOUNG_S = 600.0
_RECORD_BYTES = 8192
# A full ring holds some 20,000 records; so many at once are 10 ms.
_RECORDS_A_TURN = 4000

_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)(?:, pid='?(\d+|<unknown>)'?)?(?:, name='?([^,']*)'?)?")
_OOM = re.compile(
    r"oom-kill:constraint=(\w+),.*?(?:oom_memcg=([^,]*),)?(?:global_oom,)?task_memcg=([^,]*),task=(.*),pid=(\d+),uid=\d+"
)
# Before Linux 5.0 nothing but this line names the victim.
_KILLED = re.compile(r"(Memory cgroup out of memory|Out of memory): Killed process (\d+) \((.*?)\)")

Note = Dict[str, Any]


class KernelLog:
    """An open kernel log. `why` says why there is none to be read."""

    def __init__(self, path: str = PATH) -> None:
        self.why = ""
        self._fd = -1
        self._named: List[int] = []
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            hint = " (kernel.dmesg_restrict)" if error.errno == errno.EPERM else ""
            self.why = "the kernel log can't be read: %s%s" % (error.strerror, hint)

    @property
    def fd(self) -> int:
        """What to poll; -1 where there is none."""
        return self._fd

    def read(self) -> List[Note]:
        """Return what has come since the last call."""
        found: List[Note] = []
        for _ in range(_RECORDS_A_TURN):
            if self._fd < 0:
                break
            try:
                record = os.read(self._fd, _RECORD_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno in (errno.EPIPE, errno.EINVAL):
                    continue  # overwritten before we read it, or longer than a record may be: the next one is read
                self._give_up("the kernel log can't be read any more: %s" % error.strerror)
                break
            if not record:
                break
            note = self._note(record)
            if note is not None:
                found.append(note)
        return found

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _give_up(self, why: str) -> None:
        self.close()
        self.why = why

    def _note(self, record: bytes) -> Optional[Note]:
        if b"Xid" not in record and b"oom-kill:" not in record and b"Killed process" not in record:
            return None
        head, _, rest = record.decode("utf-8", "replace").partition(";")
        text = rest.split("\n", 1)[0]
        try:
            seconds = int(head.split(",")[2]) / 1e6
        except (IndexError, ValueError):
            return None
        told = parse(text)
        age_s = time.monotonic() - seconds
        if told is None or age_s > YOUNG_S:
            return None
        if told["kind"] == "oom" and self._is_second(told, text):
            return None
        return dict(told, bt=procfs.boottime() - age_s, text=text[:300])

    def _is_second(self, told: Note, text: str) -> bool:
        """Newer kernels name a victim twice: with its cgroup first."""
        if "oom-kill:" in text:
            self._named = (self._named + [told["pid"]])[-32:]
            return False
        return told["pid"] in self._named


def parse(text: str) -> Optional[Note]:
    """Return what a line of the kernel log says, None where it is none of ours.

    {"kind": "xid", "bus", "xid", "pid", "name"} or {"kind": "oom", "pid", "name", "group": of the victim, "limit": the
    group whose limit was met, "" for the whole machine's memory}.
    """
    found = _XID.search(text)
    if found:
        bus, xid, pid, name = found.groups()
        known = pid is not None and pid.isdigit()
        told = name if name and name != "<unknown>" else ""
        return {"kind": "xid", "bus": bus, "xid": int(xid), "pid": int(pid) if known else None, "name": told}
    found = _OOM.search(text)
    if found:
        constraint, limit, group, name, pid = found.groups()
        limit = (limit or group) if constraint == "CONSTRAINT_MEMCG" else ""
        return {"kind": "oom", "pid": int(pid), "name": name, "group": group, "limit": limit}
    found = _KILLED.search(text)
    if found:
        kind, pid, name = found.groups()
        return {"kind": "oom", "pid": int(pid), "name": name, "group": "", "limit": "?" if kind[0] == "M" else ""}
    return None


def concerns(note: Note, group: str, inner: Dict[int, Tuple[int, int]]) -> bool:
    """Whether a note may be of the container with this memory cgroup: Xids always, kills by cgroup or by pid."""
    if note["kind"] == "xid" or note["pid"] in inner:
        return True
    return bool(group) and (note["group"] == group or note["group"].startswith(group + "/"))
