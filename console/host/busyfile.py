"""Whether exec would say "text file busy": somebody has the file open for writing, as amid a copy or an edit in place.

Reads only; a lease is asked for and given back at once, which is the one way to hear the kernel's own count of writers.
Can hang on a dead mount: callers bound it. Only preflight.py imports this module.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from typing import List, Optional

from . import procfs


def writers(path: str) -> Optional[List[str]]:
    """Return who has `path` open for writing, as `pid 7 (scp)`; [] where nobody has, None where it can't be told.

    A writer that can't be seen from here (another container, another user) is `a process that can't be seen from here`.
    """
    counted = _has_writers(path)
    if counted is False:
        return []
    seen = _seen(path)
    if seen or counted is None:
        return seen or None
    return ["a process that can't be seen from here"]


def _has_writers(path: str) -> Optional[bool]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # what the kernel sends if somebody wants to write just now
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None  # others: no lease for us, or none on this filesystem
    else:
        return False
    finally:
        os.close(descriptor)
        signal.signal(signal.SIGIO, before)


def _seen(path: str) -> List[str]:
    try:
        wanted = os.stat(path)
    except OSError:
        return []
    found = []
    for pid in procfs.all_pids():
        for fd, target in procfs.fd_targets(pid).items():
            if os.path.basename(target) == os.path.basename(os.path.realpath(path)) and _is(pid, fd, wanted):
                stat = procfs.read_stat(pid)
                found.append(f"pid {pid} ({stat.comm})" if stat else f"pid {pid}")
                break
    return found


def _is(pid: int, fd: int, wanted: os.stat_result) -> bool:
    try:
        there = os.stat(f"/proc/{pid}/fd/{fd}")
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (wanted.st_dev, wanted.st_ino) and procfs.fd_writes(pid, fd)
