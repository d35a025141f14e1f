"""The agent's two ends of the wire: operations in, replies and events out; neither ever blocks.

Lines of JSON as console/protocol describes them. What is too long or garbled is counted and dropped; what can't be
sent in time is dropped by kind: telemetry first, replies never.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional

MAX_LINE_BYTES = 4 * 1024 * 1024
# With this much unsent the console is behind: newer telemetry will come, so this one is left out.
TELEMETRY_BYTES = 64 * 1024
# Replies and states are kept beyond that; a console that lets this much pile up reads no more.
LIMIT_BYTES = 16 * 1024 * 1024
_READ_BYTES = 65536


# Made once: with these options json.dumps would make an encoder for each line.
_words = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


class Overflow(Exception):
    """The console has stopped reading."""


class LineReader:
    """Turns what arrives on a non-blocking descriptor into lines; one line is never more than MAX_LINE_BYTES."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = bytearray()
        self._skipping = False
        self.too_long = 0
        """Lines dropped because of their length, since last looked at."""

    def read(self) -> Optional[List[bytes]]:
        """Return the complete lines that have arrived; None at the end of the stream."""
        try:
            data = os.read(self._fd, _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            return None
        if not data:
            return None
        *complete, rest = data.split(b"\n")
        lines = [line for line in map(self._complete, complete) if line is not None]
        self._keep(rest)
        return lines

    def _complete(self, end: bytes) -> Optional[bytes]:
        self._keep(end)
        line, skipped = bytes(self._buffer), self._skipping
        self._buffer.clear()
        self._skipping = False
        return None if skipped else line

    def _keep(self, part: bytes) -> None:
        if self._skipping:
            return
        if len(self._buffer) + len(part) > MAX_LINE_BYTES:
            self._skipping = True
            self.too_long += 1
            self._buffer.clear()
        else:
            self._buffer += part


class Outbox:
    """What waits to be written to a non-blocking descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._waiting = bytearray()

    @property
    def waiting_bytes(self) -> int:
        return len(self._waiting)

    def put(self, obj: Dict[str, Any], raw: bytes = b"") -> None:
        """Queue a line that must arrive, and the `raw` bytes that follow it. Raises: Overflow."""
        self.put_line(encode(obj), raw)

    def put_line(self, line: bytes, raw: bytes = b"") -> None:
        if len(self._waiting) + len(line) + len(raw) > LIMIT_BYTES:
            raise Overflow
        self._waiting += line
        self._waiting += raw

    def offer(self, obj: Dict[str, Any]) -> bool:
        """Queue telemetry unless the console is behind; return whether it was taken."""
        if len(self._waiting) > TELEMETRY_BYTES:
            return False
        self._waiting += encode(obj)
        return True

    def flush(self) -> None:
        """Write what can be written now. Raises: BrokenPipeError and other OSErrors when nobody reads any more."""
        while self._waiting:
            try:
                written = os.write(self._fd, bytes(memoryview(self._waiting)[:_READ_BYTES]))
            except (BlockingIOError, InterruptedError):
                return
            del self._waiting[:written]


def encode(obj: Dict[str, Any]) -> bytes:
    # Undecodable bytes of file names and arguments live as lone surrogates here, which no JSON may carry: "?" is sent.
    return _words(obj).encode("utf-8", "replace") + b"\n"


def decode(line: bytes) -> Optional[Dict[str, Any]]:
    """Return the object in `line`, or None where it is none."""
    try:
        obj = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return obj if isinstance(obj, dict) else None
