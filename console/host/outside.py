"""The helper: a second, small agent on the host itself, outside of the container that the first one watches.

It tells what can't be seen from inside: whose the pids are that the driver lists, what the kernel log says of GPUs and
memory, whether the container is frozen. Optional in every part: what may not be read is said in words (`cannot`). Eyes
only, one thread, nothing written; like the agent it ends at the end of stdin, on `bye` and without a word for the time
of its lease, and the kernel's timer ends it where it hangs.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from typing import Any, Dict, List, Optional

from . import hello, kernlog, loader, outgroup, outpids, procfs, procname, wire

LEASE_S = 20.0
LOOK_S = 1.0
USED_AGAIN_S = 10.0
"""Memory in use moves all the time: alone it is told so seldom."""
_WEDGED_S = 15.0
_MOST_PIDS = 256
_MOST_NOTES = 32

Operation = Dict[str, Any]


class Outside:
    """All of one connection; `run` returns when it is over."""

    def __init__(self, stdin: int, stdout: int) -> None:
        os.set_blocking(stdin, False)
        os.set_blocking(stdout, False)
        self._stdin, self._stdout = stdin, stdout
        self._in, self._out = wire.LineReader(stdin), wire.Outbox(stdout)
        self._over = False
        self._look_at = self._expires = time.monotonic() + LEASE_S
        self._asked: Optional[Operation] = None
        self._container: Optional[outpids.Container] = None
        self._groups: Optional[outgroup.Groups] = None
        self._why = ""
        self._kernel = kernlog.KernelLog()
        self._notes: List[kernlog.Note] = []
        self._told: Any = None
        self._used_at = 0.0

    def run(self) -> None:
        self._out.put(hello.hello())
        try:
            while not self._over and time.monotonic() < self._expires:
                signal.setitimer(signal.ITIMER_REAL, max(1.0, self._expires - time.monotonic()) + _WEDGED_S)
                self._turn()
        except wire.Overflow:
            print("dflash-outside: the console has stopped reading", file=sys.stderr)
        except (BrokenPipeError, ConnectionError):
            pass
        finally:
            self._kernel.close()

    def _turn(self) -> None:
        poll = select.poll()
        poll.register(self._stdin, select.POLLIN)
        if self._out.waiting_bytes:
            poll.register(self._stdout, select.POLLOUT)
        if self._kernel.fd >= 0 and self._asked is not None:
            poll.register(self._kernel.fd, select.POLLIN)
        due = min(self._look_at, self._expires)
        ready = {fd for fd, _ in poll.poll(max(0.0, due - time.monotonic()) * 1000)}
        if self._stdin in ready:
            self._hear()
        if self._kernel.fd in ready and self._take_notes():
            self._look_at = time.monotonic()  # a word on an end should not come after the end
        if self._asked is not None and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK_S
            self._tell(self._look(self._asked))
        self._out.flush()

    # -- operations -----------------------------------------------------------------------------------------------

    def _hear(self) -> None:
        lines = self._in.read()
        if lines is None:
            self._over = True
            return
        for line in filter(None, lines):
            self._expires = time.monotonic() + LEASE_S
            operation = wire.decode(line) or {}
            kind, number = operation.get("op"), operation.get("id")
            if kind == "bye":
                self._over = True
            elif kind == "ping":
                self._out.put({"re": number, "ok": True, "data": {"bt": procfs.boottime(), "wall": time.time()}})
            elif kind == "outside":
                self._ask(operation)
                self._out.put({"re": number, "ok": True, "data": {}})

    def _ask(self, operation: Operation) -> None:
        before, self._asked = self._asked, operation
        self._look_at = time.monotonic()
        keys = ("agent", "pid_ns")
        if before is None or [before[key] for key in keys] != [operation[key] for key in keys]:
            self._find(operation)

    def _find(self, operation: Operation) -> None:
        self._container = self._groups = None
        agent = operation["agent"]
        try:
            self._container = found = outpids.Container(operation["pid_ns"], (agent["pid"], agent["start"]))
        except outpids.NotFound as error:
            self._why = str(error)
        else:
            self._why = ""
            self._groups = outgroup.Groups(found.init_pid, found.agent_pid) if found.is_apart else None

    # -- looking --------------------------------------------------------------------------------------------------

    def _look(self, asked: Operation) -> Dict[str, Any]:
        found, cannot = self._container, {}
        if found is not None and not found.is_there():
            found, self._container, self._groups = None, None, None
            self._why = "the agent inside has ended"
        if found is not None:
            found.know([(each["pid"], each["start"]) for each in asked.get("tree") or ()][:_MOST_PIDS])
        else:
            cannot["container"] = self._why
        pids = [int(pid) for pid in asked.get("pids") or ()][:_MOST_PIDS]
        self._take_notes()
        if self._kernel.why:
            cannot["kernel"] = self._kernel.why
        return {
            "apart": found is not None and found.is_apart,
            "pids": [found.look(pid) for pid in pids] if found is not None else [],
            "container": self._groups.look() if self._groups is not None else None,
            "kernel": self._notes,
            "cannot": cannot,
        }

    def _take_notes(self) -> bool:
        """Keep what concerns the container of what the kernel log says now; whether there was any."""
        before, found = self._notes, self._container
        group = self._groups.memory_name if self._groups is not None else ""
        inner = found.inner if found is not None else {}
        for note in self._kernel.read():
            if kernlog.concerns(note, group, inner):
                inside = inner.get(note["pid"])
                self._notes = [*self._notes, dict(note, inner=inside[0] if inside else None)][-_MOST_NOTES:]
        return self._notes is not before

    def _tell(self, news: Dict[str, Any]) -> None:
        """Send it, unless nothing but the use of memory has changed since a moment ago."""
        now = time.monotonic()
        steady = dict(news, container=dict(news["container"], used=None) if news["container"] else None)
        if steady == self._told and now - self._used_at < USED_AGAIN_S:
            return
        if self._out.offer({"ev": "outside", "bt": procfs.boottime(), **news}):
            self._told, self._used_at = steady, now


def main() -> int:
    """Entry: serve stdin and stdout until it is over."""
    loader.settle()
    for number in (signal.SIGINT, signal.SIGALRM, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.umask(0o077)
    try:
        procname.rename("dflash-outside", "dflash-outside")
    except OSError:
        pass  # a strange /proc: we stay visible under the interpreter's name
    try:
        os.nice(5)
    except OSError:
        pass
    Outside(0, 1).run()
    return 0
