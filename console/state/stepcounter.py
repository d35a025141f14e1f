"""Which training step a line belongs to: which bar is the training's, how many steps there will be, what is no news.

No news is a bar that was drawn once more, and a rank's copy of a step that another one told. Pure.
"""

from __future__ import annotations

from typing import Final

from console.state.formatrules import Format, Kind, Reading

MOST_COPIES: Final = 512
"""Step lines of other ranks in a row that are taken for copies: a pipe of each of 8 ranks holds fewer. After them the
rank that was followed is gone.
"""
UNPROVEN_BAR_STEPS: Final = 50
"""An unlabelled bar shorter than this is taken for a loading bar while nothing else speaks for it."""
UNPROVEN_BAR_RATE: Final = 20.0
"""An unlabelled bar quicker than this many iterations a second is taken for data preparation, likewise."""
MAX_COUNT: Final = 10**12
"""No counter of steps is larger; `global_step=inf` is none at all."""


class StepCounter:
    def __init__(self, *, is_named: bool) -> None:
        """`is_named`: the log's format was named, so what looks like its bar is one while nothing speaks against it."""
        self._is_named = is_named
        self.last: int | None = None
        """The training step that was read last."""
        self._totals: dict[str, int] = {}  # by format or family
        self._bar: tuple[int, int] | None = None  # step and total of the training's bar
        self._bar_proven = False
        self._last_rank: str | None = None
        self._copies = 0

    def is_training(self, fmt: Format, reading: Reading) -> bool:
        """Whether an unlabelled bar is that of the training."""
        step, total = count_of(reading.fields, "step") or 0, count_of(reading.fields, "total") or 0
        if step <= 0 or step > total:
            return False  # nothing was done yet
        if (stated := self._totals.get(_log_of(fmt))) is not None:
            return total == stated
        if self._bar is not None and (self._bar_proven or total == self._bar[1]):
            return total == self._bar[1]
        if self._is_named:
            return True
        per_s = reading.fields.get("steps_per_s")
        if per_s is None and "step_s" not in reading.fields:
            return False
        return total >= UNPROVEN_BAR_STEPS and (per_s or 0.0) <= UNPROVEN_BAR_RATE

    def is_news(self, step: int, rank: str | None, reading: Reading) -> bool:
        """False for a bar that was redrawn, and for another rank's copy of a step line.

        Ranks that write into pipes come in blocks: what the rank that is followed has told already is no step back.
        """
        if reading.rule.bar and self._bar is not None and self._bar[0] == step:
            return False
        is_told = self.last is not None and step <= self.last
        is_copy = is_told and rank is not None and self._last_rank not in (None, rank)
        self._copies = self._copies + 1 if is_copy else 0
        return not is_copy or self._copies > MOST_COPIES

    def follow(self, fmt: Format, reading: Reading, step: int | None, rank: str | None) -> int | None:
        """Note a step line, and return the step that it belongs to."""
        if reading.rule.bar and step is not None:
            self._bar = (step, count_of(reading.fields, "total") or 0)
        elif step is None and fmt.step_from_bar and self._bar is not None:
            self._bar_proven = True
            step = self._bar[0]
        if step is not None:
            self.last = step
        self._last_rank = rank
        return step

    def learn_total(self, fmt: Format, reading: Reading) -> None:
        """Take how many steps there will be from a line that says so: a header's word is the last."""
        total = _total_of(reading)
        if total is None or reading.rule.unlabelled:
            return
        if reading.rule.kind is Kind.HEADER:
            self._totals[_log_of(fmt)] = total
        else:
            self._totals.setdefault(_log_of(fmt), total)

    def total(self, fmt: Format, reading: Reading) -> int | None:
        """Return how many steps there will be, by this line or by those before."""
        total = _total_of(reading)
        return total if total is not None else self._totals.get(_log_of(fmt))


def count_of(fields: dict[str, float], name: str) -> int | None:
    """Return a counter; None where there is none, or no counter would hold such a number."""
    value = fields.get(name)
    return int(value) if value is not None and 0 <= value < MAX_COUNT else None


def stated_step(fields: dict[str, float]) -> int | None:
    """Return the step that a line itself states."""
    step = count_of(fields, "global_step")
    return step if step is not None else count_of(fields, "step")


def training_step(reading: Reading, stated: int | None) -> int | None:
    """Return the step that a line means by the one it states: where its counter begins anew with each epoch, the steps
    of the epochs before come first."""
    fields, epoch_from = reading.fields, reading.rule.epoch_from
    if stated is None or epoch_from is None or "global_step" in fields:
        return stated
    return stated + max(0, (count_of(fields, "epoch") or 0) - epoch_from) * (count_of(fields, "total") or 0)


def _total_of(reading: Reading) -> int | None:
    """Return how many steps a line says that the training has; one that counts within an epoch says nothing of that."""
    return count_of(reading.fields, "total") if reading.rule.epoch_from is None else None


def _log_of(fmt: Format) -> str:
    return fmt.family or fmt.name
