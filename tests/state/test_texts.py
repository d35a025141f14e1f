"""Durations, sizes and numbers as words."""

import pytest

from console.state import texts


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0.00 s"),
        (0.01, "0.01 s"),
        (0.2, "0.2 s"),
        (11.8, "11.8 s"),
        (59.94, "59.9 s"),
        (59.96, "1m 00s"),
        (64, "1m 04s"),
        (3599.6, "1h 00m"),
        (8040, "2h 14m"),
        (277_200, "3d 05h"),
        (-5, "0.00 s"),
        (None, "?"),
    ],
)
def test_duration(seconds: float | None, words: str) -> None:
    assert texts.duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(4, "4 s"), (60, "60 s"), (119.4, "119 s"), (240, "4m"), (372, "6m 12s"), (8040, "2h 14m")]
)
def test_span(seconds: float, words: str) -> None:
    assert texts.span(seconds) == words


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (211, "211 B"),
        (1024, "1.0 KiB"),
        (3.1 * 1024**3, "3.1 GiB"),
        (574 * 1024**3, "574 GiB"),
        (1024**3 - 1, "1.0 GiB"),
    ],
)
def test_size(size: float, words: str) -> None:
    assert texts.size(size) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (112, "112"), (999.6, "1.0K"), (21_480, "21.5K"), (1_234_567, "1.2M"), (999_960, "1.0M"), (None, "?"),
        (0, "0"), (0.0031, "0.0031"), (0.4, "0.4"), (3.2e9, "3.2G"), (999_960e6, "1.0T"),
    ],
)  # fmt: skip
def test_rate(value: float | None, words: str) -> None:
    assert texts.rate(value) == words


def test_differences_have_a_sign_and_a_real_minus() -> None:
    assert (texts.difference(2.1), texts.difference(-17.2)) == ("+2.1 %", "−17 %")


def test_facts_that_are_absent_leave_no_gap() -> None:
    assert texts.joined("a", "", "b") == "a · b"
    assert texts.plural(1, "line") == "1 line"
    assert texts.plural(1412, "line") == "1,412 lines"
