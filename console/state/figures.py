"""What a training's steps come to: how regular they are, its rate, who waits at the queue. Pure."""

from __future__ import annotations

from console.model import Queue, Rate
from console.state.baseline import Baseline
from console.state.training import WINDOW_S, Training, median

EMPTY_PCT = 5.0
FULL_PCT = 25.0


def usual_gap_s(training: Training) -> float | None:
    """How long it usually takes from one step line to the next; None before five are known."""
    return median([gap.took_s for gap in training.gaps]) if len(training.gaps) >= 5 else None


def usual_step_s(training: Training) -> float | None:
    return median([gap.took_s / gap.steps for gap in training.gaps]) if len(training.gaps) >= 5 else None


def longest_gap_s(training: Training) -> float:
    return max((gap.took_s for gap in training.gaps), default=0.0)


def rate(training: Training, now: float, baseline: Baseline) -> Rate:
    """Tokens/s now and steady (median, median deviation), against the baseline where it counts the same tokens."""
    expected = baseline.against(training.scope)
    counted = [
        (point.at, point.tok_s)
        for point in training.points
        if point.steady and point.tok_s is not None and point.scope == training.scope and point.at >= now - WINDOW_S
    ]
    steady = [tok_s for _, tok_s in counted]
    middle = median(steady) if steady else None
    spread = median([abs(value - middle) for value in steady]) if middle is not None else None
    compared = middle if middle is not None else training.tok_s
    return Rate(
        last=training.tok_s,
        now=training.tok_s,
        steady=middle,
        mad=spread,
        n=len(steady),
        covered_s=counted[-1][0] - counted[0][0] if counted else None,
        scope=training.scope,
        baseline=expected,
        baseline_name=baseline.name,
        unlike=baseline.why_not(training.scope),
        delta_pct=(compared / expected - 1) * 100 if compared is not None and expected else None,
    )


def queue(training: Training, now: float) -> Queue | None:
    """The queue's depth with who waits for whom; None where the log has none."""
    if training.queue_min is None:
        return None
    recent = [p for p in training.points if p.queue_min is not None and p.at >= now - WINDOW_S]
    lows = [p.queue_min for p in recent if p.queue_min is not None]
    full = [p for p in recent if p.queue_min is not None and p.queue_max and p.queue_min >= p.queue_max]
    empty_pct = 100 * sum(low <= 0 for low in lows) / len(lows) if lows else None
    full_pct = 100 * len(full) / len(lows) if lows else None
    bound = "balanced"
    if empty_pct is not None and empty_pct >= EMPTY_PCT:
        bound = "targets"
    elif full_pct is not None and full_pct >= FULL_PCT:
        bound = "drafters"
    return Queue(
        min_ready=training.queue_min,
        max_depth=training.queue_max,
        lowest=min(lows, default=None),
        highest=max(lows, default=None),
        empty_pct=empty_pct,
        full_pct=full_pct,
        bound=bound,
    )
