"""When the watcher looks around: soon after what it may have missed, and else along with what wakes it up anyway."""

from __future__ import annotations

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
