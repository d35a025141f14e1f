"""What the measurements share: a served demo host, targets of it, runs on it, and the console on a terminal."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from console import configfile, configwriter
from console.config import Target
from console.demo.host import NAME
from console.engine import Engine
from console.headless.session import deadline_after, first_word, opened
from console.host import files
from console.model import Run, Snapshot, Verdict
from console.ui.present.look import VERDICT_WORDS
from tests.bench.sizes import Sizes
from tests.bench.terminal import Terminal
from tests.waiting import until

T = TypeVar("T")
_HERE = Path(__file__).parent
_START_S = 60.0
_LAUNCH_S = 120.0
WORDS = "|".join(VERDICT_WORDS.values())
RED = "FAILED|ENDED"


@dataclass(frozen=True, slots=True)
class Started:
    """A run that was started, and what its keeper is."""

    run: Run
    keeper_pid: int


class Lab:
    """One demo host in a process of its own. A context manager; everything ends with it."""

    def __init__(
        self, folder: Path, sizes: Sizes, *, load_s: float = 0.2, env: Mapping[str, str] | None = None
    ) -> None:
        self.folder, self.sizes = folder, sizes
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._configs = 0
        with (folder / "server.log").open("wb") as log:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "tests.bench.serve", str(folder), str(load_s)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **(env or {})},
            )

    def __enter__(self) -> Lab:
        assert self._server.stdout is not None
        if self._server.stdout.readline().strip() != b"ready":
            self.close()
            raise RuntimeError(f"the host did not start: {(self.folder / 'server.log').read_text()[-2000:]}")
        self.target = configfile.load(self.folder / "config.toml").targets[NAME]
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        try:
            self._server.wait(30)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        if self._server.stdout is not None:
            self._server.stdout.close()

    def cut_link(self, seconds: float) -> None:
        """Drop every connection, and answer none for a while."""
        assert self._server.stdin is not None
        self._server.stdin.write(f"cut {seconds}\n".encode())
        self._server.stdin.flush()

    @property
    def server_pid(self) -> int:
        return self._server.pid

    # -- targets --------------------------------------------------------------------------------------------------

    def writing(self, *options: str, gpus: bool = True, **changes: Any) -> Target:
        """The target whose run is bench_trainer.py with these options.

        Under a name of this lab's own: another lab's trainer on this machine would be taken for a run started by hand.
        """
        trainer = self.folder / f"bench_trainer_{self._server.pid}.py"
        shutil.copyfile(_HERE / "bench_trainer.py", trainer)
        command = [sys.executable, "-I", str(trainer), *options]
        if gpus:
            command += ["--gpu-state", str(self.target.gpus.simulated)]
        return self.changed(command=tuple(command), match=(trainer.name,), caches=(), **changes)

    def changed(self, **changes: Any) -> Target:
        return msgspec.structs.replace(self.target, **changes)

    # -- runs -----------------------------------------------------------------------------------------------------

    def start(self, target: Target) -> Started:
        """Restart what runs on `target`; return when it steps."""
        return asyncio.run(self._start(target))

    async def _start(self, target: Target) -> Started:
        async with opened(NAME, target) as engine:
            await first_word(engine, deadline_after(_START_S))
            return await launch(engine)

    def stop(self, target: Target) -> None:
        """Stop what runs, so that nothing of it is measured next."""

        async def work(engine: Engine) -> None:
            accepted = await engine.execute(await engine.plan("stop"))
            await reached(
                engine, lambda now: now.run is None or now.run.alive is False, f"the stop of {accepted.run_id}"
            )

        self.ask(target, work)

    def ask(self, target: Target, work: Callable[[Engine], Coroutine[Any, Any, T]]) -> T:
        """Run `work` with an engine that has had its first word."""

        async def whole() -> T:
            async with opened(NAME, target) as engine:
                await first_word(engine, deadline_after(_START_S))
                return await work(engine)

        return asyncio.run(whole())

    def console(self, target: Target, *, columns: int = 100, rows: int = 28) -> Terminal:
        """Open the terminal console on `target`."""
        config = self.write_config(target)
        return Terminal(program("--config", str(config)), columns=columns, rows=rows, env=self.surroundings)

    def write_config(self, target: Target) -> Path:
        """Write a config file of its own for `target`."""
        self._configs += 1
        config = self.folder / f"console{self._configs}.toml"
        configwriter.write_new(config, configwriter.render_whole(NAME, target))
        return config

    @property
    def surroundings(self) -> dict[str, str]:
        """XDG folders of the measurement's own: nothing of the developer's is read or written."""
        return {
            f"XDG_{name}_HOME": str(self.folder / "xdg" / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
        }


def program(*arguments: str) -> list[str]:
    """The console's command line as an operator has it, else as a module."""
    script = Path(sys.executable).with_name("dflash-console")
    return [
        str(script) if script.exists() else sys.executable,
        *([] if script.exists() else ["-m", "console"]),
        *arguments,
    ]


async def launch(engine: Engine) -> Started:
    accepted = await engine.execute(await engine.plan("restart"))

    def stepping(now: Snapshot) -> bool:
        run = now.run
        if run is not None and run.id == accepted.run_id and now.verdict in (Verdict.FAILED, Verdict.ENDED):
            raise RuntimeError(f"the run failed: {now.reason}")
        return run is not None and run.id == accepted.run_id and now.verdict in (Verdict.STEPPING, Verdict.RUNNING)

    now = await reached(engine, stepping, f"{accepted.name} stepping")
    assert now.run is not None
    return Started(now.run, keeper_pid(engine, accepted.run_id))


async def reached(
    engine: Engine, condition: Callable[[Snapshot], bool], what: str, timeout_s: float = _LAUNCH_S
) -> Snapshot:
    now = await engine.until(lambda each: each if condition(each) else None, deadline_after(timeout_s))
    if now is None:
        raise TimeoutError(f"{what}: not within {timeout_s:g} s; {engine.snapshot.verdict}, {engine.snapshot.stages}")
    return now


def run_folder(target: Target, run_id: str) -> Path:
    return Path(str(target.state_dir)) / "targets" / NAME / "runs" / run_id


def run_status(target: Target, run_id: str) -> dict[str, Any]:
    """Return what the run's keeper notes of it, whole, though it may be writing the next version."""
    found = until(lambda: files.read_json(str(run_folder(target, run_id)), "status.json"), what="the run's status")
    assert found is not None
    return found


def keeper_pid(engine: Engine, run_id: str) -> int:
    return int(run_status(engine.target, run_id)["keeper"]["pid"])
