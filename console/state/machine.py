"""The machine of one target: `step(state, event) -> (state, effects)`.

What the host, the log and the GPUs say becomes facts of TargetState and events of the launch; what has to be done
about it becomes effects. What makes no sense (a journal that goes backwards, a run that returns from the dead) changes
nothing and is kept as a warning: the host may be older, newer or wrong, and none of that may end the console. Pure;
time is in the events.
"""

from __future__ import annotations

import math
from typing import assert_never

from msgspec.structs import replace

from console import config
from console.model import OUT_OF_REACH, LinkState, Stage, StageState, Verdict
from console.state import events, launch
from console.state.baseline import Baseline
from console.state.hostword import SETTLING_S, gpus_said, launched, procs_said, read_hand, read_record, warned
from console.state.launch import Launch
from console.state.logword import ask_head, follow_log, from_log, step_times
from console.state.outside import outside_lost, outside_said
from console.state.subject import choose
from console.state.target import (
    Clock,
    GpuFacts,
    History,
    LinkFacts,
    LogFacts,
    ProcFacts,
    Subject,
    TargetState,
    deadline_s,
    heard,
)
from console.state.training import Training, unjudged
from console.state.verdict import judge

RED = frozenset({Verdict.FAILED, Verdict.ENDED, Verdict.NAN, Verdict.HOST_RESTARTED, Verdict.INTERRUPTED})
UNSPOKEN = OUT_OF_REACH | {Verdict.NO_WORD}
LATE_TIMES = 2.0
"""A stage is late beyond so many times the longest that it ever took, though its deadline has not passed yet."""
LATE_FLOOR_S = 60.0

Stepped = tuple[TargetState, tuple[events.Effect, ...]]


def start(
    name: str,
    target: config.Target,
    *,
    operator: str = "",
    origin: str = "",
    read_only: bool = False,
    label: str = "",
) -> TargetState:
    """Return the state before anything is known."""
    baseline = target.metrics.baseline
    known = History()
    if isinstance(baseline, int | float):
        known = History(baseline=Baseline(tok_s=float(baseline), name="baseline"))
    return TargetState(
        name=name,
        target=target,
        operator=operator,
        origin=origin,
        read_only=read_only,
        link=LinkFacts(label=label),
        history=known,
    )


def step(state: TargetState, event: events.Event) -> Stepped:
    """Return the state after the event and what has to be done about it."""
    state = replace(state, at=max(state.at, event.at))
    after, effects = _take(state, event)
    after, bell = _ring(after)
    return after, effects + bell


def _take(state: TargetState, event: events.Event) -> Stepped:
    match event:
        case events.LinkWentUp():
            return _link_up(state, event), ()
        case events.LinkWentDown():
            return _link_down(state, event), ()
        case events.BulkWentDown():
            return _bulk_down(state, event), ()
        case events.LinkRtt():
            clock = _synced(state.clock, event.at, event.bt, event.wall, event.rtt_s)
            return replace(heard(state), clock=clock, link=replace(heard(state).link, rtt_s=event.rtt_s)), ()
        case events.HostSaid():
            return _host_said(heard(state), event)
        case events.ProcsSaid():
            return procs_said(heard(state), event), ()
        case events.GpusSaid():
            return gpus_said(heard(state), event), ()
        case events.OutsideSaid():
            return outside_said(state, event.outside), ()
        case events.OutsideLost():
            return outside_lost(state, event), ()
        case events.HostWarned():
            return warned(heard(state), event.warn.reason, event.warn.detail), ()
        case events.HistoryKnown():
            return replace(state, history=_history(state.history, event)), ()
        case events.BaselineChosen():
            history = replace(state.history, baseline=event.baseline)
            return replace(state, history=history, training=unjudged(state.training)), ()
        case events.ConsoleWarned():
            return warned(state, event.reason, event.detail), ()
        case events.StepTimesKnown():
            return step_times(state, event), ()
        case events.LogSaid() | events.SamplesSeen() | events.PhaseSeen() | events.LogTail() | events.LinesNoted():
            return from_log(state, event)
        case events.HistoryRead():
            return from_log(state, event)
        case events.Tick():
            return _tick(state), ()
        case _:
            assert_never(event)


