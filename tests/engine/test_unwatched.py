"""Runs that began, trained and ended while no console was there, and a console that is opened afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from console.config import Target
from console.demo.host import NAME
from console.engine.book import Book
from console.engine.logreader import LogReader
from console.engine.unwatched import MOST_RUNS, Unwatched
from console.history.entry import Entry, entry
from console.history.ledger import opened
from console.history.samples import Curves
from console.history.unwatched import gpu_digests, rebuilt
from console.model import Accepted
from console.protocol import ExitRecord, Growth, LogIdent
from console.reasons import ConsoleError, Exit, Reason
from console.state.stretch import Identity, Stretch
from tests.engine.consoles import console, quick_target
from tests.history.records import PLACE, TARGET, ended, record
from tests.waiting import until_async

_STEP = re.compile(r"step\s+(\d+)/.*?loss ([\d.]+)")


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    with quick_target(tmp_path / "demo", speed=20.0) as made:
        yield made


async def _asked(target: Target, ledger: Path, action: str) -> tuple[Accepted, str]:
    """Hand a request over and leave."""
    async with console(target, ledger=ledger) as engine:
        plan = await engine.plan(action)
        return await engine.execute(plan), plan.log_path


def _steps(log: Path) -> list[tuple[int, float]]:
    text = log.read_text() if log.exists() else ""
    return [(int(step), float(loss)) for step, loss in _STEP.findall(text)]


def _size(log: Path) -> int:
    return log.stat().st_size


async def test_what_a_run_came_to_is_known_though_nobody_watched_it(target: Target, tmp_path: Path) -> None:
    run, path = await _asked(target, tmp_path / "gone.sqlite3", "restart")
    log = Path(path)
    await until_async(lambda: len(_steps(log)) > 75, 60.0, "it trains while nobody is there")
    await _asked(target, tmp_path / "gone.sqlite3", "stop")

    async with console(target, ledger=tmp_path / "fresh.sqlite3") as engine:

        def is_over() -> bool:
            run = engine.snapshot.run
            return run is not None and run.alive is False and engine.can_look

        await until_async(is_over, 60.0, "it is over, and its log can be read")

        def end_was_read() -> bool:
            with opened(tmp_path / "fresh.sqlite3") as book:
                row = book.entry(book.place_of(NAME) or "", NAME, run.run_id)
            return row is not None and row.stepped

        await until_async(end_was_read, 60.0, "it has noted by itself what the log's end proves")

        async def is_read() -> bool:
            return (await engine.archive.run(run.run_id))[0].log_size is not None

        await until_async(is_read, 60.0, "its log is read")
        row, curves = await engine.archive.run(run.run_id)

    last, loss = _steps(log)[-1]
    assert row.stepped
    assert row.last_step == last
    assert row.last_loss == pytest.approx(loss)
    assert row.steady_tok_s is not None
    assert set(row.peaks) == {str(index) for index in range(8)}
    assert curves.digests["tok_s"].count > 50
    assert {"memory:target", "busy:drafter", "power:drafter"} <= set(curves.digests)
    assert row.log_size == _size(log)


# What is told of it, on records and notes made by hand

_NOTES = [
    Growth(k="gpu", bt=100.0, gpus=[[0, 5, 50, 400_000], [1, 9, 0, 90_000]], held=[]),
    Growth(k="gpu", bt=110.0, gpus=[[0, 70, 90, 600_000], [1, 90, 10, 100_000], [2, 999, 99, 1]], held=[0, 1]),
    Growth(k="gpu", bt=120.0, gpus=[[0, 60, None, None], [1, 40, 30, 300_000]], held=[0, 1]),
    Growth(k="log", bt=120.0, size=5),
]


def test_of_the_gpus_only_those_count_that_the_run_held_then() -> None:
    made = replace(record(1), accepted_bt=90.0, accepted_wall=1090.0, exit=ExitRecord(code=0, ended_wall=1130.0))

    row, _ = rebuilt(made, _NOTES, {})

    assert row.peaks == {"0": 70, "1": 90}
    assert row.log_size == 0


def test_curves_are_told_by_role_since_the_first_step() -> None:
    digests = gpu_digests(_NOTES, {"target": (0,), "drafter": (1,)}, 1108.0, lambda bt: bt + 1000.0)

    def values(name: str) -> list[tuple[float, float]]:
        return [(bucket.index * digests[name].width_s, bucket.mean) for bucket in digests[name].buckets]

    assert values("memory:target") == [(2.0, 70.0), (12.0, 60.0)]
    assert values("busy:target") == [(2.0, 90.0)]
    assert values("power:drafter") == [(2.0, 100.0), (12.0, 300.0)]


def test_a_run_that_was_watched_keeps_what_was_seen_and_gets_its_gpus() -> None:
    made = replace(record(1), accepted_bt=90.0, accepted_wall=1090.0, exit=ExitRecord(code=0, ended_wall=1130.0))
    known = Entry(id="r-1", stepped=True, first_step_wall=1108.0, steady_tok_s=21_000.0)

    row, curves = rebuilt(made, _NOTES, {}, known=known)

    assert row.steady_tok_s is None, "the ledger keeps what it has where nothing is said"
    assert row.stepped is False
    assert set(curves.digests) == {"memory:all", "busy:all", "power:all"}
    assert curves == Curves(digests=curves.digests)


# Runs that could not be looked at


class _NoLogs:
    """A reader that finds no log; every look fails while `fails` holds."""

    def __init__(self, fails: Exception) -> None:
        self.fails: Exception = fails

    async def lines(self, *_: object, **__: object) -> object:
        raise self.fails


async def test_runs_that_could_not_be_looked_at_are_named_until_they_were(tmp_path: Path) -> None:
    reader = _NoLogs(ConsoleError(Reason.NO_LINK, "cut", Exit.LINK))

    async def notes(_run: str) -> list[Growth]:
        return []

    looks = Unwatched(cast(LogReader, reader), Book(tmp_path / "ledger.sqlite3"), TARGET, Target(), notes)
    over = [ended(number, log=LogIdent(path=f"/log{number}")) for number in range(1, MOST_RUNS + 3)]
    everything = {each.id for each in over}

    assert await looks.update(PLACE, [*over, record(9)]) == everything, "one that lives is not to be looked at"
    reader.fails = ConsoleError(Reason.LOG_UNREADABLE, "No such file", Exit.REFUSED)
    assert await looks.update(PLACE, over) == {"r-1", "r-2"}, "the newest first"
    assert await looks.update(PLACE, over) == frozenset()


async def test_of_a_ledger_that_can_not_be_used_no_run_counts_as_looked_at(tmp_path: Path) -> None:
    async def notes(_run: str) -> list[Growth]:
        return []

    book = Book(tmp_path)  # a directory
    looks = Unwatched(cast(LogReader, _NoLogs(OSError())), book, TARGET, Target(), notes)

    assert await looks.update(PLACE, [ended(1)]) == {"r-1"}


class _OneLog:
    """A reader of one log's bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    async def lines(self, *_: object, **__: object) -> Stretch:
        return Stretch(identity=Identity(dev=1, inode=7), size_bytes=len(self.data), begin=0, end=0)

    async def raw(self, _place: object, start: int, count: int) -> bytes:
        return self.data[start : start + count]


