"""The soak: a console with its screens on a served host, minute after minute of what happens to a log.

A minute of it takes as long as the console needs for what happens in it. Steps, lines, bars, tracebacks, bursts,
rotations, truncations, restarts and cuts come as often as in one; of the GPUs' samples, which come by the clock, each
is heard as often as they would come in a minute. What a leak would make grow is read from /proc: of the console, of
its agents and of the run's keeper, each against itself when it was young.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
from collections.abc import AsyncIterator, Container
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace
from textual.pilot import Pilot

from console.demo.host import NAME
from console.engine import Engine
from console.link.events import AgentSaid
from console.model import LinkState, StageState
from console.state.logbuffer import EntryKind
from console.ui.app import ConsoleApp
from console.ui.screens.overview import Overview
from tests.bench import procstat
from tests.bench.lab import Lab, keeper_pid
from tests.tasks import every_agent_answers
from tests.waiting import until_async

SAMPLES_A_MINUTE = 60
_STEPS_A_MINUTE = 30
_WAIT_S = 120.0
_SETTLES = 10
_BRIEF = {"attach", "read-head", "ledger", "watch", "recorder", "outline", "head", "between"}
"""What comes and goes while a console rests."""
_MOST_MB = 3.0
"""Python's own pools come in megabytes; a leak of what a burst brings, or of a run, is more than that."""
_SCREENS = ("2", "3", "4", "5", "r")
_KEYS = ("2", "3", "4", "5", "1", "m", "r", "slash", "3,g,f")


Grown = tuple[str, str, float, float]
"""Who, what, how much before, and after."""


@dataclass(frozen=True, slots=True)
class Plan:
    minutes: int
    burst_bytes: int
    restart_each: int
    """Minutes from one restart to the next."""
    cut_each: int
    warm: int
    """The minute from which on growth is measured."""
    console_mb: float = _MOST_MB
    """What the console may grow by from then on: more where that is before its bounded stores are full. The curves of
    the GPUs are full after 43 minutes."""


@dataclass(frozen=True, slots=True)
class Process:
    """What one process holds."""

    rss_bytes: int
    descriptors: int
    children: int

    @classmethod
    def of(cls, pid: int, but: Container[int] = ()) -> Process:
        """`but`: a child that isn't its own, with all below that."""
        children = [each for each in procstat.below(pid) if each not in but]
        return cls(procstat.rss_bytes(pid), len(os.listdir(f"/proc/{pid}/fd")), len(children))


@dataclass(frozen=True, slots=True)
class Size:
    """What all of them hold at the end of a minute."""

    minute: int
    tasks: int
    console: Process
    agents: dict[int, Process]
    keeper: dict[int, Process]


