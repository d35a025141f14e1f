"""One console through many cuts and many restarts: nothing of it grows, here or on the host."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from console.engine import Engine
from console.model import LinkState, StageState
from tests.chaos.world import World
from tests.tasks import every_agent_answers
from tests.waiting import until_async

_RECONNECTS, _RESTARTS = 20, 30
_WARM = 4
_MAX_GROWTH_BYTES = 12 << 20
_BRIEF = {"attach", "read-head", "ledger", "watch"}
"""What comes and goes while a console rests."""


@dataclass(frozen=True)
class Size:
    """What a leak would make grow."""

    tasks: int
    descriptors: int
    agents: int
    rss_bytes: int

    @classmethod
    def of(cls, world: World) -> Size:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(
            tasks=len(asyncio.all_tasks()),
            descriptors=len(os.listdir("/proc/self/fd")),
            agents=len(world.place.agents()),
            rss_bytes=pages * os.sysconf("SC_PAGE_SIZE"),
        )


@pytest.mark.parametrize("over_ssh", [True, False], ids=["ssh", "local"])
async def test_twenty_reconnects_leave_nothing_behind(tmp_path: Path, over_ssh: bool) -> None:
    with World(tmp_path / "host", over_ssh=over_ssh) as world:
        async with world.console() as engine:
            await _restart(engine)
            warm = Size(0, 0, 0, 0)
            for number in range(_RECONNECTS):
                await _reconnect(world, engine, cut=over_ssh and number % 2 == 0)
                if number + 1 == _WARM:
                    warm = await _at_rest(world, engine)
            await _settles_at(world, engine, warm)
            assert engine.snapshot.run is not None
            assert engine.snapshot.run.alive
        await until_async(lambda: not world.place.agents(), 60, "no agent outlives its console")
        assert world.claims == []


async def test_thirty_restarts_leave_nothing_behind(tmp_path: Path) -> None:
    with World(tmp_path / "host", over_ssh=False) as world:
        async with world.console() as engine:
            warm = Size(0, 0, 0, 0)
            for number in range(_RESTARTS):
                await _restart(engine)
                if number + 1 == _WARM:
                    warm = await _at_rest(world, engine)
            await _settles_at(world, engine, warm)
        assert len(world.place.starts()) == _RESTARTS
        assert world.claims == []


async def _reconnect(world: World, engine: Engine, *, cut: bool) -> None:
    before = engine.hello.pid if engine.hello is not None else 0
    if cut:
        world.cut_link(engine, 0.05)
    else:
        assert world.kill_agent(engine)
    await until_async(lambda: engine.snapshot.link.state is not LinkState.UP, 60, "the cut is seen")
    await asyncio.sleep(0.06)  # as long as the cut takes
    engine.retry_link()
    await until_async(lambda: engine.hello and engine.hello.pid != before, 60, "a new agent")
    await until_async(lambda: engine.snapshot.verdict == "stepping", 60, "the run is seen again")


async def _restart(engine: Engine) -> None:
    run = (await engine.execute(await engine.plan("restart"))).run_id

    def steps() -> bool:
        now = engine.snapshot
        return now.run is not None and now.run.id == run and now.stages[-1].state is StageState.DONE

    await until_async(steps, 60, f"{run} steps")


async def _at_rest(world: World, engine: Engine) -> Size:
    """Return the size once both connections work (a step came in just now) and nothing is being asked."""
    before = engine.snapshot.progress.step or 0

    def rests() -> bool:
        is_read = (engine.snapshot.progress.step or 0) > before and engine.snapshot.link.state is LinkState.UP
        is_asking = _BRIEF & set(_task_names())
        return is_read and len(world.place.agents()) == 2 and not is_asking and every_agent_answers()

    await until_async(rests, 60, "both connections work and rest")
    return Size.of(world)


def _task_names() -> list[str]:
    return sorted(task.get_name() for task in asyncio.all_tasks())


def _descriptors() -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return sorted(found)


async def _settles_at(world: World, engine: Engine, warm: Size) -> None:
    """Wait until it is as small as it was when warm; what is still being closed has a few seconds for that."""
    now = warm

    async def is_small() -> bool:
        nonlocal now
        now = await _at_rest(world, engine)
        return now.tasks <= warm.tasks and now.descriptors <= warm.descriptors

    try:
        await until_async(is_small, 60)
    except AssertionError:
        raise AssertionError(f"grown: {warm} -> {now}, {_task_names()}, {_descriptors()}") from None
    print(f"\nwarm {warm}\n now {now}")
    assert now.rss_bytes - warm.rss_bytes < _MAX_GROWTH_BYTES, (warm, now)
