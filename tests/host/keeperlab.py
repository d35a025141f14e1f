"""A training host in a temporary directory: requests are written as the agent writes them, keepers run as processes.

Everything that is started carries a mark in its environment, so that `close` ends exactly what a test began.
"""

import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from console.host import files, procfs
from tests.waiting import until

REPOSITORY = Path(__file__).parents[2]
_MARK = "DFLASH_TEST_MARK"
_START = "import sys; sys.path.insert(0, sys.argv[2]); from console.host import keeper; keeper.main(sys.argv[1])"


class Lab:
    """One target on this machine."""

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.work = folder / "work"
        self.work.mkdir()
        self.mark = uuid.uuid4().hex
        # Of its own: a run of the same name elsewhere on this machine would rightly be taken for a change of plan.
        self.trainer_name = f"train_{self.mark[:8]}.py"
        self._python = python
        self._started: list[subprocess.Popen[bytes]] = []

    # -- programs --

    def script(self, name: str, text: str, mode: int = 0o755) -> Path:
        """Write an executable into the working directory."""
        path = self.work / name
        path.write_text(textwrap.dedent(text).lstrip(), "utf-8")
        path.chmod(mode)
        return path

    def trainer(self, body: str = "time.sleep(600)") -> Path:
        """Write a Python trainer and a run.sh that executes it."""
        self.script(self.trainer_name, f"import os, signal, subprocess, sys, time\n{textwrap.dedent(body)}\n")
        return self.script("run.sh", f'#!/bin/sh\nexec {sys.executable} -u {self.work}/{self.trainer_name} "$@"\n')

    def start(self, *argv: str | Path, **options: Any) -> subprocess.Popen[bytes]:
        """Start a process that is not the keeper's: a run by hand, a bystander."""
        env = {**os.environ, _MARK: self.mark}
        options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True, **options}
        process = subprocess.Popen([str(part) for part in argv], cwd=self.work, env=env, **options)
        self._started.append(process)
        return process

    # -- requests --

    def request(self, run: str, **changes: Any) -> Path:
        """Make a run directory with a request in it, as the agent does."""
        directory = Path(files.run_dir(str(self.state), "t", run))
        files.secure_makedirs(str(directory))
        spec = {
            "target": "t",
            "name": "run{n}",
            "command": [str(self.work / "run.sh")],
            "cwd": str(self.work),
            "log": str(self.work / "{name}.log"),
            "env": {},
            "unset": [],
            "match": [self.trainer_name],
            "caches": [],
            "keep_cache": False,
            "stop_signal": "TERM",
            "grace_s": 5.0,
            "start_s": 0.2,
            "gpus": {"expected": None, "simulated": str(self.folder / "gpus")},
            **changes.pop("spec", {}),
        }
        spec["env"] = {**spec["env"], _MARK: self.mark}
        now = procfs.boottime()
        content: dict[str, Any] = {
            "request": run,
            "action": "restart",
            "spec": spec,
            "name": run,
            "log_path": str(self.work / f"{run}.log"),
            "replaces": [],
            "replaced_id": None,
            "operator": "ops",
            "origin": "jump",
            "note": "",
            "accepted_wall": time.time(),
            "accepted_bt": now,
            "expires_bt": now + 60,
            "boot": procfs.boot_identity(),
            **changes,
        }
        files.write_json(str(directory), "request.json", content)
        return directory

    def keep(self, directory: Path, **options: Any) -> subprocess.Popen[bytes]:
        """Start a keeper for the request in `directory`."""
        command = [self._python, "-I", "-c", _START, str(directory), str(REPOSITORY)]
        env = {**os.environ, _MARK: self.mark}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=env, **options)
        self._started.append(process)
        return process

    def launch(self, run: str, **changes: Any) -> tuple[Path, subprocess.Popen[bytes]]:
        directory = self.request(run, **changes)
        return directory, self.keep(directory)

    # -- looking --

    def log(self, run: str) -> str:
        path = self.work / f"{run}.log"
        return path.read_text("utf-8", "surrogateescape") if path.exists() else ""

    def marked(self) -> list[int]:
        """Every live process that this lab has started, and what descends from it with its environment."""
        pids = [pid for pid in procfs.all_pids() if procfs.environ(pid).get(_MARK) == self.mark]
        return [pid for pid in pids if not procfs.is_gone(procfs.read_stat(pid))]

    def close(self) -> None:
        deadline = time.monotonic() + 20
        while (left := self.marked()) and time.monotonic() < deadline:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            for process in self._started:
                process.poll()
        for process in self._started:
            process.kill()
            process.wait(20)


def status(directory: Path) -> dict[str, Any]:
    return files.read_json(str(directory), "status.json") or {}


def exit_record(directory: Path) -> dict[str, Any]:
    return files.read_json(str(directory), "exit.json") or {}


def reached(directory: Path, *states: str, timeout_s: float = 30.0) -> dict[str, Any]:
    """Wait until the run is in one of `states` and return its status."""
    _await(directory, lambda: status(directory).get("state") in states, f"one of {states}", timeout_s)
    return until(lambda: status(directory), what="the status, whole")


def ended(directory: Path, timeout_s: float = 30.0) -> dict[str, Any]:
    """Wait for the final exit record and return it."""
    _await(directory, lambda: bool(exit_record(directory).get("all_gone")), "the exit record", timeout_s)
    reached(directory, "ended", "failed", "stopped")  # follows the exit record, which people wait for
    return exit_record(directory)


def _await(directory: Path, predicate: Callable[[], bool], what: str, timeout_s: float) -> None:
    try:
        until(predicate, timeout_s, what)
    except AssertionError as error:
        prose = directory / "keeper.log"
        said = prose.read_text("utf-8", "replace") if prose.exists() else "no keeper.log"
        raise AssertionError(f"{error}\nstatus: {status(directory)}\nkeeper: {said}") from None


def ident(pid: int) -> dict[str, int]:
    found = procfs.read_stat(pid)
    assert found is not None, pid
    return {"pid": pid, "start": found.start}


def alive(entry: dict[str, int]) -> bool:
    return procfs.is_alive(entry["pid"], entry["start"])


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)
