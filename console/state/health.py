"""How a run that is alive does: stepping well, slow, stalled, NaN, or working unseen.

A stall is called by corroboration, never by one timer: no step within a budget learned from this run's own steps, and
then GPUs, log and CPU are asked what they make of it. Power tells work from waiting; utilisation doesn't, since GPUs
that spin in a collective show 100 %. Pure; judged anew from the state whenever asked.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from console.model import Fact, LogState, Severity, Stage, StageState
from console.reasons import Reason
from console.state import texts, training
from console.state.target import TargetState, run_power_w

STALL_FLOOR_S = 60.0
STALL_USUAL = 10.0
STALL_LONGEST = 3.0
"""Three times the longest pause that this run has come back from (checkpoints, evaluations)."""
UNLEARNED_S = 600.0
"""Before five intervals are known: compiling after the first step takes minutes."""
SAVING_S = 900.0
"""While a checkpoint is being written."""
WORKING_SHARE = 0.6
"""Of the power that was drawn while steps came: above it GPUs compute, below it they wait or spin."""
WORKING_OF_LIMIT = 0.35
"""The same where no steps have been seen yet, as a share of the board's limit."""
BUSY_PCT = 50
PATIENCE = 5.0
"""Budgets that a silent run is given while its GPUs work as always and its log grows: an evaluation, for instance."""
SILENT_S = 60.0
SLOW_FOR_S = 120.0
UNKNOWN_FORMAT_LINES = 40
UNKNOWN_FORMAT_S = 60.0


class Condition(StrEnum):
    OK = "ok"
    SLOW = "slow"
    STALLED = "stalled"
    NAN = "nan"
    BUFFERED = "buffered"
    FORMAT_UNKNOWN = "format_unknown"


class Health(Struct, frozen=True, kw_only=True):
    condition: Condition = Condition.OK
    reason: Reason | None = None
    detail: str = ""
    facts: tuple[Fact, ...] = ()


def assess(state: TargetState, now: float) -> Health:
    """Judge a run that is alive and past its launch, or in its last stage."""
    if state.training.bad_since_step is not None:
        return _nan(state, now)
    if state.link.log_lost is not None:
        return Health()  # no step can be seen: that none is, tells nothing of the run
    if state.training.step is None:
        return _unseen_steps(state, now)
    if (stalled := _stall(state, now)) is not None:
        return stalled
    return _slow(state, now) or Health()


# -- NaN --------------------------------------------------------------------------------------------------------------


def _nan(state: TargetState, now: float) -> Health:
    steps = state.training
    ago = f", {texts.span(now - steps.bad_since_at)} ago" if steps.bad_since_at is not None else ""
    kind = "infinite" if steps.loss_state == "inf" else "NaN"
    facts = [Fact(label="loss", text=f"{kind} since step {texts.count(steps.bad_since_step)}{ago}", severity=_ERROR)]
    if steps.last_good_loss is not None:
        good = f"{steps.last_good_loss:.4g} at {texts.count(steps.last_good_step)}"
        facts.append(Fact(label="last good", text=good))
    detail = f"loss is {kind} since step {texts.count(steps.bad_since_step)}"
    return Health(condition=Condition.NAN, reason=Reason.NAN_LOSS, detail=detail, facts=tuple(facts))


_ERROR, _WARNING = Severity.ERROR, Severity.WARNING


# -- stalls -----------------------------------------------------------------------------------------------------------


def silent_s(state: TargetState, now: float) -> float | None:
    """How long no step has come: since the last one was written or, where nobody saw that, since it was read."""
    steps = state.training
    since = steps.last_step_at if steps.last_step_at is not None else steps.heard_at
    return max(0.0, now - since) if since is not None else None


def stall_budget_s(state: TargetState, now: float) -> float:
    """How long this run may make no step before that is called a stall."""
    steps = state.training
    usual = training.usual_gap_s(steps)
    if usual is None:
        return UNLEARNED_S
    learned = max(STALL_FLOOR_S, STALL_USUAL * usual, STALL_LONGEST * training.longest_gap_s(steps))
    saving = steps.saving_since_at is not None and now - steps.saving_since_at < SAVING_S
    return max(learned, SAVING_S) if saving else learned


