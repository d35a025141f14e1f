"""What the log has told about the training so far: steps, loss, rates, queue, checkpoints, and how regular they are.

`see` folds samples in; nothing is judged here (that is `health`). Times are the console's clock. A sample that stood in
the log before anybody watched has a step but no time, so nothing about speed is learned from it. Pure and bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from console.state import spike
from console.state.baseline import Baseline
from console.state.metrics import CheckpointState, Kind, Sample

WINDOW_S = 600.0
"""`steady`, queue figures and the lowest queue depth are of the last 10 minutes."""
WARMUP_STEPS = 50
"""The first steps are slow (compilation, caches) and say nothing about the steady rate."""
MAX_POINTS = 1200
MAX_GAPS = 64
SLOW_BELOW = 0.90
"""Slow begins under this share of the baseline and ends above the next one: no flicker between two words."""
SLOW_UNTIL = 0.93
SLOW_POINTS = 9
"""Median of so many rates is compared with the baseline: one slow step is no slow run."""


class Point(Struct, frozen=True, gc=False):
    """One timed step."""

    at: float
    step: int
    tok_s: float | None
    scope: str | None
    steady: bool
    """Past the warm-up and not the first step behind a checkpoint."""
    queue_min: float | None
    queue_max: float | None


class Gap(Struct, frozen=True, gc=False):
    """Time between two step lines, and the steps that it holds."""

    took_s: float
    steps: int


class Training(Struct, frozen=True, kw_only=True):
    format: str | None = None
    lines_seen: int = 0
    lines_understood: int = 0
    step: int | None = None
    total_steps: int | None = None
    loss: float | None = None
    loss_state: str | None = None
    pair: tuple[int, int] | None = None
    """The first two increasing step numbers: the proof of stepping."""
    pair_at: float | None = None
    """When the second of them was written; None where nobody saw it."""
    pair_ends: tuple[int, int] | None = None
    """Where the lines of both end in the log: how long it was when they were written."""
    first_step: int | None = None
    first_step_at: float | None = None
    warm_from_step: int | None = None
    """Warm-up counts from here: the first step, or the one that the run last went back to."""
    last_step_at: float | None = None
    """When the last step was written; None where nobody saw it."""
    heard_at: float | None = None
    """When a step was last read, old or new: no step has come since."""
    last_step_offset: int | None = None
    """Where the last step line begins in the log: errors before it were handled."""
    last_step_end: int = 0
    """Where it ends."""
    bad_since_step: int | None = None
    bad_since_at: float | None = None
    last_good_loss: float | None = None
    last_good_step: int | None = None
    checkpoint_step: int | None = None
    checkpoint_at: float | None = None
    saving_step: int | None = None
    saving_since_at: float | None = None
    says_completed: bool = False
    """This trainer says when a checkpoint is complete, so a begun one isn't taken for one."""
    points: tuple[Point, ...] = ()
    gaps: tuple[Gap, ...] = ()
    gap_from: tuple[float, int] | None = None
    slow_since_at: float | None = None
    slow_since_step: int | None = None
    tok_s: float | None = None
    scope: str | None = None
    queue_min: float | None = None
    queue_max: float | None = None
    empty_lines: int = 0
    """Step lines in a row, the newest among them, that state an empty queue; warm-up steps don't count."""
    empty_since_step: int | None = None
    empty_since_at: float | None = None
    losses: spike.Losses = spike.Losses()
    after_checkpoint: bool = False
    phase: str = ""


def see(
    training: Training,
    samples: Sequence[Sample],
    now: float | None,
    *,
    live: bool,
    is_own: bool,
    baseline: Baseline,
    after_gap: bool = False,
) -> Training:
    """Fold samples in, in the log's order; with `now` None each sample's own `at` is when its line was written.

    `is_own`: the whole log belongs to this run. Else only a live step proves anything, since older lines may be those
    of a run before it. `after_gap`: these need not be the first steps, and tell when those came only if they
    are by their number.
    """
    for sample in samples:
        at = sample.at if now is None else now
        if sample.checkpoint is not None:
            training = _checkpoint(training, sample, at if live else None)
        if sample.continues:
            training = _more(training, sample)
        elif sample.kind is Kind.STEP and sample.step is not None:
            training = _step(training, sample, sample.step, at, live=live, is_own=is_own, after_gap=after_gap)
            if live and (expected := baseline.against(training.scope)):
                training = _slowness(training, sample.step, at, expected)
    return training