@pytest.mark.parametrize(("written_to", "last"), [(95, 95), (80, 80), (40, 80)])
async def test_what_a_run_did_between_being_watched_and_its_end_is_read_afterwards(
    tmp_path: Path, written_to: int, last: int
) -> None:
    log = "".join(f"step {step}/900 | loss {2 - step / 1000:.4f} | tok/s 20,000\n" for step in range(1, written_to + 1))
    log += "Saving checkpoint at step 90\n" if written_to > 90 else ""

    async def notes(_run: str) -> list[Growth]:
        return []

    book = Book(tmp_path / "ledger.sqlite3")
    replaced = ended(1, log=LogIdent(path="/log1"))
    watched = replace(entry(replaced), stepped=True, last_step=80, last_loss=1.92, steady_tok_s=21_000.0)
    await book.work(lambda ledger: ledger.record(PLACE, TARGET, [watched], {}))
    looks = Unwatched(cast(LogReader, _OneLog(log.encode())), book, TARGET, Target(), notes)

    assert await looks.update(PLACE, [replaced]) == frozenset()

    row = await book.work(lambda ledger: ledger.entry(PLACE, TARGET, replaced.id))
    assert row is not None
    assert (row.last_step, row.steady_tok_s) == (last, 21_000.0), "the speed is that which a console has seen"
    assert row.last_loss == pytest.approx(2 - last / 1000)
    assert row.checkpoint_step == (90 if written_to > 90 else None)
    assert row.log_size == len(log)
