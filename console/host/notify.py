"""Being told by the kernel that a file changed (inotify), so that nobody has to look twenty times a second.

Only a hint: what changed is for the caller to find out. A file system that says nothing (a network one that is written
from another machine, FUSE, a mapped file) is found out too: whoever then looks at longer intervals finds changes that
nobody announced, and goes back to looking often. Only the agent uses this; it imports nothing of ours.
"""

from __future__ import annotations

import ctypes
import os
from typing import Dict, List, Optional, Set

_IN_MODIFY, _IN_ATTRIB, _IN_MOVED_FROM, _IN_MOVED_TO = 0x2, 0x4, 0x40, 0x80
_IN_CREATE, _IN_DELETE, _IN_DELETE_SELF, _IN_MOVE_SELF = 0x100, 0x200, 0x400, 0x800
FILE = _IN_MODIFY | _IN_ATTRIB | _IN_DELETE_SELF | _IN_MOVE_SELF
"""Written to, cut, renamed, unlinked."""
ENTRIES = _IN_CREATE | _IN_MOVED_TO | _IN_MOVED_FROM | _IN_DELETE | _IN_DELETE_SELF
"""Names come and go in a directory; a file in it is replaced by rename."""
_EVENTS_BYTES = 65536
# Once may be the moment between a write and its event.
_DEAF_AFTER = 2

_libc = ctypes.CDLL(None, use_errno=True)


class Ears:
    """Listens to some paths between two looks at them.

    In a loop: wait on `fds`, `ring` with what is ready, and where it is time to look: `listen`, look, `found`.
    """

    def __init__(self) -> None:
        self.deaf = False
        """Changes were found that nobody announced: not to be relied on."""
        self._fd = -1
        self._rung = False
        self._settled = False
        self._unannounced = 0
        self._watches: Dict[str, int] = {}

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._watches = -1, {}

    def fds(self) -> List[int]:
        """Return what to wait on. Nothing once it has rung: more of the same must not wake anybody again."""
        return [self._fd] if self._fd >= 0 and not self._rung and not self.deaf else []

    def ring(self, ready: Set[int]) -> bool:
        """Return whether something has happened since the last look."""
        self._rung = self._rung or (self._fd in ready and self._take())
        return self._rung

    def listen(self, wanted: Dict[str, int]) -> bool:
        """Before a look: listen to these paths (path -> FILE or ENTRIES) from now on; return whether to all of them.

        A path is asked anew each time, since it may lead to another file than before.
        """
        self._rung = self._take() or self._rung
        if not self._is_open():
            return False
        for path in [path for path in self._watches if path not in wanted]:
            self._drop(path)
        watched = [self._watch(path, mask) for path, mask in wanted.items()]
        self._take()  # that a watch has ended is an event, too; the look that follows needs no other
        return all(watched)

    def found(self, changed: bool, complete: bool = True) -> None:
        """After a look: tell whether anything had changed, and whether all that there was has been seen."""
        if self._rung:
            self._unannounced = 0
        elif changed and self._settled:
            self._unannounced += 1
            self.deaf = self._unannounced >= _DEAF_AFTER
        self._rung, self._settled = False, complete and bool(self._watches)

    def _is_open(self) -> bool:
        if self._fd < 0:
            try:
                self._fd = int(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
            except AttributeError:
                pass  # a libc without it
        return self._fd >= 0

    def _take(self) -> bool:
        if self._fd < 0:
            return False
        try:
            return bool(os.read(self._fd, _EVENTS_BYTES))
        except OSError:
            return False

    def _watch(self, path: str, mask: int) -> bool:
        # Asked again for the same file the kernel answers with the same number.
        number = int(_libc.inotify_add_watch(self._fd, ctypes.c_char_p(os.fsencode(path)), ctypes.c_uint32(mask)))
        before = self._watches.pop(path, None)
        if number >= 0:
            self._watches[path] = number
        self._forget(before)
        return number >= 0

    def _drop(self, path: str) -> None:
        self._forget(self._watches.pop(path, None))

    def _forget(self, number: Optional[int]) -> None:
        if number is not None and number not in self._watches.values():
            _libc.inotify_rm_watch(self._fd, ctypes.c_int(number))
