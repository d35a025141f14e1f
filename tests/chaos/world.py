"""A training host for chaos: the demo's SSH server or this machine itself, a tiny trainer, and consoles on it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from console.config import Deadlines, Gpus, Metrics, Stop, Target
from console.demo.host import NAME, DemoHost
from console.engine import Engine
from console.model import LinkState
from tests.chaos.claims import Claims
from tests.chaos.ground import Ground, Place, pids, words_of
from tests.waiting import until_async

_WORD_S = 60.0
_WRAPPER = '#!/bin/sh\ncd "${0%/*}" && "$@"\nexit $?\n'


class Console:
    """An engine that runs, and the eyes on what it claims."""

    def __init__(self, engine: Engine, world: World) -> None:
        self.engine = engine
        self._claims = Claims(engine, world.place, world.claims)
        self.task = asyncio.create_task(engine.run())

    async def close(self) -> None:
        """End it. Raises: AssertionError where it has ended by itself."""
        self._claims.close()
        self.task.cancel()
        await asyncio.wait([self.task])
        if not self.task.cancelled() and self.task.exception() is not None:
            raise AssertionError("the console ended by itself") from self.task.exception()


class World:
    """One simulated host; `over_ssh` false reaches it as `local`."""

    def __init__(self, folder: Path, *, over_ssh: bool) -> None:
        self.host = DemoHost(folder)
        self.over_ssh = over_ssh
        self.claims: list[str] = []
        """False claims of any console, as they were noticed."""
        self.agreed_s: list[float] = []
        """How long consoles took to tell the truth once it was settled."""

    def __enter__(self) -> World:
        self.host.__enter__()
        home = Path(self.host.target.cwd)
        self.place = Place(home, NAME)
        shutil.copyfile(Path(__file__).with_name("tiny_trainer.py"), home / "train_dflash_pipeline.py")
        (home / "wrapper").write_text(_WRAPPER)
        (home / "wrapper").chmod(0o755)
        shutil.rmtree(home / "cache")
        self._fill_cache()
        (home / "gpus").write_text("driver 550.90.07\ngpu 0 name=sim total=150323855360 used=0 util=0\n")
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.host.close()

    def _fill_cache(self) -> None:
        folder = self.place.home / "cache" / "kernels"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernel.so").write_bytes(bytes(4096))

    @property
    def target(self) -> Target:
        home = str(self.place.home)
        target = replace(
            self.host.target,
            exec=(f"{home}/wrapper",),
            command=(sys.executable, "-ISu", self.place.script),
            caches=(f"{home}/cache/kernels",),
            stop=Stop(grace_s=1.0),
            gpus=Gpus(expected=1, simulated=f"{home}/gpus"),
            metrics=Metrics(),
            deadlines=Deadlines(killing=60.0, cache=60.0, spawned=60.0, cuda=60.0, stepping=60.0),
        )
        if self.over_ssh:
            return target
        return replace(target, host="local", port=None, user=None, identity=None, known_hosts=None)

    def look(self) -> Ground:
        return self.place.look()

    # -- consoles -----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def console(self, operator: str = "ops1") -> AsyncIterator[Engine]:
        """A fresh console for the length of the block."""
        console = await self.open(operator)
        try:
            yield console.engine
        finally:
            await console.close()

    async def open(self, operator: str = "ops1") -> Console:
        """Open a console and wait for the host's first word; whatever it says is held against the ground."""
        self._fill_cache()
        console = Console(Engine(NAME, self.target, operator=operator, origin="chaos"), self)
        try:
            await until_async(lambda: console.engine.has_word or console.task.done(), _WORD_S, "the host's first word")
        except BaseException:
            await console.close()
            raise
        return console

    # -- cuts ---------------------------------------------------------------------------------------------------------

    def cut_link(self, engine: Engine, seconds: float) -> None:
        self.host.cut_link(seconds)

    def kill_agent(self, engine: Engine) -> bool:
        """Kill the agent of the console's control connection."""
        return engine.hello is not None and engine.snapshot.link.state is LinkState.UP and kill(engine.hello.pid)

    def kill_bulk_agents(self, engine: Engine) -> bool:
        """Kill every agent but that of the control connection."""
        mine = engine.hello.pid if engine.hello is not None else 0
        return kill_all(pid for pid in self.place.agents() if pid != mine)

    def kill_wrappers(self) -> bool:
        """Kill what the SSH server (or the console itself) started to get at the agents."""
        return kill_all(self._wrappers())

    def _wrappers(self) -> list[int]:
        wrapper = str(self.place.home / "wrapper")
        return [pid for pid in pids() if wrapper in words_of(pid, "cmdline")]

    def kill_keeper(self) -> str | None:
        """Kill the keeper of the newest request, if it lives; return the run."""
        for record in self.look().records[:1]:
            if record.keeper_lives and kill(record.status["keeper"]["pid"]):
                return record.id
        return None


def kill_all(pids: Iterable[int]) -> bool:
    return sum(kill(pid) for pid in pids) > 0


def kill(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False
