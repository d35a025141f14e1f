"""How often the followed log is looked at: at once after a silence and in a flood, five times a second in a trickle."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.host import logduty, notify, questions, replies, wire


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


class Duty:
    """A LogDuty that follows one file, on a clock of its own."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.file = Clock(), path.open("ab", buffering=0)
        monkeypatch.setattr(logduty, "time", self.clock)
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._out = wire.Outbox(writer)
        answers = replies.Replies(self._out)
        self.duty = logduty.LogDuty(self._out, answers, questions.Questions(answers))
        self.duty.follow({"path": str(path), "offset": 0, "credit_bytes": 1 << 20})
        self.at(0.0)

    def at(self, passed_s: float) -> list[int]:
        """Let time pass, turn the loop once as the agent does, and return the sizes of what was told."""
        self.clock.now += passed_s
        self.duty.step(set(self.duty.fds()))
        self._out.flush()
        return [event["n"] for event in self._told() if event.get("n")]

    def _told(self) -> Iterator[dict[str, Any]]:
        try:
            raw = os.read(self._reader, 1 << 20)
        except BlockingIOError:
            return
        while raw:
            line, _, raw = raw.partition(b"\n")
            event = json.loads(line)
            raw = raw[event["n"] :]
            yield event

    def close(self) -> None:
        self.duty.close()
        self.file.close()


@pytest.fixture
def duty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Duty]:
    one = Duty(tmp_path / "train.log", monkeypatch)
    yield one
    one.close()


def test_line_after_a_silence_is_told_at_once(duty: Duty) -> None:
    duty.file.write(b"one\n")

    assert duty.at(5.0) == [4]


def test_lines_of_a_trickle_are_told_together_and_none_is_lost(duty: Duty) -> None:
    told = []
    for _ in range(20):
        duty.file.write(b"step\n")
        told.append(sum(duty.at(0.125)))
    told.append(sum(duty.at(0.2)))

    assert sum(told) == 20 * 5
    assert told[:2] == [5, 5]  # nobody knows yet that it is one
    assert told[2:8] == [0, 10, 0, 10, 0, 10]


def test_flood_is_looked_at_as_often_as_ever(duty: Duty) -> None:
    told = []
    for _ in range(6):
        duty.file.write(b"x" * 2000)
        told.append(sum(duty.at(0.06)))

    assert told == [2000] * 6


def test_end_of_a_trickle_is_followed_by_a_line_told_at_once(duty: Duty) -> None:
    for _ in range(4):
        duty.file.write(b"step\n")
        duty.at(0.1)
    duty.at(0.2)
    duty.at(0.2)  # nothing came: no trickle any more

    duty.file.write(b"last\n")

    assert duty.at(0.06) == [5]


@pytest.fixture
def listened(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, int]]:
    """What the kernel was asked to tell of, each time."""
    asked: list[dict[str, int]] = []
    listen = notify.Ears.listen

    def noted(ears: notify.Ears, wanted: dict[str, int]) -> bool:
        asked.append(wanted)
        return listen(ears, wanted)

    monkeypatch.setattr(notify.Ears, "listen", noted)
    return asked


def test_amid_a_trickle_the_kernel_is_asked_nothing(listened: list[dict[str, int]], duty: Duty) -> None:
    for _ in range(4):
        duty.file.write(b"step\n")
        duty.at(0.25)
    listened.clear()

    told = []
    for _ in range(8):
        duty.file.write(b"step\n")
        told.append(sum(duty.at(0.25)))

    assert (told, listened) == ([5] * 8, [])