class Soak:
    """One soak; `sizes` has an entry for each minute."""

    def __init__(self, lab: Lab, engine: Engine, pilot: Pilot[str], fifo: int, plan: Plan) -> None:
        self.sizes: list[Size] = []
        self._lab, self._engine, self._pilot, self._fifo, self._plan = lab, engine, pilot, fifo, plan
        self._chance = random.Random(4)
        self.lines = self.samples = self.cuts = self.restarts = 0
        self.burst_bytes = 0
        self.has_skipped = False
        self._looked_at = 0
        engine.on_lines.append(self._look_for_gaps)

    def _look_for_gaps(self) -> None:
        """At each change of the buffer: behind a gap come more lines than it keeps, perhaps."""
        log = self._engine.log
        if not self.has_skipped:
            self.has_skipped = any(entry.kind is EntryKind.GAP for entry in log.lines(self._looked_at, log.end))
            self._looked_at = log.end

    async def run(self) -> None:
        await self.restart()
        await self._press(",".join(_SCREENS))
        for minute in range(1, self._plan.minutes + 1):
            await self._minute(minute)
            self.sizes.append(await self._at_rest(minute))
        for _ in range(_SETTLES):  # what is still being closed has a moment for that
            if not too_much(grown(self.sizes, self._plan.warm), self._plan):
                break
            self.sizes[-1] = await self._at_rest(self._plan.minutes)

    async def _minute(self, minute: int) -> None:
        words = ["bar", "tracebacks"]
        words += [f"burst {self._plan.burst_bytes}"] if minute % 3 == 1 else []
        words += [("copytruncate", "rotate")[minute // 2 % 2]] if minute % 2 == 0 else []
        self.burst_bytes += self._plan.burst_bytes if minute % 3 == 1 else 0
        before, lines = self._step, self._engine.log.end
        os.write(self._fifo, "".join(f"{word}\n" for word in words).encode())
        if minute % self._plan.cut_each == 0:
            await self._cut(hard=minute // self._plan.cut_each % 2 == 0)
        if minute % self._plan.restart_each == 0:
            await self.restart()
            before = self._step
        await self._press(self._chance.choice(_KEYS))
        await self._engine.plan("restart")  # what an agent needs for one is loaded with the first, and stays
        self._hear_samples()
        await until_async(lambda: self._step >= before + _STEPS_A_MINUTE, _WAIT_S, f"steps of minute {minute}")
        self.lines += self._engine.log.end - lines

    async def _press(self, keys: str) -> None:
        """Press keys one after the other, then go back to the first screen: what is shown has tasks of its own."""
        await self._pilot.press(*keys.split(","))

        async def is_back() -> bool:
            await self._pilot.press("escape", "1")  # the first keys that a dialog gets are dropped
            return isinstance(self._pilot.app.screen, Overview)

        await until_async(is_back, _WAIT_S, f"the first screen after {keys}")

    @property
    def _step(self) -> int:
        return self._engine.snapshot.progress.step or 0

    def _hear_samples(self) -> None:
        said = self._engine._state.gpus.event
        if said is None:
            return
        for number in range(SAMPLES_A_MINUTE):
            self._engine._on_link(AgentSaid(event=replace(said, bt=said.bt + 0.01 * number), data=b""))
            self.samples += 1

    async def restart(self) -> None:
        run = (await self._engine.execute(await self._engine.plan("restart"))).run_id

        def steps() -> bool:
            now = self._engine.snapshot
            return now.run is not None and now.run.id == run and now.stages[-1].state is StageState.DONE

        await until_async(steps, _WAIT_S, f"{run} steps")
        self.restarts += 1

    async def _cut(self, *, hard: bool) -> None:
        """Cut the link, or kill the agent of control; wait until the run is seen again."""
        engine = self._engine
        before = engine.hello.pid if engine.hello is not None else 0
        if hard:
            os.kill(before, 9)
        else:
            self._lab.cut_link(0.05)
        await until_async(lambda: engine.snapshot.link.state is not LinkState.UP, _WAIT_S, "the cut is seen")
        self.cuts += 1

        def is_back() -> bool:
            engine.retry_link()
            is_new = engine.hello is not None and engine.hello.pid != before
            return is_new and engine.snapshot.link.state is LinkState.UP

        await until_async(is_back, _WAIT_S, "a new agent")

    async def _at_rest(self, minute: int) -> Size:
        """Return the sizes once both connections work, all of the log is read, and nothing is being asked."""
        before = self._step
        engine = self._engine

        def rests() -> bool:
            now = engine.snapshot
            is_read = self._step > before and now.link.state is LinkState.UP and now.log.caught_up
            is_asking = _BRIEF & {each.get_name() for each in asyncio.all_tasks()}
            return is_read and not is_asking and every_agent_answers() and len(_sizes(self._agents())) == 2

        await until_async(rests, _WAIT_S, f"rest after minute {minute}")
        gc.collect()
        run = engine.snapshot.run
        keeper = keeper_pid(engine, run.id) if run is not None and run.id is not None else 0
        return Size(
            minute,
            tasks=len(asyncio.all_tasks()),
            console=Process.of(os.getpid(), {self._lab.server_pid, *procstat.below(self._lab.server_pid)}),
            agents=_sizes(self._agents()),
            keeper=_sizes([keeper]),
        )

    def _agents(self) -> list[int]:
        """Return the agents without the helpers that they fork."""
        named = [pid for pid, name in procstat.below(self._lab.server_pid).items() if name == "dflash-agent"]
        return [pid for pid in named if not any(pid in procstat.below(other) for other in named)]


@asynccontextmanager
async def soak(folder: Path, lab: Lab, plan: Plan) -> AsyncIterator[Soak]:
    """Open a console on the lab's host; it ends with the block, and with it the run."""
    fifo = folder / "words"
    os.mkfifo(fifo, 0o600)
    words = os.open(fifo, os.O_RDWR)
    target = lab.writing("--lines-per-s", "50", "--words", str(fifo))
    engine = Engine(NAME, target, operator="ops1", origin="soak", ledger=folder / "ledger.sqlite3")
    app = ConsoleApp(engine)
    running = asyncio.create_task(engine.run())
    try:
        async with app.run_test(size=(120, 36)) as pilot:
            await until_async(lambda: engine.has_word, _WAIT_S, "the host's first word")
            yield Soak(lab, engine, pilot, words, plan)
            await engine.execute(await engine.plan("stop"))
            await until_async(lambda: engine.snapshot.run is not None and engine.snapshot.run.alive is False, _WAIT_S)
    finally:
        running.cancel()
        await asyncio.wait([running])
        os.close(words)


def _sizes(pids: list[int]) -> dict[int, Process]:
    """Return what each holds; helpers come and go, and one that has just gone holds nothing."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            found[pid] = Process.of(pid)
    return found


def too_much(found: list[Grown], plan: Plan) -> list[Grown]:
    """Return what has grown by more than it may."""

    def most(who: str, what: str) -> float:
        return (plan.console_mb if who == "console" else _MOST_MB) if what == "MB" else 0

    return [each for each in found if each[3] - each[2] > most(*each[:2])]


def grown(sizes: list[Size], warm: int) -> list[Grown]:
    """Return who, what, how much when it was young or warm, and how much at the end, for all that can be compared."""
    first, last = next(each for each in sizes if each.minute == warm), sizes[-1]
    found: list[Grown] = [("console", "tasks", first.tasks, last.tasks)]
    found += _of("console", first.console, last.console)
    for name in ("agents", "keeper"):
        lives: dict[int, list[Process]] = {}
        for size in sizes:
            for pid, process in getattr(size, name).items():
                lives.setdefault(pid, []).append(process)
        for life in sorted((each for each in lives.values() if len(each) > 1), key=len)[-2:]:
            # What it loads in its first minute is no growth, where it has lived longer.
            found += _of(name.rstrip("s"), life[min(1, len(life) - 2)], life[-1])
    return found


def _of(who: str, before: Process, after: Process) -> list[Grown]:
    return [
        (who, "MB", before.rss_bytes / 1e6, after.rss_bytes / 1e6),
        (who, "descriptors", before.descriptors, after.descriptors),
        (who, "children", before.children, after.children),
    ]
