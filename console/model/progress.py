"""What a run's log says about its training: steps, losses, rates, the queue."""

from __future__ import annotations

from msgspec import Struct


class Queue(Struct, frozen=True, kw_only=True):
    min_ready: float
    max_depth: float | None = None
    lowest: float | None = None
    """Lowest min_ready of the last 10 minutes."""
    highest: float | None = None
    """Highest min_ready of the last 10 minutes."""
    empty_pct: float | None = None
    full_pct: float | None = None
    bound: str = "balanced"
    """`balanced`, `targets` (drafters wait for targets) or `drafters` (targets wait for drafters)."""


class Rate(Struct, frozen=True, kw_only=True):
    """Tokens per second with the scope that it was stated in."""

    last: float | None = None
    """As the newest step line that was read states it, however old that is."""
    now: float | None = None
    steady: float | None = None
    mad: float | None = None
    n: int = 0
    covered_s: float | None = None
    """From the first to the last of the steps that `steady` is from: 10 minutes of a run that is old enough."""
    scope: str | None = None
    """`global`, `per_device`, `rank` or `derived`."""
    baseline: float | None = None
    """What it is set against; None also where that counts other tokens (`unlike`)."""
    baseline_name: str = ""
    unlike: str = ""
    """Why it is not set against the baseline that is known: whose tokens each of them counts."""
    delta_pct: float | None = None
    """Steady (else now) against the baseline, in percent."""


class Progress(Struct, frozen=True, kw_only=True):
    """What the log says about the training."""

    format: str | None = None
    lines_seen: int = 0
    lines_understood: int = 0
    step: int | None = None
    total_steps: int | None = None
    first_step_at: float | None = None
    last_step_at: float | None = None
    loss: float | None = None
    loss_state: str | None = None
    """`nan` when the last step's loss is not a number."""
    bad_since_step: int | None = None
    last_good_loss: float | None = None
    last_good_step: int | None = None
    rate: Rate = Rate()
    queue: Queue | None = None
    checkpoint_step: int | None = None
    checkpoint_at: float | None = None
    phase: str = ""
    """What the log says it is doing before the first step: `Loading checkpoint shards 5/12 42 %`."""
    usual_step_s: float | None = None
    stall_budget_s: float | None = None