def _history(before: History, event: events.HistoryKnown) -> History:
    return History(
        usual_s=event.usual_s,
        longest_s=event.longest_s,
        launches=event.launches,
        good=event.good,
        baseline=event.baseline if event.baseline.tok_s is not None else before.baseline,
    )


# -- the link ---------------------------------------------------------------------------------------------------------


def _synced(clock: Clock, at: float, bt: float, wall: float, rtt_s: float | None) -> Clock:
    """Take new offsets where the round trip was short, or where the clocks have moved against each other."""
    way_s = max(0.0, rtt_s or 0.0) / 2
    bt_offset = at - way_s - bt
    wall_offset = wall - (at - way_s)
    best = clock.best_rtt_s
    moved = clock.bt_offset is None or abs(bt_offset - clock.bt_offset) > max(1.0, 2 * way_s)
    good = best is None or rtt_s is None or rtt_s <= 1.5 * best
    return Clock(
        bt_offset=bt_offset if moved or good else clock.bt_offset,
        wall_offset=wall_offset,
        # Grows a little each time, so that a route that has become longer is believed in the end.
        best_rtt_s=min(best * 1.02, rtt_s) if best is not None and rtt_s is not None else rtt_s or best,
    )


def _link_up(state: TargetState, event: events.LinkWentUp) -> TargetState:
    state = heard(state)
    link = replace(
        state.link,
        state=LinkState.UP,
        rtt_s=event.rtt_s,
        attempt=0,
        retry_at=None,
        reason=None,
        detail="",
        label=event.label or state.link.label,
        log_lost=None,
        log_lost_at=None,
    )
    host = replace(state.host, boot=event.boot, booted_wall=event.booted_wall, is_fresh=False)
    clock = Clock() if event.boot != state.host.boot else state.clock
    return replace(
        state,
        link=link,
        host=host,
        clock=_synced(clock, event.at, event.bt, event.wall, event.rtt_s),
        log=_to_be_read(state),
        training=replace(state.training, gap_from=None),
        gpus=replace(state.gpus, saw_fewer=False),
        head_asked=False,
    )


def _link_down(state: TargetState, event: events.LinkWentDown) -> TargetState:
    goes_on = event.held and state.host.said is not None
    link = replace(
        state.link,
        state=LinkState.LOST if event.retry_at is not None or goes_on else LinkState.REFUSED,
        rtt_s=None,
        attempt=event.attempt,
        retry_at=event.retry_at,
        reason=event.reason,
        detail=event.detail,
    )
    # Held: the helper outside still speaks, and says that the container is frozen.
    outside = state.outside if event.held else replace(state.outside, event=None, why="")
    return replace(state, link=link, host=replace(state.host, is_fresh=False), outside=outside)


def _bulk_down(state: TargetState, event: events.BulkWentDown) -> TargetState:
    """What comes of the log when it is back was written meanwhile, nobody saw when."""
    log = _to_be_read(state)
    since = state.link.log_lost_at if state.link.log_lost is not None else state.at
    link = replace(state.link, log_lost=event.detail, log_lost_at=since)
    return replace(state, link=link, log=log, training=replace(state.training, gap_from=None))


def _to_be_read(state: TargetState) -> LogFacts:
    is_followed = state.follow is not None
    return replace(state.log, is_catching_up=is_followed, is_unread=is_followed)


# -- what the host says -----------------------------------------------------------------------------------------------


