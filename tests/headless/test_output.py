"""What a command prints beside its result."""

from __future__ import annotations

import re

import pytest

from console.headless.output import advice
from console.reasons import CATALOGUE, Reason

_KEY_OF_THE_SCREEN = re.compile(r"\(\w\)|(?:^|[;,:] |or )[a-z] (?:retries|follows|lists|chooses|shows|saves|starts)\b")


@pytest.mark.parametrize("reason", list(Reason))
def test_advice_of_a_command_names_no_key_and_promises_nothing_that_only_a_screen_does(reason: Reason) -> None:
    for step in advice(CATALOGUE[reason].next):
        assert not _KEY_OF_THE_SCREEN.search(step)
        assert "tried again by itself" not in step
        assert step
