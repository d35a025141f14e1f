"""One number over time: bounded storage that keeps the extremes, gaps, what is steady, and limits for a plot.

Never holds a value that isn't finite: NaN and infinity are refused and counted. Times are the caller's. Pure.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

WINDOW_S: Final = 600.0
"""Steady speaks of the last 10 minutes."""
WARM_UP_STEPS: Final = 50
MARKS_MAX: Final = 256
"""Restarts and checkpoints that are remembered."""
SILENT_S: Final = 60.0
"""So much longer than its steps usually take, and longer than `SILENT_TIMES` of that, lies between two points that are
not joined: nobody made these steps at these speeds."""
SILENT_TIMES: Final = 4.0
RECENT_MAX: Final = 8192
"""Points of the window that are kept in full (13 a second for 10 minutes)."""
_FAR_BELOW: Final = 3.0
"""Of the height that nearly all losses take."""


class Point(NamedTuple):
    at: float
    step: int | None
    value: float
    opens: bool = False
    """Nothing is known between this point and the one before: a plot must not join them."""


class Steady(msgspec.Struct, frozen=True):
    median: float
    mad: float
    """Median of the absolute deviations from the median, not scaled."""
    n: int


class Limits(msgspec.Struct, frozen=True):
    low: float
    high: float


class _Recent(NamedTuple):
    at: float
    step: int | None
    value: float
    scope: str | None
    counts: bool


class Series:
    """Points in the order of time. When `capacity` is reached they are thinned: of some neighbours the lowest
    and the highest stay, so that a dip of one step is still seen after days. A gap stays one."""

    def __init__(
        self,
        capacity: int = 4096,
        *,
        first_step: int | None = None,
        recent: int = RECENT_MAX,
        finds_silence: bool = True,
    ) -> None:
        """`first_step` is the launch's first step where it is known better than from the first point.

        `recent` points of the last 10 minutes are kept in full. `finds_silence`: each point stands where its step was
        made.
        """
        self._finds_silence = finds_silence
        self._capacity = max(8, capacity)
        self._points: list[Point] = []
        self._recent: deque[_Recent] = deque(maxlen=recent)
        self._first_step = first_step
        self._gap = False
        self._pace_from: tuple[float, int] | None = None
        """The first point since the counter began anew: what a step usually takes is counted from it."""
        self._checkpoints: set[int] = set()
        self._after_checkpoint = False
        self._refused = 0
        self._version = 0
        self.untimed = False
        """When some of its points were written isn't known: their order is, and their steps."""
        self.restarts: list[float] = []
        """When the counter began anew."""
        self.saves: list[tuple[float, int | None]] = []
        """When checkpoints were told, and of which step."""

    def __len__(self) -> int:
        return len(self._points)

    @property
    def points(self) -> Sequence[Point]:
        """All that is kept, oldest first. Not to be changed."""
        return self._points

    @property
    def last(self) -> Point | None:
        """The newest point as it was added."""
        if not self._recent:
            return None
        newest = self._recent[-1]
        return Point(newest.at, newest.step, newest.value)

    @property
    def refused(self) -> int:
        """How many values were not finite."""
        return self._refused

    @property
    def version(self) -> int:
        return self._version

    def add(self, at: float, value: float, step: int | None = None, scope: str | None = None) -> bool:
        """Add the newest point; False where the value is not finite. A time before the last one is taken as the last
        one.

        A step below the last one says that the run was started again: the points are not joined and warm-up begins
        anew.
        """
        if not (math.isfinite(value) and math.isfinite(at)):
            self._refused += 1
            return False
        if self._recent:
            newest = self._recent[-1]
            at = max(at, newest.at)
            self._gap = self._gap or self._is_silence(newest, at, step)
            if step is not None and newest.step is not None and step < newest.step:
                self._first_step, self._gap, self._pace_from = None, True, None
                self.restarts = [*self.restarts, at][-MARKS_MAX:]
                self._checkpoints.clear()
                self._after_checkpoint = False
        if step is not None and self._first_step is None:
            self._first_step = step
        if step is not None and self._pace_from is None:
            self._pace_from = (at, step)
        self._points.append(Point(at, step, value, self._gap and bool(self._points)))
        self._recent.append(_Recent(at, step, value, scope, self._counts(step)))
        self._gap = False
        self._version += 1
        if len(self._points) > self._capacity:
            self._points = _thin(self._points, self._capacity, by_step=self.untimed)
        return True

    def _is_silence(self, newest: _Recent, at: float, step: int | None) -> bool:
        """Whether the steps since the newest point don't account for the time since: it stood, or was suspended."""
        took_s = at - newest.at
        if (
            took_s <= SILENT_S
            or not self._finds_silence
            or step is None
            or newest.step is None
            or self._pace_from is None
        ):
            return False
        since_s, steps = newest.at - self._pace_from[0], newest.step - self._pace_from[1]
        if steps <= 0 or since_s <= 0:
            return False  # how long a step usually takes isn't known yet
        usual_s = since_s / steps * max(1, step - newest.step)
        return took_s - usual_s > max(SILENT_S, (SILENT_TIMES - 1) * usual_s)

    def gap(self) -> None:
        """Nothing is known from here to the next point (link lost, sleep, restart)."""
        self._gap = True

    def checkpoint(self, step: int | None) -> None:
        """A checkpoint of this step was written: neither that step nor the first one after it tells the usual speed."""
        self._after_checkpoint = True
        if self._recent and (not self.saves or step is None or self.saves[-1][1] != step):
            self.saves = [*self.saves, (self._recent[-1].at, step)][-MARKS_MAX:]
        if step is None:
            return
        self._checkpoints.add(step)
        later = [index for index, recent in enumerate(self._recent) if recent.step is not None and recent.step >= step]
        for index in later[:2] if later and self._recent[later[0]].step == step else later[:1]:
            self._recent[index] = self._recent[index]._replace(counts=False)
            if (self._recent[index].step or 0) > step:
                self._after_checkpoint = False

    def _counts(self, step: int | None) -> bool:
        """Whether a new point tells the usual speed."""
        if step is not None and self._first_step is not None and step - self._first_step < WARM_UP_STEPS:
            return False
        if step is not None and step in self._checkpoints:
            return False
        if self._after_checkpoint:
            self._after_checkpoint = False
            return False
        return True

    def steady(self, now: float) -> Steady | None:
        """Return median and MAD of the last 10 minutes without warm-up and checkpoint steps, or None where no point is
        left.

        Only points of the newest point's scope count: rates of different scopes are different quantities.
        """
        if not self._recent:
            return None
        scope = self._recent[-1].scope
        values = sorted(
            recent.value
            for recent in self._recent
            if recent.counts and recent.scope == scope and now - WINDOW_S <= recent.at <= now
        )
        if not values:
            return None
        median = percentile(values, 50)
        return Steady(median, percentile(sorted(abs(value - median) for value in values), 50), len(values))


