"""An escape is one, also where the next key is right behind it; what begins with its code is read as ever."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.drivers import linux_driver
from textual.events import Key, Paste

from console.ui.driver import TerminalDriver
from console.ui.escapes import EscapeParser


def read(*pieces: str) -> list[str]:
    """Return the keys, and what was pasted, of pieces that come one right after the other, and then a pause."""
    parser = EscapeParser()
    found = [message for piece in pieces for message in parser.feed(piece)]
    parser._timeout_time = 0.0 if parser._timeout_time is not None else None
    found += parser.tick()
    assert all(isinstance(each, Key | Paste) for each in found)
    return [each.key if isinstance(each, Key) else f"pasted {each.text}" for each in found]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("/x\x1b?", ["slash", "x", "escape", "question_mark"]),
        ("\x1bq", ["escape", "q"]),
        ("\x1bR", ["escape", "R"]),
        ("\x1b1", ["escape", "1"]),
        ("\x1b/err\r", ["escape", "slash", "e", "r", "r", "enter"]),
        ("\x1b[", ["escape", "left_square_bracket"]),
        ("\x1b\x1b", ["escape", "escape"]),
        ("\x1b\x1bq", ["escape", "escape", "q"]),
        ("/x\x1b?" + "y" * 40, ["slash", "x", "escape", "question_mark", *"y" * 40]),
        ("\x1ba\x1bc\x1b", ["escape", "a", "escape", "c", "escape"]),
    ],
)
def test_an_escape_with_keys_right_behind_it_is_an_escape_and_none_of_them_is_lost(text: str, keys: list[str]) -> None:
    assert read(text) == keys


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("\x1b[A\x1b[5~", ["up", "pageup"]),
        ("\x1bOP", ["f1"]),
        ("\x1b\x7f", ["ctrl+w"]),
        ("\x1bb\x1bf", ["ctrl+left", "ctrl+right"]),
        ("\x1b\t", ["shift+tab"]),
        ("\x1b[200~two\nlines\x1b[201~x", ["pasted two\nlines", "x"]),
    ],
)
def test_a_sequence_is_read_as_one_key_in_whatever_pieces_it_comes(text: str, keys: list[str]) -> None:
    assert read(text) == keys
    assert read(*text) == keys
    for cut in range(1, len(text)):
        assert read(text[:cut], text[cut:]) == keys


def test_an_escape_after_which_nothing_comes_is_one_and_what_comes_later_is_no_part_of_it() -> None:
    parser = EscapeParser()
    assert list(parser.feed("\x1b")) == []
    parser._timeout_time = 0.0

    assert [key.key for key in parser.tick() if isinstance(key, Key)] == ["escape"]
    assert [key.key for key in parser.feed("[A") if isinstance(key, Key)] == ["left_square_bracket", "A"]


@given(st.lists(st.sampled_from(["\x1b", *"/?qRrs1 []\r\x7f"]), max_size=40).map("".join), st.data())
def test_where_a_piece_ends_changes_nothing(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=6)))
    pieces = [text[begin:end] for begin, end in pairwise([0, *cuts, len(text)]) if end > begin]

    assert read(*pieces) == read(text)


def test_the_terminal_is_read_with_it() -> None:
    assert issubclass(TerminalDriver, linux_driver.LinuxDriver)
    assert vars(linux_driver)["XTermParser"] is EscapeParser
