"""Ending processes for certain: asked first, then stopped, rescanned and killed, each through its pidfd.

A `KillJob` is stepped by its owner, who goes on reaping and journalling meanwhile; it never blocks. Whom it may end is
told by a `find` function at each look, and what that function never names is never signalled. Command lines and
environments stay out of here: reading them can hang on a wedged process.
"""

from __future__ import annotations

import errno
import math
import os
import select
import signal
from typing import Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from . import procfs

Ident = Tuple[int, int]  # pid and start ticks
Find = Callable[[], Set[Ident]]

_RESCAN_S = 0.25
_KILL_RESCAN_S = 0.1
# A process that outlives SIGKILL for so long sleeps uninterruptibly, mostly in a driver or on a dead mount.
_KILL_PATIENCE_S = 15.0
_STOP_ROUNDS = 5
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "tcsh", "csh"})


def signal_number(name: str) -> int:
    """Return the number of `TERM` or `SIGTERM`. Raises: ValueError."""
    try:
        return int(signal.Signals["SIG" + name.upper().replace("SIG", "", 1)])
    except KeyError:
        raise ValueError("no signal is called %s" % name) from None


class _Target(NamedTuple):
    ident: Ident
    pidfd: Optional[int]
    """None where the kernel has no pidfds or we have no descriptor left: then start ticks are compared instead."""


class KillJob:
    """The end of a set of processes, step by step: `done` without `survivors` means that none is left to be found."""

    def __init__(self, find: Find, number: int, grace_s: float, now: float) -> None:
        self.done = False
        self.text = ""
        """Live evidence: `TERM, 14 s of 20 s left`, `KILL sent, 2 of 9 left`."""
        self.survivors: List[str] = []
        self.ended: Set[Ident] = set()
        self._find = find
        self._number = number
        self._grace_s = grace_s
        self._began = now
        self._killing_since: Optional[float] = None
        self._look_at = now
        self._targets: Dict[Ident, _Target] = {}

    @property
    def seen(self) -> int:
        """How many processes were found so far."""
        return len(self._targets) + len(self.ended)

    def hasten(self) -> None:
        """Go to SIGKILL at the next step."""
        self._grace_s = 0.0

    def step(self, now: float) -> None:
        """Do what is due at `now` (seconds of any steadily growing clock)."""
        if self.done:
            return
        self._drop_ended()
        if now >= self._look_at or not self._targets:
            self._look(now)
        if not self._targets:
            self._finish()
        elif self._killing_since is None and now - self._began >= self._grace_s:
            self._kill(now)
        elif self._killing_since is not None and now - self._killing_since >= _KILL_PATIENCE_S:
            self.survivors = [_described(ident) for ident in sorted(self._targets)]
            self._finish()
        self._tell(now)

    def _look(self, now: float) -> None:
        new = self._take_in(self._find())
        if self._killing_since is None:
            self._signal(new, self._number)
            self._look_at = now + _RESCAN_S
        else:
            self._signal(new, signal.SIGKILL)
            self._look_at = now + _KILL_RESCAN_S

    def _kill(self, now: float) -> None:
        """Stopped processes can't fork: stop until a look finds nobody new, and only then kill."""
        self._killing_since = now
        self._signal(list(self._targets), signal.SIGSTOP)
        for _ in range(_STOP_ROUNDS):
            new = self._take_in(self._find())
            if not new:
                break
            self._signal(new, signal.SIGSTOP)
        self._signal(list(self._targets), signal.SIGKILL)
        self._look_at = now + _KILL_RESCAN_S

    def _take_in(self, idents: Set[Ident]) -> List[Ident]:
        new: List[Ident] = []
        for ident in sorted(idents - set(self._targets) - self.ended):
            pid, start = ident
            if pid <= 1 or pid == os.getpid():
                continue
            try:
                pidfd = procfs.pidfd_of(pid, start)
            except OSError as error:
                if error.errno not in (errno.ENOSYS, errno.EMFILE, errno.ENFILE, errno.EPERM):
                    raise
                pidfd = None
            if pidfd is not None or procfs.is_alive(pid, start):
                self._targets[ident] = _Target(ident, pidfd)
                new.append(ident)
        return new

    def _signal(self, idents: List[Ident], number: int) -> None:
        for ident in idents:
            target = self._targets[ident]
            try:
                if target.pidfd is not None:
                    procfs.pidfd_send_signal(target.pidfd, number)
                elif procfs.is_alive(*ident):
                    os.kill(ident[0], number)
            except ProcessLookupError:
                pass
            except PermissionError:
                pass  # it stays among the targets and ends up as a survivor, by name

    def _drop_ended(self) -> None:
        poll = select.poll()
        by_pidfd = {target.pidfd: target for target in self._targets.values() if target.pidfd is not None}
        for pidfd in by_pidfd:
            poll.register(pidfd, select.POLLIN)
        gone = [by_pidfd[pidfd].ident for pidfd, _ in poll.poll(0)]
        gone += [
            ident for ident, target in self._targets.items() if target.pidfd is None and not procfs.is_alive(*ident)
        ]
        for ident in gone:
            pidfd_of_gone = self._targets.pop(ident).pidfd
            if pidfd_of_gone is not None:
                os.close(pidfd_of_gone)
            self.ended.add(ident)

    def _finish(self) -> None:
        for target in self._targets.values():
            if target.pidfd is not None:
                os.close(target.pidfd)
        self._targets.clear()
        self.done = True

    def _tell(self, now: float) -> None:
        if self._killing_since is not None:
            self.text = "KILL sent, %d of %d left" % (len(self._targets), self.seen)
        else:
            name = signal.Signals(self._number).name[3:]
            left_s = max(0, math.ceil(self._grace_s - (now - self._began)))
            self.text = "%s, %d s of %d s left" % (name, left_s, math.ceil(self._grace_s))