class _Work(StrEnum):
    """What the GPUs' power says."""

    WORKING = "working"
    WAITING = "waiting"  # busy by their own account, at little power
    IDLE = "idle"
    UNSEEN = "unseen"


def _stall(state: TargetState, now: float) -> Health | None:
    silent, budget = silent_s(state, now), stall_budget_s(state, now)
    if silent is None or silent <= budget:
        return None
    work = _work(state, now)
    if work is _Work.WORKING and not _log_grows(state, now):
        return _buffered(state, now, silent)
    patience = budget * (PATIENCE if work is _Work.WORKING else 2.0 if work is _Work.UNSEEN else 1.0)
    if silent <= patience:
        return None
    usual = training.usual_step_s(state.training)
    learned = f"usual {texts.duration(usual)}, budget {texts.span(budget)}" if usual else f"budget {texts.span(budget)}"
    facts = (
        Fact(label="steps", text=f"{texts.span(silent)} without a step ({learned})", severity=_WARNING),
        Fact(label="GPUs", text=_gpu_words(state, work), severity=_WARNING if work is not _Work.WORKING else _INFO),
        Fact(label="log", text=_log_words(state, now)),
        *_cpu_fact(state),
    )
    return Health(condition=Condition.STALLED, reason=Reason.STALLED, detail=_gpu_words(state, work), facts=facts)


_INFO = Severity.INFO


def _work(state: TargetState, now: float) -> _Work:
    power, event = run_power_w(state), state.gpus.event
    if power is None or event is None or state.gpus.at is None or now - state.gpus.at > 30.0:
        return _Work.UNSEEN
    usual = usual_power_w(state)
    if usual is not None:
        works = power >= WORKING_SHARE * usual
    else:
        limits = [gpu.limit_mw / 1000 for gpu in event.gpus if gpu.limit_mw]
        if not limits:
            return _Work.UNSEEN
        works = power >= WORKING_OF_LIMIT * sum(limits) / len(limits)
    if works:
        return _Work.WORKING
    return _Work.WAITING if (_util_pct(state) or 0) >= BUSY_PCT else _Work.IDLE


def usual_power_w(state: TargetState) -> float | None:
    """Mean board draw while steps came; None before enough of it was seen."""
    return training.median(state.gpus.stepping_w) if len(state.gpus.stepping_w) >= 5 else None


def _util_pct(state: TargetState) -> float | None:
    if state.gpus.event is None:
        return None
    ours = [gpu for gpu in state.gpus.event.gpus if gpu.context] or list(state.gpus.event.gpus)
    known = [gpu.util for gpu in ours if gpu.util is not None]
    return sum(known) / len(known) if known else None


def _gpu_words(state: TargetState, work: _Work) -> str:
    power, usual, util = run_power_w(state), usual_power_w(state), _util_pct(state)
    if work is _Work.UNSEEN or power is None:
        return "GPUs can't be seen"
    busy = f"{util:.0f} % busy" if util is not None else "use unknown"
    drawn = f"GPUs {busy} at {power:.0f} W" + (f", usual {usual:.0f} W" if usual is not None else "")
    return texts.joined(drawn, "a collective waits?" if work is _Work.WAITING else "")


def _log_grows(state: TargetState, now: float) -> bool:
    return state.log.grew_at is not None and now - state.log.grew_at < SILENT_S


def _log_words(state: TargetState, now: float) -> str:
    silence = log_silence_s(state, now)
    if silence is None:
        return "not known since when it is silent"
    return "grows" if silence < SILENT_S else f"silent for {texts.span(silence)}"


def log_silence_s(state: TargetState, now: float) -> float | None:
    """How long the log has not grown, at least: since it last did, or since it is watched. None while it can't be."""
    if state.link.log_lost is not None:
        return None
    since = state.log.grew_at
    if since is None and state.follow is not None:
        since = state.follow.began_at
    return max(0.0, now - since) if since is not None else None


def _cpu_fact(state: TargetState) -> tuple[Fact, ...]:
    cores = state.procs.event.cpu_cores if state.procs.event is not None else None
    return (Fact(label="CPU", text=f"{cores:.1f} cores"),) if cores is not None else ()


