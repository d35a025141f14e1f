"""Searches and filters that would take years on one line: the pane goes on, takes them as a text and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.reasons import ConsoleError, Exit, Reason
from console.state.logquery import Counted, Place, Query, typed
from console.state.stretch import Stretch
from console.ui.logpatterns import Patterns
from console.ui.logsearch import LogSearch
from console.ui.logview import LogView
from tests.ui.filelogs import FileLogs, tail_of

_TRAP = "a" * 60 + "!"
_SLOW = typed("(a+)+$")


class Refusing(FileLogs):
    """The host as it answers to what takes too long there."""

    async def matching(
        self, place: Place, query: Query, offset: int, *, back: bool = False, limit: int = 200, length: int = 256 << 10
    ) -> Stretch:
        self._refuse(query)
        return await super().matching(place, query, offset, back=back, limit=limit, length=length)

    async def count(self, place: Place, query: Query, offset: int) -> Counted:
        self._refuse(query)
        return await super().count(place, query, offset)

    @staticmethod
    def _refuse(query: Query) -> None:
        if not query.literal:
            raise ConsoleError(Reason.PATTERN_SLOW, "it was ended after 2 s of work", Exit.REFUSED)


@pytest.fixture
def view(tmp_path: Path) -> LogView:
    """Of a log whose end, which is here, holds traps; further up stands what the expression looks like."""
    path = tmp_path / "log"
    path.write_text("\n".join(["who types (a+)+$ ?", *["between"] * 500, *[_TRAP] * 30]) + "\n")
    view = LogView(tail_of(path, 2500), Refusing(path), lambda: None)
    view.viewport.height, view.file.place, view.file.size_bytes = 20, Place(path=str(path)), path.stat().st_size
    return view


def shown(view: LogView) -> list[str]:
    return [each.row.text for each in view.visible()]


async def test_a_search_goes_on_as_one_for_the_text_and_says_so(view: LogView) -> None:
    search = LogSearch(view, lambda: None)

    assert await search.find(_SLOW, back=True, again=False)

    assert view.cursor is not None
    assert view.cursor.text == "who types (a+)+$ ?"
    assert search.searched == typed("(a+)+$", literal=True)
    assert "(takes too long: as text)" in search.label
    assert search.marks("a (a+)+$") == [(2, 8)]
    await search.count(_SLOW)
    assert search.label.endswith("hit 1 of 1")


async def test_a_filter_goes_on_as_one_for_the_text_and_says_so(view: LogView) -> None:
    await view.set_filter(_SLOW)

    assert shown(view) == []
    assert view.sieve.only is not None
    assert view.patterns.named(view.sieve.only) == "(a+)+$ (takes too long: as text)"
    assert await view.go_top()
    assert shown(view) == ["who types (a+)+$ ?"]


async def test_a_filter_that_only_the_host_finds_too_slow_goes_on_as_a_text(view: LogView) -> None:
    await view.go_top()
    await view.set_filter(_SLOW)

    assert shown(view) == ["who types (a+)+$ ?"]
    assert view.sieve.only == typed("(a+)+$", literal=True)


async def test_marks_in_what_is_shown_give_up_in_time(view: LogView) -> None:
    search = LogSearch(view, lambda: None)
    search._searched = _SLOW

    assert search.marks(_TRAP) == []
    assert search.searched == typed("(a+)+$", literal=True)


async def test_what_is_searched_in_a_slow_filter_is_found_all_the_same(view: LogView) -> None:
    view.sieve.only = _SLOW

    assert await LogSearch(view, lambda: None).find(typed("who"), back=True, again=False)
    assert view.cursor is not None
    assert view.cursor.text == "who types (a+)+$ ?"


@pytest.mark.parametrize(
    ("text", "literal", "name"),
    [
        ("(loss", False, "(loss (as text)"),
        ("loss.*9", True, "loss.*9 (as text)"),
        ("loss.*9", False, "loss.*9"),
        ("loss", False, "loss"),
    ],
)
def test_what_looks_like_an_expression_but_is_none_is_called_a_text(text: str, literal: bool, name: str) -> None:
    assert Patterns().named(typed(text, literal=literal)) == name
