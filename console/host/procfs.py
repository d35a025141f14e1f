"""What /proc says: processes by pid and start ticks, their trees, their open files, and the identity of this boot.

Reading only; nothing is signalled here except through a pidfd that the caller holds. `argv` and `environ` can hang on a
wedged process (they take its mmap lock): callers keep them off the stop path or run them through `bounded`.
Agent and keeper both import this module; it imports nothing of ours.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import signal
import time
from typing import Dict, Iterable, List, NamedTuple, Optional, Set

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
UVM = "/dev/nvidia-uvm"
_READ_BYTES = 1 << 16
_RECORD_BYTES = 4096  # a stat line has some 350
_PF_KTHREAD = 0x00200000
_SYS_PIDFD_SEND_SIGNAL, _SYS_PIDFD_OPEN = 424, 434  # the same on every architecture since Linux 5.1 / 5.3
_SESSION_SCOPE = re.compile(r"session-[^/]+\.scope")


class Stat(NamedTuple):
    """One line of /proc/PID/stat. `start` is field 22, in ticks since boot: with the pid it names a process."""

    pid: int
    comm: str
    state: str
    ppid: int
    pgrp: int
    sid: int
    start: int
    utime: int
    stime: int
    rss_bytes: int
    threads: int
    stack: int = 0
    """Where its stack starts, which is another address after each exec; 0 where we may not know."""
    is_kernel: bool = False
    """It is a thread of the kernel, and executes no file."""


Table = Dict[int, Stat]


def read_stat(pid: int) -> Optional[Stat]:
    """Return the stat line of `pid`, or None where there is no such process."""
    line = _content("/proc/%d/stat" % pid, at_once=True)
    if line is None:
        return None
    opening, closing = line.find(b"("), line.rfind(b")")  # comm may hold spaces and parentheses itself
    fields = line[closing + 2 :].split()
    if opening < 0 or len(fields) < 22:
        return None
    return Stat(
        pid=pid,
        comm=os.fsdecode(line[opening + 1 : closing]),
        state=fields[0].decode(),
        ppid=int(fields[1]),
        pgrp=int(fields[2]),
        sid=int(fields[3]),
        start=int(fields[19]),
        utime=int(fields[11]),
        stime=int(fields[12]),
        rss_bytes=int(fields[21]) * _PAGE_BYTES,
        threads=int(fields[17]),
        stack=int(fields[25]) if len(fields) > 25 else 0,
        is_kernel=bool(int(fields[6]) & _PF_KTHREAD),
    )


def all_pids() -> List[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def last_pid() -> Optional[int]:
    """Return the number that our pid namespace gave out last, to a process or a thread; None where it is not told."""
    line = _content("/proc/sys/kernel/ns_last_pid", at_once=True)
    return int(line) if line is not None and line.strip().isdigit() else None


def table() -> Table:
    """Return every process that can be seen, by pid."""
    found = (read_stat(pid) for pid in all_pids())
    return {stat.pid: stat for stat in found if stat is not None}


def children(pid: int, stats: Table) -> List[int]:
    return [stat.pid for stat in stats.values() if stat.ppid == pid]


def descendants(roots: Iterable[int], stats: Table) -> Set[int]:
    """Return everything below `roots`, the roots themselves left out."""
    by_parent: Dict[int, List[int]] = {}
    for stat in stats.values():
        by_parent.setdefault(stat.ppid, []).append(stat.pid)
    found: Set[int] = set()
    todo = list(roots)
    while todo:
        for child in by_parent.get(todo.pop(), ()):
            if child not in found:
                found.add(child)
                todo.append(child)
    return found


def ancestors(pid: int) -> List[int]:
    """Return parent, grandparent and so on, as far as this pid namespace shows them."""
    found: List[int] = []
    stat = read_stat(pid)
    while stat is not None and stat.ppid > 0 and stat.ppid not in found:
        found.append(stat.ppid)
        stat = read_stat(stat.ppid)
    return found


def is_gone(stat: Optional[Stat]) -> bool:
    """A zombie counts as gone unless threads of it still live behind the dead leader."""
    return stat is None or stat.state in "Xx" or (stat.state == "Z" and stat.threads <= 1)


def is_alive(pid: int, start: int) -> bool:
    """Whether the process with this pid *and* start ticks lives."""
    stat = read_stat(pid)
    return stat is not None and stat.start == start and not is_gone(stat)


def argv(pid: int) -> List[str]:
    """Return the command line, empty for a kernel thread, a zombie or a process that is gone."""
    return _nul_separated("/proc/%d/cmdline" % pid)


def environ(pid: int) -> Dict[str, str]:
    """Return the environment that `pid` was started with, empty where it may not be read."""
    pairs = (entry.partition("=") for entry in _nul_separated("/proc/%d/environ" % pid))
    return {name: value for name, separator, value in pairs if separator}


def _nul_separated(path: str) -> List[str]:
    raw = _content(path)
    return [os.fsdecode(part) for part in (raw[:-1] if raw.endswith(b"\0") else raw).split(b"\0")] if raw else []


def _content(path: str, at_once: bool = False) -> Optional[bytes]:
    """Read a file of /proc; None where that can't be. Half of what open() costs, which asks for more than we need.

    `at_once`: it is one short record, which the kernel gives whole or not at all.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if at_once:
            return os.read(descriptor, _RECORD_BYTES)
        parts = [os.read(descriptor, _READ_BYTES)]
        while parts[-1]:
            parts.append(os.read(descriptor, _READ_BYTES))
        return b"".join(parts)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def exe(pid: int) -> str:
    return _readlink("/proc/%d/exe" % pid)


