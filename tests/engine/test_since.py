"""Where in a log that begins which was written since a moment, by the dates of its lines."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.engine import since as module
from console.engine.since import Since, since
from console.host import loglines
from console.state.stretch import Identity, Stretch, cut

_NOW = 10_000.0


class Looks:
    """Looks into a file as the host does; counts them."""

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0

    async def __call__(self, offset: int, length: int, back: bool) -> Stretch:
        self.count += 1
        operation = {"path": str(self.path), "offset": offset, "length": length, "back": back, "align": not back}
        got = loglines.lines(operation)
        lines, breaks, before = cut([tuple(each) for each in got["pieces"]], got["raw"].encode("latin-1"), 0.0)
        return Stretch(
            lines=tuple(lines), breaks=tuple(breaks), before=tuple(before), begin=got["begin"], end=got["scanned_to"],
            size_bytes=got["size"], identity=Identity(got["dev"], got["inode"]),
        )  # fmt: skip


def _dated(text: str) -> float | None:
    return float(text[1:].split()[0]) if text.startswith("@") else None


def _written(path: Path, times: list[int | None], width: int) -> list[tuple[int, int | None]]:
    """Write a line for each time, None being one without; return where each begins."""
    lines = [("" if at is None else f"@{at} ") + "x" * (1 + (7 * n) % width) + "\n" for n, at in enumerate(times)]
    path.write_text("".join(lines))
    starts = accumulate(map(len, lines), initial=0)
    return list(zip(starts, times, strict=False))


_TIMES = st.lists(
    st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=120
)  # by how much it is newer than the one before, whether it says so


@given(_TIMES, st.integers(0, 100), st.integers(1, 60))
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
async def test_it_is_where_reading_the_whole_log_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: list[tuple[int, bool]], at: int, width: int
) -> None:
    monkeypatch.setattr(module, "LOOK_BYTES", 64)
    monkeypatch.setattr(module, "TAIL_BYTES", 128)
    clock, said = 0, list[int | None]()
    for step, says in times:
        clock += step
        said.append(clock if says else None)
    placed = _written(tmp_path / "log", said, width)

    found = await since(Looks(tmp_path / "log"), _dated, at, _NOW)

    dated = [(start, when) for start, when in placed if when is not None]
    newer = [start for start, when in dated if when >= at]
    if found is None:
        tail = [when for start, when in placed if start >= (tmp_path / "log").stat().st_size - 128]
        assert tail.count(None) == len(tail), "only a log whose end bears no date has none"
    elif newer:
        assert found == Since(newer[0])
    else:
        assert found.undated_below_at == dated[-1][1]
        below = [start for start, _ in placed if start > dated[-1][0]]
        assert found.offset == (below[0] if below else (tmp_path / "log").stat().st_size)


async def test_a_large_log_takes_a_few_looks(tmp_path: Path) -> None:
    placed = _written(tmp_path / "log", [n // 7 for n in range(60_000)], 90)
    looks = Looks(tmp_path / "log")

    found = await since(looks, _dated, 6_000, 30_000.0)

    assert found == Since(placed[42_000][0])
    assert looks.count < 12


async def test_dates_of_another_zone_tell_nothing(tmp_path: Path) -> None:
    _written(tmp_path / "log", [int(_NOW) + 3600], 9)

    assert await since(Looks(tmp_path / "log"), _dated, 5, _NOW) is None


async def test_a_hole_without_dates_is_as_old_as_the_line_above_it(tmp_path: Path) -> None:
    times: list[int | None] = [*range(1000), *[None] * 10_000, *range(1000, 2000)]
    placed = _written(tmp_path / "log", times, 90)

    for at, line in ((500, 500), (999, 999), (1000, 11_000), (1001, 11_001)):
        assert await since(Looks(tmp_path / "log"), _dated, at, _NOW) == Since(placed[line][0])
