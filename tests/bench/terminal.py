"""A program on a pseudo-terminal: what it paints, and when each piece of it arrived.

Times are of the monotonic clock, which all processes of a machine share. No terminal is emulated: escapes are left out,
and a word counts as painted when its last byte has arrived.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[P_^X][^\x1b]*\x1b\\|[ -/]*[0-~])")
_LOOK_BACK_BYTES = 1 << 16
_END_S = 5.0
_PAINTED_S = 120.0
"""What a calm machine paints within a second takes long where three workers share two busy cores."""


def plain(painted: bytes) -> bytes:
    """Return what was painted without the escapes; one that is cut off at the end is left in place."""
    return _ESCAPES.sub(b"", painted)


@dataclass(slots=True)
class _Wanted:
    pattern: re.Pattern[bytes]
    start: int
    seen: threading.Event
    at: float = 0.0


class Terminal:
    """Runs `command` on a terminal of `columns` x `rows`; `started` is when exec was asked for. A context manager."""

    def __init__(
        self, command: Sequence[str], *, columns: int = 100, rows: int = 28, env: Mapping[str, str] | None = None
    ) -> None:
        self._painted = bytearray()
        self.chunks: list[tuple[float, int]] = []
        """When a piece arrived, and how many bytes there were after it."""
        self._lock = threading.Lock()
        self._wanted: _Wanted | None = None
        surroundings = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})}
        self.started = time.monotonic()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            try:
                os.execvpe(command[0], list(command), surroundings)
            finally:
                os._exit(127)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """End the program by its pid, and let go of the terminal."""
        if self._fd < 0:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                break
            if self._is_over(_END_S):
                break
        self._reader.join(_END_S)
        os.close(self._fd)
        self._fd = -1

    def type(self, keys: str) -> float:
        """Press keys; return when."""
        at = time.monotonic()
        os.write(self._fd, keys.encode())
        return at

    @property
    def position(self) -> int:
        """How much has been painted: `wait` looks at what comes after it."""
        return len(self._painted)

    def painted(self, start: int = 0) -> bytes:
        with self._lock:
            return bytes(self._painted[start:])

    def expect(self, pattern: str, after: int) -> _Wanted:
        """Begin to look for a pattern in what is painted from `after` on."""
        wanted = _Wanted(re.compile(pattern.encode()), after, threading.Event())
        with self._lock:
            self._wanted = wanted
            self._look(time.monotonic())
        return wanted

    def wait(self, wanted: _Wanted, timeout_s: float = _PAINTED_S) -> float:
        """Return when the pattern was there. Raises: TimeoutError with the end of what was painted."""
        if not wanted.seen.wait(timeout_s):
            tail = plain(self.painted(max(wanted.start, self.position - 6000))).decode("utf-8", "replace")
            raise TimeoutError(
                f"not painted within {timeout_s:g} s: {wanted.pattern.pattern!r}; the end was: {tail[-1500:]}"
            )
        return wanted.at

    def wait_for(self, pattern: str, after: int = 0, timeout_s: float = _PAINTED_S) -> float:
        return self.wait(self.expect(pattern, after), timeout_s)

    def first_at(self, pattern: str) -> float:
        """Return when what was painted until then held a pattern for the first time. Raises: TimeoutError."""
        painted = self.painted()
        found = re.compile(pattern.encode())
        low, high = 0, len(self.chunks)
        while low < high:
            middle = (low + high) // 2
            if found.search(plain(painted[: self.chunks[middle][1]])):
                high = middle
            else:
                low = middle + 1
        if low == len(self.chunks):
            raise TimeoutError(f"never painted: {pattern}")
        return self.chunks[low][0]

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self._fd, 1 << 16)
            except OSError:
                return  # EIO: the last holder of the other side is gone
            now = time.monotonic()
            if not piece:
                return
            with self._lock:
                self._painted += piece
                self.chunks.append((now, len(self._painted)))
                self._look(now)

    def _look(self, now: float) -> None:
        wanted = self._wanted
        if wanted is None or wanted.seen.is_set():
            return
        start = max(wanted.start, len(self._painted) - _LOOK_BACK_BYTES)
        if wanted.pattern.search(plain(bytes(self._painted[start:]))):
            wanted.at = now
            wanted.seen.set()

    def _is_over(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if os.waitpid(self.pid, os.WNOHANG)[0] == self.pid:
                return True
            time.sleep(0.02)
        return False
