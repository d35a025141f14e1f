"""What a plot is asked for: which number, of which time, along which axis, beside which run. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from console.model import Snapshot
from console.state.series import Series
from console.ui.present.look import Look

AllSeries = Mapping[str, Series]


class Metric(StrEnum):
    TOK_S = "tok/s"
    LOSS = "loss"
    QUEUE = "queue"
    MEMORY = "memory"


class Zoom(StrEnum):
    RUN = "whole run"
    SHORT = "10 min"


class Axis(StrEnum):
    TIME = "time"
    STEP = "step"


class Against(Struct, frozen=True, kw_only=True):
    """The run that is compared with, as far as a plot needs it."""

    name: str
    losses: tuple[tuple[int, float], ...] = ()
    """Its losses by step, in the order of steps."""

    def loss_at(self, step: int) -> float | None:
        """Return its loss at a step, between the two that are known around it; None beyond what is known."""
        place = bisect_left(self.losses, step, key=lambda known: known[0])
        if place == len(self.losses) or (place == 0 and self.losses[0][0] != step):
            return None
        if self.losses[place][0] == step:
            return self.losses[place][1]
        (one, before), (two, after) = self.losses[place - 1 : place + 1]
        return before + (after - before) * (step - one) / (two - one)


class Plotting(NamedTuple):
    """What a title and a drawing are made of."""

    metric: str
    snapshot: Snapshot
    series: AllSeries
    zoom: Zoom
    look: Look
    by_step: bool
    against: Against | None


def metric_of(shown: str | None) -> str:
    """Return what the config wants plotted in the queue's place: by its own name, or as step lines abbreviate it."""
    return _SHORT.get(shown, shown) if shown else Metric.QUEUE


def named_metrics(series: AllSeries, beside: str = Metric.QUEUE) -> list[str]:
    """Return the further numbers that can be plotted, the queue among them where another has its place."""
    main = {SERIES[Metric.TOK_S], SERIES[Metric.LOSS], beside}
    return sorted(name for name, one in series.items() if name not in main and ":" not in name and len(one))


SERIES: Mapping[str, str] = {Metric.TOK_S: "tok_s", Metric.LOSS: "loss", Metric.QUEUE: "queue"}
"""The series of the main plots; any other is named as itself."""
_SHORT: Mapping[str, str] = {"lr": "learning rate", "grad_norm": "gradient norm", "step_s": "seconds per step"}
