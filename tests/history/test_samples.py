"""Curves in the ledger: bounded, merged whoever wrote first, and never in the way of the rows."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from console.history import ledger
from console.history.entry import Observed, entry
from console.history.samples import Curves, packed, unpacked
from console.state.digest import Digester
from console.state.steadiness import Window
from tests.history.records import PLACE, TARGET, record


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


def curves(start_s: int, end_s: int, value: float = 21_000.0) -> Curves:
    digester = Digester()
    for second in range(start_s, end_s):
        digester.add(second, value, second)
    return Curves(digests={"tok_s": digester.digest}, steady=Window(float(end_s), (value,)))


def keep(path: Path, number: int, some: Curves, target: str = TARGET) -> None:
    with ledger.opened(path) as book:
        book.record(PLACE, target, [entry(record(number))], {f"r-{number}": some})


def kept(path: Path, number: int, target: str = TARGET) -> Curves:
    with ledger.opened(path) as book:
        return book.curves(PLACE, target, f"r-{number}")


def test_curves_come_back_as_they_were_written(path: Path) -> None:
    keep(path, 1, curves(0, 100))

    assert kept(path, 1) == curves(0, 100)


def test_two_consoles_that_saw_different_parts_make_one_curve(path: Path) -> None:
    keep(path, 1, curves(0, 60))

    keep(path, 1, curves(40, 100))

    assert kept(path, 1) == curves(0, 100)


def test_what_both_saw_counts_once(path: Path) -> None:
    for _ in range(3):
        keep(path, 1, curves(0, 60))

    assert kept(path, 1).digests["tok_s"].count == 60


def test_the_oldest_runs_samples_make_room_and_their_rows_stay(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = len(packed(curves(0, 300)))
    monkeypatch.setattr(ledger, "TARGET_SAMPLE_BYTES", 3 * one)
    keep(path, 1, curves(0, 300), "ct201")

    for number in (2, 1, 3, 4, 5):
        keep(path, number, curves(0, 300))

    with ledger.opened(path) as book:
        rows = [row.id for row in book.entries(PLACE, TARGET)]
    assert [bool(kept(path, number).digests) for number in (1, 2, 3, 4, 5)] == [False, False, True, True, True]
    assert kept(path, 1, "ct201").digests
    assert rows == ["r-5", "r-4", "r-3", "r-2", "r-1"]


def test_samples_of_all_targets_are_bounded_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "SAMPLE_BYTES", 2 * len(packed(curves(0, 300))))

    for number, target in ((1, "ct200"), (2, "ct201"), (3, "ct202")):
        keep(path, number, curves(0, 300), target)

    left = [bool(kept(path, number, target).digests) for number, target in ((1, "ct200"), (2, "ct201"), (3, "ct202"))]
    assert left == [False, True, True]


def test_a_long_run_of_many_curves_takes_less_than_the_bound_allows_for() -> None:
    rng = random.Random(3)
    digests = {}
    for name in (
        "tok_s",
        "loss",
        "queue",
        *(f"{what}:{role}" for what in ("memory", "busy", "power") for role in "td"),
    ):
        digester = Digester()
        for step in range(20_000):
            digester.add(step * 2.0, rng.gauss(21_000, 300), step)
        digests[name] = digester.digest

    size = len(packed(Curves(digests=digests)))

    assert size * 100 < ledger.TARGET_SAMPLE_BYTES


def test_a_damaged_blob_is_no_curve_and_no_error() -> None:
    whole = packed(curves(0, 10))

    assert unpacked(whole) == curves(0, 10)
    for bad in (b"", b"nonsense", whole[:-5] + b"xxxxx", packed(Curves(version=99))):
        assert unpacked(bad) == Curves()


def test_nothing_new_is_no_change(path: Path) -> None:
    with ledger.opened(path) as book:
        book.record(PLACE, TARGET, [entry(record(1)), entry(record(2))])
        newest = max(row.seq for row in book.entries(PLACE, TARGET))

        book.record(PLACE, TARGET, [entry(record(1)), entry(record(2), Observed(stepped=True))])

        assert [row.id for row in book.entries(PLACE, TARGET, since=newest)] == ["r-2"]


def test_note_of_an_operator_stays_when_the_record_is_written_again(path: Path) -> None:
    with ledger.opened(path) as book:
        book.record(PLACE, TARGET, [entry(record(1, note="asked for"))])
        assert book.annotate(PLACE, TARGET, "r-1", "found later")
        assert not book.annotate(PLACE, TARGET, "r-9", "nobody")

        book.record(PLACE, TARGET, [entry(record(1, note="asked for", state="ended"))])

        assert [(row.note, row.remark) for row in book.entries(PLACE, TARGET)] == [("asked for", "found later")]


_WRITER = """
import sys
from pathlib import Path
from console.history import ledger
from console.history.entry import entry
from tests.history.records import PLACE, TARGET, record
from tests.history.test_samples import curves
ledger.BUSY_S = 60.0  # a busy disk may keep one of them waiting for long
first, path = int(sys.argv[1]), Path(sys.argv[2])
for second in range(first, first + 20):
    with ledger.opened(path) as book:
        book.record(PLACE, TARGET, [entry(record(1)), entry(record(100 + second))], {"r-1": curves(second, second + 1)})
"""


def test_two_processes_that_write_the_same_run_at_once_lose_nothing(path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(first), str(path)], stderr=subprocess.PIPE, text=True)
        for first in (0, 20)
    ]

    complaints = [writer.communicate(timeout=120)[1] for writer in writers]

    with ledger.opened(path) as book:
        seqs = [row.seq for row in book.entries(PLACE, TARGET)]
    assert complaints == ["", ""]
    assert kept(path, 1).digests == curves(0, 40).digests
    assert len(seqs) == len(set(seqs)) == 41
