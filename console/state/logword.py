"""What the log of the watched run says, read into facts of the target and events of the launch.

Used by `machine` alone. What comes of a log that is no longer followed is not heard. Pure.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from console.model import Stage
from console.protocol import LogEvent, RunRecord
from console.state import events, lasting, launch, training
from console.state.ending import how_it_ended
from console.state.hostword import launched
from console.state.judging import Told, done_at
from console.state.symptoms import download_of
from console.state.target import Follow, LogFacts, Subject, TargetState, heard, is_this_boot
from console.state.training import Training

YOUNG_S = 120.0
"""A run that was spawned so recently has a log that is read from its start."""

Stepped = tuple[TargetState, tuple[events.Effect, ...]]


def follow_log(state: TargetState, subject: Subject) -> Stepped:
    """Follow the run's log as soon as it may be there; another path (a redirected run) replaces the one before."""
    log, record = subject.log, subject.record
    if log is None or not log.path or (state.follow is not None and state.follow.path == log.path):
        return state, ()
    if record is not None and Stage.SPAWNED not in record.stages and record.state in ("accepted", "killing", "cache"):
        return state, ()
    follow = Follow(id=state.follows + 1, path=log.path, began_at=state.at)
    effect = events.FollowLog(
        follow=follow.id,
        path=log.path,
        pid=subject.main.pid if subject.main is not None and not subject.is_gone else None,
        from_start=_is_young(state, record),
        run=subject.key,
    )
    return replace(state, follow=follow, follows=follow.id, log=LogFacts(is_unread=True), training=Training()), (
        effect,
    )


def _is_young(state: TargetState, record: RunRecord | None) -> bool:
    if record is None or not is_this_boot(state, record):
        return False
    now_bt, spawned_bt = state.clock.bt(state.at), record.spawned_bt
    return spawned_bt is None or (now_bt is not None and now_bt - spawned_bt < YOUNG_S)


def ask_head(state: TargetState, effects: tuple[events.Effect, ...]) -> Stepped:
    """Steps are there: when they came by the keeper's notes is what every console shows, whoever watched."""
    steps, follow, subject = state.training, state.follow, state.subject
    if state.head_asked or steps.pair is None or steps.pair_ends is None or state.launch is None:
        return state, effects
    if follow is None or subject is None or not subject.is_own or state.launch.fact(Stage.STEPPING).noted:
        return state, effects
    ask = events.ReadHead(run=subject.key, path=follow.path, steps=steps.pair, ends=steps.pair_ends)
    return replace(state, head_asked=True), (*effects, ask)


def from_log(
    state: TargetState,
    event: events.LogSaid
    | events.SamplesSeen
    | events.PhaseSeen
    | events.LogTail
    | events.LinesNoted
    | events.HistoryRead,
) -> Stepped:
    if state.follow is None or event.follow != state.follow.id:
        return state, ()  # of a log that is no longer followed
    state = heard(state)
    match event:
        case events.LogSaid():
            link = replace(state.link, log_lost=None, log_lost_at=None)
            return replace(state, link=link, log=_log_said(state.log, event, state.at)), ()
        case events.PhaseSeen():
            phase = event.text if state.training.step is None else ""
            return replace(state, training=replace(state.training, phase=phase)), ()
        case events.LogTail():
            state = replace(state, log=replace(state.log, tail=event.lines, first_error=event.first_error))
            return _reread_end(_read_tail(state)), ()
        case events.LinesNoted():
            return _noted(state, event), ()
        case events.HistoryRead():
            return replace(state, log=replace(state.log, is_unread=False, is_catching_up=False)), ()
        case events.SamplesSeen():
            return ask_head(_reread_end(_samples(state, event)), ())
        case _:
            assert_never(event)


def _log_said(log: LogFacts, event: events.LogSaid, at: float) -> LogFacts:
    now = event.log
    grew = _grew(log, now)
    if now.state in ("truncated", "rotated"):
        log = replace(log, mishap=now.state, mishap_at=at)
    return replace(
        log,
        event=now,
        sized=now if now.size is not None else log.sized,
        at=at,
        grew_at=at if grew and not log.is_catching_up else log.grew_at,
    )


