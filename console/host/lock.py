"""One lock per target: flock on a file at a fixed path whose content says who holds it.

The file is rewritten in place and never unlinked (an unlinked lock excludes nobody). It is released by the kernel when
the holder dies, provided that forked helpers close `fileno()`. Imports nothing of ours.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import Any, Dict, Optional

_CONTENT_BYTES = 4096
_STEP_S = 0.02
# A rival keeper holds it for seconds, and says so.
_RIVAL_S = 0.2
# Held by nobody who says so: a reader's test, which takes microseconds, or as long as a busy host lets the reader wait.
_READER_S = 5.0


class TargetLock:
    """The lock of one target, held between `try_acquire` and `release`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor: Optional[int] = None
        self._holder: Dict[str, Any] = {}

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def fileno(self) -> int:
        """The descriptor that forked helpers must close. Raises: ValueError while not held."""
        if self._descriptor is None:
            raise ValueError("the lock is not held")
        return self._descriptor

    def try_acquire(self, holder: Dict[str, Any]) -> bool:
        """Take the lock and say who holds it; False where another holder does not let go within 0.2 s.

        Only a holder that names itself and lives counts as one: of two who want it at once, one must get it, also when
        readers are in the way of both.
        """
        descriptor = _open(self.path)
        began = time.monotonic()
        while not _flock(descriptor, fcntl.LOCK_EX):
            waited_s = time.monotonic() - began
            if waited_s >= (_RIVAL_S if _is_held_by_name(descriptor) else _READER_S):
                os.close(descriptor)
                return False
            time.sleep(_STEP_S)
        self._descriptor = descriptor
        self.update(**holder)
        return True

    def update(self, **changes: Any) -> None:
        """Change what the lock says of its holder."""
        self._holder.update(changes)
        self._say(json.dumps(self._holder).encode("utf-8", "surrogateescape"))

    def release(self) -> None:
        if self._descriptor is not None:
            self._say(b"{}")
            os.close(self._descriptor)
            self._descriptor = None

    def _say(self, content: bytes) -> None:
        try:
            os.pwrite(self.fileno(), content.ljust(_CONTENT_BYTES, b"\n"), 0)
        except OSError:
            pass  # a full disk makes the holder anonymous, not the lock ineffective


def read_holder(path: str) -> Optional[Dict[str, Any]]:
    """Return what the holder says of itself ({} where it says nothing), or None while nobody holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        content = os.pread(descriptor, _CONTENT_BYTES, 0).strip()
        # Most of the time nobody holds it and the content says so: then the lock isn't even touched.
        if content == b"{}" or _flock(descriptor, fcntl.LOCK_SH):
            return None
    finally:
        os.close(descriptor)
    return _parsed(content)


def _parsed(content: bytes) -> Dict[str, Any]:
    try:
        holder = json.loads(content or b"{}")
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def _is_held_by_name(descriptor: int) -> bool:
    """Whether the content names a holder that lives; what a killed one has left says nothing."""
    holder = _parsed(os.pread(descriptor, _CONTENT_BYTES, 0).strip())
    pid = holder.get("pid")
    return bool(holder) and (not isinstance(pid, int) or os.path.exists("/proc/%d" % pid))


def _open(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _flock(descriptor: int, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
