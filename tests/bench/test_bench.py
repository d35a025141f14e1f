"""Every measurement still runs, with sizes that measure nothing; and the table says what it should."""

from pathlib import Path

import pytest

from tests.bench.__main__ import MEASUREMENTS, measure
from tests.bench.sizes import TINY
from tests.bench.table import Row, percentile, table


@pytest.mark.parametrize("name", sorted(MEASUREMENTS))
def test_measurement_runs_and_measures_something(name: str, tmp_path: Path) -> None:
    rows = measure(name, TINY, tmp_path / "lab")

    assert rows
    assert all(row.values or row.why_not for row in rows)
    assert table(rows).count("\n") == len(rows) + 1


def test_number_at_the_budget_is_over_it() -> None:
    assert Row("x", [0.1, 0.15], budget=0.15).is_over is True
    assert Row("x", [0.1, 0.149], budget=0.15).is_over is False
    assert Row("x", [0.1]).is_over is None


def test_what_could_not_be_measured_says_why() -> None:
    row = Row("death in a container", [], budget=0.15, why_not="not root")

    assert row.is_over is None
    assert "not measured: not root" in table([row])


def test_p95_of_twenty_is_the_nineteenth() -> None:
    assert percentile([float(n) for n in range(1, 21)], 0.95) == 19.0
    assert percentile([3.0], 0.95) == 3.0


def test_table_says_the_ratio_to_the_peer() -> None:
    drawn = table([Row("death", [0.06, 0.06], peer_name="pidfd", peer=[0.003], budget=0.05)])

    assert "20.0x" in drawn
    assert "OVER" in drawn
    assert "60 ms" in drawn
