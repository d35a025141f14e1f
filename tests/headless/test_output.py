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


def test_a_step_is_not_told_as_the_newest_while_the_log_is_still_being_read() -> None:
    log = replace(fixtures.HEALTHY.log, unread=True, caught_up=False)
    seen = replace(fixtures.HEALTHY, log=log)
    so_far = f"its log is still being read, so far to step {seen.progress.step}: ask again"

    first, second, *_ = status_lines(seen)
    answer = status_json(seen)

    assert not re.search(r" (?:step|tok/s|loss|queue)=", first)
    assert second == f"  {so_far}"
    assert {answer[name] for name in ("step", "loss", "queue", "checkpoint")} == {None}
    assert (answer["tok_s"]["now"], answer["tok_s"]["steady"]) == (None, None)
    assert answer["log"]["unread"] is True
    assert {answer["why"][name] for name in ("step", "loss", "queue", "checkpoint", "tok_s.now")} == {so_far}
    assert status_json(fixtures.HEALTHY)["step"] == seen.progress.step
    assert (seen.steps_at_stake, fixtures.HEALTHY.steps_at_stake is None) == (None, False)


def none_held(gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    return tuple(replace(gpu, context=False) for gpu in gpus)
