"""Looks at one process that may hang: state, threads, kernel stacks, files, environment; and at the kernel's log.

Each look reads /proc only, may block for ever on a wedged process and is bounded by its caller. Only diagnose_run.py
imports this module.
"""

from __future__ import annotations

import collections
import os
from typing import Callable, List, Tuple

from . import procfs, scrub

_MAX_THREADS = 64
_MAX_STACKS = 8
_MAX_FILES = 300
_STATUS = ("State", "PPid", "Uid", "VmRSS", "VmSwap", "Threads", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt")


def lines_of(path: str, count: int) -> List[str]:
    """Return the first lines of a file; none where it can't be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line.rstrip() for _, line in zip(range(count), file)]
    except OSError:
        return []


def wchan(pid: int) -> str:
    """Where in the kernel it sleeps; "-" where it runs or this kernel doesn't tell."""
    found = lines_of(f"/proc/{pid}/wchan", 1)
    return found[0] if found and found[0] not in ("", "0") else "-"


def status(pid: int) -> List[str]:
    lines = lines_of(f"/proc/{pid}/status", 100)
    kept = [" ".join(line.split()) for line in lines if line.partition(":")[0] in _STATUS]
    return ["; ".join(kept)] if kept else []


def where(pid: int) -> List[str]:
    return [
        f"exe {procfs.exe(pid) or '?'}  cwd {procfs.cwd(pid) or '?'}  cgroup {' '.join(procfs.cgroup_lines(pid)[-1:])}"
    ]


def syscall(pid: int) -> List[str]:
    return lines_of(f"/proc/{pid}/syscall", 1)


def threads(pid: int) -> List[str]:
    """Return how many threads are in which state and where, the most first."""
    groups: "collections.Counter[Tuple[str, str, str]]" = collections.Counter()
    tids = _tids(pid)
    for tid in tids[:_MAX_THREADS]:
        stat = procfs.read_stat(tid)
        if stat is not None:
            groups[(stat.state, wchan(tid), stat.comm)] += 1
    told = [f"{count} x {state} {channel} {comm}" for (state, channel, comm), count in groups.most_common()]
    return told + ([f"and {len(tids) - _MAX_THREADS} more"] if len(tids) > _MAX_THREADS else [])


def _tids(pid: int) -> List[int]:
    try:
        return sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return []


def kernel_stacks(pid: int) -> List[str]:
    """Return each different kernel stack with its threads; the reason where they may not be read."""
    stacks: "collections.OrderedDict[str, List[int]]" = collections.OrderedDict()
    for tid in _tids(pid)[:_MAX_THREADS]:
        try:
            with open(f"/proc/{pid}/task/{tid}/stack") as file:
                stacks.setdefault(file.read().rstrip(), []).append(tid)
        except OSError as error:
            return [f"not readable here ({error.strerror})"]
    found: List[str] = []
    for text, tids in list(stacks.items())[:_MAX_STACKS]:
        found.append(f"thread {', '.join(map(str, tids[:8]))}{' ...' if len(tids) > 8 else ''}")
        found += [f"  {line}" for line in text.splitlines()] or ["  (in user space)"]
    return found


def open_files(pid: int) -> List[str]:
    try:
        os.listdir(f"/proc/{pid}/fd")
    except OSError as error:
        return [f"not readable here ({error.strerror})"]
    targets = sorted(procfs.fd_targets(pid).items())
    told = [f"{fd} {target}{_position(pid, fd)}" for fd, target in targets[:_MAX_FILES]]
    return told + ([f"and {len(targets) - _MAX_FILES} more"] if len(targets) > _MAX_FILES else [])


def _position(pid: int, fd: int) -> str:
    for line in lines_of(f"/proc/{pid}/fdinfo/{fd}", 1):
        if line.startswith("pos:") and line.split()[1] != "0":
            return f"  at {line.split()[1]}"
    return ""


def environment(pid: int) -> List[str]:
    return [scrub.variable(name, value) for name, value in sorted(procfs.environ(pid).items())]


LOOKS: Tuple[Tuple[str, Callable[[int], List[str]]], ...] = (
    ("status", status),
    ("where", where),
    ("system call", syscall),
    ("threads", threads),
    ("kernel stacks", kernel_stacks),
    ("open files", open_files),
    ("environment", environment),
)


def look(pid: int, title: str) -> List[str]:
    return dict(LOOKS)[title](pid)


def kernel_log(count: int) -> List[str]:
    """Return the last lines of the kernel's log; one line that says why where it may not be read."""
    try:
        descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return [f"not readable here ({error.strerror})"]
    lines: "collections.deque[str]" = collections.deque(maxlen=count)
    try:
        while True:
            try:
                record = os.read(descriptor, 8192)
            except BrokenPipeError:
                continue  # overwritten while we read
            except OSError:
                break  # its end, or not for us
            if not record:
                break
            head, _, text = record.decode("utf-8", "replace").partition(";")
            fields = head.split(",")
            at_s = int(fields[2]) / 1e6 if len(fields) > 2 and fields[2].isdigit() else 0.0
            lines.append(f"[{at_s:12.6f}] {text.splitlines()[0] if text else ''}")
    finally:
        os.close(descriptor)
    return list(lines)
