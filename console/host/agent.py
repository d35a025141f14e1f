"""The agent: eyes on the training host for one console, alive only as long as that console speaks.

One thread, one loop over descriptors; operations come in on stdin, replies and events go out on stdout (the words
are console/protocol's), prose goes to stderr. It starts keepers and otherwise only reads. It ends at the end of
stdin, on `bye`, when nobody reads any more, and when no line has come for the time of its lease; a wedged one is ended
by the kernel's timer. Nothing here may block: what could is a background.Job.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from typing import Any, Callable, Dict, Optional, Set

from . import (
    background,
    diagnose_run,
    doctor,
    files,
    hello,
    launches,
    loader,
    logduty,
    plan,
    procfs,
    procname,
    questions,
    startkeeper,
    watcher,
    wire,
)
from .replies import Operation, Refused, Replies

LEASE_S = 30.0
"""Without a Watch, which brings a lease of its own; every line renews it."""
# A loop that does not come around for so long beyond its lease hangs in /proc or on a dead mount: the kernel ends it.
_WEDGED_S = 15.0
# The alarm is set anew at most so often, and may end a hanging agent as much too early.
_ARM_S = 1.0
PLAN_S = 60.0
DOCTOR_S = 45.0
DIAGNOSE_S = 120.0
_START_STEP_S = 0.01
_IDLE_S = 1.0
_STATE_ROOM_BYTES = 4 << 20


class Agent:
    """All duties of one connection; `run` returns when it is over."""

    def __init__(self, stdin: int, stdout: int) -> None:
        os.set_blocking(stdin, False)
        os.set_blocking(stdout, False)
        self._stdin, self._stdout = stdin, stdout
        self._in, self._out = wire.LineReader(stdin), wire.Outbox(stdout)
        self._replies = Replies(self._out)
        self._lease_s = LEASE_S
        self._expires = time.monotonic() + LEASE_S
        self._over = False
        self._armed_at = self._armed_for = float("-inf")
        self._poll = select.poll()
        self._polled: Any = None
        self._watcher: Optional[watcher.Watcher] = None
        self._launches = launches.Launches(self._replies, self._expect_change)
        self._compiling = launches.Compiling()
        self._questions = questions.Questions(self._replies)
        self._log = logduty.LogDuty(self._out, self._replies, self._questions)
        self._operations: Dict[str, Callable[[Operation], Optional[Dict[str, Any]]]] = {
            "watch": self._watch,
            "ping": self._ping,
            "plan": self._plan,
            "doctor": self._doctor,
            "diagnose": self._diagnose,
            "execute": self._execute,
            "log_follow": self._log.follow,
            "log_credit": self._log.credit,
            "log_read": self._log.read,
            "log_sample": self._log.sample,
            "log_lines": self._log.lines,
            "log_count": self._log.count,
            "log_files": self._log.files,
            "recorder": self._recorder,
            "bye": self._bye,
        }

    def run(self) -> None:
        self._out.put(hello.hello())
        try:
            while not self._over and time.monotonic() < self._expires:
                self._arm()
                ready = self._wait()
                if time.monotonic() >= self._expires:
                    break  # frozen meanwhile, perhaps: what was asked before that is not obeyed any more
                self._turn(ready)
        except wire.Overflow:
            print("dflash-agent: the console has stopped reading", file=sys.stderr)
        except (BrokenPipeError, ConnectionError):
            pass
        finally:
            self._close()

    # -- the loop -------------------------------------------------------------------------------------------------

    def _wait(self) -> Set[int]:
        jobs = [*self._questions.jobs(), *self._compiling.jobs()]
        watched = self._watcher.fds() if self._watcher else ()
        wanted = [*watched, *self._log.fds(), *(job.fd for job in jobs)], bool(self._out.waiting_bytes)
        if wanted != self._polled:
            self._poll, self._polled = select.poll(), wanted
            self._poll.register(self._stdin, select.POLLIN)
            if wanted[1]:
                self._poll.register(self._stdout, select.POLLOUT)
            for fd in wanted[0]:
                self._poll.register(fd, select.POLLIN)
        timeout_s = max(0.0, self._due() - time.monotonic())
        return {fd for fd, _ in self._poll.poll(timeout_s * 1000)}

    def _due(self) -> float:
        now = time.monotonic()
        due = [now + _IDLE_S, self._expires, self._log.due(), *(job.deadline for job in self._questions.jobs())]
        if self._watcher:
            due.append(self._watcher.due())
        if self._launches.under_way:
            due.append(now + _START_STEP_S)
        return min(due)

    def _turn(self, ready: Set[int]) -> None:
        if self._stdin in ready:
            self._hear()
        if self._watcher:
            self._watcher.step(ready)
        self._questions.step()
        self._launches.step()
        self._compiling.step()
        self._log.step(ready)
        background.reap()
        self._out.flush()

    def _arm(self) -> None:
        now = time.monotonic()
        if now - self._armed_at >= _ARM_S or self._expires < self._armed_for:
            self._armed_at, self._armed_for = now, self._expires
            signal.setitimer(signal.ITIMER_REAL, max(1.0, self._expires - now) + _WEDGED_S)

    def _close(self) -> None:
        if self._watcher:
            self._watcher.close()
        self._log.close()
        for job in [*self._questions.jobs(), *self._compiling.jobs()]:
            job.close()
        try:
            self._out.flush()
        except OSError:
            pass

    # -- operations -----------------------------------------------------------------------------------------------

    def _hear(self) -> None:
        lines = self._in.read()
        if lines is None:
            self._over = True
            return
        if self._in.too_long:
            told = f"{self._in.too_long} line(s) beyond {wire.MAX_LINE_BYTES} bytes were ignored"
            self._replies.warn("protocol", told)
            self._in.too_long = 0
        for line in filter(None, lines):
            self._expires = time.monotonic() + self._lease_s
            self._obey(line)
            if self._over:
                return

    def _obey(self, line: bytes) -> None:
        operation = wire.decode(line)
        handler = self._operations.get(str(operation.get("op"))) if operation else None
        if operation is None or handler is None:
            self._replies.warn("protocol", f"ignored: {line[:80].decode('utf-8', 'replace')}")
            return
        asked = operation.get("id", 0)
        try:
            answer = handler(operation)
        except (Refused, startkeeper.NotStarted) as refusal:
            self._replies.refuse(asked, refusal.reason, str(refusal), getattr(refusal, "data", None))
        except (KeyError, TypeError, ValueError) as error:
            self._replies.refuse(asked, "protocol", f"{operation.get('op')}: {type(error).__name__}: {error}")
        except OSError as error:
            self._replies.refuse(asked, "unknown", str(error))
        else:
            if answer is not None:
                self._replies.reply(operation["id"], answer)

    def _ping(self, operation: Operation) -> Dict[str, Any]:
        return {"bt": procfs.boottime(), "wall": time.time()}

    def _bye(self, operation: Operation) -> None:
        self._over = True

    def _watch(self, operation: Operation) -> Dict[str, Any]:
        lease_s = float(operation.get("lease_s") or 20.0)
        new = watcher.Watcher(operation, self._send_state, self._out.offer)
        if self._watcher:
            self._watcher.close()
        self._watcher, self._lease_s = new, lease_s
        self._expires = time.monotonic() + lease_s
        self._compiling.soon()
        return {"state_dir": new.state}

    def _send_state(self, event: Dict[str, Any]) -> bool:
        if self._out.waiting_bytes > _STATE_ROOM_BYTES:
            return False
        self._out.put(event)
        return True

    def _expect_change(self) -> None:
        if self._watcher:
            self._watcher.expect_change()

    def _state(self) -> str:
        return self._watcher.state if self._watcher else files.state_root(None)

    def _execute(self, operation: Operation) -> Optional[Dict[str, Any]]:
        return self._launches.execute(operation, self._asked_state(operation), self._fresh_sample(operation["spec"]))

    def _recorder(self, operation: Operation) -> None:
        watched = self._watcher.spec["target"] if self._watcher else None
        self._log.recorder(operation, self._asked_state(operation), operation.get("target") or watched)

    # -- questions ------------------------------------------------------------------------------------------------

    def _plan(self, operation: Operation) -> None:
        spec, action, state = operation["spec"], operation["action"], self._asked_state(operation)
        sample = self._fresh_sample(spec)
        if action not in ("restart", "stop"):
            raise ValueError(action)

        def work() -> Dict[str, Any]:
            try:
                return plan.make(spec, action, state, sample, operation.get("compare_to"))
            except plan.NothingRuns as nothing:
                raise Refused("nothing_runs", str(nothing)) from nothing

        self._questions.put(operation["id"], "plan", work, PLAN_S, self._launches.note_plan)
        self._compiling.now()

    def _doctor(self, operation: Operation) -> None:
        spec, state = operation["spec"], self._asked_state(operation)
        self._questions.put(operation["id"], "examination", lambda: doctor.examine(spec, state), DOCTOR_S)

    def _diagnose(self, operation: Operation) -> None:
        spec, state = operation["spec"], self._asked_state(operation)
        self._questions.put(operation["id"], "diagnosis", lambda: diagnose_run.report(spec, state), DIAGNOSE_S)

    def _asked_state(self, operation: Operation) -> str:
        """The state directory that an operation names; the one that is watched where it names none."""
        configured = operation.get("state_dir")
        return files.state_root(configured) if configured else self._state()

    def _fresh_sample(self, spec: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        eyes = self._watcher
        if eyes is None or eyes.sample is None or eyes.simulated != (spec.get("gpus") or {}).get("simulated"):
            return None
        age_s = procfs.boottime() - eyes.sample["bt"]
        return eyes.sample if age_s < 3 * eyes.interval_s + 2.0 else None


def main() -> int:
    """Entry: serve stdin and stdout until it is over."""
    loader.settle()
    for number in (signal.SIGINT, signal.SIGALRM, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.umask(0o077)
    try:
        procname.rename("dflash-agent", "dflash-agent")
    except OSError:
        pass  # a strange /proc: we stay visible under the interpreter's name
    Agent(0, 1).run()
    return 0
