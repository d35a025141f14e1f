"""What must stand in a line for a pattern to be found there: never more than is certain."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.state.needle import required


@pytest.mark.parametrize(
    ("pattern", "needle"),
    [
        ("loss nan", "loss nan"),
        (r"step \d+ loss", "step "),
        (r"^rank ?3: .*Error$", "Error"),
        ("(?:ab)?cd", "cd"),
        ("(abc)+d", "abc"),
        ("abc|abd", "ab"),
        ("abc|xyz", ""),
        ("a*b{0,3}", ""),
        ("(?i)abc", ""),
        ("(?i:abc)d", "d"),
        ("(?!abc)d", "d"),
        ("(", ""),
    ],
)
def test_the_longest_certain_text_is_found(pattern: str, needle: str) -> None:
    assert required(pattern) == needle


_TOKENS = st.sampled_from(["a", "b", "ab", ".", "a*", "b+", "(ab)?", "(?:a|b)", "[ab]", "^", "$", "(?=a)", "b{2}", "|"])


@given(st.lists(_TOKENS, max_size=6).map("".join), st.text("ab", max_size=8))
def test_whatever_matches_holds_it(pattern: str, text: str) -> None:
    found = re.search(pattern, text)
    if found is not None:
        assert required(pattern) in text
