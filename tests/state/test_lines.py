"""Bytes become the same lines however they were cut, and no line can do harm."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.state.lines import KEEP_BYTES, MAX_CHARS, LineSplitter, RawLine, clean


def split(data: bytes, at: float = 1.0) -> list[RawLine]:
    return LineSplitter().feed(data, 0, at)


def texts(data: bytes) -> list[str]:
    return [line.text for line in split(data) if not line.frame]


def feed_in_pieces(data: bytes, cuts: list[int]) -> tuple[list[RawLine], RawLine | None]:
    splitter = LineSplitter()
    lines: list[RawLine] = []
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    for start, end in pairwise(places):
        lines += splitter.feed(data[start:end], start, 1.0)
    return lines, splitter.live()


BAR = " 31%|███▏      | 310/1000 [10:20<23:00,  2.00s/it]".encode()
awkward = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.sampled_from(
            [
                b"\n",
                b"\r",
                b"\r\n",
                b"\0",
                b"\0" * 9,
                b"\x1b[31m",
                b"\x1b]0;t\x07",
                "é█".encode(),
                BAR,
                b"step 4",
                b" ",
                b"%|",
            ]
        ),
    ),
    max_size=40,
).map(b"".join)


@given(awkward, st.lists(st.integers(0, 2000), max_size=12))
def test_any_chunking_gives_the_same_lines(data: bytes, cuts: list[int]) -> None:
    whole = LineSplitter()
    expected = whole.feed(data, 0, 1.0)

    lines, live = feed_in_pieces(data, cuts)

    assert lines == expected
    assert live == whole.live()


@given(st.binary(max_size=400), st.integers(1, 7))
def test_small_pieces_of_any_bytes_give_the_same_lines(data: bytes, size: int) -> None:
    expected = split(data)

    lines, _ = feed_in_pieces(data, list(range(0, len(data), size)))

    assert lines == expected


@given(awkward)
def test_lines_cover_the_file_without_holes(data: bytes) -> None:
    splitter = LineSplitter()

    lines = [line for line in splitter.feed(data, 0, 1.0) if not line.frame]

    place = 0
    for line in lines:
        assert line.offset == place
        assert line.end_offset >= line.offset
        place = line.end_offset
    live = splitter.live()
    if live is None:
        assert not any(clean(part) for part in data[place:].split(b"\r"))
    else:
        assert place <= live.offset <= len(data)


@given(awkward)
def test_text_is_harmless(data: bytes) -> None:
    splitter = LineSplitter()
    lines = splitter.feed(data, 0, 1.0)
    live = splitter.live()

    for line in [*lines, *([live] if live else [])]:
        assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in line.text)
        assert not any(char in line.text for char in "\u202a\u202e\u2066\u2069\u2028")


def test_lf_and_crlf_are_one_newline() -> None:
    lines = split(b"one\r\ntwo\n\r\nthree\n")

    assert [line.text for line in lines] == ["one", "two", "", "three"]
    assert not any(line.cr or line.frame or line.partial for line in lines)
    assert [(line.offset, line.end_offset) for line in lines] == [(0, 5), (5, 9), (9, 11), (11, 17)]


def test_crlf_cut_between_cr_and_lf_is_one_newline() -> None:
    splitter = LineSplitter()

    first = splitter.feed(b"one\r", 0, 1.0)
    second = splitter.feed(b"\ntwo\n", 4, 2.0)

    assert first == []
    assert [(line.text, line.cr, line.at) for line in second] == [("one", False, 2.0), ("two", False, 2.0)]


def test_progress_bar_collapses_to_its_last_state_and_hands_out_each_earlier_one() -> None:
    lines = split(b"\r 1/3\r 2/3\r 3/3\n")

    assert [(line.text, line.frame) for line in lines] == [(" 1/3", True), (" 2/3", True), (" 3/3", False)]
    assert all(line.cr for line in lines)
    assert (lines[2].offset, lines[2].end_offset) == (0, 16)


def test_bar_without_newline_is_live() -> None:
    splitter = LineSplitter()
    splitter.feed(b"before\n\r 1/9", 0, 1.0)

    states = splitter.feed(b"\r 2/9", 12, 7200.0)
    live = splitter.live()

    assert [(line.text, line.frame, line.at) for line in states] == [(" 1/9", True, 1.0)]
    assert live is not None
    assert (live.text, live.partial, live.cr, live.offset, live.at) == (" 2/9", True, True, 7, 7200.0)


def test_cleared_bar_gives_way_to_the_record_written_over_it() -> None:
    assert texts(b"\r 50%\r          \r{'loss': 1.5}\n") == ["{'loss': 1.5}"]


def test_bar_wiped_with_blanks_keeps_its_last_state() -> None:
    assert texts(b"\r 50%\r          \n") == [" 50%"]


@pytest.mark.parametrize("glued", ["Segmentation fault (core dumped)", "[INFO|trainer.py:9] >> Saving", "\x1b[31mboom"])
def test_record_glued_to_a_bar_is_a_line_of_its_own(glued: str) -> None:
    data = b"\r" + BAR + glued.encode() + b"\nnext\n"

    lines = [line for line in split(data) if not line.frame]

    assert [line.text for line in lines] == [BAR.decode(), glued.replace("\x1b[31m", ""), "next"]
    assert lines[1].offset == 1 + len(BAR)


def test_record_glued_to_a_bar_is_not_swallowed_by_its_next_state() -> None:
    data = b"\r" + BAR + b"warning: slow\r" + BAR + b"\n"

    assert texts(data) == [BAR.decode(), "warning: slow", BAR.decode()]


def test_escape_after_a_bar_is_no_record() -> None:
    assert texts(BAR + b"\x1b[A\n") == [BAR.decode()]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b[38;2;1;2;3mstep\x1b[K", "step"),
        (b"\x1b]0;evil title\x07text", "text"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1b(Bplain", "plain"),
        (b"\x1bc reset", "␛c reset"),
        (b"\x1b]0;never closed", "␛]0;never closed"),
        (b"bell\x07 back\x08 del\x7f", "bell␇ back␈ del␡"),
        (b"a\0b", "a␀b"),
        ("c1\x85 bidi\u202e iso\u2067 sep\u2028".encode(), "c1\\x85 bidi\\u202e iso\\u2067 sep\\u2028"),
        (b"bad \xff\xfe utf", "bad \ufffd\ufffd utf"),
        (b"a\tb", "a       b"),
        (b"[bold]markup[/bold]", "[bold]markup[/bold]"),
        ("Grüße █▏ 字".encode(), "Grüße █▏ 字"),
    ],
)
def test_control_characters_become_visible(raw: bytes, shown: str) -> None:
    assert clean(raw) == shown


def test_character_split_over_two_chunks_is_whole() -> None:
    data = "é\n".encode()
    splitter = LineSplitter()

    lines = [*splitter.feed(data[:1], 0, 1.0), *splitter.feed(data[1:], 1, 1.0)]

    assert [line.text for line in lines] == ["é"]


def test_hole_of_nuls_is_a_line_of_its_own() -> None:
    lines = split(b"\0" * 5000 + b"step 7\nnext\n")

    assert [(line.text, line.offset) for line in lines] == [("[5,000 NUL bytes]", 0), ("step 7", 5000), ("next", 5007)]


def test_ten_megabyte_line_is_cut_and_says_so_without_being_kept() -> None:
    splitter = LineSplitter()
    piece = b"x" * 100_000
    for number in range(100):
        assert splitter.feed(piece, number * len(piece), 1.0) == []
        assert len(splitter._head) <= KEEP_BYTES

    lines = splitter.feed(b"\nnext\n", 10_000_000, 2.0)

    assert lines[0].text == "x" * MAX_CHARS + " … [10.0 MB line cut]"
    assert (lines[0].offset, lines[0].end_offset) == (0, 10_000_001)
    assert lines[1].text == "next"


def test_long_line_is_cut_by_characters() -> None:
    whole = split("é".encode() * MAX_CHARS + b"\n")[0].text
    cut = split("é".encode() * (MAX_CHARS + 1) + b"\n")[0].text

    assert whole == "é" * MAX_CHARS
    assert cut == "é" * MAX_CHARS + " … [8.2 kB line cut]"


def test_bytes_seen_before_are_skipped() -> None:
    splitter = LineSplitter()
    splitter.feed(b"one\ntw", 0, 1.0)

    lines = splitter.feed(b"two\nthree\n", 4, 2.0)

    assert [line.text for line in lines] == ["two", "three"]
    assert splitter.next_offset == 14


def test_gap_closes_the_line_and_what_follows_is_a_fragment() -> None:
    splitter = LineSplitter()
    splitter.feed(b"one\ntw", 0, 1.0)

    lines = splitter.feed(b"ee\nfour\n", 100, 2.0)

    assert [(line.text, line.partial, line.offset) for line in lines] == [
        ("tw", True, 4),
        ("ee", True, 100),
        ("four", False, 103),
    ]


def test_reset_returns_the_unfinished_line_and_starts_over() -> None:
    splitter = LineSplitter()
    splitter.feed(b"one\ntw", 0, 1.0)

    rest = splitter.reset(0)
    lines = splitter.feed(b"new\n", 0, 2.0)

    assert [(line.text, line.partial) for line in rest] == [("tw", True)]
    assert [(line.text, line.offset, line.partial) for line in lines] == [("new", 0, False)]


def test_starting_inside_a_line_hands_out_its_rest_as_partial() -> None:
    lines = LineSplitter(50, mid_line=True).feed(b"420/60000 | loss 1\nstep 2\n", 50, 1.0)

    assert [(line.text, line.partial) for line in lines] == [("420/60000 | loss 1", True), ("step 2", False)]
