"""Following one log by byte offset and file identity: nothing lost, nothing twice, every oddity named.

The follower proves before each read that the bytes before its offset are still the ones it has sent (copytruncate and a
fast regrowth leave `size > offset`). It reads files and returns events; sending them is the agent's. States: missing,
empty, following, truncated, rotated, deleted, unreadable (protocol.LogEvent).
"""

from __future__ import annotations

import errno
import os
import stat
import time
from typing import Any, Dict, List, Optional, Tuple

from . import netfs

FINGERPRINT_BYTES = 1024
CHUNK_BYTES = 64 * 1024
# A follower further behind than this jumps to KEPT_BYTES before the end.
BEHIND_BYTES = 8 << 20
KEPT_BYTES = 1 << 20
# With nothing new to say, say so: the console shows when the file was last looked at.
HEARTBEAT_S = 1.0
READ_LIMIT_BYTES = 1 << 20
_SEARCHED_ENTRIES = 2000

Event = Tuple[Dict[str, Any], bytes]
"""A LogEvent without times, and the raw bytes that follow it."""


class Follower:
    """Follows what `wanted` (the fields of a LogFollow) names; `step` is called every 50 ms or so."""

    def __init__(self, wanted: Dict[str, Any]) -> None:
        self.path = str(wanted["path"])
        self._pid: Optional[int] = wanted.get("pid")
        self._fd = -1
        self._ident: Optional[Tuple[int, int]] = None
        self._offset = 0
        self._before = b""
        self._credit = max(0, int(wanted.get("credit_bytes", 262144)))
        self._state = ""
        self._mtime_ns = -1
        self._proved_at = self._said_at = float("-inf")
        self._wanted: Optional[Dict[str, Any]] = wanted
        self._via = ""
        self._network = ""
        self._asked_at = float("-inf")
        self._left_old = False
        self.at_end = False
        """Whether the last look left nothing unread."""

    def add_credit(self, count: int) -> None:
        self._credit += max(0, count)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def step(self) -> List[Event]:
        """Look at the file once; return what is to be said, in order. At most the credit is read."""
        events: List[Event] = []
        if self._network and time.monotonic() - self._asked_at >= HEARTBEAT_S:
            self._asked_at = time.monotonic()
            netfs.look_again(self.path)
        try:
            named = os.stat(self.path)
        except FileNotFoundError:
            return self._without_name(events)
        except OSError as error:
            return self._say(events, "unreadable", detail=error.strerror or str(error))
        if not stat.S_ISREG(named.st_mode):
            return self._say(events, "unreadable", detail="not a regular file")
        if self._fd < 0:
            if not self._open(events, self.path):
                return events
        elif (named.st_dev, named.st_ino) != self._ident:
            if self._drain(events):
                self._switch(events)
            return events
        else:
            self._via = ""  # it may have been away
        self._follow(events)
        return events

    def trouble(self, error: OSError) -> Event:
        """Return the status for a file that can be opened but not read."""
        event = {"state": "unreadable", "offset": self._offset, "size": None, "n": 0, "path": self.path}
        event["detail"] = error.strerror or str(error)
        if error.errno == errno.ESTALE and self._ident is not None:
            # The server has forgotten the file we hold; behind the name it may be as it was. The next look proves that.
            self._wanted = {
                "offset": self._offset,
                "dev": self._ident[0],
                "inode": self._ident[1],
                "fingerprint": self._before.hex(),
            }
            self.close()
        return event, b""

    # -- the file itself ------------------------------------------------------------------------------------------

    def _follow(self, events: List[Event], last_state: str = "following") -> bool:
        """Send what is new in the open file; return True when its end was reached."""
        now = time.monotonic()
        status = os.fstat(self._fd)
        changed = status.st_mtime_ns != self._mtime_ns
        grown = status.st_size > self._offset
        if status.st_size < self._offset or (
            (grown or changed or now - self._proved_at >= 1.0) and not self._is_same_content()
        ):
            self._restart_at_0(events, "truncated", status.st_size)
            grown = status.st_size > 0
        self._mtime_ns, self._proved_at = status.st_mtime_ns, now
        self.at_end = not grown
        if not grown:
            state = last_state if status.st_size or last_state != "following" else "empty"
            self._say(events, state, size=status.st_size)
            return True
        skipped_from = self._skip_when_far_behind(status.st_size)
        while self._credit > 0:
            wanted = min(CHUNK_BYTES, self._credit)
            data = os.pread(self._fd, wanted, self._offset)
            if data:
                self._emit(events, last_state, status.st_size, data, skipped_from)
                skipped_from = None
            if len(data) < wanted:
                break
        if skipped_from is not None:
            self._offset, self._before = skipped_from, self._read_before(skipped_from)
        self.at_end = self._offset >= status.st_size
        return self.at_end

    def _emit(self, events: List[Event], state: str, size: int, data: bytes, skipped_from: Optional[int]) -> None:
        event = {"state": state, "offset": self._offset, "size": max(size, self._offset + len(data)), "n": len(data)}
        if skipped_from is not None:
            event["skipped_from"] = skipped_from
        if self._via:
            event["detail"] = self._via
        self._add(events, event, data)
        self._offset += len(data)
        self._credit -= len(data)
        self._before = (self._before + data)[-FINGERPRINT_BYTES:]

    def _is_same_content(self) -> bool:
        start = self._offset - len(self._before)
        return os.pread(self._fd, len(self._before), start) == self._before

    def _skip_when_far_behind(self, size: int) -> Optional[int]:
        if size - self._offset <= BEHIND_BYTES or self._credit <= 0:
            return None
        skipped_from, start = self._offset, size - KEPT_BYTES
        newline = os.pread(self._fd, CHUNK_BYTES, start).find(b"\n")
        self._offset = start + newline + 1  # find's -1 leaves the start as it is: no line starts near
        self._before = self._read_before(self._offset)
        return skipped_from

    def _read_before(self, offset: int) -> bytes:
        start = max(0, offset - FINGERPRINT_BYTES)
        return os.pread(self._fd, offset - start, start)

    def _restart_at_0(self, events: List[Event], state: str, size: Optional[int], detail: str = "") -> None:
        self._offset, self._before = 0, b""
        self._say(events, state, size=size, detail=detail)

    # -- names that come and go -----------------------------------------------------------------------------------

    def _open(self, events: List[Event], path: str, via: str = "") -> bool:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self._say(events, "unreadable", detail=error.strerror or str(error))
            return False
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(fd)
            self._say(events, "unreadable", detail="not a regular file")
            return False
        self._fd, self._ident, self._mtime_ns, self._via = fd, (status.st_dev, status.st_ino), -1, via
        self._network = netfs.kind(status.st_dev)
        wanted, self._wanted = self._wanted, None
        if self._left_old:  # told with the first byte of the new file, which may not have been readable at first
            self._left_old = False
            self._restart_at_0(events, "rotated", status.st_size)
        elif wanted is not None:
            self._resume(events, wanted, status)
        else:
            self._offset, self._before = 0, b""
        return True

    def _resume(self, events: List[Event], wanted: Dict[str, Any], status: os.stat_result) -> None:
        """Stand where the console left off, if this is still that content."""
        offset = int(wanted["offset"])
        if offset < 0:
            self._offset = max(0, status.st_size + offset)
            self._before = self._read_before(self._offset)
            return
        inode = wanted.get("inode")
        if inode is not None and (wanted.get("dev"), inode) != self._ident:
            self._resume_rotated(events, wanted, status)
            return
        self._offset = min(offset, status.st_size)
        self._before = self._read_before(self._offset)
        fingerprint = wanted.get("fingerprint")
        if offset > status.st_size or (fingerprint is not None and self._before.hex() != fingerprint):
            self._restart_at_0(events, "truncated", status.st_size)

    def _resume_rotated(self, events: List[Event], wanted: Dict[str, Any], status: os.stat_result) -> None:
        """The name leads to another file now: finish the old one first if it still lies beside it."""
        moved = _beside(self.path, wanted["dev"], wanted["inode"]) if wanted.get("dev") is not None else None
        if moved is None:
            self._restart_at_0(events, "rotated", status.st_size)
            return
        try:
            old = os.open(moved, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self._restart_at_0(events, "rotated", status.st_size, f"{moved}: {error.strerror}")
            return
        os.close(self._fd)
        self._fd, self._ident = old, (wanted["dev"], wanted["inode"])
        self._offset = min(int(wanted["offset"]), os.fstat(old).st_size)
        self._before = self._read_before(self._offset)
        fingerprint = wanted.get("fingerprint")
        if fingerprint is not None and self._before.hex() != fingerprint:
            self._switch(events)

    def _without_name(self, events: List[Event]) -> List[Event]:
        if self._fd >= 0:
            status = os.fstat(self._fd)
            if status.st_nlink == 0:
                self._via = self._via or "the name is gone; followed through the open file"
                self._follow(events, "deleted")
            else:
                self._via = "moved to " + os.readlink(f"/proc/self/fd/{self._fd}")
                self._follow(events)
            return events
        if self._pid is not None:
            behind = f"/proc/{self._pid}/fd/1"
            try:
                target = os.readlink(behind)
                regular = stat.S_ISREG(os.stat(behind).st_mode)
            except OSError:
                regular, target = False, ""
            if regular and self._open(events, behind, f"through fd 1 of pid {self._pid}: {target}"):
                self._follow(events, "deleted" if target.endswith(" (deleted)") else "following")
                return events
        return self._say(events, "missing")

    def _drain(self, events: List[Event]) -> bool:
        """Send the rest of a file whose name leads elsewhere now; True when that is done."""
        return self._follow(events)

    def _switch(self, events: List[Event]) -> None:
        self.close()
        self._wanted = None
        self._left_old = True
        if self._open(events, self.path):
            self._follow(events)

    # -- words ----------------------------------------------------------------------------------------------------

    def _say(self, events: List[Event], state: str, size: Optional[int] = None, detail: str = "") -> List[Event]:
        """Add a pure status if it is news or the last word is old."""
        news = state != self._state or state in ("truncated", "rotated")
        if news or time.monotonic() - self._said_at >= HEARTBEAT_S:
            event = {"state": state, "offset": self._offset, "size": size, "n": 0, "detail": detail or self._via}
            self._add(events, dict(event, full=self._is_disk_full()), b"")
        return events

    def _is_disk_full(self) -> bool:
        """A run whose output finds no room goes on without a word, or dies of it."""
        if self._fd < 0:
            return False
        room = os.fstatvfs(self._fd)
        return bool(room.f_blocks) and not room.f_bfree

    def _add(self, events: List[Event], event: Dict[str, Any], data: bytes) -> None:
        event["path"] = self.path
        if self._ident is not None:
            event["dev"], event["inode"] = self._ident
        if self._network:
            event["fs"] = self._network
        self._state, self._said_at = event["state"], time.monotonic()
        events.append((event, data))


def _beside(path: str, dev: int, inode: int) -> Optional[str]:
    """Return the file of that identity in the directory of `path`, or None."""
    folder = os.path.dirname(path) or "."
    try:
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                if count >= _SEARCHED_ENTRIES:
                    return None
                if entry.inode() == inode and entry.is_file(follow_symlinks=False):
                    return entry.path if entry.stat(follow_symlinks=False).st_dev == dev else None
    except OSError:
        pass
    return None


def read_range(path: str, offset: int, length: int) -> Tuple[bytes, int]:
    """Return up to `length` (at most READ_LIMIT_BYTES) bytes from `offset`, and the size of the file now.

    Raises: OSError, also where `path` is no regular file.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(22, "not a regular file", path)
        count = max(0, min(length, READ_LIMIT_BYTES))
        return os.pread(fd, count, max(0, offset)), status.st_size
    finally:
        os.close(fd)


def sample_ranges(
    path: str, first: int, last: int, count: int, length: int, larger_than: int = 0
) -> Tuple[List[int], List[bytes]]:
    """Return `count` ranges of at most `length` bytes, spread evenly over [first, last), with their offsets.

    A `last` below 0 counts from the file's end. All ranges together hold at most READ_LIMIT_BYTES; there are none of a
    file of at most `larger_than` bytes. Raises: OSError, also where `path` is no regular file.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(22, "not a regular file", path)
        last = last if last >= 0 else status.st_size + last
        length = max(1, min(length, READ_LIMIT_BYTES))
        count = max(0, min(count, READ_LIMIT_BYTES // length, (last - first) // length))
        if status.st_size <= larger_than:
            count = 0
        offsets = [first + (last - first) * index // count for index in range(count)]
        return offsets, [os.pread(fd, length, offset) for offset in offsets]
    finally:
        os.close(fd)