# -- steps that can't be seen -----------------------------------------------------------------------------------------


def _unseen_steps(state: TargetState, now: float) -> Health:
    silence = log_silence_s(state, now)
    if _works_surely(state, now):
        if silence is not None and silence >= SILENT_S and _log_is_there(state):
            return _buffered(state, now, silence)
        if _is_format_unknown(state, now):
            return _format_unknown(state)
    return Health()


def _works_surely(state: TargetState, now: float) -> bool:
    """GPUs of this run compute: the contexts are there and the power is."""
    if state.launch is None or state.launch.state(Stage.CUDA) is not StageState.DONE:
        return False
    return _work(state, now) is _Work.WORKING


def _log_is_there(state: TargetState) -> bool:
    event = state.log.event
    return event is not None and event.state in (LogState.EMPTY, LogState.FOLLOWING)


def _buffered(state: TargetState, now: float, silent: float) -> Health:
    power = run_power_w(state)
    event = state.log.event
    is_empty = event is not None and event.state == LogState.EMPTY
    what = "the log is empty since" if is_empty else "no log output for"
    at = f"GPUs work at {power:.0f} W" if power is not None else "GPUs work"
    return Health(
        condition=Condition.BUFFERED,
        reason=Reason.OUTPUT_BUFFERED,
        detail=texts.joined(f"{what} {texts.span(silent)}, but {at}", "output is buffered?"),
        facts=(
            Fact(label="log", text="0 B" if is_empty else _log_words(state, now)),
            Fact(label="GPUs", text=_gpu_words(state, _Work.WORKING)),
            *_cpu_fact(state),
        ),
    )


def _is_format_unknown(state: TargetState, now: float) -> bool:
    assert state.launch is not None
    began = state.clock.at(state.launch.mark(Stage.CUDA).ended_bt)
    since_cuda = state.training.lines_seen - (state.log.lines_at_cuda or 0)
    long_enough = began is not None and now - began >= UNKNOWN_FORMAT_S
    return long_enough and since_cuda >= UNKNOWN_FORMAT_LINES


def _format_unknown(state: TargetState) -> Health:
    lines = texts.plural(state.training.lines_seen, "line")
    return Health(
        condition=Condition.FORMAT_UNKNOWN,
        reason=Reason.FORMAT_UNKNOWN,
        detail=f"{lines}, none is a known step line",
        facts=(
            Fact(label="log", text=f"{lines}, none is a known step line"),
            Fact(label="GPUs", text=_gpu_words(state, _Work.WORKING)),
        ),
    )


# -- slow -------------------------------------------------------------------------------------------------------------


def _slow(state: TargetState, now: float) -> Health | None:
    steps, baseline = state.training, state.history.baseline_tok_s
    if steps.slow_since_at is None or baseline is None or now - steps.slow_since_at < SLOW_FOR_S:
        return None
    recent = [p.tok_s for p in steps.points if p.tok_s is not None and p.at >= steps.slow_since_at]
    current = training.median(recent) if recent else steps.tok_s
    if current is None:
        return None
    against = state.history.baseline_name or "the baseline"
    under = texts.span(now - steps.slow_since_at)
    detail = texts.joined(
        f"{texts.rate(current)} for {under}, {100 * (1 - current / baseline):.0f} % under {against}",
        f"since step {texts.count(steps.slow_since_step)}",
    )
    queue = training.queue(steps, now)
    waits = {"targets": "drafters wait for targets", "drafters": "targets wait for drafters"}
    facts = [Fact(label="tok/s", text=detail, severity=_WARNING)]
    if queue is not None:
        depth = f" of {queue.max_depth:g}" if queue.max_depth is not None else ""
        facts.append(Fact(label="queue", text=f"{queue.min_ready:g}{depth}: {waits.get(queue.bound, queue.bound)}"))
    if run_power_w(state) is not None:
        facts.append(Fact(label="GPUs", text=_gpu_words(state, _work(state, now))))
    return Health(condition=Condition.SLOW, reason=Reason.SLOW, detail=detail, facts=tuple(facts))
