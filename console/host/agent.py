"""The agent: eyes on the training host for one console, alive only as long as that console speaks.

One thread, one loop over descriptors; operations come in on stdin, replies and events go out on stdout (the words
are console/protocol.py's), prose goes to stderr. It starts keepers and otherwise only reads. It ends at the end of
stdin, on `bye`, when nobody reads any more, and when no line has come for the time of its lease; a wedged one is ended
by the kernel's timer. Nothing here may block: what could is a background.Job.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Set

from . import (
    background,
    files,
    fingerprints,
    loader,
    logtail,
    plan,
    procfs,
    procname,
    records,
    startkeeper,
    watcher,
    wire,
)

VERSION = 1
LEASE_S = 30.0
"""Without a Watch, which brings a lease of its own; every line renews it."""
# A loop that does not come around for so long beyond its lease hangs in /proc or on a dead mount: the kernel ends it.
_WEDGED_S = 15.0
PLAN_S = 60.0
# Not in the first second of a connection, which belongs to the screen.
_COMPILE_AFTER_S = 1.0
_COMPILE_S = 30.0
_LOG_STEP_S = 0.05
_START_STEP_S = 0.01
_IDLE_S = 1.0
_STATE_ROOM_BYTES = 4 << 20
_LOG_ROOM_BYTES = 256 * 1024
_RECORDER_BYTES = 3 << 20

Operation = Dict[str, Any]


class Refused(Exception):
    """An operation that is answered with an error of the catalogue."""

    def __init__(self, reason: str, detail: str = "", data: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(detail)
        self.reason, self.data = reason, data or {}


class Agent:
    """All duties of one connection; `run` returns when it is over."""

    def __init__(self, stdin: int, stdout: int) -> None:
        os.set_blocking(stdin, False)
        os.set_blocking(stdout, False)
        self._stdin, self._stdout = stdin, stdout
        self._in, self._out = wire.LineReader(stdin), wire.Outbox(stdout)
        self._lease_s = LEASE_S
        self._expires = time.monotonic() + LEASE_S
        self._over = False
        self._watcher: Optional[watcher.Watcher] = None
        self._follower: Optional[logtail.Follower] = None
        self._log_at = 0.0
        self._plans: Dict[int, background.Job] = {}
        self._starts: Dict[int, startkeeper.Start] = {}
        self._compiling: Optional[background.Job] = None
        self._compile_at = float("inf")
        self._may_compile = bool(loader.pack)
        self._operations: Dict[str, Callable[[Operation], Optional[Dict[str, Any]]]] = {
            "watch": self._watch,
            "ping": self._ping,
            "plan": self._plan,
            "execute": self._execute,
            "log_follow": self._log_follow,
            "log_credit": self._log_credit,
            "log_read": self._log_read,
            "recorder": self._recorder,
            "bye": self._bye,
        }

    def run(self) -> None:
        self._out.put(hello())
        try:
            while not self._over and time.monotonic() < self._expires:
                self._arm()
                self._turn(self._wait())
        except wire.Overflow:
            print("dflash-agent: the console has stopped reading", file=sys.stderr)
        except (BrokenPipeError, ConnectionError):
            pass
        finally:
            self._close()

    # -- the loop -------------------------------------------------------------------------------------------------

    def _wait(self) -> Set[int]:
        poll = select.poll()
        poll.register(self._stdin, select.POLLIN)
        if self._out.waiting_bytes:
            poll.register(self._stdout, select.POLLOUT)
        jobs = [*self._plans.values(), *([self._compiling] if self._compiling else [])]
        for fd in [*(self._watcher.fds() if self._watcher else ()), *(job.fd for job in jobs)]:
            poll.register(fd, select.POLLIN)
        timeout_s = max(0.0, self._due() - time.monotonic())
        return {fd for fd, _ in poll.poll(timeout_s * 1000)}

    def _due(self) -> float:
        now = time.monotonic()
        due = [now + _IDLE_S, self._expires, *(job.deadline for job in self._plans.values())]
        if self._watcher:
            due.append(self._watcher.due())
        if self._follower:
            due.append(self._log_at)
        if self._starts:
            due.append(now + _START_STEP_S)
        return min(due)

    def _turn(self, ready: Set[int]) -> None:
        if self._stdin in ready:
            self._hear()
        if self._watcher:
            self._watcher.step(ready)
        self._step_plans()
        self._step_starts()
        self._step_compiling()
        if self._follower and time.monotonic() >= self._log_at:
            self._step_log()
        background.reap()
        self._out.flush()

    def _arm(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, max(1.0, self._expires - time.monotonic()) + _WEDGED_S)

    def _close(self) -> None:
        if self._watcher:
            self._watcher.close()
        if self._follower:
            self._follower.close()
        for job in [*self._plans.values(), *([self._compiling] if self._compiling else [])]:
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
            self._warn("protocol", f"{self._in.too_long} line(s) beyond {wire.MAX_LINE_BYTES} bytes were ignored")
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
            self._warn("protocol", f"ignored: {line[:80].decode('utf-8', 'replace')}")
            return
        try:
            answer = handler(operation)
        except (Refused, startkeeper.NotStarted) as refusal:
            self._refuse(operation, refusal.reason, str(refusal), getattr(refusal, "data", None))
        except (KeyError, TypeError, ValueError) as error:
            self._refuse(operation, "protocol", f"{operation.get('op')}: {type(error).__name__}: {error}")
        except OSError as error:
            self._refuse(operation, "unknown", str(error))
        else:
            if answer is not None:
                self._reply(operation["id"], answer)

    def _reply(self, operation_id: int, data: Dict[str, Any]) -> None:
        self._out.put({"re": operation_id, "ok": True, "data": data})

    def _refuse(self, operation: Operation, reason: str, detail: str, data: Optional[Dict[str, Any]] = None) -> None:
        error = {"reason": reason, "detail": detail, "data": data or {}}
        self._out.put({"re": operation.get("id", 0), "ok": False, "error": error})

    def _warn(self, reason: str, detail: str) -> None:
        self._out.offer({"ev": "warn", "bt": procfs.boottime(), "reason": reason, "detail": detail})

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
        self._compile_at = min(self._compile_at, time.monotonic() + _COMPILE_AFTER_S)
        return {"state_dir": new.state}

    def _send_state(self, event: Dict[str, Any]) -> bool:
        if self._out.waiting_bytes > _STATE_ROOM_BYTES:
            return False
        self._out.put(event)
        return True

    # -- plan and execute -----------------------------------------------------------------------------------------

    def _state(self) -> str:
        return self._watcher.state if self._watcher else files.state_root(None)

    def _plan(self, operation: Operation) -> None:
        spec, action, state = operation["spec"], operation["action"], self._state()
        sample = self._fresh_sample(spec)
        if action not in ("restart", "stop"):
            raise ValueError(action)

        def work() -> Dict[str, Any]:
            try:
                return {"plan": plan.make(spec, action, state, sample, operation.get("compare_to"))}
            except plan.NothingRuns as nothing:
                return {"reason": "nothing_runs", "detail": str(nothing)}

        self._plans[operation["id"]] = background.Job(work, PLAN_S)
        self._compile_at = min(self._compile_at, time.monotonic())  # a keeper may be wanted next

    def _fresh_sample(self, spec: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        eyes = self._watcher
        if eyes is None or eyes.sample is None or eyes.simulated != (spec.get("gpus") or {}).get("simulated"):
            return None
        age_s = procfs.boottime() - eyes.sample["bt"]
        return eyes.sample if age_s < 3 * eyes.interval_s + 2.0 else None

    def _step_plans(self) -> None:
        for operation_id, job in list(self._plans.items()):
            if not job.advance():
                continue
            del self._plans[operation_id]
            answer = job.result or {}
            if "plan" in answer:
                self._reply(operation_id, answer["plan"])
            else:
                reason = answer.get("reason", "unknown")
                self._refuse({"id": operation_id}, reason, answer.get("detail") or f"the plan {job.error}")

    def _execute(self, operation: Operation) -> Optional[Dict[str, Any]]:
        spec, run, action = operation["spec"], operation["request"], operation["action"]
        if not startkeeper.is_run_id(run) or action not in ("restart", "stop"):
            raise Refused("protocol", f"no such request: {action} {str(run)[:80]}")
        state, boot = self._state(), procfs.boot_identity()
        replaced = self._record(state, spec["target"], operation.get("replaced_id"))
        if action == "stop" and not os.path.isdir(files.run_dir(state, spec["target"], run)):
            self._must_run(operation, replaced)
            if replaced is not None and replaced["keeper_alive"]:
                return self._stop_own(state, operation, replaced)
        directory = startkeeper.make_run_dir(state, spec["target"], run)
        resent = directory is None
        directory = directory or files.run_dir(state, spec["target"], run)

        def read() -> Optional[Dict[str, Any]]:
            return records.load(directory, boot)

        unit = None
        if not resent:
            known = {
                "replaced_name": replaced.get("name") if replaced else None,
                "scripts": fingerprints.scripts_of(spec, [procfs.argv(each["pid"]) for each in operation["replaces"]]),
            }
            startkeeper.write_request(directory, operation, known)
            unit = startkeeper.unit_name(spec["target"], run)
        self._starts[operation["id"]] = startkeeper.Start(directory, read, unit)
        return None

    def _record(self, state: str, target: str, run: Optional[str]) -> Optional[records.Record]:
        if run is None or not startkeeper.is_run_id(run):
            return None
        return records.load(files.run_dir(state, target, run), procfs.boot_identity())

    def _must_run(self, operation: Operation, replaced: Optional[records.Record]) -> None:
        """Raises: Refused unless something of what is to be stopped still lives."""
        if replaced is not None and (replaced["alive"] or records.is_under_way(replaced)):
            return
        if any(procfs.is_alive(each["pid"], each["start"]) for each in operation.get("replaces") or ()):
            return
        raise Refused("nothing_runs", "what was to be stopped is gone already")

    def _stop_own(self, state: str, operation: Operation, replaced: records.Record) -> Dict[str, Any]:
        startkeeper.ask_to_stop(files.run_dir(state, replaced["target"], replaced["id"]), operation)
        self._expect_change()
        return _taken(replaced)

    def _expect_change(self) -> None:
        if self._watcher:
            self._watcher.expect_change()

    def _step_starts(self) -> None:
        for operation_id, start in list(self._starts.items()):
            if not start.advance():
                continue
            del self._starts[operation_id]
            self._expect_change()
            for note in start.notes:
                self._warn("keeper_not_started", note)
            record, error = start.record, start.error
            if error is not None:
                self._refuse({"id": operation_id}, error.reason, str(error))
            elif record is not None and record["state"] == "refused":
                data = {"run": record["id"]}
                reason, detail = record.get("reason") or "unknown", record.get("detail") or ""
                self._refuse({"id": operation_id}, reason, detail, data)
            elif record is not None:
                self._reply(operation_id, _taken(record))

    def _step_compiling(self) -> None:
        """Have the keeper's modules compiled while nobody waits, so that the next keeper starts sooner."""
        if self._compiling is None:
            if self._may_compile and time.monotonic() >= self._compile_at:
                self._may_compile = False
                self._compiling = background.Job(loader.compile_all, _COMPILE_S)
            return
        if self._compiling.advance():
            loader.compiled = str(self._compiling.result or "").encode("ascii")
            self._compiling = None

    # -- log and recorder -----------------------------------------------------------------------------------------

    def _log_follow(self, operation: Operation) -> Dict[str, Any]:
        follower = logtail.Follower(operation)
        if self._follower:
            self._follower.close()
        self._follower, self._log_at = follower, 0.0
        return {}

    def _log_credit(self, operation: Operation) -> None:
        if self._follower:
            self._follower.add_credit(int(operation["bytes"]))
            self._log_at = 0.0

    def _step_log(self) -> None:
        assert self._follower is not None
        self._log_at = time.monotonic() + _LOG_STEP_S
        if self._out.waiting_bytes > _LOG_ROOM_BYTES:
            return
        try:
            events = self._follower.step()
        except OSError as error:
            events = [self._follower.trouble(error)]
        for event, data in events:
            self._out.put(dict(event, ev="log", bt=procfs.boottime()), data)

    def _log_read(self, operation: Operation) -> None:
        try:
            data, size = logtail.read_range(operation["path"], int(operation["offset"]), int(operation["length"]))
        except OSError as error:
            raise Refused("file_missing", f"{operation['path']}: {error.strerror}") from error
        self._out.put({"re": operation["id"], "ok": True, "data": {"size": size}, "n": len(data)}, data)

    def _recorder(self, operation: Operation) -> None:
        if self._watcher is None or not startkeeper.is_run_id(operation["run"]):
            raise Refused("protocol", "no target is watched, or no such run id")
        directory = files.run_dir(self._state(), self._watcher.spec["target"], operation["run"])
        lines = recorder_lines(os.path.join(directory, "recorder.ndjson"))
        head = json.dumps({"re": operation["id"], "ok": True})[:-1].encode("ascii")
        self._out.put_line(head + b',"data":{"records":[' + b",".join(lines) + b"]}}\n")


