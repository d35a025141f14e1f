"""How a run that is alive does: stepping well, or what is the matter with it, the most telling first.

The two tables at the end are the theory. `_SILENT` explains why no step, or none that is worth anything, can be seen:
the first that holds is the word, and no other is asked. `_STEPPING` is for a run that steps: all that hold are told.
Judged anew from the state whenever asked, so a condition is gone when its facts are. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from console.model import Fact, Severity
from console.reasons import Reason
from console.state import figures, gpuwork, stall, standing, texts, training, unseen
from console.state.condition import Condition, Health
from console.state.target import TargetState, run_power_w

SLOW_FOR_S = 120.0
STARVED_FOR_S = 30.0
"""A queue that runs empty now and then is balance; one that stays empty is not."""

_ERROR, _WARNING = Severity.ERROR, Severity.WARNING
Judge = Callable[[TargetState, float], Health | None]


def assess(state: TargetState, now: float) -> Health:
    """Judge a run that is alive and past its launch, or in its last stages: the finding to be told first."""
    return next(iter(findings(state, now)), Health())


def findings(state: TargetState, now: float) -> tuple[Health, ...]:
    """Return all that is the matter, the most telling first; empty for a run that is well."""
    for silent in _SILENT:
        if (found := silent(state, now)) is not None:
            return (found,)
    if state.training.step is None or state.link.log_lost is not None:
        return ()
    return tuple(found for judge in _STEPPING if (found := judge(state, now)) is not None)


# -- the loss ---------------------------------------------------------------------------------------------------------


def _nan(state: TargetState, now: float) -> Health | None:
    steps = state.training
    if steps.bad_since_step is None:
        return None
    ago = f", {texts.span(now - steps.bad_since_at)} ago" if steps.bad_since_at is not None else ""
    kind = "infinite" if steps.loss_state == "inf" else "NaN"
    facts = [Fact(label="loss", text=f"{kind} since step {texts.count(steps.bad_since_step)}{ago}", severity=_ERROR)]
    if steps.last_good_loss is not None:
        good = f"{steps.last_good_loss:.4g} at {texts.count(steps.last_good_step)}"
        facts.append(Fact(label="last good", text=good))
    return Health(
        condition=Condition.NAN,
        reason=Reason.NAN_LOSS,
        detail=f"loss is {kind} since step {texts.count(steps.bad_since_step)}",
        facts=tuple(facts),
        brief=f"{kind} at {texts.count(steps.bad_since_step)}",
    )


def _spike(state: TargetState, now: float) -> Health | None:
    losses = state.training.losses
    if not losses.is_spike or losses.usual is None or state.training.bad_since_step is not None:
        return None
    since = f"since step {texts.count(losses.since_step)}"
    ago = f", {texts.span(now - losses.since_at)} ago" if losses.since_at is not None else ""
    usual, highest, newest = losses.usual, losses.highest or losses.usual, losses.newest or losses.usual
    detail = f"loss {usual:.4g} -> {highest:.4g} {since}{ago} · {newest:.4g} now"
    facts = (
        Fact(label="loss", text=detail, severity=_WARNING),
        Fact(
            label="before", text=f"{usual:.4g} usually, {max(losses.before):.4g} at most in {len(losses.before)} steps"
        ),
    )
    return Health(
        condition=Condition.SPIKE,
        reason=Reason.LOSS_SPIKE,
        detail=detail,
        facts=facts,
        brief=f"loss x{newest / usual:.1f}",
    )


# -- the rate ---------------------------------------------------------------------------------------------------------


def _slow(state: TargetState, now: float) -> Health | None:
    steps, against = state.training, state.history.baseline.name or "the baseline"
    baseline = state.history.baseline.against(steps.scope)
    if steps.slow_since_at is None or baseline is None or now - steps.slow_since_at < SLOW_FOR_S:
        return None
    since = [point for point in steps.points if point.at >= steps.slow_since_at and point.scope == steps.scope]
    recent = [point.tok_s for point in since if point.tok_s is not None]
    current = training.median(recent) if recent else steps.tok_s
    if current is None:
        return None
    under_pct = 100 * (1 - current / baseline)
    detail = texts.joined(
        f"{texts.rate(current)} for {texts.span(now - steps.slow_since_at)}, {under_pct:.0f} % under {against}",
        f"since step {texts.count(steps.slow_since_step)}",
    )
    queue = figures.queue(steps, now)
    waits = {"targets": "drafters wait for targets", "drafters": "targets wait for drafters"}
    facts = [Fact(label="tok/s", text=detail, severity=_WARNING)]
    if queue is not None:
        depth = f" of {queue.max_depth:g}" if queue.max_depth is not None else ""
        facts.append(Fact(label="queue", text=f"{queue.min_ready:g}{depth}: {waits.get(queue.bound, queue.bound)}"))
    if run_power_w(state) is not None:
        facts.append(Fact(label="GPUs", text=gpuwork.words(state, gpuwork.work(state, now))))
    return Health(
        condition=Condition.SLOW,
        reason=Reason.SLOW,
        detail=detail,
        facts=tuple(facts),
        brief=f"slow, {texts.difference(-under_pct)}",
    )


def _holds_its_rate(state: TargetState, since_at: float | None) -> bool:
    """Whether it is as quick as it should be: as the baseline, else as it was itself before `since_at`.

    What costs no tokens is no matter; where neither can be told, it isn't said that it holds.
    """
    steps = state.training
    rates = training.newest_rates(steps, training.SLOW_POINTS)
    if not rates:
        return False
    expected = state.history.baseline.against(steps.scope)
    if expected is None and since_at is not None:
        alike = [point for point in steps.points if point.scope == steps.scope]
        before = [point.tok_s for point in alike if point.steady and point.at < since_at and point.tok_s]
        expected = training.median(before) if len(before) >= training.SLOW_POINTS else None
    return expected is not None and training.median(rates) >= training.SLOW_BELOW * expected


def _starved(state: TargetState, now: float) -> Health | None:
    steps = state.training
    if steps.empty_lines < stall.STARVED_LINES or steps.empty_since_at is None:
        return None
    if now - steps.empty_since_at < STARVED_FOR_S or _holds_its_rate(state, steps.empty_since_at):
        return None
    depth = f" of {steps.queue_max:g}" if steps.queue_max is not None else ""
    since = f"since step {texts.count(steps.empty_since_step)}, {texts.span(now - steps.empty_since_at)}"
    detail = f"queue 0{depth} {since} · drafters wait for targets"
    facts = [
        Fact(label="queue", text=f"empty in {texts.plural(steps.empty_lines, 'step line')} in a row", severity=_WARNING)
    ]
    if steps.tok_s is not None:
        facts.append(Fact(label="tok/s", text=texts.rate(steps.tok_s)))
    facts.append(Fact(label="GPUs", text=gpuwork.words(state, gpuwork.work(state, now))))
    return Health(
        condition=Condition.STARVED,
        reason=Reason.QUEUE_STARVED,
        detail=detail,
        facts=tuple(facts),
        brief=f"queue empty {texts.span(now - steps.empty_since_at)}",
    )


def _recompiles(state: TargetState, now: float) -> Health | None:
    log = state.log
    if log.recompile is None or _holds_its_rate(state, log.recompile_at):
        return None
    ago = f"{texts.span(now - log.recompile_at)} ago" if log.recompile_at is not None else ""
    return Health(
        condition=Condition.RECOMPILES,
        reason=Reason.RECOMPILE_LIMIT,
        detail=texts.joined("dynamo hit its recompile limit", ago),
        facts=(Fact(label="log", text=log.recompile.text.strip(), severity=_WARNING),),
        brief="recompile limit",
    )


_SILENT: Final[tuple[Judge, ...]] = (
    standing.suspended,
    unseen.unseen,
    unseen.unread,
    _nan,
    standing.not_exited,
    standing.downloading,
    unseen.elsewhere,
    stall.stalled,
    stall.without_steps,
)
"""The first that holds is the word. By a log that is still being read nothing more is judged.

A loss that is NaN makes all others idle: every further step is wasted.
"""
_STEPPING: Final[tuple[Judge, ...]] = (_spike, _slow, _starved, _recompiles)
