"""A range of a log that was chosen to be copied or saved: its bytes, of the file that was shown when it was chosen.

Knows no widget; what goes wrong is raised.
"""

from __future__ import annotations

import os
from typing import IO, NamedTuple

from console.reasons import ConsoleError, Reason
from console.ui.logview import LogView
from console.ui.source import LogSource

_RANGE_BYTES = 1 << 20


class LogRange(NamedTuple):
    logs: LogSource
    view: LogView
    files: tuple[int, int]
    """Which file that was."""
    begin: int
    end: int

    async def read(self, begin: int, end: int) -> bytes:
        """Return bytes of the log as they are. Raises: ConsoleError, also where the file holds others by now."""
        place = self.view.file.place
        data = await self.logs.raw(place, begin, end - begin) if place is not None else b""
        if self.view.files != self.files or len(data) < end - begin:
            raise ConsoleError(Reason.LOG_REPLACED, "the log was truncated or replaced meanwhile")
        return data

    async def write(self, path: str) -> None:
        """Write the range to a new file, whole or not at all. Raises: ConsoleError, OSError."""
        begin = self.begin
        with _new(path) as file:
            try:
                while begin < self.end:
                    file.write(await self.read(begin, min(self.end, begin + _RANGE_BYTES)))
                    begin += _RANGE_BYTES
                file.flush()
            except BaseException:
                os.unlink(file.name)
                raise


def _new(path: str) -> IO[bytes]:
    return open(os.path.expanduser(path), "xb", opener=_private)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
