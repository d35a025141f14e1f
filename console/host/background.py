"""Work that may block or hang, in a child, so that the agent's loop never waits for it.

A job is one function in a forked child, whose JSON-able result is read from a pipe when it is there; a program is
another executable, whose output is. What is beyond its deadline is killed and reported; what is in uninterruptible
sleep is left behind. No job outlives the agent: it would hold the agent's stderr, by which the console knows that the
agent has ended. Only the agent uses this (the keeper's way is `bounded`).
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import time
from typing import Any, Callable, List, Optional, Sequence

_READ_BYTES = 1 << 18
_MOST_BYTES = 64 << 20  # of an answer, all of which is kept until it is whole
_PR_SET_PDEATHSIG = 1


class _Child:
    """Somebody at work for us. Select on `fd`, then call `advance`."""

    def __init__(self, timeout_s: float) -> None:
        self.fd, self._writer = os.pipe()
        self.deadline = time.monotonic() + timeout_s
        self.result: Any = None
        self.error = ""
        self._parts: List[bytes] = []
        self._size = 0
        self._pid: Optional[int] = None

    def _began(self, pid: int) -> None:
        self._pid = pid
        os.close(self._writer)
        os.set_blocking(self.fd, False)

    def advance(self) -> bool:
        """Read what has come; return True once the work is over, with `result` or `error` set and everything closed."""
        while True:
            try:
                part = os.read(self.fd, _READ_BYTES)
            except BlockingIOError:
                if time.monotonic() < self.deadline:
                    return False
                self.error = "gave no answer in time"
                break
            if not part:
                self._finish(b"".join(self._parts))
                break
            self._parts.append(part)
            self._size += len(part)
            if self._size > _MOST_BYTES:
                self.error = "gave too long an answer"
                break
        self.close()
        return True

    def _finish(self, raw: bytes) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """End the child, whatever it does, and forget it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)
            _abandoned.append(self._pid)
            self._pid = None
        reap()


class Job(_Child):
    """One function at work."""

    def __init__(self, function: Callable[[], Any], timeout_s: float) -> None:
        super().__init__(timeout_s)
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _work(function, self._writer, timeout_s, parent)
        self._began(pid)

    def _finish(self, raw: bytes) -> None:
        try:
            answer = json.loads(raw.decode("utf-8", "surrogatepass"))
        except ValueError:
            self.error = "its process died"
            return
        self.result, self.error = answer.get("result"), answer.get("error", "")


class Program(_Child):
    """One executable at work; `result` is all that it has printed. It holds nothing of ours but the pipe.

    Takes a fifth of what a job takes: a fork copies the tables of all our memory.
    """

    def __init__(self, command: Sequence[str], timeout_s: float) -> None:
        """Raises: OSError where it can't be started."""
        super().__init__(timeout_s)
        null = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0)
        streams = [null, (os.POSIX_SPAWN_DUP2, self._writer, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
        try:
            pid = os.posix_spawn(command[0], list(command), {}, file_actions=streams)
        except OSError:
            os.close(self._writer)
            self.close()
            raise
        self._began(pid)

    def _finish(self, raw: bytes) -> None:
        self.result = raw


_abandoned: List[int] = []


def reap() -> None:
    """Collect children that have ended by now; those in state D stay until they can."""
    _abandoned[:] = [pid for pid in _abandoned if not _is_reaped(pid)]


def _is_reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _work(function: Callable[[], Any], writer: int, timeout_s: float, parent: int) -> None:
    try:
        _die_with(parent)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, timeout_s + 5.0)  # should the agent be gone by then
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)  # the wire is the parent's alone
        os.dup2(null, 1)
        try:
            answer = {"result": function()}
        except BaseException as error:  # noqa: BLE001  # the child's root: told to the parent
            answer = {"error": f"{type(error).__name__}: {error}"}
        raw = memoryview(json.dumps(answer).encode("utf-8", "surrogatepass"))
        while raw:
            raw = raw[os.write(writer, raw) :]
    finally:
        os._exit(0)


def _die_with(parent: int) -> None:
    """Have the kernel end this child when the agent is gone, however that came about."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):
        return  # the timer ends it later
    if os.getppid() != parent:
        os._exit(0)
