"""Runs that others started: found when they come, without looking through everybody because of anybody."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from console.host import background, cmdlines, strangers
from tests.waiting import until

_SLEEP = "import time\nprint(flush=True)\ntime.sleep(600)\n"

Start = Callable[[Path], "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    started = []

    def run(script: Path) -> subprocess.Popen[bytes]:
        script.write_text(_SLEEP)
        child = subprocess.Popen([sys.executable, "-I", str(script)], stdout=subprocess.PIPE)
        started.append(child)
        assert child.stdout is not None
        child.stdout.readline()
        return child

    yield run
    for child in started:
        child.kill()
        child.communicate()


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for each look through all processes."""
    looks: list[None] = []
    job = background.Job

    def counted(*given: Any) -> background.Job:
        looks.append(None)
        return job(*given)

    monkeypatch.setattr(background, "Job", counted)
    return looks


class Here:
    """Strangers after their first look, and who is new from then on."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.script = folder / f"train_{time.monotonic_ns()}.py"
        spec = {"match": [self.script.name], "log": str(folder / "{name}.log"), "cwd": str(folder)}
        self.strangers = strangers.Strangers(spec)
        self.new: set[int] = set()
        newcomers = self.strangers._newcomers
        monkeypatch.setattr(newcomers, "may_be_runs", lambda now, accounted: bool(self.new))
        self.look()
        monkeypatch.setattr(newcomers, "possible", self.new)

    def look(self) -> None:
        """Look until there is nothing more to wait for."""
        # A busy machine may have taken longer for the look before than the pause to this one.
        self.strangers.start(max(self.strangers._next_at, time.monotonic()), set(), list)
        until(lambda: self.strangers.take() or self.strangers.fd < 0)


@pytest.fixture
def here(tmp_path: Path, jobs: list[None], monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    made = Here(tmp_path, monkeypatch)
    assert made.strangers.known
    assert made.strangers.runs == []
    jobs.clear()
    monkeypatch.setattr(made.strangers, "_whole_at", float("inf"))
    yield made
    made.strangers.close()


def test_run_that_comes_is_found(here: Here, start: Start) -> None:
    child = start(here.script)
    here.new.add(child.pid)

    here.look()

    assert [run["main"]["pid"] for run in here.strangers.runs] == [child.pid]


def test_newcomer_that_is_none_costs_no_look_at_everybody(
    here: Here, start: Start, jobs: list[None], tmp_path: Path
) -> None:
    here.new.add(start(tmp_path / "another.py").pid)

    here.look()

    assert (jobs, here.strangers.runs) == ([], [])


def test_without_cat_all_are_looked_at(here: Here, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cmdlines, "_CATS", ("/nowhere/cat",))
    child = start(here.script)
    here.new.add(child.pid)

    here.look()

    assert [run["main"]["pid"] for run in here.strangers.runs] == [child.pid]


def test_command_line_that_hangs_is_told_and_all_are_looked_at_next(
    here: Here, start: Start, jobs: list[None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o700)
    monkeypatch.setattr(cmdlines, "_CATS", (str(slow),))
    monkeypatch.setattr(strangers, "TIMEOUT_S", 0.05)
    child = start(here.script)
    here.new.add(child.pid)

    here.look()
    assert "gave no answer in time" in here.strangers.trouble
    monkeypatch.setattr(strangers, "TIMEOUT_S", 60.0)
    here.look()

    assert (len(jobs), here.strangers.trouble) == (1, "")
    assert [run["main"]["pid"] for run in here.strangers.runs] == [child.pid]
