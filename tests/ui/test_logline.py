"""A line of the log pane: its mark says what it is, its text is cut or wrapped by cells, what is found stands out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.state.linekind import LineKind
from console.state.lines import RawLine
from console.state.logbuffer import Entry, EntryKind
from console.ui.logrows import Row
from console.ui.logviewport import Shown
from console.ui.present.logline import LineLook, live_line, log_line
from console.ui.present.look import ASCII, UNICODE
from console.ui.present.spans import Line, Role, Span, cells, text_of

LOOK = LineLook(UNICODE, 24)


def line_of(
    text: str,
    look: LineLook = LOOK,
    kind: LineKind = LineKind.PLAIN,
    *,
    entry_kind: EntryKind = EntryKind.LINE,
    line: int = 0,
    is_cursor: bool = False,
) -> Line:
    row = Row(Entry(number=0, kind=entry_kind, text=text, at=0.0), text, 0)
    return log_line(Shown(row, 0, line), kind, look, is_cursor=is_cursor)


@pytest.mark.parametrize(
    ("kind", "mark", "role"),
    [
        (LineKind.ERROR, "✗", Role.ERROR),
        (LineKind.WARNING, "!", Role.WARN),
        (LineKind.CHECKPOINT, "◆", Role.OK),
        (LineKind.STEP, " ", Role.DIM),
        (LineKind.PLAIN, " ", Role.TEXT),
    ],
)
def test_the_mark_says_what_a_line_is_without_any_colour(kind: LineKind, mark: str, role: Role) -> None:
    bold = kind is LineKind.ERROR

    assert line_of("something", kind=kind) == (Span(f" {mark} ", role, True), Span("something", role, bold))


def test_every_mark_is_one_cell_wide_in_ascii_too() -> None:
    look = LOOK._replace(glyphs=ASCII)
    lines = [line_of("x", look, kind) for kind in LineKind]
    lines += [line_of("x", look, entry_kind=kind) for kind in EntryKind]

    assert {text_of(line)[2:] for line in lines} == {" x"}
    assert text_of(line_of("x", look, LineKind.ERROR)) == " x x"
    assert all(text_of(line).isascii() for line in lines)


def test_a_line_too_long_is_cut_with_a_cell_left_at_the_edge() -> None:
    assert text_of(line_of("x" * 40)) == "   " + "x" * 19 + "…"
    assert text_of(line_of("x" * 20)) == "   " + "x" * 20
    assert text_of(line_of("x" * 40, LOOK._replace(narrow=True))) == "  " + "x" * 21 + "…"


def test_a_narrow_pane_leaves_the_time_out_where_lines_are_not_wrapped() -> None:
    text = "[2026-02-11 07:15:09,551] step 7"
    narrow = LOOK._replace(narrow=True, width=60)

    assert text_of(line_of(text, narrow)) == "  step 7"
    assert text_of(line_of(text, narrow._replace(wraps_at=58))) == "  " + text
    assert text_of(line_of(text, LOOK._replace(width=60))) == "   " + text


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P"])), st.integers(8, 30))
def test_pieces_of_a_wrapped_line_are_the_whole_line_and_only_the_first_has_a_mark(text: str, room: int) -> None:
    look = LOOK._replace(width=room + 4, wraps_at=room)
    count = max(1, -(-len(text) // room))

    pieces = [text_of(line_of(text, look, LineKind.ERROR, line=number)) for number in range(count)]

    assert "".join(piece[3:] for piece in pieces) == text
    assert [piece[:3] for piece in pieces] == [" ✗ ", *["   "] * (count - 1)]


def test_letters_of_two_cells_are_never_cut_in_half() -> None:
    look = LOOK._replace(width=13, wraps_at=9)

    pieces = [text_of(line_of("漢字" * 5, look, line=number)) for number in range(3)]

    assert pieces == ["   漢字漢字", "   漢字漢字", "   漢字"]
    assert max(map(cells, pieces)) <= 12


def test_what_is_gone_to_stands_out_and_so_do_hits_alone_while_they_are_marked() -> None:
    hits = LOOK._replace(hits=lambda text: [(0, 4), (5, 6)])

    assert line_of("loss 2.5", is_cursor=True)[1:] == (Span("loss 2.5", Role.MATCH),)
    assert [span for span in line_of("loss 2.5", hits, is_cursor=True)[1:] if span.text] == [
        Span("loss", Role.MATCH), Span(" "), Span("2", Role.MATCH), Span(".5")
    ]  # fmt: skip


def test_moved_to_the_left_a_line_shows_what_stood_beyond_the_edge() -> None:
    assert text_of(line_of("0123456789" * 4, LOOK._replace(shift=16))) == "   6789012345678901234…"


def test_text_of_a_lost_link_is_dim_but_an_error_is_as_red_as_before() -> None:
    stale = LOOK._replace(stale=True)

    assert line_of("x", stale)[1].role is Role.DIM
    assert line_of("x", stale, LineKind.ERROR)[1].role is Role.ERROR


def test_a_line_that_is_being_written_shows_whether_it_is_a_bar() -> None:
    live = RawLine(text="75 %", offset=0, end_offset=4, at=0.0, cr=True)

    assert live_line(live, LOOK) == (Span(" ↻ ", Role.BUSY, True), Span("75 %"))
