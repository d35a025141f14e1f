"""What a command prints beside its result."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from console.headless.output import advice
from console.headless.status import status_json, status_lines
from console.reasons import CATALOGUE, Reason
from tests.ui import fixtures

_KEY_OF_THE_SCREEN = re.compile(r"\(\w\)|(?:^|[;,:] |or )[a-z] (?:retries|follows|lists|chooses|shows|saves|starts)\b")


@pytest.mark.parametrize("reason", list(Reason))
def test_advice_of_a_command_names_no_key_and_promises_nothing_that_only_a_screen_does(reason: Reason) -> None:
    for step in advice(CATALOGUE[reason].next):
        assert not _KEY_OF_THE_SCREEN.search(step)
        assert "tried again by itself" not in step
        assert step


def test_why_a_rate_is_not_set_against_the_baseline_is_said_in_its_place() -> None:
    why = "slammed4 counts the tokens of one rank, this run of all GPUs"
    known = fixtures.HEALTHY.progress.rate
    progress = replace(
        fixtures.HEALTHY.progress, rate=replace(known, baseline=None, delta_pct=None, unlike=why, scope="global")
    )
    seen = replace(fixtures.HEALTHY, progress=progress)

    answer = status_json(seen)

    assert f"(not compared: {why})" in status_lines(seen)[0]
    assert answer["tok_s"]["baseline"] is None
    assert answer["why"]["tok_s.baseline"] == why
