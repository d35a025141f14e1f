"""An entry of the catalogue with the facts of a case, as the faces get it. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from console.model import Fact, ReasonView, Severity
from console.reasons import CATALOGUE, Reason
from console.state import texts
from console.state.condition import Condition, Health
from console.state.target import TargetState

_COSTS_STEPS = frozenset({Condition.STALLED, Condition.NAN, Condition.SPIKE, Condition.DOWNLOADING})
"""What may end in a restart: the word on what that would lose is part of it."""


def view(
    reason: Reason,
    detail: str = "",
    facts: tuple[Fact, ...] = (),
    *,
    safe: str | None = None,
    next_: tuple[str, ...] | None = None,
    severity: Severity | None = None,
) -> ReasonView:
    """An entry of the catalogue with the facts of the case; what the case knows better replaces the entry's words."""
    entry = CATALOGUE[reason]
    return ReasonView(
        slug=str(reason),
        title=entry.title,
        detail=detail,
        facts=facts,
        safe=entry.safe if safe is None else safe,
        next=entry.next if next_ is None else next_,
        severity=entry.severity if severity is None else severity,
    )


def told(state: TargetState, found: Health) -> ReasonView:
    assert found.reason is not None
    safe = _left_alone(state) if found.condition in _COSTS_STEPS and state.training.step is not None else None
    told = view(found.reason, detail=found.detail, facts=found.facts, safe=safe, next_=found.next)
    return replace(told, brief=found.brief)


def _left_alone(state: TargetState) -> str:
    steps = state.training
    if steps.checkpoint_step is None:
        return "left alone. No checkpoint was seen."
    lost = f" ({texts.plural(steps.step - steps.checkpoint_step, 'step')} since)" if steps.step is not None else ""
    if steps.bad_since_step is not None:
        side = "before" if steps.checkpoint_step < steps.bad_since_step else "not before"
        return f"left alone. Last checkpoint: step {texts.count(steps.checkpoint_step)}, {side} the first bad step."
    return f"left alone. Last checkpoint: step {texts.count(steps.checkpoint_step)}{lost}."
