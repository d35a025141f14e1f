"""Which GPUs the run was told to see, and in which order: asked once of the first process that has a context.

/proc/PID/environ hangs on a wedged process, so it is read in a background.Job. Only the agent's watcher imports this.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, Optional, Tuple

from . import background, procfs

_NAMES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
_MOST_CELLS = 4096
_PATIENCE_S = 3.0


class CudaEnv:
    """Remembers the answer for as long as that process lives."""

    def __init__(self) -> None:
        self._whose: Optional[Tuple[int, int]] = None
        self._job: Optional[background.Job] = None
        self._answer: Optional[Dict[str, str]] = None

    def of(self, holders: Iterable[Tuple[int, int]]) -> Optional[Dict[str, str]]:
        """Return the variables that are set (none: {}), or None while or where that isn't known.

        `holders`: (pid, start ticks) of the run's processes that have a context.
        """
        first = min(holders, key=lambda each: (each[1], each[0]), default=None)
        if first is None:
            return self._answer
        if first != self._whose:
            self.close()
            self._whose, self._answer = first, None
            self._job = background.Job(lambda: read(first[0]), _PATIENCE_S)
        if self._job is not None and self._job.advance():
            self._answer = self._job.result if not self._job.error else None
            self._job = None
        return self._answer

    def close(self) -> None:
        if self._job is not None:
            self._job.close()
            self._job = None


def read(pid: int) -> Optional[Dict[str, Any]]:
    """Return the variables as the process was started with them; None where they may not be read. May hang."""
    environ = procfs.environ(pid)
    return {name: environ[name][:_MOST_CELLS] for name in _NAMES if name in environ} if environ else None
