"""A demo host's target, consoles that watch it and are closed again, and launches on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from msgspec.structs import replace

from console.config import Stop, Target
from console.demo.host import NAME, DemoHost
from console.engine import Engine
from console.model import Accepted, Overrides, Snapshot, StageState
from tests.waiting import until_async

REACH_S = 90.0


@contextmanager
def quick_target(folder: Path, speed: float) -> Iterator[Target]:
    """A demo host of one's own, whose runs load within moments and are stopped within a second."""
    with DemoHost(folder, speed=speed, load_s=4.0) as made:
        yield replace(made.target, stop=Stop(grace_s=1.0))


@asynccontextmanager
async def console(target: Target, operator: str = "ops1", ledger: Path | None = None) -> AsyncIterator[Engine]:
    """A console that watches and is closed again; `ledger`: where it notes runs, if not with the user's own."""
    engine = Engine(NAME, target, operator=operator, origin="test", ledger=ledger)
    task = asyncio.create_task(engine.run())
    try:
        await until_async(lambda: engine.has_word, 60.0, "the host's first word")
        yield engine
    finally:
        task.cancel()
        await asyncio.wait([task])


async def launch(engine: Engine, overrides: Overrides | None = None) -> Accepted:
    plan = await engine.plan("restart", overrides)
    assert plan.refused == ()
    return await engine.execute(plan, overrides)


async def stepping(engine: Engine, run: Accepted) -> Snapshot:
    def reached() -> bool:
        now = engine.snapshot
        # Steps may be seen before the last context is; both are timed anew then.
        last = [status.state is StageState.DONE for status in now.stages[3:]]
        return now.run is not None and now.run.id == run.run_id and all(last)

    await until_async(reached, REACH_S, f"{run.name} steps on all GPUs")
    return engine.snapshot
