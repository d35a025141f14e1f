"""The file that the run really writes: the log that was opened for it, or where its run.sh has sent it instead.

Told by stdout of the trainer. A pipe, a device or a file that is gone changes nothing: then the log that was opened
stays the run's. Also whether there is room left for it. Only the keeper imports this module.
"""

from __future__ import annotations

import os
import stat
from typing import Any, Dict, List, Optional

from . import bounded, procfs, spawn

_PATIENCE_S = 1.0
_DELETED = " (deleted)"


class RunLog:
    """`ident` is what the journal says of the log; `follow` looks where a process writes."""

    def __init__(self, opened: spawn.OpenedLog) -> None:
        self._opened = opened
        self._fd = opened.fd
        self.ident: Dict[str, Any] = {"path": opened.path, "dev": opened.dev, "inode": opened.inode}
        self._looked_at = opened.path

    def follow(self, pid: int) -> bool:
        """Look at stdout of `pid`; return whether it is another file than the log of before."""
        target = procfs.fd_target(pid, 1)
        if target == self._looked_at or not target.startswith("/") or target.endswith(_DELETED):
            return False
        self._looked_at = target
        behind = "/proc/%d/fd/1" % pid
        try:
            # In a child: a dead network filesystem hangs whoever asks.
            found: Optional[List[int]] = bounded.call(lambda: _regular(behind, target), _PATIENCE_S)
        except (bounded.TookTooLong, bounded.ChildFailed):
            return False
        if found is None or found == [self.ident["dev"], self.ident["inode"]]:
            return False
        try:
            fd = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            return False
        if self._fd != self._opened.fd:
            os.close(self._fd)
        self._fd = fd
        self.ident = {"path": target, "dev": found[0], "inode": found[1]}
        if target != self._opened.path:
            self.ident["opened"] = self._opened.path
        return True

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def sync(self) -> None:
        """Raises: OSError."""
        os.fsync(self._fd)

    def why_full(self) -> str:
        """Return words where not even a block is left for the log, else ""."""
        try:
            room = os.fstatvfs(self._fd)
        except OSError:
            return ""
        free_bytes = (room.f_bfree if os.geteuid() == 0 else room.f_bavail) * room.f_frsize
        if free_bytes >= max(room.f_bsize, 4096):
            return ""
        return "%d B are free for %s: what the run said last is not in it" % (free_bytes, self.ident["path"])


def _regular(behind: str, path: str) -> Optional[List[int]]:
    """Return device and inode of a regular file that `path` really names, else None."""
    try:
        found, named = os.stat(behind), os.stat(path)
    except OSError:
        return None
    same = (found.st_dev, found.st_ino) == (named.st_dev, named.st_ino)
    return [found.st_dev, found.st_ino] if same and stat.S_ISREG(found.st_mode) else None
