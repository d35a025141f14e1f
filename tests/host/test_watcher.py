"""When the watcher looks around: soon after what it may have missed, and else along with what wakes it up anyway."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.host import deathwatch, watcher


@pytest.fixture
def eyes(tmp_path: Path) -> Iterator[watcher.Watcher]:
    spec = {"target": "t", "log": "", "gpus": {"simulated": str(tmp_path / "gpus")}}
    operation = {"spec": spec, "state_dir": str(tmp_path), "interval_s": 300.0}
    made = watcher.Watcher(operation, lambda event: True, lambda event: True)
    yield made
    made.close()


@pytest.fixture
def looks(eyes: watcher.Watcher, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """One entry for each look around from now on; nothing is due by itself."""
    eyes.step(set())
    made: list[float] = []
    monkeypatch.setattr(eyes, "_look_around", made.append)
    monkeypatch.setattr(eyes, "_dirty", False)
    return made


def test_where_somebody_died_while_it_looked_it_looks_again_soon(
    eyes: watcher.Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deathwatch.DeathWatch, "watch", lambda self, wanted: True)

    eyes.step(set())

    assert eyes.due() <= time.monotonic() + watcher.LOOK_S


@pytest.mark.parametrize(("sample_due", "looked"), [(True, 1), (False, 0)])
def test_look_that_is_nearly_due_is_taken_along_with_a_sample(
    eyes: watcher.Watcher, looks: list[float], monkeypatch: pytest.MonkeyPatch, sample_due: bool, looked: int
) -> None:
    monkeypatch.setattr(watcher, "_EARLY_S", 1000.0)
    monkeypatch.setattr(eyes._gpus, "due", lambda: float("-inf") if sample_due else float("inf"))
    monkeypatch.setattr(eyes, "_look_at", time.monotonic() + 500.0)

    eyes.step(set())

    assert len(looks) == looked


def test_look_that_is_not_due_yet_waits_for_the_next_sample(
    eyes: watcher.Watcher, looks: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eyes._gpus, "due", lambda: float("-inf"))
    monkeypatch.setattr(eyes, "_look_at", time.monotonic() + 1000.0)

    eyes.step(set())

    assert looks == []


class Clock:
    """A clock that stands until it is told."""

    def __init__(self) -> None:
        self.now = time.monotonic()

    def monotonic(self) -> float:
        return self.now

    time = monotonic


@pytest.mark.parametrize("first_s", [0.04, 0.3, 0.7, 0.95])
def test_processes_are_soon_looked_at_along_with_the_samples_however_both_began(
    eyes: watcher.Watcher, monkeypatch: pytest.MonkeyPatch, first_s: float
) -> None:
    clock, came = Clock(), [False]
    looked: list[float] = []
    sampled: list[float] = []
    monkeypatch.setattr(watcher, "time", clock)
    monkeypatch.setattr(eyes, "_look_around", lambda now: None)
    monkeypatch.setattr(eyes, "_poll_gpus", lambda: came[0])
    monkeypatch.setattr(eyes, "_sample_processes", lambda: looked.append(clock.now))
    eyes.interval_s, began = 1.0, clock.now
    eyes.step(set())
    sample_at = began + first_s

    while clock.now < began + 8.0:
        clock.now = min(sample_at, eyes._procs_at)
        came[0] = clock.now == sample_at
        if came[0]:
            sampled.append(sample_at)
            sample_at += 1.0
        eyes.step(set())

    late = [when for when in looked if when > began + 3.0]
    assert len(late) >= 5
    assert set(late) <= set(sampled)
    assert max(b - a for a, b in itertools.pairwise(looked)) < 1.2


def test_calm_look_around_after_a_sample_waits_for_the_next_one_but_one(
    eyes: watcher.Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eyes._gpus, "due", lambda: float("inf"))
    alone_s = eyes._pause_s(time.monotonic(), told=True)
    monkeypatch.setattr(eyes._gpus, "due", lambda: float("-inf"))

    along_s = eyes._pause_s(time.monotonic(), told=True)

    assert alone_s == watcher.THOROUGH_S
    assert watcher.THOROUGH_S < along_s < watcher.THOROUGH_S + watcher._EARLY_S
