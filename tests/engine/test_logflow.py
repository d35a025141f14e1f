"""A log that grows while it is opened: what was there before us is history, what came behind it is live."""

from __future__ import annotations

from console.config import Metrics
from console.engine.logflow import LogFlow
from console.protocol import LogEvent
from console.state.formatrules import Kind
from console.state.logbuffer import LogBuffer
from console.state.metrics import Sample

_LINE = "step {}/100 | loss 2.5000 | 21000 tok/s\n"
_THEN = 1000.0
_NOW = 5000.0


def _event(offset: int, size: int, count: int) -> LogEvent:
    return LogEvent(bt=1.0, path="/log", state="following", offset=offset, size=size, dev=1, inode=2, n=count)


def _steps(samples: tuple[Sample, ...]) -> list[int | None]:
    return [sample.step for sample in samples if sample.kind is Kind.STEP]


def test_chunk_that_spans_the_end_of_history_is_split_there() -> None:
    flow = LogFlow(Metrics(), LogBuffer(), {})
    flow.begin("/log", None)
    lines = [_LINE.format(number).encode() for number in range(1, 7)]
    history, rest = b"".join(lines[:4]), b"".join(lines[4:])
    flow.take(_event(0, len(history), 0), b"", lambda _: _THEN, _NOW)

    taken = flow.take(_event(0, len(history + rest), len(history + rest)), history + rest, lambda _: _THEN, _NOW)

    assert (_steps(taken.history), _steps(taken.live)) == ([1, 2, 3, 4], [5, 6])
    assert {sample.at for sample in taken.history} == {_THEN}
    assert {sample.at for sample in taken.live} == {_NOW}
    assert taken.samples == taken.history + taken.live


def test_line_that_ends_behind_the_boundary_is_live_as_a_whole() -> None:
    flow = LogFlow(Metrics(), LogBuffer(), {})
    flow.begin("/log", None)
    text = "".join(_LINE.format(number) for number in range(1, 4)).encode()
    boundary = len(text) - 5
    flow.take(_event(0, boundary, 0), b"", lambda _: _THEN, _NOW)

    taken = flow.take(_event(0, len(text), len(text)), text, lambda _: _THEN, _NOW)

    assert (_steps(taken.history), _steps(taken.live)) == ([1, 2], [3])
