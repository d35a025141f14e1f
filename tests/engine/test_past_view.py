"""A run of before through the real engine: the first of two launches is looked at while the second steps."""

# ruff: noqa: ASYNC240 - small local files

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.config import Target
from console.model import LogState, StageState, Verdict
from tests.engine.consoles import console, launch, quick_target, stepping
from tests.waiting import until_async


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    with quick_target(tmp_path / "demo", speed=16.0) as made:
        yield made


async def test_run_before_is_shown_as_it_ended_while_the_live_one_steps(target: Target) -> None:
    async with console(target) as engine:
        first = await launch(engine)
        await stepping(engine, first)
        await until_async(lambda: (engine.snapshot.progress.step or 0) >= 12, 60.0, "some steps")
        await until_async(lambda: all(each.noted for each in engine.snapshot.stages[3:]), 60.0, "the keeper's times")
        before = engine.snapshot
        second = await launch(engine)
        await stepping(engine, second)

        past = await engine.view(first.run_id)

        live = engine.snapshot
        assert live.run_id == second.run_id
        shown = past.snapshot
        assert shown.run is not None
        assert (shown.run_id, shown.run.name, shown.run.alive) == (first.run_id, first.name, False)
        assert shown.verdict is Verdict.STOPPED
        assert shown.run.exit is not None
        assert shown.run.exit.by == "ops1"
        assert shown.at <= live.at
        assert [status.state for status in shown.stages] == [status.state for status in before.stages]
        assert shown.stages[0].why == "nothing ran"
        took = [status.took_s for status in before.stages[1:]]
        assert [status.took_s for status in shown.stages[1:]] == pytest.approx(took, abs=0.2)
        assert shown.stages[2].evidence == before.stages[2].evidence
        assert all(status.state in (StageState.DONE, StageState.SKIPPED) for status in shown.stages)
        assert (shown.progress.step or 0) >= 12
        assert len(past.series["tok_s"]) >= 2
        assert all(point.at <= shown.at + 1.0 for point in past.series["tok_s"].points)
        assert [gpu.index for gpu in shown.gpus.gpus] == list(range(8))
        assert all(gpu.used_bytes and gpu.peak_bytes for gpu in shown.gpus.gpus)
        assert len(past.series["gpu_memory:0"]) >= 1

        assert shown.log.state is LogState.FOLLOWING
        assert shown.run.log_path is not None
        assert shown.log.size_bytes == os.path.getsize(shown.run.log_path)
        last = past.log.line(past.log.end - 1)
        assert last is not None
        assert last.text in Path(shown.run.log_path).read_text()

        os.unlink(shown.run.log_path)
        gone = (await engine.view(first.name)).snapshot.log
        assert gone.state is LogState.DELETED
        assert shown.run.log_path in gone.detail
        plan = await asyncio.wait_for(past.plan("stop"), 20.0)
        assert plan.replaced_id == second.run_id, "what is asked of the target is asked of what lives"
        await engine.execute(plan)
        await until_async(lambda: engine.snapshot.run is not None and engine.snapshot.run.alive is False, 60.0, "gone")