def cwd(pid: int) -> str:
    return _readlink("/proc/%d/cwd" % pid)


def pid_namespace(pid: int) -> str:
    """Return the process's pid namespace (`pid:[4026531836]`), or "" where that may not be read."""
    return _readlink("/proc/%d/ns/pid" % pid)


def pid_namespace_here() -> str:
    """Return the pid namespace that /proc's pids, and so ours, are of; "" where that can't be told."""
    return _readlink("/proc/self/ns/pid")


def owner_uid(pid: int) -> Optional[int]:
    try:
        return os.stat("/proc/%d" % pid).st_uid
    except OSError:
        return None


def _readlink(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def fd_target(pid: int, fd: int) -> str:
    """Return what descriptor `fd` of `pid` points to, "" where that can't be read."""
    return _readlink("/proc/%d/fd/%d" % (pid, fd))


def fd_targets(pid: int) -> Dict[int, str]:
    """Return every open descriptor with its target; empty where they may not be read."""
    try:
        names = os.listdir("/proc/%d/fd" % pid)
    except OSError:
        return {}
    return {int(name): _readlink("/proc/%d/fd/%s" % (pid, name)) for name in names if name.isdigit()}


def fd_writes(pid: int, fd: int) -> bool:
    """Whether descriptor `fd` of `pid` was opened for writing."""
    try:
        with open("/proc/%d/fdinfo/%d" % (pid, fd)) as file:
            flags = next(line.split()[1] for line in file if line.startswith("flags:"))
    except (OSError, StopIteration, IndexError):
        return False
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY


def holds_uvm(pid: int) -> bool:
    """Whether `pid` has /dev/nvidia-uvm open, as every process with a CUDA context does."""
    return UVM in fd_targets(pid).values()


def cgroup_lines(pid: int) -> List[str]:
    try:
        with open("/proc/%d/cgroup" % pid) as file:
            return file.read().splitlines()
    except OSError:
        return []


def cgroup_session(pid: int) -> str:
    """Return logind's scope of `pid` (`session-12.scope`), or "" outside of any."""
    for line in cgroup_lines(pid):
        found = _SESSION_SCOPE.search(line)
        if found:
            return found.group()
    return ""


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def init_start() -> int:
    """Start ticks of pid 1: differ after a container restarted, also where boot_id is the host's."""
    stat = read_stat(1)
    return stat.start if stat is not None else 0


def boot_identity() -> str:
    return "%s/%d" % (boot_id(), init_start())


def boottime() -> float:
    """Seconds since boot, suspends included; immune to clock changes and to lxcfs's /proc/uptime."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def age_s(stat: Stat) -> float:
    return max(0.0, boottime() - stat.start / TICKS_PER_S)


_libc = ctypes.CDLL(None, use_errno=True)


def pidfd_open(pid: int) -> int:
    """Return a descriptor of the process. Raises: ProcessLookupError, OSError (ENOSYS before Linux 5.3)."""
    if hasattr(os, "pidfd_open"):
        return os.pidfd_open(pid)
    descriptor = int(_libc.syscall(_SYS_PIDFD_OPEN, ctypes.c_int(pid), ctypes.c_uint(0)))
    if descriptor < 0:
        _raise_errno()
    os.set_inheritable(descriptor, False)
    return descriptor


def pidfd_send_signal(descriptor: int, number: int) -> None:
    """Signal through a pidfd. Raises: ProcessLookupError where the process is gone, PermissionError."""
    if hasattr(signal, "pidfd_send_signal"):
        signal.pidfd_send_signal(descriptor, number)
        return
    none = ctypes.c_void_p(None)
    if (
        _libc.syscall(_SYS_PIDFD_SEND_SIGNAL, ctypes.c_int(descriptor), ctypes.c_int(number), none, ctypes.c_uint(0))
        < 0
    ):
        _raise_errno()


def pidfd_of(pid: int, start: int) -> Optional[int]:
    """Return a pidfd of exactly that process, or None where it is gone or another has taken its number."""
    try:
        descriptor = pidfd_open(pid)
    except OSError as error:
        if error.errno in (errno.ESRCH, errno.EINVAL):  # EINVAL: a thread's number, not a process
            return None
        raise
    # The pid can't be reused while the pidfd is open and the process not reaped, so looking now decides it.
    if is_alive(pid, start):
        return descriptor
    os.close(descriptor)
    return None


def _raise_errno() -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))
