"""A console that is opened when a run is hours old: what it reads of the past is no word on the present."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from console.demo.host import NAME, DemoHost
from console.engine import Engine, following, logflow, outline
from console.engine.growth import GrowthIndex
from console.headless import session
from console.model import LogState, Stage, StageState, Verdict
from console.state import events
from tests.waiting import until_async

_AGO_S = 3600.0


@pytest.fixture
def host(tmp_path: Path) -> object:
    with DemoHost(tmp_path / "demo", speed=20.0, load_s=4.0) as made:
        yield made


async def test_opening_a_long_log_late_never_calls_a_run_stalled(
    host: DemoHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Engine(NAME, host.target, operator="ops1", origin="test")
    running = asyncio.create_task(first.run())
    await until_async(lambda: first.has_word, 60.0, "the host's first word")
    await first.execute(await first.plan("restart"))
    await until_async(lambda: (first.snapshot.progress.step or 0) > 60, 60.0, "the log is long")
    assert first.snapshot.stages[-1].stage is Stage.STEPPING
    assert first.snapshot.stages[-1].state is StageState.DONE
    head = _end_of_step(first, 8)
    running.cancel()
    await asyncio.wait([running])
    _as_if_long(monkeypatch, head)
    late = Engine(NAME, host.target, operator="ops2", origin="test")
    seen = _verdicts(late, monkeypatch)

    watching = asyncio.create_task(late.run())
    found = await session.settled(late, asyncio.get_running_loop().time() + 60.0)

    assert found.log.caught_up
    assert found.log.state is LogState.FOLLOWING
    assert found.verdict is Verdict.STEPPING
    assert Verdict.STALLED not in seen
    assert seen[-1] is Verdict.STEPPING
    assert Verdict.RUNNING in seen, "the head was read and nothing judged by it: else this proves nothing"
    await late.execute(await late.plan("stop"))
    await until_async(lambda: late.snapshot.run is not None and late.snapshot.run.alive is False, 60.0, "gone")
    watching.cancel()
    await asyncio.wait([watching])


def _end_of_step(engine: Engine, step: int) -> int:
    """Return the place in the log behind the line of this step."""
    lines = [entry for number in range(engine.log.end) if (entry := engine.log.line(number)) is not None]
    found = next(
        index for index, entry in enumerate(lines) if f"step {step}" in entry.text or f"{step:>6}" in entry.text
    )
    after = next(entry for entry in lines[found + 1 :] if entry.offset is not None)
    assert after.offset is not None
    return after.offset


def _as_if_long(monkeypatch: pytest.MonkeyPatch, head: int) -> None:
    """Have the log's head, its middle and its end read each for itself, and the head be an hour old."""
    monkeypatch.setattr(outline, "HEAD_BYTES", head)
    for module in (following, logflow):
        monkeypatch.setattr(module, "TAIL_BYTES", 1024)
    monkeypatch.setattr("console.state.logword.YOUNG_S", 0.0)
    noted = GrowthIndex.written_bt

    def written_bt(index: GrowthIndex, end_offset: int) -> float | None:
        bt = noted(index, end_offset)
        return bt - _AGO_S if bt is not None and end_offset <= head else bt

    monkeypatch.setattr(GrowthIndex, "written_bt", written_bt)


def _verdicts(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[Verdict]:
    """Note the verdict after each single event, quicker than any face could ask."""
    seen: list[Verdict] = []
    feed = engine._feed

    def noting(event: events.Event) -> None:
        feed(event)
        engine._snapshot = None
        seen.append(engine.snapshot.verdict)

    monkeypatch.setattr(engine, "_feed", noting)
    monkeypatch.setattr(engine._following, "_feed", noting)
    return seen
