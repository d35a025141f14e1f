"""Wrapped lines of the log: whatever letters a line has, all of them are on the pane."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from console.state.linekind import LineKind
from console.state.logbuffer import Entry, EntryKind
from console.ui.logrows import Row
from console.ui.logviewport import Viewport
from console.ui.present.logline import LineLook, log_line
from console.ui.present.look import UNICODE
from console.ui.present.spans import cells, text_of
from console.ui.present.wrapping import line_at, line_count


@given(st.text("ab漢字é\u0301", max_size=60), st.integers(8, 20))
@example("漢字" * 4 + "漢", 9)  # 18 cells in lines of 9, of which letters of two cells fill 8
def test_every_letter_of_a_wrapped_line_is_on_the_pane(text: str, room: int) -> None:
    port = Viewport()
    port.wraps, port.room, port.height = True, room, 100
    port.put([Row(Entry(number=0, kind=EntryKind.LINE, text=text, at=0.0), text, 0)])
    look = LineLook(UNICODE, room + 4, wraps_at=room)

    pieces = [text_of(log_line(each, LineKind.PLAIN, look, is_cursor=False))[3:] for each in port.lines()]

    assert "".join(pieces) == text
    assert all(cells(piece) <= room for piece in pieces)
    assert all(pieces[1:])


@pytest.mark.parametrize("text", ["", "ab", "漢", "漢字" * 9])
def test_below_the_last_line_of_a_text_stands_nothing(text: str) -> None:
    assert line_at(text, line_count(text, 9), 9) == ""
