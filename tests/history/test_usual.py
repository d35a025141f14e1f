"""Expected times: medians by stage and by what was done about the cache."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.history.entry import CLEARED, KEPT
from console.history.usual import NEWEST, Kinds, Timing, Usual, kinds, usual
from console.model import Stage

SECONDS = st.floats(0, 10_000, allow_nan=False)


def launch(kind: str | None = CLEARED, /, **stages: float) -> Timing:
    return Timing(id="r", cache=kind, stages={Stage(name): took for name, took in stages.items()})


def test_cleared_and_kept_cache_are_kept_apart() -> None:
    past = [launch(CLEARED, cuda=110.0, stepping=90.0), launch(KEPT, cuda=40.0, stepping=10.0)]

    found = kinds(past)
    cleared, kept = found.cleared, found.kept

    assert (cleared.usual_s[Stage.CUDA], cleared.usual_s[Stage.STEPPING]) == (110.0, 90.0)
    assert (kept.usual_s[Stage.CUDA], kept.usual_s[Stage.STEPPING]) == (40.0, 10.0)


def test_killing_and_exec_learn_from_every_launch() -> None:
    found = kinds([launch(CLEARED, killing=10.0, spawned=1.0), launch(KEPT, killing=14.0, spawned=3.0)])

    for each in (found.cleared, found.kept):
        assert (each.usual_s[Stage.KILLING], each.usual_s[Stage.SPAWNED]) == (12.0, 2.0)


def test_one_launch_on_a_cold_disk_is_not_usual_but_the_longest() -> None:
    found = usual([launch(cuda=took) for took in (112.0, 110.0, 900.0, 113.0, 111.0)], CLEARED)

    assert found.usual_s[Stage.CUDA] == 112.0
    assert found.longest_s[Stage.CUDA] == 900.0


def test_stage_that_no_launch_reached_is_not_known() -> None:
    found = usual([launch(killing=12.0, spawned=0.8)], CLEARED)

    assert Stage.CUDA not in found.usual_s
    assert found.total_s(kills=True) is None
    assert found.launches == 0


def test_launch_of_an_unknown_kind_says_nothing_of_either() -> None:
    found = kinds([launch(None, cuda=110.0)])

    assert Stage.CUDA not in found.cleared.usual_s
    assert Stage.CUDA not in found.kept.usual_s


def test_total_leaves_out_what_will_not_be_done() -> None:
    found = usual([launch(killing=12.0, cache=1.0, spawned=0.8, cuda=112.0, stepping=96.0)], CLEARED)

    assert found.total_s(kills=True) == pytest.approx(221.8)
    assert found.total_s(kills=False) == pytest.approx(209.8)


def test_total_without_gpus_needs_no_cuda_time() -> None:
    found = usual([launch(spawned=1.0, stepping=4.0)], CLEARED)

    assert found.total_s(kills=False, has_gpus=False) == 5.0
    assert found.total_s(kills=False) is None


def test_kept_cache_takes_no_time_to_clear() -> None:
    found = usual([launch(KEPT, spawned=1.0, cuda=3.0, stepping=4.0)], KEPT)

    assert found.usual_s[Stage.CACHE] == 0.0
    assert found.total_s(kills=True) == 8.0


def test_unknown_kind_means_that_the_cache_is_cleared() -> None:
    found = Kinds(cleared=Usual(launches=1), kept=Usual(launches=2))

    assert [found.of(kind).launches for kind in (None, CLEARED, KEPT)] == [1, 1, 2]


@given(times=st.lists(SECONDS, min_size=1, max_size=60))
def test_usual_is_the_median_of_the_newest_and_no_longer_than_the_longest(times: list[float]) -> None:
    found = usual([launch(stepping=took) for took in times], CLEARED)

    newest = times[:NEWEST]
    assert found.usual_s[Stage.STEPPING] == statistics.median(newest)
    assert found.longest_s[Stage.STEPPING] == max(newest)
    assert min(newest) <= found.usual_s[Stage.STEPPING] <= found.longest_s[Stage.STEPPING]
    assert found.launches == len(newest)


@given(own=st.lists(SECONDS, max_size=20), other=st.lists(SECONDS, max_size=20))
def test_launches_of_the_other_kind_change_nothing(own: list[float], other: list[float]) -> None:
    mine = [launch(KEPT, cuda=took, stepping=took) for took in own]
    theirs = [launch(CLEARED, cuda=took, stepping=took) for took in other]

    assert usual([*theirs, *mine], KEPT) == usual(mine, KEPT)
