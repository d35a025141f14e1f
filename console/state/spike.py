"""Whether the loss has jumped and stays up: a robust rule on its own recent past, without any clock.

A jump is a loss far above the usual one and clearly above every single one of the last fifty; three in a row make a
spike, so that an outlier is none, and noise that was seen before raises the bar. It is over when the median of the
newest losses is near the usual one again. Losses near or below zero have no ratio and are never judged. Pure.
"""

from __future__ import annotations

import math

from msgspec import Struct
from msgspec.structs import replace

KEPT = 50
"""Losses before a jump that it is compared with."""
KNOWN_FROM = 20
"""Fewer losses than that say nothing about what is usual."""
JUMP_TIMES = 1.8
"""A loss this many times the usual one has jumped; batches of small models vary by less."""
ABOVE_ALL_TIMES = 1.25
"""And this many times the highest of those before: a noisy loss must leave its own noise."""
LASTS = 3
RECOVERED_TIMES = 1.3
NEWEST = 5
SMALLEST = 0.05


class Losses(Struct, frozen=True, kw_only=True):
    """The losses of the steps so far, as far as the rule needs them."""

    before: tuple[float, ...] = ()
    """The newest ones before a jump, or the newest of all."""
    risen: tuple[float, ...] = ()
    """The newest ones since a jump; empty where there is none."""
    highest: float | None = None
    since_step: int | None = None
    since_at: float | None = None
    is_spike: bool = False

    @property
    def usual(self) -> float | None:
        return _median(self.before) if self.before else None

    @property
    def newest(self) -> float | None:
        return self.risen[-1] if self.risen else None


def see(losses: Losses, loss: float, step: int, at: float | None) -> Losses:
    """Fold the loss of one step in; `at` is None where nobody saw when it was written."""
    if not math.isfinite(loss):
        return losses
    if not losses.risen:
        if _is_jump(losses.before, loss):
            return replace(losses, risen=(loss,), highest=loss, since_step=step, since_at=at)
        return replace(losses, before=(*losses.before, loss)[-KEPT:])
    if not losses.is_spike and not _is_jump(losses.before, loss):
        return Losses(before=(*losses.before, *losses.risen, loss)[-KEPT:])  # an outlier: it belongs to the noise
    risen = (*losses.risen, loss)[-NEWEST:]
    usual = _median(losses.before)
    if losses.is_spike and _median(risen) < RECOVERED_TIMES * usual:
        return Losses(before=(*losses.before, loss)[-KEPT:])
    highest = max(loss, losses.highest or loss)
    return replace(losses, risen=risen, highest=highest, is_spike=losses.is_spike or len(risen) >= LASTS)


def _is_jump(before: tuple[float, ...], loss: float) -> bool:
    if len(before) < KNOWN_FROM or loss < ABOVE_ALL_TIMES * max(before):
        return False
    usual = _median(before)
    return usual > SMALLEST and min(before) > 0 and loss >= JUMP_TIMES * usual


def _median(values: tuple[float, ...]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
