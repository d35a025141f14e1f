"""A DFlash run on fake GPUs inside a container, and the console's command line on it.

The run is the demo's simulated trainer behind a real /root/run.sh; its GPUs are shown by the NVML library of
tests/nvml, installed in the container as the driver would be, so the real pynvml binding reads them.
"""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from console import configfile
from console.demo import trainer
from console.engine import Engine
from console.host import files
from console.model import LinkState, Snapshot
from tests.headless.running import call, prove_starts_at
from tests.lab.commands import argv_of
from tests.lab.containers import Container
from tests.lab.session import Lab, Setting, Way
from tests.nvml.build import NAME as LIBRARY_NAME
from tests.waiting import until

T = TypeVar("T")

SCRIPT = "train_dflash_pipeline.py"
CACHE = "/tmp/torchinductor_root"
STATE = "/root/.local/state/dflash-console"
_GPU_STATE = "/run/fake-nvml/state"
LIBRARY = f"/usr/lib/x86_64-linux-gnu/{LIBRARY_NAME}"
_REPOSITORY = Path(__file__).parents[2]
_OPTIONS = f"--load-time 0.6 --step-time 0.2 --gpu-state {_GPU_STATE} --fault-file /root/fault"

STAGES = ("killing", "cache", "spawned", "cuda", "stepping")
_SETTINGS: dict[str, Setting] = {
    "match": [SCRIPT],
    "name": "slammed{n}",
    "env": {"DFLASH_SPLIT_FC_LAYERS": "0"},
    "gpus": {"expected": 8},
    "stop": {"grace_s": 5.0},
}


@dataclass(frozen=True)
class Done:
    """What one call of the command line came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout."""
        (line,) = self.out.splitlines()
        fields: dict[str, Any] = json.loads(line)
        return fields

    def stage(self, name: str) -> dict[str, Any]:
        fields: dict[str, Any] = next(each for each in self.json["stages"] if each["stage"] == name)
        return fields


