"""Expressions that take years on one line are ended, whoever typed them; those that don't are not disturbed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from console import formatfile
from console.bounded import Bounded, BoundedHead, TooSlow, bounded
from console.config import Metrics
from console.engine.logflow import LogFlow
from console.protocol import LogEvent
from console.state.formatrules import FormatError
from console.state.logbuffer import LogBuffer
from console.state.logquery import typed
from console.state.series import Series

_LINE = "step 120/60000 | loss 1.2041 | tok/s 21,500 | lr 3.0e-04 | queue 6/16"
_SLOW = r"(?P<step>(?:\d+)+)+$"
_TRAP = "1" * 60 + "x"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+$", "a" * 60 + "!"),
        (r"^(\w+\s?)*$", "word " * 12 + "!"),
        (".*.*.*.*=z", "x" * 4096),
        (r"(x+x+)+y", "x" * 4096),
    ],
)
def test_an_expression_that_would_take_years_is_ended(pattern: str, text: str) -> None:
    bound = Bounded(re.compile(pattern), 0.05, 0.0)

    for look in (bound.search, bound.match, bound.findall):
        bound.refill()
        with pytest.raises(TooSlow):
            look(text)
    with pytest.raises(TooSlow):
        bound.search("what it may take is used up: even this is not looked at")


def test_an_expression_without_traps_finds_what_it_always_does() -> None:
    bound = bounded(typed(r"loss (\d+\.\d+).*queue \d+"))

    assert all(bound.search(_LINE) for _ in range(20_000))
    assert bound.match(_LINE) is None
    assert [hit.group(1) for hit in bound.findall(_LINE)] == ["1.2041"]


def test_a_text_with_signs_of_an_expression_is_never_too_slow() -> None:
    bound = bounded(typed("(a+)+$", literal=True))

    assert bound.search("a" * 4096) is None
    assert bound.search("it was /(a+)+$/ that took so long") is not None


def test_a_format_that_traps_itself_is_given_up_and_the_pane_says_so() -> None:
    buffer, series = LogBuffer(), dict[str, Series]()
    flow = LogFlow(Metrics(format=_SLOW), buffer, series)
    flow.begin("/log", None)
    text = (f"{_TRAP}\n" * 5 + "12\n").encode()

    for offset in range(0, 4 * len(text), len(text)):
        event = LogEvent(bt=0.0, path="/log", state="following", offset=offset, size=offset + len(text), n=len(text))
        flow.take(event, text, lambda _: 0.0, 0.0)

    notes = [entry.text for entry in buffer.lines(0, buffer.end) if "metrics.format" in entry.text]
    assert len(notes) == 1
    assert notes[0].endswith(_SLOW)


def test_three_lines_are_what_a_format_may_cost() -> None:
    head = BoundedHead("(?:a+)+$")

    assert head.search("b aaa", 0) is not None
    assert [head.search("a" * 60 + "!", 0) for _ in range(3)] == [None] * 3
    assert head.is_given_up
    assert head.search("b aaa", 0) is None


def test_a_format_file_whose_sample_is_a_trap_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"[[lines]]\npattern = '{_SLOW}'\n[[samples]]\nline = '{_TRAP}'\n")

    with pytest.raises(FormatError, match="found no pattern"):
        formatfile.load(path)
