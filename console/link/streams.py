"""Reading from a process: stdout by lines and by exact counts, the last lines of stderr.

Knows nothing of the protocol; bounds everything that it keeps.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque

from console.link.transport import Process
from console.protocol import MAX_LINE_BYTES
from console.reasons import ConsoleError, Exit, Reason

_KEPT_LINES = 40
_WHOLE_S = 0.5
_KEPT_LINE_BYTES = 2000
# The interactive Python writes its prompts to stderr.
_PROMPTS = re.compile(r"^((>>>|\.\.\.) ?)+")


class LineStream:
    """stdout of a process, buffered once."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._buffer = bytearray()
        self._passed_over = bytearray()
        self.last_word = time.monotonic()
        """When anything at all last came in."""

    async def line(self) -> bytes | None:
        """Return the next line without its end, or None at the end of the stream. Raises: ConsoleError."""
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > MAX_LINE_BYTES:
                raise ConsoleError(Reason.PROTOCOL, f"a line of more than {MAX_LINE_BYTES} bytes", Exit.ENTRY)
            if not await self._more():
                return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    async def exactly(self, count: int) -> bytes | None:
        """Return the next `count` bytes, or None where the stream ends before."""
        while len(self._buffer) < count:
            if not await self._more():
                return None
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    async def line_after(self, token: bytes, limit: int) -> bytes | None:
        """Pass over everything up to `token` and return the rest of its line; None at the end of the stream.

        Raises: ConsoleError after `limit` bytes without the token.
        """
        passed = 0
        while (at := self._buffer.find(token)) < 0:
            keep = len(token) - 1
            passed += self._pass_over(max(0, len(self._buffer) - keep))
            if passed > limit:
                raise ConsoleError(Reason.BOOTSTRAP_FAILED, f"only noise: {passed} bytes of it", Exit.ENTRY)
            if not await self._more():
                self._pass_over(len(self._buffer))
                return None
        self._pass_over(at)
        del self._buffer[: len(token)]
        return await self.line()

    def passed_over(self) -> list[str]:
        """Return the last lines that stood before the tokens: banners, or what a wrapper complained about on stdout."""
        return [line for line in self._passed_over.decode("utf-8", "replace").splitlines() if line.strip()]

    def _pass_over(self, count: int) -> int:
        self._passed_over += self._buffer[:count]
        del self._passed_over[:-_KEPT_LINE_BYTES]
        del self._buffer[:count]
        return count

    async def _more(self) -> bool:
        data = await self._process.read()
        self.last_word = time.monotonic()
        self._buffer += data
        return bool(data)


class Tail:
    """The last lines of stderr; `drain` must run for as long as the process does, or it blocks on a full pipe."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._rest = b""
        self._ended = asyncio.Event()

    async def drain(self) -> None:
        while data := await self._process.read_stderr():
            *lines, rest = (self._rest + data).split(b"\n")
            self._rest = rest[-_KEPT_LINE_BYTES:]
            self._lines.extend(_text(line) for line in lines)
        self._ended.set()

    async def whole(self) -> list[str]:
        """Return the lines once stderr has ended, or after a moment: for a process that is over."""
        try:
            async with asyncio.timeout(_WHOLE_S):
                await self._ended.wait()
        except TimeoutError:
            pass
        return self.lines()

    def lines(self) -> list[str]:
        return [line for line in [*self._lines, _text(self._rest)] if line]


def _text(line: bytes) -> str:
    return _PROMPTS.sub("", line.decode("utf-8", "replace").strip())
