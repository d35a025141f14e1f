"""Stalls, by corroboration: no step within a budget learned from this run's own steps, and then what the rest says.

Never one timer: GPUs, log and CPU are asked what they make of the silence, so that buffered output and an evaluation
are told from a hang. How long is long for this run is answered here, too, for the other judges of silence. Pure.
"""

from __future__ import annotations

from console.model import Fact, LogState, Severity, Stage
from console.reasons import Reason
from console.state import figures, gpuwork, texts
from console.state.condition import Condition, Health
from console.state.gpuwork import Work
from console.state.target import TargetState, run_power_w

STALL_FLOOR_S = 60.0
STALL_USUAL = 10.0
STALL_LONGEST = 3.0
"""Three times the longest pause that this run has come back from (checkpoints, evaluations)."""
UNLEARNED_S = 600.0
"""Before five intervals are known: compiling after the first step takes minutes."""
SAVING_S = 900.0
"""While a checkpoint is being written."""
PATIENCE = 5.0
"""Budgets that a silent run is given while its GPUs work as always and its log grows: an evaluation, for instance."""
SILENT_S = 60.0
UNKNOWN_FORMAT_LINES = 40
UNKNOWN_FORMAT_S = 60.0
OVERDUE_S = 3.0
OVERDUE_USUAL = 2.0
STARVED_LINES = 5

_WARNING, _INFO = Severity.WARNING, Severity.INFO


# -- how long, and how long is long ------------------------------------------------------------------------------------


def silent_s(state: TargetState, now: float) -> float | None:
    """How long no step has come: since the last one was written or, where nobody saw that, since it was read.

    While the run was suspended it could make none: the clock begins anew when it goes on.
    """
    steps = state.training
    since = steps.last_step_at if steps.last_step_at is not None else steps.heard_at
    if since is None:
        return None
    return max(0.0, now - max(since, state.procs.resumed_at or since))


def stall_budget_s(state: TargetState, now: float) -> float:
    """How long this run may make no step before that is called a stall."""
    steps = state.training
    usual = figures.usual_gap_s(steps)
    if usual is None:
        return UNLEARNED_S
    learned = max(STALL_FLOOR_S, STALL_USUAL * usual, STALL_LONGEST * figures.longest_gap_s(steps))
    saving = steps.saving_since_at is not None and now - steps.saving_since_at < SAVING_S
    return max(learned, SAVING_S) if saving else learned


def log_silence_s(state: TargetState, now: float) -> float | None:
    """How long the log has not grown, at least: since it last did, or since it is watched. None while it can't be."""
    if state.link.log_lost is not None:
        return None
    since = state.log.grew_at
    if since is None and state.follow is not None:
        since = state.follow.began_at
    return max(0.0, now - since) if since is not None else None


def is_overdue(state: TargetState, now: float) -> bool:
    """Whether a step should have been seen by now, had the run made it."""
    silent, usual = silent_s(state, now), figures.usual_gap_s(state.training)
    return silent is not None and silent > max(OVERDUE_S, OVERDUE_USUAL * (usual or 0.0))


# -- stalled, or working unseen ----------------------------------------------------------------------------------------


def stalled(state: TargetState, now: float) -> Health | None:
    silent = silent_s(state, now)
    if silent is None or silent <= STALL_FLOOR_S:  # asked with every step line: no budget is learned for nothing
        return None
    budget = stall_budget_s(state, now)
    if silent <= budget or state.log.done is not None or state.link.log_lost is not None:
        return None
    seen = gpuwork.work(state, now)
    if seen is Work.WORKING and not _log_grows(state, now):
        return _buffered(state, now, silent)
    patience = budget * (PATIENCE if seen is Work.WORKING else 2.0 if seen is Work.UNSEEN else 1.0)
    if silent <= patience:
        return None
    usual = figures.usual_step_s(state.training)
    learned = f"usual {texts.duration(usual)}, budget {texts.span(budget)}" if usual else f"budget {texts.span(budget)}"
    facts = (
        Fact(label="steps", text=f"{texts.span(silent)} without a step ({learned})", severity=_WARNING),
        Fact(label="GPUs", text=gpuwork.words(state, seen), severity=_WARNING if seen is not Work.WORKING else _INFO),
        Fact(label="log", text=log_words(state, now)),
        *_queue_fact(state),
        *cpu_fact(state),
    )
    return Health(
        condition=Condition.STALLED,
        reason=Reason.STALLED,
        detail=gpuwork.words(state, seen),
        facts=facts,
        brief=f"stalled {texts.span(silent)}",
    )


def _queue_fact(state: TargetState) -> tuple[Fact, ...]:
    steps = state.training
    if steps.empty_lines < STARVED_LINES:
        return ()
    return (
        Fact(
            label="queue",
            text=f"empty since step {texts.count(steps.empty_since_step)}: drafters wait for targets",
            severity=_WARNING,
        ),
    )


def _log_grows(state: TargetState, now: float) -> bool:
    return state.log.grew_at is not None and now - state.log.grew_at < SILENT_S


def log_words(state: TargetState, now: float) -> str:
    silence = log_silence_s(state, now)
    if silence is None:
        return "not known since when it is silent"
    return "grows" if silence < SILENT_S else f"silent for {texts.span(silence)}"


def cpu_fact(state: TargetState) -> tuple[Fact, ...]:
    cores = state.procs.event.cpu_cores if state.procs.event is not None else None
    return (Fact(label="CPU", text=f"{cores:.1f} cores"),) if cores is not None else ()


def without_steps(state: TargetState, now: float) -> Health | None:
    """No step was ever read, and the GPUs work: the output is kept back, or isn't understood."""
    if state.training.step is not None or state.link.log_lost is not None or not gpuwork.works_surely(state, now):
        return None
    silence = log_silence_s(state, now)
    if silence is not None and silence >= SILENT_S and _log_is_there(state):
        return _buffered(state, now, silence)
    return _format_unknown(state) if _is_format_unknown(state, now) else None


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
            Fact(label="log", text="0 B" if is_empty else log_words(state, now)),
            Fact(label="GPUs", text=gpuwork.words(state, Work.WORKING)),
            *cpu_fact(state),
        ),
        brief="output buffered",
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
            Fact(label="GPUs", text=gpuwork.words(state, Work.WORKING)),
        ),
        brief="format unknown",
    )


def run_facts(state: TargetState, now: float) -> tuple[Fact, ...]:
    return (Fact(label="GPUs", text=gpuwork.words(state, gpuwork.work(state, now))), *cpu_fact(state))
