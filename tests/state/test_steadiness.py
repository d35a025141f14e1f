"""Whether a difference of two rates is one: figures worked out by hand, and how often noise is taken for one."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.state.steadiness import (
    FEWEST,
    MOST_POINTS,
    Gap,
    Window,
    estimate,
    gap,
    later,
    memory_steps,
    rounding,
    t_quantile,
    window,
)

Rates = Callable[[random.Random, int], list[float]]


def wandering(phi: float, *, mean: float = 21_000.0, sd: float = 300.0, dips: float = 0.0) -> Rates:
    """A generator of rates in which each remembers `phi` of the one before, with dips to a few sd below."""

    def rates(rng: random.Random, n: int) -> list[float]:
        found, state = [], rng.gauss(0, 1)
        for _ in range(n):
            state = phi * state + math.sqrt(1 - phi * phi) * rng.gauss(0, 1)
            dip = rng.expovariate(0.1) if rng.random() < dips else 0.0
            found.append(mean + sd * (state - dip))
        return found

    return rates


def compared(a: list[float], b: list[float]) -> Gap:
    found = gap(a, b)
    assert found is not None
    return found


# -- one figure by hand -----------------------------------------------------------------------------------------------


def test_figure_and_spread_are_median_and_median_deviation() -> None:
    found = estimate([10.0, 12.0, 11.0, 50.0, 9.0])

    assert found is not None
    assert (found.median, found.mad, found.n) == (11.0, 1.0, 5)
    assert found.error is None
    assert "5 steady steps" in found.why


def test_error_is_that_of_the_medians_of_eight_stretches() -> None:
    medians = [100.0, 104.0, 96.0, 102.0, 98.0, 101.0, 99.0, 100.0]
    rates = [value for middle in medians for value in (middle - 1, middle + 1, middle, middle - 2, middle + 2)]

    found = estimate(rates)

    assert found is not None
    assert found.error is not None
    memory = memory_steps(rates)
    plain = statistics.stdev(medians) / math.sqrt(8)
    assert found.error == pytest.approx(plain / math.sqrt(1 - memory / (2 * 5)))


def test_quantiles_are_those_of_the_tables() -> None:
    assert t_quantile(7) == 2.365
    assert t_quantile(14) == 2.145
    assert t_quantile(10.5) == pytest.approx(2.214, abs=0.001)  # scipy.stats.t.ppf(0.975, 10.5)
    assert t_quantile(3) == 2.365
    assert t_quantile(40) == 2.145


def test_steps_that_know_nothing_of_each_other_have_no_memory() -> None:
    rng = random.Random(4)

    loose = statistics.mean(memory_steps([rng.gauss(0, 1) for _ in range(300)]) for _ in range(40))
    bound = statistics.mean(memory_steps(wandering(0.8)(rng, 300)) for _ in range(40))

    assert loose == pytest.approx(1.0, abs=0.4)
    assert bound == pytest.approx((1 + 0.8) / (1 - 0.8), rel=0.35)


# -- the two runs of the specification --------------------------------------------------------------------------------


def test_known_difference_of_two_percent_is_found_and_beyond_the_noise() -> None:
    rng = random.Random(11)
    a, b = wandering(0.5, mean=21_035 * 1.021)(rng, 300), wandering(0.5, mean=21_035)(rng, 300)

    found = compared(a, b)

    # The median's standard error of 300 such rates is sd * sqrt(pi/2 * 3 / 300) = 38; twice the root of two of them.
    assert found.delta_pct == pytest.approx(2.1, abs=0.5)
    assert found.noise_pct == pytest.approx(2.145 * 38 * math.sqrt(2) / 210.35, rel=0.6)
    assert found.significant is True


def test_what_a_log_has_rounded_away_is_no_difference() -> None:
    """`21.4K` and `21.5K` may be 21,449 and 21,451."""
    found = compared([21_500.0] * 290 + [21_400.0] * 10, [21_400.0] * 300)

    assert found.delta == 100
    assert found.noise is not None
    assert found.noise >= 100
    assert found.significant is False


@pytest.mark.parametrize(
    ("rates", "unit"),
    [
        ([21_500.0, 21_400.0], 100.0),
        ([21_480.0, 21_493.0], 1.0),
        ([21_480.5, 21_493.0], 0.0),
        ([1_200_000.0, 1_100_000.0], 100_000.0),
        ([20_000.0] * 5, 100.0),  # three digits at least are taken to count
        ([0.0, 0.0], 0.0),
    ],
)
def test_rounding_is_read_off_the_rates(rates: list[float], unit: float) -> None:
    assert rounding(rates) == unit


def test_half_a_percent_within_the_noise_is_said_to_be_within_it() -> None:
    rng = random.Random(12)
    a = wandering(0.6, mean=21_035 * 1.005, sd=900)(rng, 300)
    b = wandering(0.6, mean=21_035, sd=900)(rng, 300)

    found = compared(a, b)

    assert found.noise_pct is not None
    assert found.noise_pct > 0.7
    assert found.significant is False


@pytest.mark.parametrize(("phi", "dips"), [(0.0, 0.0), (0.5, 0.0), (0.5, 0.05), (0.8, 0.05)])
def test_noise_covers_the_true_difference_in_as_many_cases_as_it_claims(phi: float, dips: float) -> None:
    """Of 250 pairs with a difference of 2.1 % about 95 % have it within their noise of what was found."""
    cover, told = 0, 0
    for seed in range(250):
        rng = random.Random(seed)
        a, b = wandering(phi, mean=21_441.0, dips=dips)(rng, 160), wandering(phi, mean=21_000.0, dips=dips)(rng, 160)
        found = compared(a, b)
        if found.noise is not None:
            told += 1
            cover += abs(found.delta - 441.0) <= found.noise
    assert told > 125 or phi > 0.5
    assert cover >= told - 0.08 * told - 5


@pytest.mark.parametrize(
    ("phi", "dips", "n"),
    [
        (0.0, 0.0, 300), (0.0, 0.05, 40), (0.5, 0.05, 300), (0.5, 0.0, 100), (0.8, 0.0, 300), (0.9, 0.05, 200),
        (0.95, 0.0, 300), (0.95, 0.05, 100),
    ],
)  # fmt: skip
def test_noise_alone_is_called_a_difference_in_five_of_a_hundred_cases_at_most(phi: float, dips: float, n: int) -> None:
    """How it was claimed. 250 pairs: 5 % are 12.5, and chance adds two of its own deviations of 3.4."""
    wrong = 0
    for seed in range(250):
        rng = random.Random(1000 + seed)
        found = compared(wandering(phi, dips=dips)(rng, n), wandering(phi, dips=dips)(rng, n))
        wrong += found.significant is True

    assert wrong <= 19


def test_the_usual_error_of_a_mean_would_be_wrong_in_most_cases_where_steps_hang_together() -> None:
    """Why all this: without it noise would be taken for a difference again and again."""
    wrong = 0
    for seed in range(100):
        rng = random.Random(seed)
        a, b = wandering(0.9)(rng, 300), wandering(0.9)(rng, 300)
        error = math.sqrt(statistics.variance(a) / 300 + statistics.variance(b) / 300)
        wrong += abs(statistics.mean(a) - statistics.mean(b)) > 1.96 * error

    assert wrong > 40


def test_a_rate_that_drifts_is_not_judged() -> None:
    drifting = [21_000.0 + 5 * step for step in range(300)]
    rng = random.Random(5)

    found = compared(drifting, wandering(0.0)(rng, 300))

    assert (found.significant, found.noise) == (None, None)
    assert "A: it drifts" in found.why


# -- whatever comes in ------------------------------------------------------------------------------------------------


@given(a=st.lists(st.floats(1.0, 1e6), max_size=120), b=st.lists(st.floats(1.0, 1e6), max_size=120))
def test_any_rates_give_an_answer_that_holds_together(a: list[float], b: list[float]) -> None:
    found = gap(a, b)

    if not a or not b:
        assert found is None
        return
    assert found is not None
    assert found.delta == statistics.median(a) - statistics.median(b)
    if len(a) < FEWEST or len(b) < FEWEST:
        assert found.significant is None
    assert (found.significant is None) == (found.noise is None) == bool(found.why)
    if found.noise is not None:
        assert math.isfinite(found.noise)
        assert found.noise >= 0


@given(rates=st.lists(st.floats(1.0, 1e6), min_size=FEWEST, max_size=100))
def test_a_run_does_not_differ_from_itself(rates: list[float]) -> None:
    found = compared(rates, rates)

    assert found.delta == 0
    assert found.significant in (False, None)


def test_other_way_round_is_the_same_with_another_sign() -> None:
    rng = random.Random(8)
    a, b = wandering(0.3)(rng, 100), wandering(0.3, mean=20_000)(rng, 100)

    one, other = compared(a, b), compared(b, a)

    assert (one.delta, one.noise, one.significant) == (-other.delta, other.noise, other.significant)


# -- windows ----------------------------------------------------------------------------------------------------------


@given(n=st.integers(1, 3000))
def test_windows_are_bounded_and_keep_the_mean(n: int) -> None:
    found = window([(float(i), float(i % 7)) for i in range(n)])

    assert len(found.rates) <= MOST_POINTS
    assert found.ended_s == n - 1
    if n <= MOST_POINTS:
        assert found.rates == tuple(float(i % 7) for i in range(n))


def test_of_two_windows_the_one_that_ends_later_is_kept() -> None:
    early, late, fuller = Window(10.0, (1.0,)), Window(20.0, (2.0,)), Window(20.2, (2.0, 3.0))

    assert later(early, late) == later(late, early) == late
    assert later(late, fuller) == later(fuller, late) == fuller
    assert later(Window(), early) == early
