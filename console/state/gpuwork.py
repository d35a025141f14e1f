"""What the GPUs' power says of a run: working, waiting, idle, or not to be seen.

Power tells work from waiting; utilisation doesn't, since GPUs that spin in a collective show 100 %. Pure.
"""

from __future__ import annotations

from enum import StrEnum

from console.model import Stage, StageState
from console.state import texts, training
from console.state.target import TargetState, run_power_w

WORKING_SHARE = 0.6
"""Of the power that was drawn while steps came: above it GPUs compute, below it they wait or spin."""
WORKING_OF_LIMIT = 0.35
"""The same where no steps have been seen yet, as a share of the board's limit."""
BUSY_PCT = 50
STALE_S = 30.0
"""A sample that is older says nothing of now."""


class Work(StrEnum):
    WORKING = "working"
    WAITING = "waiting"  # busy by their own account, at little power
    IDLE = "idle"
    UNSEEN = "unseen"


def work(state: TargetState, now: float) -> Work:
    power, event = run_power_w(state), state.gpus.event
    if power is None or event is None or state.gpus.at is None or now - state.gpus.at > STALE_S:
        return Work.UNSEEN
    usual = usual_power_w(state)
    if usual is not None:
        works = power >= WORKING_SHARE * usual
    else:
        limits = [gpu.limit_mw / 1000 for gpu in event.gpus if gpu.limit_mw]
        if not limits:
            return Work.UNSEEN
        works = power >= WORKING_OF_LIMIT * sum(limits) / len(limits)
    if works:
        return Work.WORKING
    return Work.WAITING if (_util_pct(state) or 0) >= BUSY_PCT else Work.IDLE


def works_surely(state: TargetState, now: float) -> bool:
    """GPUs of this run compute: the contexts are there and the power is."""
    if state.launch is None or state.launch.state(Stage.CUDA) is not StageState.DONE:
        return False
    return work(state, now) is Work.WORKING


def usual_power_w(state: TargetState) -> float | None:
    """Mean board draw while steps came; None before enough of it was seen."""
    return training.median(state.gpus.stepping_w) if len(state.gpus.stepping_w) >= 5 else None


def _util_pct(state: TargetState) -> float | None:
    if state.gpus.event is None:
        return None
    ours = [gpu for gpu in state.gpus.event.gpus if gpu.context] or list(state.gpus.event.gpus)
    known = [gpu.util for gpu in ours if gpu.util is not None]
    return sum(known) / len(known) if known else None


def words(state: TargetState, seen: Work) -> str:
    power, usual, util = run_power_w(state), usual_power_w(state), _util_pct(state)
    if seen is Work.UNSEEN or power is None:
        return "GPUs can't be seen"
    busy = f"{util:.0f} % busy" if util is not None else "use unknown"
    drawn = f"GPUs {busy} at {power:.0f} W" + (f", usual {usual:.0f} W" if usual is not None else "")
    return texts.joined(drawn, "a collective waits?" if seen is Work.WAITING else "")
