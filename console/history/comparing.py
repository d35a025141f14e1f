"""One run beside another: rate with its noise, tokens after equal time, loss at equal step, launch, memory, load, and
the gap between their curves. Pure.

Curves are compared as the ledger keeps them: means of stretches of time since the first step. What one of the two has
no numbers for is None, never 0.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from console.history.entry import Entry
from console.history.samples import Curves
from console.model import Change, PastRun
from console.state import steadiness
from console.state.baseline import unlike
from console.state.changes import changes
from console.state.digest import Digest

SMOOTH_S: Final = 300.0
"""The gap is shown as the median of 5 minutes; of short runs of a tenth of what there is."""
_COVERED: Final = 0.9
"""Tokens after a time are told where so much of it was watched."""
_HOLDS: Final = 3.0
"""A rate holds until the next one, up to so many usual distances; beyond that nobody watched."""
SAMPLED_SHARE: Final = 1 / 12
"""A long log without a run is read at some 24 places: what lies between two of them is so much of it at most, with room
for a pace that changes. A longer hole is one in which nothing was written."""
_ABOUT: Final = 0.1
"""Tokens are an estimate where more of the time than that lies between such places."""

Points = Sequence[tuple[float, float]]


class Pair(Struct, frozen=True):
    """A number of each; None where one has none."""

    a: float | None
    b: float | None

    @property
    def delta(self) -> float | None:
        return self.a - self.b if self.a is not None and self.b is not None else None

    @property
    def delta_pct(self) -> float | None:
        return (self.a / self.b - 1) * 100 if self.a is not None and self.b else None


class Comparison(Struct, frozen=True, kw_only=True):
    a: Entry
    b: Entry
    rate: steadiness.Gap | None = None
    unlike: str = ""
    """Why the rates are not set against each other though both may be known: they count different tokens."""
    equal_s: float | None = None
    """Both have run for so long since their first step."""
    tokens: Pair | None = None
    """Tokens within that time."""
    tokens_about: tuple[bool, bool] = (False, False)
    """Whether those of A and of B are estimated from parts of a log."""
    equal_step: int | None = None
    loss: Pair | None = None
    """Mean loss of the steps up to that step, a hundredth of it or ten."""
    launch_s: Pair | None = None
    peak_gpu: str | None = None
    """The GPU that the peaks are of."""
    peak_bytes: Pair | None = None
    busy_pct: dict[str, Pair] = {}
    """By role; the mean over the run."""
    power_w: dict[str, Pair] = {}
    queue_empty_pct: Pair | None = None
    changes: tuple[Change, ...] | None = None
    """From B to A; None where the settings of one are not known."""


def compare(a: tuple[Entry, Curves], b: tuple[Entry, Curves]) -> Comparison:
    """Return A against B."""
    (one, ours), (other, theirs) = a, b
    equal_s = _equal_time(ours.digests.get("tok_s"), theirs.digests.get("tok_s"))
    losses = ours.digests.get("loss"), theirs.digests.get("loss")
    equal_step = _equal_step(losses, (one.first_step, other.first_step))
    peak_gpu = _peak_gpu(one, other)
    why_not = _unlike(one.scope, other.scope)
    a_tokens = _tokens(ours.digests.get("tok_s"), equal_s, sampled=one.is_log_only)
    b_tokens = _tokens(theirs.digests.get("tok_s"), equal_s, sampled=other.is_log_only)
    tokens = _pair(a_tokens.tokens, b_tokens.tokens)
    return Comparison(
        a=one,
        b=other,
        rate=_rate(a, b) if not why_not else None,
        unlike=why_not,
        equal_s=equal_s,
        tokens=tokens if not why_not else None,
        tokens_about=(a_tokens.is_about, b_tokens.is_about),
        equal_step=equal_step,
        loss=_pair(_loss_at(losses[0], equal_step), _loss_at(losses[1], equal_step)),
        launch_s=_pair(one.launch_s, other.launch_s),
        peak_gpu=peak_gpu,
        peak_bytes=_pair(one.peaks.get(peak_gpu or ""), other.peaks.get(peak_gpu or "")),
        busy_pct=_by_role(ours, theirs, "busy"),
        power_w=_by_role(ours, theirs, "power"),
        queue_empty_pct=_pair(one.queue_empty_pct, other.queue_empty_pct),
        changes=_changes(one, other),
    )


def _rate(a: tuple[Entry, Curves], b: tuple[Entry, Curves]) -> steadiness.Gap | None:
    found = steadiness.gap(a[1].steady.rates, b[1].steady.rates)
    if found is None:
        return None
    return replace(found, a=_of_single_steps(found.a, a[0]), b=_of_single_steps(found.b, b[0]))


def _of_single_steps(found: steadiness.Estimate, run: Entry) -> steadiness.Estimate:
    """Give a rate the spread of its steps as it was noted, where means of some neighbours alone are kept: these spread
    less."""
    if (
        run.steady_mad is None
        or run.steady_n is None
        or found.n < steadiness.MOST_POINTS // 2
        or run.steady_n <= found.n
    ):
        return found
    return replace(found, mad=run.steady_mad, n=run.steady_n)


def _unlike(a: str | None, b: str | None) -> str:
    """Say that two rates count different tokens; empty where they don't, or where one isn't known."""
    differing = unlike(a, b)
    return f"A counts the tokens of {differing[0]}, B of {differing[1]}" if differing else ""


def _pair(a: float | None, b: float | None) -> Pair | None:
    """Return both, one of them may be missing; None where both are."""
    return None if a is None and b is None else Pair(a, b)


def _changes(a: Entry, b: Entry) -> tuple[Change, ...] | None:
    if a.is_log_only or b.is_log_only:
        return None
    return changes(PastRun(id=b.id, name=b.name, settings=b.settings), a.settings).items


def _peak_gpu(a: Entry, b: Entry) -> str | None:
    """The GPU with the highest peak of those that both have used, else of those of either."""
    both = a.peaks.keys() & b.peaks.keys() or a.peaks.keys() | b.peaks.keys()
    return max(both, key=lambda gpu: (max(a.peaks.get(gpu, 0), b.peaks.get(gpu, 0)), gpu), default=None)


def _by_role(a: Curves, b: Curves, what: str) -> dict[str, Pair]:
    names = [name for name in {**a.digests, **b.digests} if name.startswith(f"{what}:")]
    found = {}
    for name in names:
        pair = _pair(_mean(a.digests.get(name)), _mean(b.digests.get(name)))
        if pair is not None:
            found[name.partition(":")[2]] = pair
    return found


def _mean(digest: Digest | None) -> float | None:
    if digest is None or not digest.buckets:
        return None
    return sum(bucket.mean * bucket.n for bucket in digest.buckets) / digest.count


# -- tokens after equal time ------------------------------------------------------------------------------------------


def _last_s(digest: Digest | None) -> float | None:
    return (digest.buckets[-1].index + 1) * digest.width_s if digest is not None and digest.buckets else None


def _equal_time(a: Digest | None, b: Digest | None) -> float | None:
    one, other = _last_s(a), _last_s(b)
    if one is None or other is None:
        return None
    seconds = min(one, other)
    unit = 1.0 if seconds < 120 else 60.0 if seconds < 7200 else 600.0
    return seconds // unit * unit or None


class _Tokens(Struct, frozen=True):
    tokens: float | None = None
    is_about: bool = False


def _tokens(digest: Digest | None, until_s: float | None, *, sampled: bool) -> _Tokens:
    """Return the rate summed over time; what was not watched is filled with the mean where it is little, else None.

    `sampled`: of a log that was read in places, between which the rate goes from the one to the other.
    """
    if digest is None or until_s is None or not digest.buckets:
        return _Tokens()
    points = [(digest.middle_s(bucket), bucket.mean) for bucket in digest.buckets if digest.middle_s(bucket) <= until_s]
    if not points:
        return _Tokens()
    gaps = [after[0] - before[0] for before, after in pairwise(points)]
    reach = _HOLDS * max(digest.width_s, median(gaps) if gaps else 0.0)
    holds = _HOLDS * digest.width_s if sampled else reach
    if sampled:
        reach = max(reach, SAMPLED_SHARE * (_last_s(digest) or 0.0))
    tokens, covered, between = points[0][1] * points[0][0], points[0][0], 0.0
    if covered > reach:
        tokens = covered = 0.0
    for (at, rate), (after, next_rate) in zip(points, [*points[1:], (until_s, points[-1][1])], strict=True):
        length = after - at
        if length <= holds:
            tokens, covered = tokens + rate * length, covered + length
        elif length <= reach:
            tokens, covered, between = tokens + (rate + next_rate) / 2 * length, covered + length, between + length
    if covered < _COVERED * until_s:
        return _Tokens()
    return _Tokens(tokens / covered * until_s, between > _ABOUT * until_s)


# -- loss at equal step -----------------------------------------------------------------------------------------------


def _steps(digest: Digest | None) -> list[int]:
    return [bucket.step for bucket in digest.buckets if bucket.step is not None] if digest is not None else []


def _equal_step(losses: tuple[Digest | None, Digest | None], first: tuple[int | None, int | None]) -> int | None:
    """Return the last round step that both have made; None where there is none: one may have begun where the other
    never came."""
    steps = [_steps(digest) for digest in losses]
    if not all(steps):
        return None
    step = min(max(each) for each in steps)
    unit = 1 if step < 100 else 10 if step < 1000 else 100 if step < 10_000 else 1000
    begun = max(own if own is not None else min(each) for own, each in zip(first, steps, strict=True))
    return next((round_ for round_ in (step // unit * unit, step) if round_ and round_ >= begun), None)


def _loss_at(digest: Digest | None, step: int | None) -> float | None:
    if digest is None or step is None:
        return None
    reach = max(10, step // 100)
    known = [each for each in digest.buckets if each.step is not None]
    near = [each for each in known if each.step is not None and step - reach < each.step <= step]
    if near:
        return sum(bucket.mean * bucket.n for bucket in near) / sum(bucket.n for bucket in near)
    index = next((index for index, each in enumerate(known) if each.step is not None and each.step >= step), None)
    if index is None:
        return None
    after, before = known[index], known[index - 1] if index else None
    if before is None or before.step is None or after.step is None:
        return after.mean if after.index == 0 else None  # nobody may have watched before it
    if before.index + 1 == after.index:
        return after.mean  # the step is one of those in it
    return before.mean + (after.mean - before.mean) * (step - before.step) / (after.step - before.step)


# -- the gap of two curves --------------------------------------------------------------------------------------------


def curve(digest: Digest, *, by_step: bool) -> list[tuple[float, float]]:
    """Return a curve as points: over seconds since the first step, or over steps."""
    if not by_step:
        return [(digest.middle_s(bucket), bucket.mean) for bucket in digest.buckets]
    points: list[tuple[float, float]] = []
    for bucket in digest.buckets:
        if bucket.step is not None and (not points or bucket.step > points[-1][0]):
            points.append((float(bucket.step), bucket.mean))
    return points


def gap_curve(a: Points, b: Points, smooth: float, *, sampled: bool = False) -> list[tuple[float, float]]:
    """Return A over B in percent where both have numbers; both are smoothed by the median of `smooth` before.

    `sampled`: B's log was read in places. Where B is below zero, more is still more.
    """
    one, other = smoothed(a, smooth), smoothed(b, smooth)
    if len(one) < 2 or len(other) < 2:
        return []
    xs = [x for x, _ in other]
    reach = _HOLDS * max(median([after - before for before, after in pairwise(xs)]), smooth / 2)
    reach = max(reach, SAMPLED_SHARE * (xs[-1] - xs[0])) if sampled else reach
    found = []
    for x, value in one:
        there = _between(other, xs, x, reach)
        if there:
            found.append((x, (value - there) / abs(there) * 100))
    return found


def smoothed(points: Points, width: float) -> list[tuple[float, float]]:
    """Return the points as medians of all points within half a width before and behind."""
    xs = [x for x, _ in points]
    found = []
    for x, _ in points:
        first, last = bisect_left(xs, x - width / 2), bisect_left(xs, x + width / 2)
        found.append((x, median([value for _, value in points[first : max(last, first + 1)]])))
    return found


def _between(points: Points, xs: Sequence[float], x: float, reach: float) -> float | None:
    index = bisect_left(xs, x)
    if index < len(xs) and xs[index] == x:
        return points[index][1]
    if index == 0 or index == len(xs) or xs[index] - xs[index - 1] > reach:
        return None
    (left, low), (right, high) = points[index - 1], points[index]
    return low + (high - low) * (x - left) / (right - left)
