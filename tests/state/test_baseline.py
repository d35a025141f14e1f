"""Rates that count different tokens are never set against each other: not in figures, not in a verdict."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from console.model import Verdict
from console.reasons import Reason
from console.state import events
from console.state.baseline import Baseline, unlike
from console.state.formatrules import Scope
from tests.state.story import Story

_OF_ONE_RANK = Baseline(tok_s=14_500.0, name="slammed4", scope=Scope.RANK)
_WHY = "slammed4 counts the tokens of one rank, this run of all GPUs"


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (Scope.GLOBAL, Scope.GLOBAL, None),
        (Scope.GLOBAL, Scope.DERIVED, None),
        (Scope.GLOBAL, Scope.RANK, ("all GPUs", "one rank")),
        (Scope.PER_DEVICE, Scope.DERIVED, ("one GPU", "all GPUs")),
        (Scope.RANK, None, None),
        (None, Scope.GLOBAL, None),
        ("of a newer console", Scope.GLOBAL, ("of a newer console", "all GPUs")),
    ],
)
def test_rates_differ_in_kind_where_they_count_different_tokens(
    ours: str | None, theirs: str | None, expected: tuple[str, str] | None
) -> None:
    assert unlike(ours, theirs) == expected


def test_a_number_that_somebody_gave_is_meant_as_the_log_counts() -> None:
    given = Baseline(tok_s=14_500.0, name="baseline")

    assert [given.against(scope) for scope in (*Scope, None)] == [14_500.0] * (len(Scope) + 1)
    assert Baseline().why_not(Scope.RANK) == ""


def _slow(baseline: Baseline) -> Story:
    """A run that has fallen to 12,000 tokens/s of all GPUs, and was compared with this from the beginning."""
    story = Story().up().tell(events.HistoryKnown(at=Story().at, baseline=baseline))
    return story.stepping(2).steps(3, 150).steps(151, 260, tok_s=12_000.0)


def test_run_is_slow_against_a_baseline_that_counts_the_same_tokens() -> None:
    story = _slow(replace(_OF_ONE_RANK, scope=Scope.GLOBAL))

    seen = story.snapshot
    assert seen.verdict is Verdict.SLOW
    assert seen.reason is not None
    assert (seen.reason.slug, seen.progress.rate.unlike) == (str(Reason.SLOW), "")
    assert seen.progress.rate.delta_pct is not None


def test_run_is_not_slow_against_a_baseline_that_counts_other_tokens() -> None:
    seen = _slow(_OF_ONE_RANK).snapshot

    assert seen.verdict is Verdict.STEPPING
    assert (seen.progress.rate.baseline, seen.progress.rate.delta_pct) == (None, None)
    assert (seen.progress.rate.baseline_name, seen.progress.rate.unlike) == ("slammed4", _WHY)
