"""A curve in a bounded number of buckets."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.state.digest import Digest, Digester, merged

POINTS = st.lists(st.tuples(st.floats(0, 5_000), st.floats(-1e6, 1e6)), max_size=60)


def digest(points: list[tuple[float, float]], capacity: int = 16) -> Digest:
    digester = Digester(capacity=capacity)
    for step, (at, value) in enumerate(points):
        digester.add(at, value, step)
    return digester.digest


@given(points=POINTS)
def test_buckets_are_bounded_ordered_and_keep_count_mean_and_extremes(points: list[tuple[float, float]]) -> None:
    found = digest(points)

    indexes = [bucket.index for bucket in found.buckets]
    assert indexes == sorted(set(indexes))
    assert all(0 <= index < 16 for index in indexes)
    assert found.count == len(points)
    if points:
        values = [value for _, value in points]
        mean = sum(bucket.mean * bucket.n for bucket in found.buckets) / len(points)
        assert mean == pytest.approx(sum(values) / len(values), abs=1e-3)
        assert min(bucket.low for bucket in found.buckets) == min(values)
        assert max(bucket.high for bucket in found.buckets) == max(values)


@given(points=POINTS)
def test_each_value_lies_in_the_bucket_of_its_time(points: list[tuple[float, float]]) -> None:
    found = digest(points)

    for at, value in points:
        bucket = next(each for each in found.buckets if each.index == int(at / found.width_s))
        assert bucket.low <= value <= bucket.high


@given(a=POINTS, b=POINTS)
def test_merging_is_the_same_either_way_and_merging_again_changes_nothing(
    a: list[tuple[float, float]], b: list[tuple[float, float]]
) -> None:
    first, second = digest(a), digest(b)

    both = merged(first, second, 16)

    counts = [(bucket.index, bucket.n) for bucket in both.buckets]
    assert counts == [(bucket.index, bucket.n) for bucket in merged(second, first, 16).buckets]
    assert merged(both, first, 16) == both
    assert merged(first, first, 16) == first


@given(points=POINTS)
def test_going_on_from_what_was_kept_is_as_if_nothing_had_happened(points: list[tuple[float, float]]) -> None:
    half = len(points) // 2
    points = sorted(points)

    resumed = Digester(digest(points[:half]), capacity=16)
    for step, (at, value) in enumerate(points[half:], half):
        resumed.add(at, value, step)

    whole = digest(points)
    assert [(b.index, b.n, b.low, b.high, b.step) for b in resumed.digest.buckets] == [
        (b.index, b.n, b.low, b.high, b.step) for b in whole.buckets
    ]


def test_what_is_no_number_or_before_the_first_step_is_passed_over() -> None:
    assert digest([(math.nan, 1.0), (1.0, math.nan), (1.0, math.inf), (-0.5, 1.0), (math.inf, 1.0)]) == Digest()
