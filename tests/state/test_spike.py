"""The loss that jumps and stays up, told from noise, outliers, warm-up and recovery."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.state import spike


def course(*losses: float, start: spike.Losses | None = None, first: int = 1) -> spike.Losses:
    found = start or spike.Losses()
    for step, loss in enumerate(losses, first):
        found = spike.see(found, loss, step, float(step))
    return found


CALM = tuple(1.2 + 0.01 * math.sin(step) for step in range(60))


def test_loss_that_stays_far_up_is_a_spike_since_its_first_step() -> None:
    found = course(*CALM, 2.9, 4.9, 4.8)

    assert found.is_spike
    assert (found.since_step, found.since_at, found.highest, found.newest) == (61, 61.0, 4.9, 4.8)
    assert found.usual == pytest.approx(1.2, abs=0.02)


@pytest.mark.parametrize("outliers", [(4.9,), (4.9, 4.8)])
def test_outlier_is_no_spike_and_belongs_to_the_noise_from_then_on(outliers: tuple[float, ...]) -> None:
    found = course(*CALM, *outliers, 1.2)

    assert not found.is_spike
    assert found.risen == ()
    assert max(found.before) == 4.9
    assert not course(5.0, 5.1, 5.0, start=found).is_spike


def test_spike_is_over_when_the_loss_is_back_and_only_then() -> None:
    up = course(*CALM, 3.0, 3.1, 3.0, 2.9, 2.8)

    assert course(1.9, 1.8, 1.8, 1.7, start=up).is_spike  # on its way, still half as high again
    back = course(1.3, 1.25, 1.2, start=up)
    assert not back.is_spike
    assert back.since_step is None


def test_spike_after_recovery_is_a_new_one() -> None:
    back = course(1.3, 1.25, 1.2, *CALM, start=course(*CALM, 3.0, 3.1, 3.0))

    again = course(3.3, 3.3, 3.3, start=back, first=500)

    assert (again.is_spike, again.since_step) == (True, 500)


@pytest.mark.parametrize(
    "losses",
    [
        pytest.param([10 * math.exp(-step / 30) + 1.5 for step in range(400)], id="warm-up falls"),
        pytest.param([1.2] * 10 + [4.0] * 10, id="too few to know"),
        pytest.param([1.2 * 1.002**step for step in range(900)], id="creeps up"),
        pytest.param([0.01] * 50 + [0.04] * 20, id="near zero"),
        pytest.param([-1.0, 0.5, 2.0] * 40 + [9.0] * 5, id="around zero, as of RL"),
        pytest.param(([1.2] * 9 + [3.5]) * 40, id="every tenth batch is hard"),
        pytest.param([1.2] * 60 + [2.0] * 40, id="up by two thirds"),
    ],
)
def test_what_is_no_spike(losses: list[float]) -> None:
    found = spike.Losses()
    for step, loss in enumerate(losses):
        found = spike.see(found, loss, step, None)
        assert not found.is_spike, step


@pytest.mark.parametrize("sigma", [0.05, 0.2, 0.4])
def test_thousands_of_noisy_steps_give_no_alarm(sigma: float) -> None:
    dice = random.Random(7)
    found = spike.Losses()
    for step in range(20_000):
        found = spike.see(found, 1.2 * math.exp(dice.gauss(0, sigma)), step, None)
        assert not found.is_spike, step


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True) | st.floats(0.5, 3.0), max_size=200))
@settings(max_examples=60)
def test_whatever_the_losses_what_is_kept_is_bounded_and_consistent(losses: list[float]) -> None:
    found = spike.Losses()
    for step, loss in enumerate(losses):
        found = spike.see(found, loss, step, None)
        assert len(found.before) <= spike.KEPT
        assert len(found.risen) <= spike.NEWEST
        assert all(map(math.isfinite, (*found.before, *found.risen)))
        assert (found.since_step is None) == (not found.risen)
        if found.is_spike:
            assert found.usual is not None
            assert found.highest is not None
            assert found.highest >= spike.JUMP_TIMES * found.usual


@given(st.lists(st.floats(1.0, 1.5), min_size=20, max_size=80), st.floats(3.4, 50.0))
@settings(max_examples=40)
def test_any_steady_loss_that_more_than_doubles_for_three_steps_is_a_spike(before: list[float], up: float) -> None:
    assert course(*before, up, up, up).is_spike
