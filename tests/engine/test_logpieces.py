"""What is read of a log that is over: asked for at once, bounded, and as it stands in the file."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.config import Target
from console.engine.logpieces import HEAD_BYTES, PLACE_BYTES, PLACES, TAIL_BYTES, ranges, read_pieces
from console.link.link import Link
from console.reasons import ConsoleError
from console.state.logquery import Place
from tests.engine.consoles import console, quick_target
from tests.waiting import until_async

_MIB = 1 << 20


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    with quick_target(tmp_path / "demo", speed=8.0) as made:
        yield made


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Of which file each question over the bulk connection is, and how many of that file's were open then."""
    seen: list[tuple[str, int]] = []
    ask, is_open = Link.bulk_request, Counter[str]()

    async def counted(link: Link, operation: Any, *, timeout_s: float) -> Any:
        path = getattr(operation, "path", "")
        is_open[path] += 1
        seen.append((path, is_open[path]))
        try:
            return await ask(link, operation, timeout_s=timeout_s)
        finally:
            is_open[path] -= 1

    monkeypatch.setattr(Link, "bulk_request", counted)
    return seen


async def test_long_log_takes_three_questions_at_once_whatever_its_size(
    target: Target, tmp_path: Path, asked: list[tuple[str, int]]
) -> None:
    data = random.Random(7).randbytes(5 * _MIB)
    (tmp_path / "long.log").write_bytes(data)
    place, gone = Place(path=str(tmp_path / "long.log")), Place(path=str(tmp_path / "none.log"))

    async with console(target, ledger=tmp_path / "ledger.sqlite3") as engine:
        await until_async(lambda: engine.can_look, 60.0, "the log's connection is up")
        found = await read_pieces(engine.logs, place, len(data))
        questions = [together for path, together in asked if path == place.path]
        ends = await read_pieces(engine.logs, place, len(data), ends_alone=True)
        with pytest.raises(ConsoleError, match="No such file"):
            await read_pieces(engine.logs, gone, len(data))

    assert questions == [1, 2, 3]
    assert all(piece == data[start : start + len(piece)] for start, piece in found)
    assert [len(piece) for _, piece in found] == [HEAD_BYTES, *[PLACE_BYTES] * PLACES, TAIL_BYTES]
    assert found == sorted(found)
    assert found[-1][0] + len(found[-1][1]) == len(data)
    assert ends == [found[0], found[-1]]


@pytest.mark.parametrize("size", [0, 1, HEAD_BYTES, 1_000_000, _MIB, 2_000_000, 50 << 30])
def test_however_long_a_log_is_what_is_read_of_it_is_bounded(size: int) -> None:
    whole, between = ranges(size)

    assert sum(end - start for start, end in whole) <= HEAD_BYTES + TAIL_BYTES + PLACES * PLACE_BYTES
    assert all(0 <= start < end <= size and end - start <= _MIB for start, end in whole)
    if size:
        assert (whole[0][0], whole[-1][1]) == (0, size)
    gaps = [(a, b) for (_, a), (b, _) in itertools.pairwise(whole) if a != b]
    assert gaps == ([between] if between is not None else [])
