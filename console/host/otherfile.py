"""Whether a run whose log is silent, or that has none, writes its words into another file.

Looks at what its processes hold open for writing, never at what is in it. Reading only; only the agent uses this.
"""

from __future__ import annotations

import os
import stat
import time
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from . import background, netfs, procfs

SILENT_S = 5.0
"""A log that grew so recently is where the run writes."""
FRESH_S = 60.0
"""The other file must have been written to within this."""
PAUSE_S = 10.0
TROUBLE_S = 60.0
TIMEOUT_S = 5.0
_MAX_PIDS = 64
_MAX_FILES = 4096
_TEXT = (".log", ".out", ".err", ".txt", ".jsonl", ".json", ".csv")
_ELSEWHERE = ("/dev/", "/proc/", "/sys/", "/memfd:", "/SYSV")

Found = Tuple[str, int]


class OtherFile:
    """Asked with each sample of the tree. The looking is done in a child: a dead network filesystem holds only that.

    A log that surely lies on this machine, and grows, needs no looking: most of the time that is so, and a child costs
    as much as a second of watching.
    """

    def __init__(self) -> None:
        self.found: Optional[Found] = None
        """The newest text file that the run writes to beside its silent log, as of some seconds ago, and the pid."""
        self._next_at = float("-inf")
        self._job: Optional[background.Job] = None
        self._news = False
        self._is_here: Dict[int, bool] = {}

    @property
    def fd(self) -> int:
        """To be selected on; -1 while nothing is looked for."""
        return self._job.fd if self._job is not None else -1

    def look(self, pids: Set[int], log: Optional[Dict[str, Any]], main: Optional[int] = None) -> None:
        """Look for a file that one of `pids` writes to beside `log`, unless it was looked for lately.

        `main`: the process that was started with the log as its output.
        """
        if self._job is not None or not pids or time.monotonic() < self._next_at:
            return
        if log is not None and main is not None and self._surely_grows(log, main):
            self._take(None, PAUSE_S)
            return
        path = str(log["path"]) if log is not None else ""
        self._job = background.Job(lambda: beside(pids, path), TIMEOUT_S)

    def advance(self) -> bool:
        """Take in what was found; return whether it is news."""
        if self._job is not None and self._job.advance():
            result, error = self._job.result, self._job.error
            self._job = None
            found = (str(result[0]), int(result[1])) if isinstance(result, list) else None
            self._take(found, TROUBLE_S if error else PAUSE_S)
        news, self._news = self._news, False
        return news

    def _take(self, found: Optional[Found], pause_s: float) -> None:
        self._next_at = time.monotonic() + pause_s
        self._news = self._news or found != self.found
        self.found = found

    def _surely_grows(self, log: Dict[str, Any], main: int) -> bool:
        """Whether the log is where the run writes, as far as can be told without waiting for a network."""
        ident = (log.get("dev"), log.get("inode"))
        if None in ident or procfs.fd_target(main, 1) != log["path"]:
            return False
        dev = int(log["dev"])
        if dev not in self._is_here:
            self._is_here[dev] = netfs.is_here(dev)
        # By its descriptor: on the way to its name a network may lie.
        path = "/proc/%d/fd/1" % main
        return self._is_here[dev] and _ident(path) == ident and _is_fresh(path, SILENT_S)

    def close(self) -> None:
        if self._job is not None:
            self._job.close()
            self._job = None


def beside(pids: Iterable[int], log: str) -> Optional[Found]:
    """Return the newest text file and its writer, unless the log is where the run writes. Stats files: may hang."""
    return None if log and _is_fresh(log, SILENT_S) else newest_text(pids, log)


def newest_text(pids: Iterable[int], log: str) -> Optional[Found]:
    """Return the newest text file, and its writer, that was written to within `FRESH_S`; `log` is none."""
    ours = _ident(log)
    found: List[Tuple[float, str, int]] = []
    looked = 0
    for pid in sorted(pids)[:_MAX_PIDS]:
        for fd, name in sorted(procfs.fd_targets(pid).items()):
            looked += 1
            if looked > _MAX_FILES:
                break
            if not _may_hold_words(fd, name) or not procfs.fd_writes(pid, fd):
                continue
            try:
                status = os.stat("/proc/%d/fd/%d" % (pid, fd))
            except OSError:
                continue
            if not stat.S_ISREG(status.st_mode) or (status.st_dev, status.st_ino) == ours or not status.st_size:
                continue
            if time.time() - status.st_mtime < FRESH_S:
                found.append((status.st_mtime, name, pid))
    if not found:
        return None
    _, name, pid = max(found)
    return name, pid


def _may_hold_words(fd: int, name: str) -> bool:
    """Whether it is a program's output, whatever its name (a log that was moved: `train.log.1`), or named a text."""
    if not name.startswith("/") or name.startswith(_ELSEWHERE):
        return False
    return fd in (1, 2) or name.lower().endswith(_TEXT)


def _ident(path: str) -> Optional[Tuple[int, int]]:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_fresh(path: str, within_s: float) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime < within_s
    except OSError:
        return False
