"""One number of a run over its whole life in a bounded number of buckets: what the ledger keeps of a curve. Pure.

Times are seconds since the run's first step. A bucket holds count, mean, lowest, highest and the last step of what fell
into it; when the run outgrows the buckets, their width doubles and neighbours are joined. Two consoles that watched the
same run have different holes: `merged` takes of each stretch of time what the one that saw more of it has, so that
nothing counts twice and it doesn't matter who writes first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct

CAPACITY = 480
"""Twice as many as a plot of 120 columns has dots across: nothing is seen of the difference."""
NARROWEST_S = 1.0


class Bucket(Struct, frozen=True, array_like=True, gc=False):
    """What fell into one stretch of time."""

    index: int
    """It began `index` widths after the first step."""
    n: int
    mean: float
    low: float
    high: float
    step: int | None = None
    """The last step in it."""


class Digest(Struct, frozen=True, array_like=True):
    """Buckets in the order of time; a stretch without any has none."""

    width_s: float = NARROWEST_S
    buckets: tuple[Bucket, ...] = ()

    @property
    def count(self) -> int:
        return sum(bucket.n for bucket in self.buckets)

    def middle_s(self, bucket: Bucket) -> float:
        return (bucket.index + 0.5) * self.width_s


class Digester:
    """Fills a digest; times may come in any order."""

    def __init__(self, start: Digest | None = None, capacity: int = CAPACITY) -> None:
        self._capacity = max(2, capacity)
        self._width_s = NARROWEST_S
        self._buckets: dict[int, Bucket] = {}
        if start is not None:
            self.take(start)

    def add(self, since_s: float, value: float, step: int | None = None) -> None:
        """Add a value; what isn't finite or lies before the first step is passed over."""
        if not (math.isfinite(value) and math.isfinite(since_s)) or since_s < 0:
            return
        while since_s >= self._width_s * self._capacity:
            self._widen()
        index = int(since_s / self._width_s)
        self._buckets[index] = _joined(self._buckets.get(index), Bucket(index, 1, value, value, value, step))

    def take(self, other: Digest) -> None:
        """Merge a digest of the same run in."""
        both = merged(self.digest, other, self._capacity)
        self._width_s = both.width_s
        self._buckets = {bucket.index: bucket for bucket in both.buckets}

    @property
    def digest(self) -> Digest:
        return Digest(self._width_s, tuple(self._buckets[index] for index in sorted(self._buckets)))

    def _widen(self) -> None:
        self._width_s *= 2
        self._buckets = _halved(self._buckets.values())


def merged(a: Digest, b: Digest, capacity: int = CAPACITY) -> Digest:
    """Return what either has seen of each stretch of time, where both saw it what the one with more values has."""
    width_s = max(a.width_s, b.width_s)
    first, second = _widened(a, width_s), _widened(b, width_s)
    best = dict(first)
    for index, bucket in second.items():
        there = best.get(index)
        if there is None or bucket.n > there.n:
            best[index] = bucket
    while best and max(best) >= capacity:
        width_s *= 2
        best = _halved(best.values())
    return Digest(width_s, tuple(best[index] for index in sorted(best)))


def _widened(digest: Digest, width_s: float) -> dict[int, Bucket]:
    buckets, width = {bucket.index: bucket for bucket in digest.buckets}, digest.width_s
    while width < width_s:
        buckets, width = _halved(buckets.values()), width * 2
    return buckets


def _halved(buckets: Iterable[Bucket]) -> dict[int, Bucket]:
    found: dict[int, Bucket] = {}
    for bucket in sorted(buckets, key=lambda each: each.index):
        index = bucket.index // 2
        found[index] = _joined(found.get(index), Bucket(index, *_rest(bucket)))
    return found


def _rest(bucket: Bucket) -> tuple[int, float, float, float, int | None]:
    return bucket.n, bucket.mean, bucket.low, bucket.high, bucket.step


def _joined(old: Bucket | None, new: Bucket) -> Bucket:
    if old is None:
        return new
    n = old.n + new.n
    steps = [step for step in (old.step, new.step) if step is not None]
    return Bucket(
        new.index,
        n,
        old.mean + (new.mean - old.mean) * (new.n / n),
        min(old.low, new.low),
        max(old.high, new.high),
        max(steps, default=None),
    )
