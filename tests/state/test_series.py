"""What is steady, what is kept and what a plot may show, on numbers worked out by hand."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.state.series import Series, Steady, loss_limits, percentile, rate_limits


def run(values: list[float], *, first: int = 1000, start: int = 1000, every_s: float = 2.0) -> Series:
    """A series whose warm-up is over: the first step of the launch lies 1,000 steps back."""
    series = Series(first_step=first - 1000)
    for number, value in enumerate(values):
        series.add(number * every_s, value, start + number, "global")
    return series


def test_steady_is_median_and_mad() -> None:
    # median 21; deviations 1, 0, 3, 2, 79 -> sorted 0 1 2 3 79 -> 2
    assert run([20.0, 21.0, 24.0, 19.0, 100.0]).steady(10.0) == Steady(21.0, 2.0, 5)


def test_steady_of_an_even_number_of_points_is_the_mean_of_the_middle_two() -> None:
    # median (10 + 20) / 2 = 15; deviations 14, 5, 5, 25 -> (5 + 14) / 2 = 9.5
    assert run([1.0, 10.0, 20.0, 40.0]).steady(10.0) == Steady(15.0, 9.5, 4)


def test_steady_leaves_out_the_first_fifty_steps_of_the_launch() -> None:
    series = Series()
    for number in range(60):
        series.add(float(number), 1.0 if number < 50 else 5.0, 18_000 + number)

    assert series.steady(60.0) == Steady(5.0, 0.0, 10)


def test_steady_speaks_of_the_last_ten_minutes_only() -> None:
    series = run([1.0, 1.0, 1.0, 7.0], every_s=300.0)

    assert series.steady(900.0) == Steady(1.0, 0.0, 3)
    assert series.steady(1500.0) == Steady(7.0, 0.0, 1)
    assert series.steady(1501.0) is None


def test_steady_of_nothing_is_unknown() -> None:
    assert Series().steady(0.0) is None
    assert run([1.0], first=1000, start=20).steady(1.0) is None


@pytest.mark.parametrize("when", ["checkpoint line before the step line", "checkpoint line after it"])
def test_steady_leaves_out_the_checkpoint_step_and_the_one_after(when: str) -> None:
    series = run([10.0, 10.0])
    if when == "checkpoint line before the step line":
        series.checkpoint(1002)
        series.add(4.0, 3.0, 1002, "global")
    else:
        series.add(4.0, 3.0, 1002, "global")
        series.checkpoint(1002)

    for step, value in ((1003, 2.0), (1004, 12.0)):
        series.add(float(step - 996), value, step, "global")

    # steps 1000, 1001 and 1004 are left: 10, 10, 12
    assert series.steady(20.0) == Steady(10.0, 0.0, 3)


def test_checkpoint_between_two_logged_steps_leaves_out_the_next_one() -> None:
    series = Series(first_step=0)
    for step in (100, 110):
        series.add(float(step), 5.0, step)

    series.checkpoint(115)
    series.add(120.0, 1.0, 120)
    series.add(130.0, 5.0, 130)

    assert series.steady(130.0) == Steady(5.0, 0.0, 3)


def test_steady_never_mixes_scopes() -> None:
    series = Series(first_step=0)
    for number in range(4):
        series.add(float(number), 700.0, 100 + number, "per_device")
    series.add(4.0, 5600.0, 104, "global")

    assert series.steady(4.0) == Steady(5600.0, 0.0, 1)


def test_a_step_that_goes_back_starts_a_new_segment_with_a_warm_up() -> None:
    series = run([5.0, 5.0])

    series.add(100.0, 1.0, 500, "global")

    assert [point.opens for point in series.points] == [False, False, True]
    assert series.steady(100.0) == Steady(5.0, 0.0, 2)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused_and_counted(value: float) -> None:
    series = Series()

    assert not series.add(1.0, value)

    assert (len(series), series.refused) == (0, 1)


def test_gap_is_kept_between_points() -> None:
    series = Series()
    series.gap()
    series.add(1.0, 1.0)
    series.gap()
    series.add(2.0, 2.0)
    series.add(3.0, 3.0)

    assert [point.opens for point in series.points] == [False, True, False]


@pytest.mark.parametrize(
    ("steps", "silent_s", "is_gap"),
    [
        (1, 3600.0, True),
        (1, 55.0, False),  # a checkpoint, an evaluation
        (1000, 2000.0, False),  # the next place of a long log that is read in places: 2 s a step
        (1000, 5600.0, False),  # slower, yet not so much that it can't be one curve
        (1000, 9600.0, True),
    ],
)
def test_time_that_the_steps_do_not_account_for_is_a_gap(steps: int, silent_s: float, is_gap: bool) -> None:
    series = Series()
    for step in range(100):
        series.add(step * 2.0, 21_000.0, step)

    series.add(198.0 + silent_s, 21_000.0, 99 + steps)

    assert series.points[-1].opens is is_gap
    assert not any(point.opens for point in series.points[:-1])


def test_first_steps_of_a_run_that_compiles_are_one_curve() -> None:
    """Three minutes from step 0 to 1, and each tenth step is slow: nothing tells yet what is usual."""
    series = Series()
    for at, step in ((0.0, 0), (180.0, 1), (182.0, 2), (184.0, 3)):
        series.add(at, 1.0, step)

    assert not any(point.opens for point in series.points)


def test_time_never_runs_backwards() -> None:
    series = Series()
    series.add(5.0, 1.0)
    series.add(4.0, 2.0)

    assert [point.at for point in series.points] == [5.0, 5.0]


def test_a_single_dip_survives_any_number_of_points() -> None:
    series = Series(capacity=64)
    for number in range(10_000):
        series.add(float(number), -1.0 if number == 777 else 50.0 if number == 5_555 else 20.0, number)

    values = [point.value for point in series.points]
    assert (min(values), max(values)) == (-1.0, 50.0)
    assert (series.points[0].at, series.points[-1].at) == (0.0, 9_999.0)


@given(
    st.lists(st.tuples(st.floats(-1e9, 1e9), st.booleans()), min_size=1, max_size=300),
    st.integers(8, 40),
)
def test_store_is_bounded_ordered_and_keeps_the_extremes(points: list[tuple[float, bool]], capacity: int) -> None:
    series = Series(capacity)
    for number, (value, _) in enumerate(points):
        series.add(float(number), value)

    kept = series.points
    assert len(kept) <= capacity
    assert [point.at for point in kept] == sorted(point.at for point in kept)
    assert min(point.value for point in kept) == min(value for value, _ in points)
    assert max(point.value for point in kept) == max(value for value, _ in points)


def test_many_gaps_do_not_break_the_bound() -> None:
    series = Series(capacity=32)
    for number in range(1_000):
        series.gap()
        series.add(float(number), float(number))

    assert len(series) <= 32
    assert all(point.opens for point in series.points[1:])


def test_percentile_interpolates_between_neighbours() -> None:
    # 0..10: place 9.9 of 10 -> 9.9;  four values: place 1.5 -> between 2 and 3
    assert percentile(list(map(float, range(11))), 99) == pytest.approx(9.9)
    assert percentile([1.0, 2.0, 3.0, 4.0], 50) == 2.5
    assert percentile([7.0], 99) == 7.0
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_rate_limits_follow_the_lower_reference_and_the_99th_percentile() -> None:
    values = [20_000.0] * 50 + [22_000.0] * 51

    with_baseline = rate_limits(values, 14_500.0, 21_000.0)
    without = rate_limits(values, None, 21_000.0)

    assert with_baseline is not None
    assert without is not None
    assert (with_baseline.low, with_baseline.high) == pytest.approx((10_150.0, 24_200.0))
    assert (without.low, without.high) == pytest.approx((14_700.0, 24_200.0))
    assert rate_limits([], 1.0, 1.0) is None


def test_one_outlier_does_not_flatten_the_plot() -> None:
    limits = rate_limits([21_000.0] * 1_000 + [1e6], None, 21_000.0)

    assert limits is not None
    assert limits.high == pytest.approx(23_100.0)


def test_limits_are_never_empty() -> None:
    for values in ([0.0], [0.0, 0.0], [-5.0, -5.0]):
        limits = rate_limits(values, None, None)
        assert limits is not None
        assert limits.low < limits.high
        loss = loss_limits(values)
        assert loss is not None
        assert loss.low < loss.high


def test_loss_limits_clip_at_the_98th_percentile_of_the_second_half() -> None:
    # second half 2.0 .. 1.01 in steps of 0.01: 100 values, place 97.02 of 99 from below -> 1.01 + 0.9702
    values = [9.0] * 100 + [2.0 - 0.01 * n for n in range(100)]

    limits = loss_limits(values)

    assert limits is not None
    assert limits.low == pytest.approx(1.01)
    assert limits.high == pytest.approx(1.9802)


@pytest.mark.parametrize("lowest", [-1e9, 0.0])
def test_one_loss_far_below_all_others_does_not_flatten_the_plot(lowest: float) -> None:
    """200 losses from 2.0 down to 1.801; the 98th percentile of the later hundred is 1.89802."""
    values = [2.0 - 0.001 * n for n in range(200)]
    values[150] = lowest

    limits = loss_limits(values)

    assert limits is not None
    assert 1.8 < limits.low < 1.81
    assert limits.high == pytest.approx(1.89802)


def test_restarts_and_checkpoints_are_remembered_with_their_times() -> None:
    series = Series()
    for at, step in ((1.0, 10), (2.0, 20)):
        series.add(at, 1.0, step)
    series.checkpoint(20)
    series.checkpoint(20)
    series.add(3.0, 1.0, 15)

    assert series.saves == [(2.0, 20)]
    assert series.restarts == [3.0]


@pytest.mark.parametrize("timed", [True, False])
def test_part_that_was_read_densely_does_not_push_out_the_rest(timed: bool) -> None:
    # A long run: its start and its end are read line by line, what lies between by a piece here and there.
    series = Series(capacity=512)
    series.untimed = not timed
    for step in [*range(2_000), *range(2_000, 98_000, 1_000), *range(98_000, 100_000)]:
        series.add(step * 1.0 if timed else 5.0, 20.0 + step % 7, step)

    between = [point for point in series.points if 2_000 <= (point.step or 0) < 98_000]

    assert len(series) <= 512
    assert len(between) >= 60
    assert max((after.step or 0) - (before.step or 0) for before, after in pairwise(between)) <= 5_000


def test_last_ten_minutes_keep_more_than_their_share() -> None:
    series = Series(capacity=512)
    for second in range(100_000):
        series.add(float(second), 20.0 + second % 7, second)

    # 600 of 100,000 s are three thousandths of the time, and here more than a tenth of the points
    assert sum(point.at >= 99_400 for point in series.points) >= 51