def _grew(log: LogFacts, now: LogEvent) -> bool:
    """Whether something was written since the log was looked at last."""
    if not now.size:
        return False
    if now.state in ("truncated", "rotated") or (log.event is not None and log.event.state == "missing"):
        return True  # what stands in it is new
    return log.sized is not None and log.sized.inode == now.inode and now.size > (log.sized.size or 0)


def _samples(state: TargetState, event: events.SamplesSeen) -> TargetState:
    live = event.dated or (event.live and not state.log.is_catching_up)
    now = None if event.dated else state.at
    is_own = state.subject is not None and state.subject.is_own
    seen = training.see(
        state.training, event.samples, now, live=live, is_own=is_own, baseline=state.history.baseline,
        after_gap=event.after_gap,
    )  # fmt: skip
    seen = replace(
        seen,
        format=event.format if event.format is not None else seen.format,
        lines_seen=event.lines_seen,
        lines_understood=event.lines_understood,
    )
    proved = seen.pair is not None and state.training.pair is None
    log = replace(state.log, is_catching_up=state.log.is_catching_up and not state.log.has_reached_end)
    if log.done is not None and seen.last_step_offset is not None and seen.last_step_offset > log.done.offset:
        log = replace(log, done=None, done_at=None)  # it goes on: what was done was something else
    state = replace(state, training=seen, log=log)
    if proved and seen.pair is not None:
        first, second = seen.pair
        seen_bt = None if event.dated else state.clock.bt(seen.pair_at)  # what was noted is asked for as such
        state = launched(state, launch.StepsSeen(first=first, second=second, bt=seen_bt))
    return state


def step_times(state: TargetState, event: events.StepTimesKnown) -> TargetState:
    """When the first two steps were written, by the keeper's notes; they prove nothing by themselves."""
    if state.subject is None or event.run != state.subject.key:
        return state
    steps, clock = state.training, state.clock
    if event.first is not None and steps.pair == (event.first[0].step, event.first[1].step):
        one, two = event.first
        steps = replace(
            steps, pair_at=clock.at(two.bt), first_step=one.step, first_step_at=clock.at(min(one.bt, two.bt))
        )
        state = launched(state, launch.StepsSeen(first=one.step, second=two.step, bt=two.bt, noted=True))
    if event.last is not None and steps.last_step_at is None and event.last.step == steps.step:
        steps = replace(steps, last_step_at=clock.at(event.last.bt))
    grew_at = state.log.grew_at if state.log.grew_at is not None else clock.at(event.grew_bt)
    return replace(state, training=steps, log=replace(state.log, grew_at=grew_at))


def _read_tail(state: TargetState) -> TargetState:
    """What the newest lines say of a run that is alive: that it is done, or that it waits for a download."""
    steps, log = state.training, state.log
    lines = [line for line in log.tail if steps.last_step_offset is None or line.offset >= steps.last_step_offset]
    at = [index for index, line in enumerate(lines) if line.offset == steps.last_step_offset]
    told = Told(lines=lines, steps_at=at, step=steps.step, total_steps=steps.total_steps)
    place = done_at(told) if lines and steps.step is not None else None
    done = lines[place] if place is not None else None
    is_same = done is not None and log.done is not None and done.offset == log.done.offset
    when = log.done_at if is_same else state.at if done is not None else None
    return replace(state, log=replace(log, done=done, done_at=when, download=download_of(log.tail)))


def _noted(state: TargetState, event: events.LinesNoted) -> TargetState:
    if state.log.recompile is not None:
        return state
    found = next((line for line in event.lines if lasting.says_recompile_limit(line.text)), None)
    if found is None:
        return state
    live = event.live and not state.log.is_catching_up
    return replace(state, log=replace(state.log, recompile=found, recompile_at=state.at if live else None))


def _reread_end(state: TargetState) -> TargetState:
    """The log's last lines may come behind the exit record and say more about how it ended."""
    if state.launch is None or state.launch.over is None or state.subject is None or state.subject.record is None:
        return state
    over = how_it_ended(state, state.subject.record)
    return state if over is None or over == state.launch.over else launched(state, over)
