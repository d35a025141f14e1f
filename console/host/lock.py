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
_TRIES = 10
_TRY_S = 0.02  # ten tries: a reader's test holds the lock for microseconds, a rival keeper for seconds


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
        """Take the lock and say who holds it; False where another holder does not let go within 0.2 s."""
        descriptor = _open(self.path)
        for left in range(_TRIES, 0, -1):
            if _flock(descriptor, fcntl.LOCK_EX):
                self._descriptor = descriptor
                self.update(**holder)
                return True
            if left > 1:
                time.sleep(_TRY_S)
        os.close(descriptor)
        return False

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
    try:
        holder = json.loads(content or b"{}")
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def _open(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _flock(descriptor: int, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