class Training:
    """A container with the run installed; `folder` holds configs and the console's own files."""

    def __init__(self, lab: Lab, container: Container, folder: Path, library: Path) -> None:
        self.lab, self.container, self.folder = lab, container, folder
        self._library = library

    # -- the host's side ----------------------------------------------------------------------------------------------

    def install(self, options: str = "", *, hold_gpus: bool = True) -> None:
        """Put trainer, run.sh, driver and cache in place; `options` are added to the trainer's."""
        ct = self.container
        ct.copy_in(Path(trainer.__file__), f"/root/{SCRIPT}")
        ct.write(f"{CACHE}/fx00/kernel.so", "x" * 100_000)
        self.write_run(options)
        if hold_gpus:
            ct.copy_in(self._library, LIBRARY)
            ct.make_folder(os.path.dirname(_GPU_STATE))
            ct.touch_uvm()
            self.release_gpus()

    def release_gpus(self) -> None:
        """Show GPUs that nobody uses any more, whatever a run that has ended told them."""
        self.container.run(["python3", f"/root/{SCRIPT}", "--idle", "--gpu-state", _GPU_STATE])

    def write_run(self, options: str = "", *, shebang: str = "#!/bin/bash", mode: int = 0o755) -> None:
        """Write /root/run.sh, which executes the trainer in its place."""
        cache = f"mkdir -p {CACHE}/fx00 && head -c 100000 /dev/zero >{CACHE}/fx00/kernel.so"
        self.container.write("/root/run.sh", f"{shebang}\n{cache}\nexec {self.line(options)}\n", mode=mode)

    def line(self, options: str = "") -> str:
        """Return the words that run the trainer, for a run.sh of another kind."""
        return f"python3 -u /root/{SCRIPT} {_OPTIONS} {options}".rstrip()

    def fault(self, name: str) -> None:
        """Make the next start go wrong (or the run at once, where the fault is one of those)."""
        self.container.write("/root/fault", name)

    def clear(self) -> None:
        """End what runs in the container and forget all of it."""
        self.container.kill_all()
        logs = [f"/workspace/{path.name}" for path in self.container.path("/workspace").iterdir()]
        gpus = [LIBRARY, os.path.dirname(_GPU_STATE), "/dev/nvidia-uvm"]
        self.container.remove("/root/fault", "/root/run.sh", STATE, CACHE, *logs, *gpus)

    def start_by_hand(self, log: str = "/workspace/train_hand.log", options: str = "") -> int:
        """Start the trainer as people do, with nohup, and return its pid once it steps."""
        line = f"cd /root; nohup python3 -u {SCRIPT} {_OPTIONS} {options} >{log} 2>&1 </dev/null &"
        self.container.run(["bash", "-c", line])
        until(lambda: self.last_step(log) >= 2, 60, "the hand-started run steps")
        (pid,) = self.mains()
        return pid

    def mains(self) -> list[int]:
        """Return the pids of trainers that are not the rank of one: one for each run."""
        pids = self.container.pids_of(SCRIPT)
        return [pid for pid in self._outermost(pids) if self._is_trainer(pid)]

    def _outermost(self, pids: list[int]) -> list[int]:
        """Return those that live whose parent is none of them."""
        parents = {pid: self.parent(pid) for pid in pids}
        return [pid for pid, parent in parents.items() if parent is not None and parent not in pids]

    def parent(self, pid: int) -> int | None:
        """Return the parent's pid, 0 for one outside of the container; None where the process has ended."""
        stat = self.container.read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        return int(stat[1]) if stat else None

    def _is_trainer(self, pid: int) -> bool:
        argv = self.container.processes().get(pid, [""])
        return "python" in argv[0] and any(word.endswith(SCRIPT) for word in argv[1:3])

    def last_step(self, log: str) -> int:
        """Return the last step that stands in the log, 0 before the first."""
        steps = re.findall(r"step (\d+)/", self.container.read(log))
        return int(steps[-1]) if steps else 0

    def steps_on(self, log: str) -> None:
        """Wait until the run takes two more steps."""
        now = self.last_step(log)
        until(lambda: self.last_step(log) >= now + 2, 60, f"steps after {now}")

    def keeper(self, run: str) -> int:
        """Return the pid (inside) of the keeper of the run with this id."""
        known = until(lambda: self.record(run, "status.json").get("keeper"), what=f"the keeper of {run}")
        assert known is not None
        pid: int = known["pid"]
        return pid

    def record(self, run: str, name: str) -> dict[str, Any]:
        """Return a file of a run's directory, empty before it is written."""
        folder = self.container.path(f"{STATE}/targets/lab/runs/{run}")

        def read() -> tuple[dict[str, Any]] | None:
            # As the agent does: what is read while the keeper writes its next two versions is of none of them.
            found = files.read_json(str(folder), name)
            return (found or {},) if found is not None or not (folder / name).exists() else None

        found = until(read, what=f"{name} of {run}, whole")
        return found[0] if found else {}

    def await_end(self, run: str) -> None:
        """Wait until the run's keeper has noted that nobody of it is left, and what that makes of the run."""
        over = ("ended", "failed", "stopped")
        until(lambda: self.record(run, "exit.json").get("all_gone"), what=f"the exit record of {run}")
        until(lambda: self.record(run, "status.json").get("state") in over, what=f"the end of {run}")

    def run_ids(self) -> list[str]:
        runs = self.container.path(f"{STATE}/targets/lab/runs")
        # A check of the plan probes the disk in there for a moment.
        return sorted(path.name for path in runs.iterdir() if path.name.startswith("r-")) if runs.is_dir() else []

    def agents(self) -> list[int]:
        """Return the pids (inside) of every agent, without the helpers that one forks."""
        return self._outermost([p for p, argv in self.container.processes().items() if argv[0] == "dflash-agent"])

    def wrappers(self) -> list[int]:
        """Return the pids (on the host) of every lxc-attach into this container; each forks itself on its way in."""
        which = ["-n", str(self.container.number)]
        argvs = {pid: argv_of(pid) for pid in map(int, filter(str.isdigit, os.listdir("/proc")))}
        ours = f"{self.lab.folder}/lxc"
        return [p for p, argv in argvs.items() if argv[:1] == ["lxc-attach"] and ours in argv and which == argv[3:5]]

    def await_no_agents(self, timeout_s: float = 60) -> None:
        """Wait until every agent has ended, by its console's word or by its lease."""
        try:
            until(lambda: not self.agents(), timeout_s)
        except AssertionError:
            looks = [self._look_of(pid) for pid in self.agents()]
            assert not looks, f"agents after {timeout_s:g} s: {looks}"

    def _look_of(self, pid: int) -> str:
        about = [self.container.read(f"/proc/{pid}/{name}").strip() for name in ("stat", "wchan")]
        folder = self.container.path(f"/proc/{pid}/fd")
        try:
            about += [f"{fd.name}={os.readlink(fd)}" for fd in folder.iterdir()]
        except OSError:
            about.append("ended just now")
        return " ".join(about)

    # -- the console's side -------------------------------------------------------------------------------------------

    def config(self, way: Way = "host", **settings: Setting) -> Path:
        """Write a config for this container and return its path."""
        path = self.folder / f"{way}.toml"
        path.write_text(self.lab.config(self.container, way=way, **{**_SETTINGS, **settings}))
        return path

    def console(self, *words: str, config: Path | None = None) -> subprocess.Popen[str]:
        """Start the command line in a process of its own."""
        argv = [sys.executable, "-m", "console.cli", *words, "--config", str(config or self.config())]
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=_REPOSITORY,
            env={**os.environ, **self._own},
        )

    @property
    def _own(self) -> dict[str, str]:
        """The folders of the console, whoever's the host is."""
        return {f"XDG_{name}": str(self.folder / name.lower()) for name in ("STATE_HOME", "CACHE_HOME", "RUNTIME_DIR")}

    def cli(
        self, *words: str, config: Path | None = None, timeout_s: float = 120, start_s: float | None = None
    ) -> Done:
        """Run the command line to its end; `start_s` is the age at which a start is proven for it.

        In this process where no event loop runs: to import everything takes as long as the rest of most commands.
        """
        if not _may_run_a_loop():
            assert start_s is None
            return finished(self.console(*words, config=config), timeout_s)
        with pytest.MonkeyPatch.context() as patch, _ended_after(timeout_s, words):
            if start_s is not None:
                prove_starts_at(start_s, patch)
            for name, folder in self._own.items():
                patch.setenv(name, folder)
            done = call(*words, "--config", str(config or self.config()))
        return Done(done.code, done.out, done.err)

    def shows_times_of(self, launched: Done, config: Path | None = None) -> None:
        """Wait until a fresh console shows a launch's times as they were told then.

        A single look is as wrong as the host's first word was late, on a busy machine by more than a second.
        """

        def are_told() -> bool:
            shown = self.cli("status", "--json", config=config).json["stages"]
            return moved_by(launched.json["stages"], shown) <= 1.0

        until(are_told, 60, "the original times")

    def restart(self, *words: str, config: Path | None = None) -> Done:
        """Restart until stepping, which must be reached."""
        done = self.cli("restart", "--yes", "--json", "--timeout", "90s", *words, config=config)
        assert done.code == 0, done
        return done

    @asynccontextmanager
    async def engine(self, config: Path | None = None) -> AsyncIterator[Engine]:
        """Run an engine in this process, with the host's first word taken in."""
        target = configfile.load(config or self.config()).targets["lab"]
        engine = Engine("lab", target, operator="tester", origin="lab")
        task = asyncio.create_task(engine.run())
        try:
            await reach(engine, lambda _: engine.has_word, 60)
            yield engine
        finally:
            task.cancel()
            await asyncio.wait([task])


