"""What a command prints beside its result."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from console.headless.output import advice
from console.headless.status import status_json, status_lines
from console.model import Gpu
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


def test_contexts_that_nobody_can_tell_are_not_counted_as_none() -> None:
    gpus = tuple(replace(gpu, context=None, owner="unknown") for gpu in fixtures.HEALTHY.gpus.gpus)
    seen = replace(fixtures.HEALTHY, gpus=replace(fixtures.HEALTHY.gpus, gpus=gpus, contexts=()))

    assert " gpus=?/8 " in f"{status_lines(seen)[0]} "
    assert " gpus=0/8 " in f"{status_lines(replace(seen, gpus=replace(seen.gpus, gpus=none_held(gpus))))[0]} "


def none_held(gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    return tuple(replace(gpu, context=False) for gpu in gpus)