def _checkpoint(training: Training, sample: Sample, at: float | None) -> Training:
    step = sample.checkpoint_step if sample.checkpoint_step is not None else training.step
    if sample.checkpoint is CheckpointState.STARTED:
        return replace(training, saving_step=step, saving_since_at=at, after_checkpoint=True)
    return replace(
        training,
        checkpoint_step=step,
        checkpoint_at=at,
        saving_step=None,
        saving_since_at=None,
        says_completed=True,
        after_checkpoint=True,
    )


def _step(
    training: Training, sample: Sample, step: int, at: float, *, live: bool, is_own: bool, after_gap: bool
) -> Training:
    before = training.step
    training = _saved_by_now(training)
    training = _queue(training, sample, step, at if live else None)
    if before is not None and step < before:
        # It went back to a checkpoint: so did its loss, and it has to warm up again.
        training = replace(training, losses=spike.Losses(), warm_from_step=step)
    if training.pair is None and before is not None and step > before and (is_own or live):
        are_first = not after_gap or step <= 2
        pair_at = at if live and are_first else None
        ends = (training.last_step_end, sample.end_offset) if are_first else None
        training = replace(training, pair=(before, step), pair_at=pair_at, pair_ends=ends)
    if live:
        training = _timed(training, sample, step, at)
    bad = sample.loss_state is not None
    known = sample.loss is not None or bad
    is_first = training.first_step is None and (not after_gap or step <= 1)
    return replace(
        training,
        step=step,
        total_steps=sample.total_steps if sample.total_steps is not None else training.total_steps,
        loss=sample.loss if known else training.loss,
        loss_state=sample.loss_state if known else training.loss_state,
        bad_since_step=_bad_since(training, step) if bad else (None if known else training.bad_since_step),
        bad_since_at=_bad_since_at(training, at, live=live) if bad else (None if known else training.bad_since_at),
        last_good_loss=sample.loss if sample.loss is not None and not bad else training.last_good_loss,
        last_good_step=step if sample.loss is not None and not bad else training.last_good_step,
        losses=_losses(training, sample, step, at if live else None),
        first_step=step if training.first_step is None else training.first_step,
        first_step_at=at if live and is_first else training.first_step_at,
        warm_from_step=step if training.warm_from_step is None else training.warm_from_step,
        last_step_at=at if live else None,
        heard_at=at,
        last_step_offset=sample.offset,
        last_step_end=sample.end_offset,
        tok_s=sample.tok_s if sample.tok_s is not None else training.tok_s,
        scope=str(sample.scope) if sample.tok_s is not None and sample.scope is not None else training.scope,
        queue_min=sample.queue_min if sample.queue_min is not None else training.queue_min,
        queue_max=sample.queue_max if sample.queue_max is not None else training.queue_max,
        after_checkpoint=False,
        phase="",
    )


def _more(training: Training, sample: Sample) -> Training:
    """Add what a further line of the newest step's record says."""
    if sample.step is None or sample.step != training.step or sample.kind is Kind.EVAL:
        return training
    bad = sample.loss_state is not None
    good = sample.loss is not None and not bad
    points = training.points
    if sample.tok_s is not None and points and points[-1].step == sample.step and points[-1].tok_s is None:
        scope = str(sample.scope) if sample.scope is not None else None
        points = (*points[:-1], replace(points[-1], tok_s=sample.tok_s, scope=scope))
    if bad:
        live = training.last_step_at is not None
        training = replace(
            training,
            bad_since_step=_bad_since(training, sample.step),
            bad_since_at=_bad_since_at(training, sample.at, live=live),
        )
    elif good:
        training = replace(
            training,
            bad_since_step=None,
            bad_since_at=None,
            last_good_loss=sample.loss,
            last_good_step=sample.step,
            losses=_losses(training, sample, sample.step, training.last_step_at),
        )
    return replace(
        training,
        points=points,
        loss=sample.loss if good or bad else training.loss,
        loss_state=sample.loss_state if good or bad else training.loss_state,
        tok_s=sample.tok_s if sample.tok_s is not None else training.tok_s,
        scope=str(sample.scope) if sample.tok_s is not None and sample.scope is not None else training.scope,
    )


