"""The log buffer keeps numbers, bounds and what the gutter shows."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from console.state.linekind import LineKind
from console.state.lines import RawLine
from console.state.logbuffer import EntryKind, LogBuffer


def raw(text: str, *, frame: bool = False) -> RawLine:
    return RawLine(text=text, offset=0, end_offset=len(text) + 1, at=1.0, frame=frame)


def buffer_of(*texts: str, max_lines: int = 100) -> LogBuffer:
    buffer = LogBuffer(max_lines)
    buffer.append(map(raw, texts))
    return buffer


def test_lines_have_absolute_numbers() -> None:
    buffer = buffer_of("a", "b", "c")

    assert (buffer.first, buffer.end, len(buffer)) == (0, 3, 3)
    assert [(entry.number, entry.text) for entry in buffer.lines(1, 9)] == [(1, "b"), (2, "c")]
    assert buffer.line(3) is None


def test_oldest_lines_go_first_and_numbers_stay() -> None:
    buffer = buffer_of(*map(str, range(250)), max_lines=100)

    assert (buffer.first, buffer.end, buffer.dropped) == (150, 250, 150)
    assert buffer.line(149) is None
    assert [entry.text for entry in buffer.lines(0, 152)] == ["150", "151"]
    entry = buffer.line(249)
    assert entry is not None
    assert entry.text == "249"


def test_bytes_are_bounded_too() -> None:
    buffer = LogBuffer(max_lines=1000, max_bytes=10_000)

    buffer.append(raw("x" * 800) for _ in range(50))

    assert len(buffer) == 10


@given(st.lists(st.integers(1, 30), max_size=30), st.integers(1, 20))
def test_numbers_always_agree_with_what_was_appended(batches: list[int], max_lines: int) -> None:
    buffer = LogBuffer(max_lines)
    written = 0
    for size in batches:
        buffer.append(raw(str(written + n)) for n in range(size))
        written += size

    assert buffer.end == written
    assert len(buffer) == min(written, max_lines)
    assert [entry.text for entry in buffer.lines(0, written)] == [str(n) for n in range(buffer.first, written)]
    assert all(entry.number == int(entry.text) for entry in buffer.lines(buffer.first, buffer.end))


def test_states_of_a_bar_are_not_lines() -> None:
    buffer = LogBuffer()

    added = buffer.append([raw(" 10%", frame=True), raw(" 20%")])

    assert added == 1
    assert [entry.text for entry in buffer.lines(0, 9)] == [" 20%"]


def test_marks_gaps_and_notes_stand_among_the_lines() -> None:
    buffer = buffer_of("before")

    buffer.mark("spawned pid 90112, log opened", 2.0)
    buffer.gap(3_250_586, 3.0)
    buffer.note("log truncated", 4.0)
    buffer.append([raw("after")])

    assert [(entry.kind, entry.text) for entry in buffer.lines(0, 9)] == [
        (EntryKind.LINE, "before"),
        (EntryKind.MARK, "spawned pid 90112, log opened"),
        (EntryKind.GAP, "… 3.1 MiB skipped"),
        (EntryKind.NOTE, "log truncated"),
        (EntryKind.LINE, "after"),
    ]


def test_every_change_is_seen_in_the_version_and_nothing_else_is() -> None:
    buffer = LogBuffer()
    live = raw(" 10%")
    seen = [buffer.version]

    for change in (
        lambda: buffer.append([raw("a")]),
        lambda: buffer.set_live(live),
        lambda: buffer.mark("m", 1.0),
        buffer.clear,
    ):
        change()
        seen.append(buffer.version)
    buffer.append([raw("state", frame=True)])
    buffer.set_live(None)

    assert seen == sorted(set(seen))
    assert buffer.version == seen[-1]


def test_clear_goes_on_counting() -> None:
    buffer = buffer_of("a", "b")

    buffer.clear()
    buffer.append([raw("c")])

    assert (buffer.first, buffer.end) == (2, 3)
    assert [entry.number for entry in buffer.lines(0, 9)] == [2]


def test_search_goes_both_ways_and_does_not_wrap() -> None:
    buffer = buffer_of("step 1", "Loss", "step 2", "loss")

    assert buffer.search("step", 1) == 2
    assert buffer.search("step", 1, -1) == 0
    assert buffer.search("step", 3) is None
    assert buffer.search("loss", 0) == 1
    assert buffer.search("Loss", 2) is None
    assert buffer.search("[", 0) is None
    assert buffer.search(re.compile(r"step \d"), 99, -1) == 2


def test_errors_are_found_forward_and_backward() -> None:
    buffer = buffer_of("ok", "RuntimeError: boom", "ok", "CUDA error: device-side assert", "ok")

    assert buffer.next_error(-1) == 1
    assert buffer.next_error(1) == 3
    assert buffer.next_error(3) is None
    assert buffer.prev_error(buffer.end) == 3
    assert buffer.prev_error(3) == 1
    assert buffer.kind(0) is LineKind.PLAIN


def test_a_mark_is_never_an_error() -> None:
    buffer = LogBuffer()
    buffer.mark("FATAL: shown by the console", 1.0)

    assert buffer.next_error(-1) is None


def test_what_a_flood_left_out_is_told_as_one_until_it_is_over() -> None:
    buffer = buffer_of("before")
    assert buffer.skipped_lately(0.0) == 0

    buffer.gap(300, 1000.0)
    buffer.gap(200, 1050.0)
    assert [buffer.skipped_lately(now) for now in (1050.0, 1109.0, 1110.0)] == [500, 500, 0]

    buffer.gap(7, 1200.0)
    assert buffer.skipped_lately(1201.0) == 7
    buffer.begin_anew("log was truncated", 1202.0)
    assert buffer.skipped_lately(1203.0) == 0