class Prey:
    """Who belongs to a run without a keeper: the processes named by the plan, what descends from them, who writes its
    log, and who lives in the cgroup that was made for it. What was found once stays known when its parent dies."""

    def __init__(self, named: Set[Ident], spare: Set[int]) -> None:
        self.known = set(named)
        self._spare = spare
        self._logs = {path for path in (procfs.fd_target(pid, 1) for pid, _ in named) if _is_log(path)}
        self._cgroups = {path for path in (_own_cgroup(pid) for pid, _ in named) if path}

    def __call__(self) -> Set[Ident]:
        stats = {pid: stat for pid, stat in procfs.table().items() if not procfs.is_gone(stat)}
        alive = {pid for pid, start in self.known if pid in stats and stats[pid].start == start}
        pids = alive | procfs.descendants(alive, stats) | self._writers(stats) | self._members(stats)
        found = {(pid, stats[pid].start) for pid in pids - self._spare}
        self.known |= found
        return found

    def _writers(self, stats: procfs.Table) -> Set[int]:
        # A shell that holds the log may be a person's (`bash -c "... > log"`); telling needs its command line.
        writers: Set[int] = set()
        for pid, stat in stats.items():
            if stat.comm in _SHELLS or not self._logs:
                continue
            if any(procfs.fd_target(pid, fd) in self._logs and procfs.fd_writes(pid, fd) for fd in (1, 2)):
                writers.add(pid)
        return writers

    def _members(self, stats: procfs.Table) -> Set[int]:
        members: Set[int] = set()
        for path in self._cgroups:
            try:
                with open(os.path.join(path, "cgroup.procs")) as file:
                    members |= {int(line) for line in file.read().split()} & set(stats)
            except OSError:
                continue
        return members


def _is_log(path: str) -> bool:
    return path.startswith("/") and not path.startswith("/dev/")


def _own_cgroup(pid: int) -> str:
    """Return the directory of the cgroup of `pid` if it was made for one run of ours (`dflash-...service`)."""
    for line in procfs.cgroup_lines(pid):
        _, controllers, path = line.split(":", 2)
        if os.path.basename(path).startswith("dflash-") and path.endswith(".service"):
            mount = "/sys/fs/cgroup" if not controllers else "/sys/fs/cgroup/systemd"
            if os.path.isdir(mount + path):
                return mount + path
    return ""


def _described(ident: Ident) -> str:
    stat = procfs.read_stat(ident[0])
    if stat is None:
        return "pid %d" % ident[0]
    return "pid %d %s (state %s)" % (stat.pid, stat.comm, stat.state)
