"""A window on a log that begins anew: which of its lines the file still holds, and what it may grow by."""

from __future__ import annotations

from console.state.lines import LineSplitter
from console.state.logbuffer import LogBuffer
from console.state.logwindow import MOST_ENTRIES, Window


def _fed(buffer: LogBuffer, text: str, offset: int = 0) -> None:
    buffer.append(LineSplitter(offset).feed(text.encode(), offset, 0.0))


def test_when_all_that_is_gone_was_dropped_the_rest_of_the_file_can_be_read() -> None:
    buffer = LogBuffer()
    _fed(buffer, "".join(f"old {number}\n" for number in range(1500)), offset=700)
    window = Window.of_tail(buffer)
    buffer.begin_anew("log was truncated", 0.0)
    _fed(buffer, "".join(f"new {number}\n" for number in range(MOST_ENTRIES + 1500)))

    seen = set()
    while window.joined != buffer.end:
        window.make_room_and_follow(buffer)
        is_there = window.entries[0].text.startswith("new")
        seen.add(is_there)
        assert (window.file_from == 0) == is_there
        assert window.can_grow_up == (is_there and window.entries[0].text != "new 0")
        if is_there:
            assert window.begin == window.entries[0].offset

    assert seen == {True, False}


def test_above_the_first_line_of_the_new_file_is_nothing_when_just_what_is_gone_was_dropped() -> None:
    buffer = LogBuffer()
    _fed(buffer, "old 1\nold 2\n", offset=700)
    buffer.begin_anew("log was truncated", 0.0)
    _fed(buffer, "new 1\n")
    window = Window.of_tail(buffer)
    assert window.file_from == 3

    window._drop_front(3)

    assert [entry.text for entry in window.entries] == ["new 1"]
    assert not window.can_grow_up


def test_a_range_of_the_file_before_does_not_go_on_with_the_tail_of_this_one() -> None:
    buffer = LogBuffer()
    _fed(buffer, "old 1\nold 2\n")
    ranges = Window(begin=0, end=6, anew=buffer.anew)
    buffer.begin_anew("log was truncated", 0.0)
    _fed(buffer, "new 1\nnew 2\n")

    assert not ranges.join(buffer)
    assert not ranges.is_of(buffer)
    assert Window(begin=0, end=6, anew=buffer.anew).join(buffer)


def test_a_range_of_the_file_does_not_go_on_with_lines_that_are_gone() -> None:
    buffer = LogBuffer()
    _fed(buffer, "old 1\nold 2\nold 3\n")
    buffer.begin_anew("log was truncated", 0.0)
    _fed(buffer, "new 1\nnew 2\n")
    window = Window(begin=0, end=6, anew=buffer.anew)

    assert window.join(buffer)
    window.follow(buffer)

    assert [entry.text for entry in window.entries] == ["new 2"]


def test_above_a_line_that_has_no_end_yet_stands_what_was_skipped() -> None:
    buffer = LogBuffer()
    _fed(buffer, "1\n2\n")
    buffer.gap(9_000_000, 0.0)
    splitter = LineSplitter(9_000_004)
    assert splitter.feed(b" 7%|", 9_000_004, 0.0) == []
    buffer.set_live(splitter.live())

    window = Window.of_tail(buffer)

    assert (window.begin, window.end, window.can_grow_up) == (9_000_004, 9_000_004, True)
