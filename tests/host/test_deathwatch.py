"""Whose end is told at once, and what becomes of who dies before he could be watched."""

import errno
import select
import subprocess
from collections.abc import Iterator

import pytest

from console.host import deathwatch, procfs
from tests.waiting import until


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process
        process.kill()


@pytest.fixture
def deaths() -> Iterator[deathwatch.DeathWatch]:
    made = deathwatch.DeathWatch()
    yield made
    made.close()


def ident_of(process: "subprocess.Popen[bytes]") -> deathwatch.Ident:
    stat = procfs.read_stat(process.pid)
    assert stat is not None
    return process.pid, stat.start


def end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


def test_death_is_heard_once(deaths: deathwatch.DeathWatch, sleeper: subprocess.Popen[bytes]) -> None:
    assert not deaths.watch({ident_of(sleeper)})
    (descriptor,) = deaths.fds()
    assert not deaths.heard(set())

    end(sleeper)

    ready, _, _ = select.select([descriptor], [], [], 20)
    assert deaths.heard(set(ready))
    assert list(deaths.fds()) == []
    assert not deaths.heard(set(ready))


def test_who_is_wanted_no_more_is_let_go(deaths: deathwatch.DeathWatch, sleeper: subprocess.Popen[bytes]) -> None:
    deaths.watch({ident_of(sleeper)})

    assert not deaths.watch(set())

    assert list(deaths.fds()) == []


def test_who_died_before_being_watched_is_told(deaths: deathwatch.DeathWatch, sleeper: subprocess.Popen[bytes]) -> None:
    ident = ident_of(sleeper)
    end(sleeper)

    assert deaths.watch({ident})

    assert list(deaths.fds()) == []


def test_without_pidfds_a_death_is_seen_by_looking(
    deaths: deathwatch.DeathWatch, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(pid: int, start: int) -> None:
        raise OSError(errno.ENOSYS, "not here")

    monkeypatch.setattr(procfs, "pidfd_of", lacking)
    assert not deaths.watch({ident_of(sleeper)})
    assert not deaths.missed()

    end(sleeper)

    until(deaths.missed)


def test_dead_ones_of_a_run_by_hand_are_not_news_again() -> None:
    run = {"main": {"pid": 7, "start": 1}, "pids": [{"pid": 8, "start": 2}]}

    assert deathwatch.whose_death_is_news([], [run]) == {(8, 2)}


def test_main_process_is_watched_beyond_the_first_of_a_run_by_hand() -> None:
    pids = [{"pid": pid, "start": 1} for pid in range(100, 200)]

    wanted = deathwatch.whose_death_is_news([], [{"main": pids[-1], "pids": pids}])

    assert wanted == {(pid, 1) for pid in range(100, 132)} | {(199, 1)}
