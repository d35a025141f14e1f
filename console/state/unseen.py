"""A run whose steps can't be seen, though it may well make them: no connection, no file, or output that goes elsewhere.

Nothing is said as long as no step was due; then it is said that nothing can be seen, and since when. Pure.
"""

from __future__ import annotations

from console.model import Fact, LogState, Severity, Stage, StageState
from console.reasons import Reason
from console.state import stall, texts
from console.state.condition import Condition, Health
from console.state.hostword import has_spawned
from console.state.target import TargetState

UNSEEN_LAUNCH_S = 10.0
"""While no step was due yet: a connection that is back so soon was never missed."""

_WARNING = Severity.WARNING


def unseen(state: TargetState, now: float) -> Health | None:
    """The connection of the log is down, or the file can't be read, and a step would have been due."""
    if state.link.log_lost is not None:
        return _log_lost(state, now, state.link.log_lost)
    event = state.log.event
    if event is None or event.state not in (LogState.MISSING, LogState.UNREADABLE) or state.training.step is None:
        return None
    if not stall.is_overdue(state, now):
        return None
    what = "is gone" if event.state == LogState.MISSING else f"can't be read: {event.detail}"
    return Health(
        condition=Condition.UNSEEN,
        reason=Reason.LOG_ELSEWHERE,
        detail=texts.joined(f"{event.path} {what}", _last_seen(state, now)),
        facts=(Fact(label="log", text=f"{event.path} {what}", severity=_WARNING), *stall.run_facts(state, now)),
        brief=_brief_unseen(state, now),
    )


def unread(state: TargetState, now: float) -> Health | None:
    """What stood in the log is not read yet: its newest step may be hours old by what is known so far, and isn't.

    A log that was read before and is read on tells what it told then, as long as its silence would be called nothing.
    """
    if state.follow is None or not state.log.is_unread or state.link.log_lost is not None:
        return None
    if state.log.is_catching_up:
        silence = stall.silent_s(state, now)
        silence = silence if silence is not None else stall.log_silence_s(state, now)
        if silence is not None and silence <= min(stall.SILENT_S, stall.stall_budget_s(state, now)):
            return None
    return Health(condition=Condition.UNREAD)


def _log_lost(state: TargetState, now: float, why: str) -> Health | None:
    if state.training.step is None:
        since = state.link.log_lost_at
        waits = state.launch is not None and state.launch.state(Stage.CUDA) is StageState.DONE
        if not waits or since is None or now - since < UNSEEN_LAUNCH_S:
            return None
    elif not stall.is_overdue(state, now):
        return None
    since = state.link.log_lost_at if state.link.log_lost_at is not None else now
    lost = f"the log's connection is lost for {texts.span(now - since)}"
    lost += f": {why}" if why else ""
    return Health(
        condition=Condition.UNSEEN,
        reason=Reason.LOG_LOST,
        detail=texts.joined(_last_seen(state, now), lost),
        facts=(Fact(label="log", text=lost, severity=_WARNING), *stall.run_facts(state, now)),
        brief=_brief_unseen(state, now),
    )


def _last_seen(state: TargetState, now: float) -> str:
    steps, silent = state.training, stall.silent_s(state, now)
    if steps.step is None:
        return "no step was seen yet"
    return f"steps unseen for {texts.span(silent)}, the last one was {texts.count(steps.step)}"


def _brief_unseen(state: TargetState, now: float) -> str:
    silent = stall.silent_s(state, now)
    return f"unseen {texts.span(silent)}" if silent is not None else "unseen"


# -- output that isn't in the log --------------------------------------------------------------------------------------


def elsewhere(state: TargetState, now: float) -> Health | None:
    """The log is silent, or there is none, and the run writes another file; or its output can't be read at all."""
    subject, procs = state.subject, state.procs.event
    if subject is None or not has_spawned(state):
        return None
    if subject.log is None:
        return _no_log(state) if subject.hand is not None else None
    silence = stall.log_silence_s(state, now)
    if procs is None or not procs.writes or silence is None or silence < stall.SILENT_S:
        return None
    if state.training.step is None:
        if state.launch is None or state.launch.state(Stage.CUDA) is not StageState.DONE:
            return None  # loading is silent, too
    elif not stall.is_overdue(state, now):
        return None
    pid = f"pid {procs.writes_pid}" if procs.writes_pid is not None else "the run"
    return Health(
        condition=Condition.ELSEWHERE,
        reason=Reason.LOG_ELSEWHERE,
        detail=texts.joined(f"{pid} writes {procs.writes}", f"the log is silent for {texts.span(silence)}"),
        facts=(
            Fact(label="writes", text=procs.writes, severity=_WARNING),
            Fact(label="log", text=stall.log_words(state, now)),
            *stall.run_facts(state, now),
        ),
        brief="log elsewhere",
    )


def _no_log(state: TargetState) -> Health:
    procs = state.procs.event
    writes = f"pid {procs.writes_pid} writes {procs.writes}" if procs is not None and procs.writes else ""
    return Health(
        condition=Condition.ELSEWHERE,
        reason=Reason.LOG_ELSEWHERE,
        detail=texts.joined("its output goes into no file that can be read", writes),
        facts=(Fact(label="stdout", text="a terminal, a pipe, or a file that we may not see", severity=_WARNING),),
        brief="no log",
    )
