"""Is one run really faster than another? The difference of two steady rates, and how much of it may be noise. Pure.

Step times are not independent: a slow data shard, a warm disk or a neighbour on the network make many steps in a row
slow, so the usual error of a mean, which counts each step as news, is several times too small. Method:

1. The figure of a run is the median of its steady rates (the last 10 minutes without warm-up and checkpoint steps).
2. Its rates are cut into 8 stretches of equal length; the scatter of the 8 medians says how well the figure is known,
   whatever the order within a stretch (batch means; with so few stretches the t quantile pays for what 8 numbers can't
   tell). Correlation that reaches over a border makes the medians too alike: the variance is divided by 1 - T/(2 m),
   m steps a stretch, T the integrated autocorrelation time in steps (Geyer's initial positive sequence).
3. A stretch must be at least 2 T long, and a run must have 16 steady steps: else it isn't known how much is noise.
4. The noise of the difference is the t quantile (97.5 %, Welch-Satterthwaite) times the root of the two variances:
   where nothing differs, a difference beyond it comes up in at most about 5 of 100 comparisons. Tests measure that.
   Of those alone that 3. lets through it is 4 (independent steps) to 7 (T of 9 steps), and 10 at a T of 40: few runs
   get through then, and those by looking looser than they are.
5. A log that writes `21.5K` says nothing of what it has rounded away: half a unit of each run's goes on top.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

STRETCHES: Final = 8
FEWEST: Final = 2 * STRETCHES
MOST_POINTS: Final = 600
_CLIP_MADS: Final = 5.0  # a single dip says nothing of how long a slow spell lasts


class Window(Struct, frozen=True, array_like=True):
    """The steady rates of the last 10 minutes, in order."""

    ended_s: float = 0.0
    """Time of the last one, since the first step."""
    rates: tuple[float, ...] = ()


class Estimate(Struct, frozen=True):
    """A steady rate with how well it is known."""

    median: float
    mad: float
    n: int
    error: float | None = None
    """Standard error of the median; None where it can't be told, see `why`."""
    why: str = ""
    unit: float = 0.0
    """What its rates are rounded to: 100 for `21.5K`."""


class Gap(Struct, frozen=True, kw_only=True):
    """A against B."""

    a: Estimate
    b: Estimate
    delta: float
    delta_pct: float | None
    """In percent of B."""
    noise: float | None = None
    """Half the width of the 95 % interval of `delta`."""
    noise_pct: float | None = None
    significant: bool | None = None
    """None: not known, `why` says why."""
    why: str = ""


def window(points: Sequence[tuple[float, float]]) -> Window:
    """Return (time since the first step, rate) points as a window, neighbours averaged where there are too many."""
    if not points:
        return Window()
    rates = [rate for _, rate in points]
    share = math.ceil(len(rates) / MOST_POINTS)
    if share > 1:
        rates = [sum(rates[i : i + share]) / len(rates[i : i + share]) for i in range(0, len(rates), share)]
    return Window(points[-1][0], tuple(rates))


def later(a: Window, b: Window) -> Window:
    """Return the window that ends later; of two that end at the same time the fuller one."""
    return max(a, b, key=lambda each: (bool(each.rates), round(each.ended_s), len(each.rates)))