def _host_said(state: TargetState, event: events.HostSaid) -> Stepped:
    said, host = event.state, state.host
    if host.said is not None and host.said_boot == host.boot and said.bt < host.said.bt:
        return state, ()  # an older word that comes late
    host = replace(host, said=said, said_boot=host.boot, is_fresh=True, runs=said.last or host.runs)
    # Older runs are told again only where something about them has changed.
    subject = choose(replace(said, last=host.runs), state.subject, host.boot)
    effects: tuple[events.Effect, ...] = ()
    if subject is None or state.subject is None or subject.key != state.subject.key:
        state, effects = _changed_subject(state, subject)
    state = replace(state, host=host, subject=subject)
    if subject is not None:
        state = read_record(state, subject) if subject.record is not None else read_hand(state, subject)
        state, more = follow_log(state, subject)
        effects += more
    return ask_head(state, effects)


def _changed_subject(state: TargetState, subject: Subject | None) -> Stepped:
    """Another run is spoken of: nothing that was seen of the one before belongs to it."""
    effects = (events.StopFollowing(follow=state.follow.id),) if state.follow is not None else ()
    state = replace(
        state,
        launch=Launch(key=subject.key) if subject is not None else None,
        seen_at=state.at,
        follow=None,
        head_asked=False,
        log=LogFacts(),
        training=Training(),
        gpus=GpuFacts(event=state.gpus.event, at=state.gpus.at),
        procs=ProcFacts(event=state.procs.event, at=state.procs.at),
    )
    if subject is not None and subject.hand is not None:
        state = launched(state, launch.StartedByHand(spawned_bt=subject.hand_start_bt))
    return state, effects


# -- time -------------------------------------------------------------------------------------------------------------


def _tick(state: TargetState) -> TargetState:
    """Deadlines pass only while the host is heard: what isn't watched can't be late."""
    if state.launch is None or state.launch.over is not None or state.link.state is not LinkState.UP:
        return state
    if not state.host.is_fresh or state.seen_at is None or state.at - state.seen_at < SETTLING_S:
        return state
    now_bt, stage = state.clock.bt(state.at), state.launch.active
    if now_bt is None or stage is None or state.launch.state(stage) is not StageState.ACTIVE:
        return state
    began_bt = state.launch.mark(stage).began_bt
    limit_s = min(deadline_s(state.target.deadlines, stage), _far_s(state, stage))
    if began_bt is not None and now_bt - began_bt > limit_s:
        return launched(state, launch.DeadlinePassed(stage=stage))
    return state


def _far_s(state: TargetState, stage: Stage) -> float:
    """How long is far longer than this stage took in any past launch; a killing takes what the old run needs."""
    longest = state.history.longest_s.get(stage)
    if longest is None or stage is Stage.KILLING:
        return math.inf
    return max(LATE_FLOOR_S, LATE_TIMES * longest)


def _may_be_told_by_its_log(state: TargetState) -> bool:
    """Whether it may have stepped before we came, so that what its log is about to tell is no news."""
    launch = state.launch
    if launch is None or launch.over is not None or state.follow is None or not state.log.is_unread:
        return False
    return launch.stepped or launch.state(Stage.CUDA) is StageState.DONE


def _ring(state: TargetState) -> Stepped:
    """Ring once for a failure that is news; what was red when we came is none."""
    judged = judge(state, state.at)
    if judged.verdict in UNSPOKEN or _may_be_told_by_its_log(state):
        return state, ()
    key = state.subject.key if state.subject is not None else ""
    alarm = f"{key} {judged.verdict}" if judged.verdict in RED else ""
    if alarm == state.alarm:
        return state, ()
    is_news = state.alarm is not None and bool(alarm)
    name = state.subject.name if state.subject is not None else ""
    title = " ".join(
        word for word in (state.name, name, judged.verdict.upper().replace("_", " "), judged.where) if word
    )
    bell = (events.RingBell(verdict=str(judged.verdict), title=title),) if is_news else ()
    return replace(state, alarm=alarm), bell