def _taken(record: records.Record) -> Dict[str, Any]:
    return {
        "run": record["id"],
        "name": record.get("name", ""),
        "keeper": record.get("keeper"),
        "state": record["state"],
    }


def recorder_lines(path: str) -> List[bytes]:
    """Return the complete JSON lines of a flight recorder; with too much for one message, fewer GPU samples."""
    try:
        with open(path, "rb") as file:
            lines = file.read(wire.MAX_LINE_BYTES * 2).split(b"\n")[:-1]
    except OSError:
        return []
    good = [line for line in lines if wire.decode(line) is not None]
    while sum(map(len, good)) + len(good) > _RECORDER_BYTES:
        bulky = [index for index, line in enumerate(good) if b'"k":"gpu"' in line.replace(b" ", b"")]
        drop = set(bulky[1::2]) or set(range(1, len(good), 2))
        good = [line for index, line in enumerate(good) if index not in drop]
    return good


def hello() -> Dict[str, Any]:
    """Return the Hello object: who and where we are, and both clocks."""
    bt, wall = procfs.boottime(), time.time()
    return {
        "v": VERSION,
        "pid": os.getpid(),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "boot": procfs.boot_identity(),
        "user": startkeeper.user_name(),
        "uid": os.geteuid(),
        "node": os.uname().nodename,
        "bt": bt,
        "wall": wall,
        "booted_wall": wall - bt,
        "systemd": os.path.isdir("/run/systemd/system"),
        "systemd_system": startkeeper.has_system_manager(),
        "state_dir": files.state_root(None),
    }


def main() -> int:
    """Entry: serve stdin and stdout until it is over."""
    for number in (signal.SIGINT, signal.SIGALRM, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.umask(0o077)
    try:
        procname.rename("dflash-agent", "dflash-agent")
    except OSError:
        pass  # a strange /proc: we stay visible under the interpreter's name
    Agent(0, 1).run()
    return 0