def _may_run_a_loop() -> bool:
    return threading.current_thread() is threading.main_thread() and asyncio._get_running_loop() is None


@contextmanager
def _ended_after(timeout_s: float, words: Sequence[str]) -> Iterator[None]:
    """Make what takes longer a failure."""

    def fail(*_: object) -> None:
        raise AssertionError(f"still running after {timeout_s:g} s: {words}")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def finished(console: subprocess.Popen[str], timeout_s: float = 120) -> Done:
    """Wait for the end of a started command line; one that doesn't end is killed and is a failure."""
    with console:
        try:
            out, err = console.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            console.kill()
            out, err = console.communicate()
            raise AssertionError(f"still running after {timeout_s:g} s: {console.args!r}\n{out}\n{err}") from None
    return Done(console.returncode, out, err)


async def reach(engine: Engine, predicate: Any, timeout_s: float = 60) -> Snapshot:
    """Wait until the predicate holds of a snapshot, and return that."""
    deadline = asyncio.get_running_loop().time() + timeout_s
    found = await engine.until(lambda now: now if predicate(now) else None, deadline)
    assert found is not None, f"not reached within {timeout_s:g} s; now {engine.snapshot}"
    return found


async def lost_by(engine: Engine, deed: Callable[[], T]) -> T:
    """Do what takes the link down, and wait until it is lost: it may be back before the deed has returned."""
    losing = asyncio.create_task(reach(engine, lambda now: now.link.state is not LinkState.UP))
    try:
        done = await asyncio.to_thread(deed)
        await losing
    finally:
        losing.cancel()
    return done


def moved_by(then: list[dict[str, Any]], now: list[dict[str, Any]]) -> float:
    """Return the seconds by which any time of a stage differs; the states must be the same."""
    assert [each["state"] for each in then] == [each["state"] for each in now], now
    pairs = [(a[key], b[key]) for a, b in zip(then, now, strict=True) for key in ("began_at", "ended_at")]
    return max(abs(_seconds(a) - _seconds(b)) for a, b in pairs if a is not None and b is not None)


def _seconds(utc: str) -> float:
    return datetime.fromisoformat(utc).timestamp()