def _thin(points: list[Point], capacity: int, *, by_step: bool) -> list[Point]:
    """Make room: evenly over the whole run, however densely its parts were read, and less in the last 10 minutes.

    `by_step`: the times tell nothing.
    """
    if by_step:
        cut = max(0, len(points) - capacity // 4)
    else:
        cut = bisect_left(points, points[-1].at - WINDOW_S, key=lambda point: point.at)
    old, new = points[:cut], points[cut:]
    if len(old) > capacity // 2:
        old = _thin_evenly(old, [float(point.step or 0) if by_step else point.at for point in old], capacity // 8)
    if len(new) > capacity // 4:
        new = _halved(new)
    thinned = [*old, *new]
    return thinned if len(thinned) <= capacity * 3 // 4 else _halved(thinned)


def _thin_evenly(points: list[Point], places: list[float], parts: int) -> list[Point]:
    """Keep the lowest and the highest point of each of so many equal parts of the way."""
    low, span = min(places), max(places) - min(places)
    if span <= 0 or parts <= 0:
        return _halved(points)
    kept = [points[0]]
    opens, start, last = False, 1, len(points) - 1
    while start < last:
        part, end = int((places[start] - low) / span * parts), start + 1
        while end < last and int((places[end] - low) / span * parts) == part:
            end += 1
        opens = _keep_extremes(points[start:end], kept, opens=opens)
        start = end
    return [*kept, points[-1]._replace(opens=opens or points[-1].opens)]


def _halved(points: list[Point]) -> list[Point]:
    """Halve the points: of each four neighbours keep the lowest and the highest, and the very first and last of all."""
    kept = [points[0]]
    opens = False
    for start in range(1, len(points) - 1, 4):
        opens = _keep_extremes(points[start : min(start + 4, len(points) - 1)], kept, opens=opens)
    last = points[-1]
    return [*kept, last._replace(opens=opens or last.opens)]


def _keep_extremes(group: Sequence[Point], kept: list[Point], *, opens: bool) -> bool:
    """Keep the lowest and the highest of a group; a gap before a point that goes is one before the next that stays."""
    lowest = min(group, key=lambda point: point.value)
    highest = max(group, key=lambda point: point.value)
    for point in group:
        opens = opens or point.opens
        if point is lowest or point is highest:
            kept.append(point._replace(opens=opens))
            opens = False
    return opens


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return a percentile of sorted values, linear between neighbours. Raises: ValueError where there are none."""
    if not ordered:
        raise ValueError("no values")
    place = (len(ordered) - 1) * min(max(percent, 0.0), 100.0) / 100
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    share = place - below
    return ordered[below] * (1 - share) + ordered[above] * share


def rate_limits(values: Iterable[float], baseline: float | None, steady: float | None) -> Limits | None:
    """Limits of a plot of rates: from 0.7 x the lower of baseline and steady to 1.1 x the 99th percentile.

    So 2 % can be seen, and what lies outside is marked on the edge. None where nothing can be drawn.
    """
    ordered = sorted(values)
    if not ordered:
        return None
    references = [value for value in (baseline, steady) if value is not None and value > 0]
    low = 0.7 * (min(references) if references else percentile(ordered, 50))
    high = 1.1 * max(percentile(ordered, 99), *references, low)
    return Limits(low, high) if high > low else Limits(low - 0.5, low + 0.5)


def loss_limits(values: Sequence[float]) -> Limits | None:
    """Limits of a plot of losses given in the order of time: the lowest, and the 98th percentile of the second half.

    A few that lie far below all others are marked on the edge like those above it.
    """
    if not values:
        return None
    high = percentile(sorted(values[len(values) // 2 :]), 98)
    low, most = min(values), percentile(sorted(values), 2)
    if most - low > _FAR_BELOW * abs(high - most):
        low = most
    return Limits(low, high) if high > low else Limits(low - 0.5, low + 0.5)
