"""A log that grows while it is opened: what was there before us is history, what came behind it is live."""

from __future__ import annotations

import msgspec
import pytest

from console.config import Metrics
from console.engine.logflow import NAMED_MAX, LogFlow
from console.protocol import LogEvent
from console.state.formatrules import Kind
from console.state.logbuffer import LogBuffer
from console.state.metrics import Sample
from console.state.series import Series

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


# The middle of a long log


def _pieces(text: bytes, *starts: int, length: int = 200) -> list[tuple[int, bytes]]:
    return [(start, text[start : start + length]) for start in starts]


def test_middle_of_a_long_log_is_drawn_from_pieces_of_it() -> None:
    series: dict[str, Series] = {}
    flow = LogFlow(Metrics(), LogBuffer(), series)
    flow.begin("/log", None)
    text = "".join(_LINE.format(number) for number in range(1, 1001)).encode()
    end = len(text)
    flow.take_head(text[:200], lambda line: line.end_offset / 1000, _NOW)

    flow.take_between(_pieces(text, end // 4, end // 2, length=120), lambda line: line.end_offset / 1000, _NOW)

    steps = [point.step or 0 for point in series["loss"].points]
    assert steps == sorted(steps)
    assert steps[:4] == [1, 2, 3, 4]
    assert any(240 < step < 260 for step in steps)
    assert any(490 < step < 510 for step in steps)
    assert not series["loss"].untimed
    assert series["loss"].points[-1].at == pytest.approx(end / 2 / 1000, rel=0.02)


def test_pieces_of_a_log_prove_nothing_of_the_run() -> None:
    flow = LogFlow(Metrics(), LogBuffer(), {})
    flow.begin("/log", None)
    text = "".join(_LINE.format(number) for number in range(1, 100)).encode()

    flow.take_between(_pieces(text, 100), lambda _: _THEN, _NOW)

    assert flow.next_offset == 0
    assert flow.buffer.end == 0


def test_counter_that_begins_anew_between_two_pieces_is_a_restart() -> None:
    series: dict[str, Series] = {}
    flow = LogFlow(Metrics(), LogBuffer(), series)
    flow.begin("/log", None)
    first = "".join(_LINE.format(number) for number in range(500, 510)).encode()
    second = "".join(_LINE.format(number) for number in range(40, 50)).encode()

    flow.take_between([(1000, b"x\n" + first), (9000, b"x\n" + second)], lambda line: float(line.offset), _NOW)

    assert len(series["loss"].restarts) == 1
    assert [point.opens for point in series["loss"].points].count(True) == 1


def test_history_without_any_time_says_so() -> None:
    series: dict[str, Series] = {}
    flow = LogFlow(Metrics(), LogBuffer(), series)
    flow.begin("/log", None)

    flow.take_head(_LINE.format(1).encode(), lambda _: None, _NOW)

    assert series["loss"].untimed
    assert series["loss"].points[0].at == _NOW


def test_further_numbers_are_series_of_their_own() -> None:
    series: dict[str, Series] = {}
    flow = LogFlow(Metrics(), LogBuffer(), series)
    flow.begin("/log", None)
    text = b"step 7/9 | loss 2.5 | acc 0.5 | lr 1e-4 | tok/s 20 | hs_queue min_ready=3 max_depth=16\n"

    flow.take(_event(0, 0, len(text)), text, lambda _: _THEN, _NOW)

    found = {name: one.points[-1].value for name, one in series.items()}
    assert found == {"tok_s": 20.0, "loss": 2.5, "queue": 3.0, "learning rate": 1e-4, "acc": 0.5}


def test_validation_loss_is_never_drawn_as_training_loss() -> None:
    series: dict[str, Series] = {}
    flow = LogFlow(Metrics(), LogBuffer(), series)
    flow.begin("/log", None)
    text = b"iter 10: loss 2.5, time 100.00ms\nstep 10: train loss 2.4, val loss 3.5\n"

    flow.take(_event(0, 0, len(text)), text, lambda _: _THEN, _NOW)

    assert [point.value for point in series["loss"].points] == [2.5]
    assert [(point.step, point.value) for point in series["validation loss"].points] == [(10, 3.5)]


def test_a_trainer_of_hundreds_of_numbers_fills_a_bounded_number_of_series() -> None:
    series: dict[str, Series] = {}
    flow = LogFlow(Metrics(), LogBuffer(), series)
    flow.begin("/log", None)
    pairs = " - ".join(f"a/b{number}:1.5" for number in range(200))
    text = f"step:5 - {pairs}\n".encode()

    flow.take(_event(0, 0, len(text)), text, lambda _: _THEN, _NOW)

    assert len(series) == NAMED_MAX


@pytest.mark.parametrize("state", ["truncated", "rotated"])
def test_lines_before_a_log_that_began_anew_are_known_to_be_gone(state: str) -> None:
    buffer = LogBuffer()
    flow = LogFlow(Metrics(), buffer, {})
    flow.begin("/log", None)
    flow.take(_event(0, 4, 4), b"old\n", lambda _: _THEN, _NOW)
    begun = buffer.anew

    flow.take(msgspec.structs.replace(_event(0, 4, 0), state=state), b"", lambda _: _THEN, _NOW)
    flow.take(_event(0, 4, 4), b"new\n", lambda _: _THEN, _NOW)

    gone = {entry.text: entry.number < buffer.anew_at for entry in buffer.lines(0, buffer.end)}
    assert (gone["old"], gone["new"]) == (True, False)
    assert buffer.anew == begun + 1
