"""The command lines of a few processes, asked for in passing.

Reading one hangs on a wedged process, so `cat` does it in our place. Only strangers.py imports this module.
"""

from __future__ import annotations

import os
from typing import Dict, Iterable, List

from . import background

_CATS = ("/bin/cat", "/usr/bin/cat")
# Between two of them, so that it shows where one ends: nobody's command line, and short.
_BETWEEN = "/proc/sys/kernel/random/boot_id"


class CommandLines:
    """Select on `fd`, then call `advance`. `of` holds argv by pid, empty where one is gone, or `error` says why not."""

    def __init__(self, pids: Iterable[int], timeout_s: float) -> None:
        """Raises: OSError where nobody can be sent."""
        self.of: Dict[int, List[str]] = {}
        self.error = ""
        self._pids = sorted(pids)
        command = [next(filter(os.path.exists, _CATS), _CATS[0])]
        for pid in self._pids:
            command += [_BETWEEN, "/proc/%d/cmdline" % pid]
        self._cat = background.Program(command, timeout_s)

    @property
    def fd(self) -> int:
        return self._cat.fd

    def advance(self) -> bool:
        """Take in what has been read; return whether that is all."""
        if not self._cat.advance():
            return False
        raw: bytes = self._cat.result or b""
        between = raw.partition(b"\n")[0] + b"\n"
        found = raw.split(between)[1:]
        self.error = self._cat.error or (
            "read another number than was asked for" if len(found) != len(self._pids) else ""
        )
        if not self.error:
            self.of = dict(zip(self._pids, map(_argv, found)))
        return True

    def close(self) -> None:
        self._cat.close()


def _argv(raw: bytes) -> List[str]:
    return [os.fsdecode(part) for part in (raw[:-1] if raw.endswith(b"\0") else raw).split(b"\0")] if raw else []