def _queue(training: Training, sample: Sample, step: int, at: float | None) -> Training:
    """Count the step lines with an empty queue; one line with something in it ends that."""
    if sample.queue_min is None:
        return training
    if sample.queue_min > 0 or not is_warm(training, step):
        if not training.empty_lines:
            return training
        return replace(training, empty_lines=0, empty_since_step=None, empty_since_at=None)
    if training.empty_lines:
        return replace(training, empty_lines=training.empty_lines + 1)
    return replace(training, empty_lines=1, empty_since_step=step, empty_since_at=at)


def _losses(training: Training, sample: Sample, step: int, at: float | None) -> spike.Losses:
    if sample.loss is None or sample.loss_state is not None:
        return training.losses
    return spike.see(training.losses, sample.loss, step, at)


def is_warm(training: Training, step: int) -> bool:
    return training.warm_from_step is not None and step - training.warm_from_step >= WARMUP_STEPS


def _bad_since(training: Training, step: int) -> int:
    return step if training.bad_since_step is None else training.bad_since_step


def _bad_since_at(training: Training, at: float, *, live: bool) -> float | None:
    if training.bad_since_step is not None:
        return training.bad_since_at
    return at if live else None


def _saved_by_now(training: Training) -> Training:
    """A checkpoint that was begun is complete once steps go on, unless this trainer says so itself."""
    if training.saving_since_at is None and training.saving_step is None:
        return training
    if training.says_completed:
        return replace(training, saving_step=None, saving_since_at=None)
    return replace(
        training,
        checkpoint_step=training.saving_step,
        checkpoint_at=training.saving_since_at,
        saving_step=None,
        saving_since_at=None,
    )


def _timed(training: Training, sample: Sample, step: int, at: float) -> Training:
    point = Point(
        at,
        step,
        sample.tok_s,
        str(sample.scope) if sample.scope is not None else None,
        is_warm(training, step) and not training.after_checkpoint,
        sample.queue_min,
        sample.queue_max,
    )
    keep_from = next((i for i, old in enumerate(training.points) if old.at >= at - WINDOW_S), len(training.points))
    points = (*training.points[keep_from:], point)[-MAX_POINTS:]
    gaps, gap_from = training.gaps, training.gap_from
    if gap_from is not None and step > gap_from[1] and training.last_step_at is not None:
        # Lines that came in one read were flushed together: the time between two reads counts, not the zero within.
        if at > gap_from[0]:
            gaps = (*gaps, Gap(at - gap_from[0], step - gap_from[1]))[-MAX_GAPS:]
            gap_from = (at, step)
    else:
        gap_from = (at, step)
    return replace(training, points=points, gaps=gaps, gap_from=gap_from)


def _slowness(training: Training, step: int, at: float, baseline: float) -> Training:
    rates = newest_rates(training, SLOW_POINTS)
    if len(rates) < SLOW_POINTS:
        return training
    now = median(rates)
    if now < SLOW_BELOW * baseline and training.slow_since_at is None:
        return replace(training, slow_since_at=at, slow_since_step=step)
    if now > SLOW_UNTIL * baseline:
        return replace(training, slow_since_at=None, slow_since_step=None)
    return training


def newest_rates(training: Training, count: int) -> list[float]:
    """Return the last `count` steady rates of the newest one's scope; looked for from the end, since this is asked at
    every step."""
    alike = (point for point in reversed(training.points) if point.scope == training.scope)
    return list(islice((point.tok_s for point in alike if point.steady and point.tok_s is not None), count))


def unjudged(training: Training) -> Training:
    """Forget what was found against a baseline that is compared with no more."""
    return replace(training, slow_since_at=None, slow_since_step=None)


# -- figures ----------------------------------------------------------------------------------------------------------


def median(values: Sequence[float]) -> float:
    """The middle value. `values` must not be empty."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