def estimate(rates: Sequence[float]) -> Estimate | None:
    """Return the steady rate, or None where there is none at all."""
    if not rates:
        return None
    middle = _median(rates)
    mad = _median([abs(rate - middle) for rate in rates])
    n = len(rates)
    if n < FEWEST:
        return Estimate(middle, mad, n, why=f"only {n} steady steps, {FEWEST} are needed")
    length = n / STRETCHES
    memory = memory_steps(rates)
    if length < 2 * memory:
        return Estimate(middle, mad, n, why=_too_few(n, memory))
    medians = [_median(rates[i * n // STRETCHES : (i + 1) * n // STRETCHES]) for i in range(STRETCHES)]
    mean = sum(medians) / STRETCHES
    variance = sum((each - mean) ** 2 for each in medians) / (STRETCHES - 1) / STRETCHES
    return Estimate(middle, mad, n, math.sqrt(variance / (1 - memory / (2 * length))), unit=rounding(rates))


def _too_few(n: int, memory: float) -> str:
    if memory > n / 8:
        return f"it drifts: {memory:.0f} steps in a row go together"
    needed = math.ceil(2 * memory * STRETCHES)
    return f"only {n} steady steps, of which {memory:.0f} in a row go together: {needed} are needed"


def gap(a: Sequence[float], b: Sequence[float]) -> Gap | None:
    """Return the difference between two runs' steady rates, or None where one has none."""
    first, second = estimate(a), estimate(b)
    if first is None or second is None:
        return None
    delta = first.median - second.median
    scale = 100 / second.median if second.median else None
    delta_pct = delta * scale if scale is not None else None
    if first.error is None or second.error is None:
        why = "; ".join(f"{name}: {each.why}" for name, each in (("A", first), ("B", second)) if each.why)
        return Gap(a=first, b=second, delta=delta, delta_pct=delta_pct, why=why)
    noise = _noise(first.error**2, second.error**2) + (first.unit + second.unit) / 2
    return Gap(
        a=first,
        b=second,
        delta=delta,
        delta_pct=delta_pct,
        noise=noise,
        noise_pct=noise * abs(scale) if scale is not None else None,
        significant=abs(delta) > noise,
    )


def rounding(rates: Sequence[float]) -> float:
    """Return the power of ten that all rates are multiples of; 0 where they are not even whole.

    One and the same rate is taken to have three digits that count.
    """
    largest = max(abs(rate) for rate in rates)
    if largest < 1 or not all(rate.is_integer() for rate in rates):
        return 0.0
    unit, most = 1.0, 10.0 ** math.floor(math.log10(largest))
    if len(set(rates)) == 1:
        most /= 100
    while unit < most and all(rate % (unit * 10) == 0 for rate in rates):
        unit *= 10
    return unit


def memory_steps(rates: Sequence[float]) -> float:
    """Return the integrated autocorrelation time: after how many steps a rate is news again; 1 is independence."""
    n, middle = len(rates), _median(rates)
    reach = _CLIP_MADS * _median([abs(rate - middle) for rate in rates])
    clipped = [min(reach, max(-reach, rate - middle)) for rate in rates]
    mean = sum(clipped) / n
    centred = [each - mean for each in clipped]
    power = sum(each * each for each in centred)
    if power <= 0:
        return 1.0

    def correlation(lag: int) -> float:
        return sum(x * y for x, y in zip(centred, centred[lag:], strict=False)) / power

    total = 1.0
    for lag in range(1, n // 4, 2):
        pair = correlation(lag) + correlation(lag + 1)
        if pair <= 0:
            break
        total += 2 * pair
    return total


def _noise(a: float, b: float) -> float:
    """Half the 95 % interval of a difference of two figures with these variances, each from `STRETCHES` numbers."""
    both = a + b
    if both <= 0:
        return 0.0
    degrees = both * both / ((a * a + b * b) / (STRETCHES - 1))
    return t_quantile(degrees) * math.sqrt(both)


# Two-sided 95 % quantiles of Student's t; between them by 1/degrees, in which it is nearly straight.
_T95: Final = {7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201, 12: 2.179, 13: 2.160, 14: 2.145}


def t_quantile(degrees: float) -> float:
    """Return the 97.5 % quantile of Student's t for 7 to 14 degrees of freedom; beyond them that of the nearer end."""
    degrees = min(max(degrees, 7.0), 14.0)
    below = min(13, math.floor(degrees))
    left, right = _T95[below], _T95[below + 1]
    share = (1 / below - 1 / degrees) / (1 / below - 1 / (below + 1))
    return left + share * (right - left)


def _median(values: Sequence[float]) -> float:
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
