"""What is told of a log's end: its newest lines, and the first error since the last step."""

from __future__ import annotations

from typing import Any

from console.engine.logend import LogEnd
from console.engine.logflow import Taken
from console.state import events
from console.state.formatrules import Kind
from console.state.lines import RawLine
from console.state.logbuffer import LogBuffer
from console.state.metrics import Sample


class _Stage:
    def __init__(self) -> None:
        self.buffer, self.fed, self.at = LogBuffer(), list[Any](), 100.0
        self.end = LogEnd(self.buffer, self.fed.append, lambda: self.at, lambda: self.buffer.end)
        self.end.begin(1)

    def write(self, *texts: str, steps: tuple[int, ...] = ()) -> None:
        """Lines of ten bytes each; `steps`: the indices of those that are steps."""
        first = self.buffer.end
        lines = [
            RawLine(text=text, offset=10 * (first + i), end_offset=10 * (first + i) + 10, at=self.at)
            for i, text in enumerate(texts)
        ]
        self.buffer.append(lines)
        samples = tuple(
            Sample(
                kind=Kind.STEP, format="f", at=self.at, offset=lines[i].offset, end_offset=lines[i].end_offset, step=i
            )
            for i in steps
        )
        self.end.scan(Taken(live=samples, lines=tuple(lines), first_number=first))

    @property
    def tails(self) -> list[list[str]]:
        return [[line.text for line in each.lines] for each in self.fed if isinstance(each, events.LogTail)]


def test_the_newest_lines_are_told_when_they_are_new_and_four_times_a_second_at_most() -> None:
    stage = _Stage()

    stage.write("one")
    stage.end.say()
    stage.end.say()
    stage.write("two")
    stage.at += 0.2
    stage.end.say()
    stage.at += 0.1
    stage.end.say()

    assert stage.tails == [["one"], ["one", "two"]]


def test_the_first_error_is_told_at_once_and_a_step_behind_it_calls_it_handled() -> None:
    stage = _Stage()

    stage.write("ValueError: one", "ValueError: two")
    assert stage.end.first_error() == (1, 0, "ValueError: one")
    assert len(stage.tails) == 1

    stage.write("step 1", steps=(0,))
    assert stage.end.first_error() is None
    stage.write("step 2", "ValueError: three", steps=(0,))
    assert stage.end.first_error() == (5, 40, "ValueError: three")


def test_of_another_log_the_last_one_s_error_is_forgotten_and_without_a_log_nothing_is_told() -> None:
    stage = _Stage()
    stage.write("ValueError: one")

    stage.end.begin(2)
    assert stage.end.first_error() is None
    stage.end.stop()
    told = len(stage.fed)
    stage.at += 1.0
    stage.end.say()

    assert len(stage.fed) == told


def test_the_console_s_own_marks_are_no_lines_of_the_log() -> None:
    stage = _Stage()

    stage.write("one", "two")
    stage.buffer.mark("started", 100.0)

    assert stage.end.last_lines(5) == ["one", "two"]
    assert stage.end.last_lines(1) == ["two"]
