"""Two gigabytes of log behind sshd and a container: its first line costs what that of a small one costs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from console.engine import Engine
from console.model import Verdict
from console.state.logquery import Place, typed
from tests.lab.training import Training, reach
from tests.waiting import until_async

_SIZE = 2 << 30


def _written(path: Path) -> None:
    """A log with its lines at both ends and a hole between them, as copytruncate leaves it."""
    last = b"\n" + b"".join(b"last %d\n" % number for number in range(900))
    with path.open("wb") as file:
        file.write(b"".join(b"first %d\n" % number for number in range(1000)))
        file.truncate(_SIZE - len(last))
        file.seek(_SIZE - len(last))
        file.write(last)


async def test_both_ends_of_two_gigabytes_are_read_at_once_and_all_of_it_is_searched(training: Training) -> None:
    await asyncio.to_thread(training.restart)
    path = "/workspace/train_big.log"
    await asyncio.to_thread(_written, training.container.path(path))
    async with training.engine() as engine:
        await reach(engine, lambda now: now.verdict == Verdict.STEPPING)
        await until_async(lambda: engine.can_look, 60, what="the log's connection")
        place = Place(path=path)

        top = await engine.logs.lines(place, 0, 4000)
        end = await engine.logs.lines(place, -1, 4000, back=True)
        hit = await _nearest(engine, place, "first 999", -1)

        assert [line.text for line in top.lines[:2]] == ["first 0", "first 1"]
        assert end.lines[-1].text == "last 899"
        assert end.size_bytes == _SIZE
        assert hit == "first 999"
        await reach(engine, lambda now: now.verdict == Verdict.STEPPING)


async def _nearest(engine: Engine, place: Place, text: str, offset: int) -> str:
    while True:
        found = await engine.logs.matching(place, typed(text), offset, back=True, limit=1)
        if found.lines:
            return found.lines[0].text
        assert 0 < found.end != found.begin
        offset = found.end
