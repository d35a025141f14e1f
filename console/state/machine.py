"""The machine of one target: `step(state, event) -> (state, effects)`.

What the host, the log and the GPUs say becomes facts of TargetState and events of the launch; what has to be done
about it becomes effects. What makes no sense (a journal that goes backwards, a run that returns from the dead) changes
nothing and is kept as a warning: the host may be older, newer or wrong, and none of that may end the console. Pure;
time is in the events.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from console import config
from console.model import LinkState, Stage, StageState, Verdict
from console.protocol import RunRecord
from console.reasons import Reason
from console.state import events, launch, training
from console.state.ending import gone, how_it_ended
from console.state.launch import IllegalEvent, Launch
from console.state.subject import TRANSACTION, choose, stop_of
from console.state.target import (
    Clock,
    Follow,
    GpuFacts,
    History,
    HostWarning,
    LinkFacts,
    LogFacts,
    ProcFacts,
    Subject,
    TargetState,
    deadline_s,
    expected_gpus,
    is_this_boot,
    run_power_w,
)
from console.state.training import Training
from console.state.verdict import judge

MAX_WARNINGS = 16
MAX_STEPPING_POWERS = 120
YOUNG_S = 120.0
"""A run that was spawned so recently has a log that is read from its start."""
SETTLING_S = 5.0
"""A run that was there before us gets so long to show its contexts and steps before it is called late."""
RED = frozenset({Verdict.FAILED, Verdict.ENDED, Verdict.NAN, Verdict.HOST_RESTARTED, Verdict.INTERRUPTED})
UNSPOKEN = frozenset({Verdict.NO_WORD, Verdict.LINK_LOST})

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
        known = History(baseline_tok_s=float(baseline), baseline_name="baseline")
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
        case events.LinkRtt():
            clock = _synced(state.clock, event.at, event.bt, event.wall, event.rtt_s)
            return replace(_heard(state), clock=clock, link=replace(_heard(state).link, rtt_s=event.rtt_s)), ()
        case events.HostSaid():
            return _host_said(_heard(state), event)
        case events.ProcsSaid():
            return replace(_heard(state), procs=ProcFacts(event=event.procs, at=state.at)), ()
        case events.GpusSaid():
            return _gpus_said(_heard(state), event), ()
        case events.HostWarned():
            return _warned(_heard(state), event.warn.reason, event.warn.detail), ()
        case events.HistoryKnown():
            known = History(
                usual_s=event.usual_s, baseline_tok_s=event.baseline_tok_s, baseline_name=event.baseline_name
            )
            return replace(state, history=known), ()
        case events.StepTimesKnown():
            return _step_times(state, event), ()
        case events.LogSaid() | events.SamplesSeen() | events.PhaseSeen() | events.LogTail():
            return _from_log(state, event)
        case events.Tick():
            return _tick(state), ()
        case _:
            assert_never(event)


# -- the link ---------------------------------------------------------------------------------------------------------


def _heard(state: TargetState) -> TargetState:
    return replace(state, link=replace(state.link, last_word_at=state.at))


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
    state = _heard(state)
    link = replace(
        state.link,
        state=LinkState.UP,
        rtt_s=event.rtt_s,
        attempt=0,
        retry_at=None,
        reason=None,
        detail="",
        label=event.label or state.link.label,
    )
    host = replace(state.host, boot=event.boot, booted_wall=event.booted_wall, is_fresh=False)
    clock = Clock() if event.boot != state.host.boot else state.clock
    return replace(
        state,
        link=link,
        host=host,
        clock=_synced(clock, event.at, event.bt, event.wall, event.rtt_s),
        log=replace(state.log, is_catching_up=state.follow is not None),
        training=replace(state.training, gap_from=None),
        head_asked=False,
    )


def _link_down(state: TargetState, event: events.LinkWentDown) -> TargetState:
    link = replace(
        state.link,
        state=LinkState.LOST if event.retry_at is not None else LinkState.REFUSED,
        rtt_s=None,
        attempt=event.attempt,
        retry_at=event.retry_at,
        reason=event.reason,
        detail=event.detail,
    )
    return replace(state, link=link, host=replace(state.host, is_fresh=False))


# -- what the host says -----------------------------------------------------------------------------------------------


def _host_said(state: TargetState, event: events.HostSaid) -> Stepped:
    said, host = event.state, state.host
    if host.said is not None and host.said_boot == host.boot and said.bt < host.said.bt:
        return state, ()  # an older word that comes late
    host = replace(host, said=said, said_boot=host.boot, is_fresh=True, runs=said.last or host.runs)
    subject = choose(said, state.subject, host.boot)
    effects: tuple[events.Effect, ...] = ()
    if subject is None or state.subject is None or subject.key != state.subject.key:
        state, effects = _changed_subject(state, subject)
    state = replace(state, host=host, subject=subject)
    if subject is not None:
        state = _read_record(state, subject) if subject.record is not None else _read_hand(state, subject)
        state, more = _follow_log(state, subject)
        effects += more
    return _ask_head(state, effects)


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
    )
    if subject is not None and subject.hand is not None:
        state = _launched(state, launch.StartedByHand(spawned_bt=subject.hand_start_bt))
    return state, effects


def _read_record(state: TargetState, subject: Subject) -> TargetState:
    record = subject.record
    assert record is not None
    for stage in launch.STAGES:
        if (entry := record.stages.get(str(stage))) is not None and stage in launch.JOURNALLED:
            state = _launched(state, launch.JournalSaid(stage=stage, entry=entry))
    state = _read_cuda(state, record)
    state = _read_stop(state, subject)
    over = how_it_ended(state, record)
    if over is not None:
        return state if state.launch is None or state.launch.over == over else _launched(state, over)
    if state.launch is not None and state.launch.over is not None:
        return _launched(state, launch.RunLives())
    return state


def _read_cuda(state: TargetState, record: RunRecord) -> TargetState:
    want, cuda = expected_gpus(state), record.cuda
    if want == 0 and state.target.gpus.expected == 0:
        return _launched(state, launch.CudaNotWanted())
    if cuda is None or not _has_spawned(state):
        return state
    if not cuda.contexts and (cuda.source == "none" or (cuda.why and not want)):
        return _launched(state, launch.CudaNotObservable(why=cuda.why or "no GPU source on the host"))
    if not want:
        return state
    done = len(set(cuda.contexts)) >= want
    return _launched(
        state,
        launch.ContextsSeen(
            have=tuple(sorted(set(cuda.contexts))[:want]),
            want=want,
            missing=_missing(state, cuda.contexts),
            rule=cuda.rule,
            bt=(cuda.complete_bt if cuda.complete_bt is not None else cuda.first_bt) if done else None,
        ),
    )


def _missing(state: TargetState, have: tuple[int, ...]) -> tuple[int, ...]:
    listed = [gpu.i for gpu in state.gpus.event.gpus] if state.gpus.event is not None else []
    want = expected_gpus(state) or 0
    return tuple(index for index in listed or range(want) if index not in have)[: max(0, want - len(set(have)))]


def _has_spawned(state: TargetState) -> bool:
    return state.launch is not None and state.launch.fact(Stage.SPAWNED).state in (StageState.DONE, StageState.UNKNOWN)


def _read_stop(state: TargetState, subject: Subject) -> TargetState:
    """A stop is killing once more, as its keeper tells it: the run's own, or that of a record made for the stop."""
    assert state.launch is not None
    record = subject.record
    stop = stop_of(subject, state.host.runs, state.host.boot)
    by = record.stopping if record is not None else None
    if by is None and stop is not None and stop.state in TRANSACTION and stop.keeper_alive is not False:
        by = stop.operator or "somebody"
    teller = stop if stop is not None else record
    entry = teller.stages.get(str(Stage.KILLING)) if teller is not None else None
    is_live = subject.record is None or (subject.record.exit is None and subject.record.state == "running")
    if by is not None and is_live:
        evidence = entry.evidence if entry is not None and entry.state == "active" else ""
        if state.launch.reopened and not evidence:
            return state
        return _launched(state, launch.StopBegan(bt=state.clock.bt(state.at), by=by, evidence=evidence))
    if not state.launch.reopened:
        return state
    if stop is not None and entry is not None and entry.state == "done":
        return _launched(state, launch.JournalSaid(stage=Stage.KILLING, entry=entry))
    return _give_up_stop(state, subject) if is_live and not subject.is_gone else state


def _give_up_stop(state: TargetState, subject: Subject) -> TargetState:
    state = _launched(state, launch.StopEnded())
    if subject.record is None:
        return _launched(state, launch.StartedByHand(spawned_bt=subject.hand_start_bt))
    entry = subject.record.stages.get(str(Stage.KILLING))
    return _launched(state, launch.JournalSaid(stage=Stage.KILLING, entry=entry)) if entry is not None else state


def _read_hand(state: TargetState, subject: Subject) -> TargetState:
    assert state.launch is not None
    state = _read_stop(state, subject)
    assert state.launch is not None
    if subject.is_gone:
        over = gone(state)
        return state if state.launch.over == over else _launched(state, over)
    return state if state.launch.over is None else _launched(state, launch.RunLives())


def _launched(state: TargetState, event: launch.LaunchEvent) -> TargetState:
    """Let the launch machine take an event; nonsense is kept as a warning."""
    if state.launch is None:
        return state
    try:
        return replace(state, launch=launch.process_event(state.launch, event))
    except IllegalEvent as illegal:
        return _warned(state, Reason.PROTOCOL, str(illegal))


def _warned(state: TargetState, reason: str, detail: str) -> TargetState:
    if any(old.reason == reason and old.detail == detail for old in state.warnings):
        return state
    warning = HostWarning(at=state.at, reason=str(reason), detail=detail)
    return replace(state, warnings=(*state.warnings, warning)[-MAX_WARNINGS:])


# -- the log ----------------------------------------------------------------------------------------------------------


def _follow_log(state: TargetState, subject: Subject) -> Stepped:
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
    return replace(state, follow=follow, follows=follow.id, log=LogFacts(), training=Training()), (effect,)


def _is_young(state: TargetState, record: RunRecord | None) -> bool:
    if record is None or not is_this_boot(state, record):
        return False
    now_bt, spawned_bt = state.clock.bt(state.at), record.spawned_bt
    return spawned_bt is None or (now_bt is not None and now_bt - spawned_bt < YOUNG_S)


def _ask_head(state: TargetState, effects: tuple[events.Effect, ...]) -> Stepped:
    """Steps are there and nobody saw when: the flight recorder may know."""
    steps, follow, subject = state.training, state.follow, state.subject
    unknown = steps.pair is not None and steps.pair_at is None
    if state.head_asked or not unknown or follow is None or subject is None or not subject.is_own:
        return state, effects
    ask = events.ReadHead(run=subject.key, path=follow.path)
    return replace(state, head_asked=True), (*effects, ask)


def _from_log(
    state: TargetState, event: events.LogSaid | events.SamplesSeen | events.PhaseSeen | events.LogTail
) -> Stepped:
    if state.follow is None or event.follow != state.follow.id:
        return state, ()  # of a log that is no longer followed
    state = _heard(state)
    match event:
        case events.LogSaid():
            return replace(state, log=_log_said(state.log, event, state.at)), ()
        case events.PhaseSeen():
            phase = event.text if state.training.step is None else ""
            return replace(state, training=replace(state.training, phase=phase)), ()
        case events.LogTail():
            state = replace(state, log=replace(state.log, tail=event.lines, first_error=event.first_error))
            return _reread_end(state), ()
        case events.SamplesSeen():
            return _ask_head(_reread_end(_samples(state, event)), ())
        case _:
            assert_never(event)


def _log_said(log: LogFacts, event: events.LogSaid, at: float) -> LogFacts:
    before, now = log.event, event.log
    known = before is not None and before.size is not None and now.size is not None
    grew = known and before is not None and before.inode == now.inode and (now.size or 0) > (before.size or 0)
    return replace(log, event=now, at=at, grew_at=at if grew and not log.is_catching_up else log.grew_at)


def _samples(state: TargetState, event: events.SamplesSeen) -> TargetState:
    live = event.dated or (event.live and not state.log.is_catching_up)
    now = None if event.dated else state.at
    is_own = state.subject is not None and state.subject.is_own
    seen = training.see(
        state.training, event.samples, now, live=live, is_own=is_own, baseline=state.history.baseline_tok_s
    )
    seen = replace(
        seen,
        format=event.format if event.format is not None else seen.format,
        lines_seen=event.lines_seen,
        lines_understood=event.lines_understood,
    )
    proved = seen.pair is not None and state.training.pair is None
    log = replace(state.log, is_catching_up=state.log.is_catching_up and not state.log.has_caught_up)
    state = replace(state, training=seen, log=log)
    if proved and seen.pair is not None:
        first, second = seen.pair
        state = _launched(state, launch.StepsSeen(first=first, second=second, bt=state.clock.bt(seen.pair_at)))
    return state


def _step_times(state: TargetState, event: events.StepTimesKnown) -> TargetState:
    """Times of steps that nobody watched; they prove nothing by themselves."""
    if state.subject is None or event.run != state.subject.key:
        return state
    steps, clock = state.training, state.clock
    if event.first is not None and steps.pair is not None and event.first[0].step < event.first[1].step:
        one, two = event.first
        steps = replace(
            steps,
            pair=(one.step, two.step),
            pair_at=clock.at(two.bt),
            first_step=one.step,
            first_step_at=clock.at(one.bt),
        )
        state = _launched(state, launch.StepsSeen(first=one.step, second=two.step, bt=two.bt))
    if event.last is not None and steps.last_step_at is None and event.last.step == steps.step:
        steps = replace(steps, last_step_at=clock.at(event.last.bt))
    grew_at = state.log.grew_at if state.log.grew_at is not None else clock.at(event.grew_bt)
    return replace(state, training=steps, log=replace(state.log, grew_at=grew_at))


def _reread_end(state: TargetState) -> TargetState:
    """The log's last lines may come behind the exit record and say more about how it ended."""
    if state.launch is None or state.launch.over is None or state.subject is None or state.subject.record is None:
        return state
    over = how_it_ended(state, state.subject.record)
    return state if over is None or over == state.launch.over else _launched(state, over)


# -- the GPUs ---------------------------------------------------------------------------------------------------------


def _gpus_said(state: TargetState, event: events.GpusSaid) -> TargetState:
    said = event.gpus
    peaks = dict(state.gpus.peaks)
    for gpu in said.gpus:
        known = [value for value in (gpu.peak, gpu.used if _is_alive(state) else None) if value is not None]
        if known:
            peaks[gpu.i] = max(peaks.get(gpu.i, 0), *known)
    gpus = replace(state.gpus, event=said, at=state.at, peaks=peaks)
    power = run_power_w(replace(state, gpus=gpus))
    last = state.training.last_step_at
    usual = training.usual_gap_s(state.training)
    if power is not None and last is not None and usual is not None and state.at - last <= 2 * usual + 1.0:
        gpus = replace(gpus, stepping_w=(*gpus.stepping_w, power)[-MAX_STEPPING_POWERS:])
    return _see_contexts(replace(state, gpus=gpus))


def _see_contexts(state: TargetState) -> TargetState:
    """The agent's own look at contexts, where it is of this run: taken after the run was spawned, while it lives."""
    said, subject = state.gpus.event, state.subject
    if said is None or subject is None or state.launch is None or state.launch.over is not None:
        return state
    if not _has_spawned(state) or state.launch.state(Stage.CUDA) is StageState.DONE:
        return state
    if subject.record is not None and (subject.record.spawned_bt is None or said.bt < subject.record.spawned_bt):
        return state
    if state.target.gpus.expected == 0:
        return _launched(state, launch.CudaNotWanted())
    want = expected_gpus(state)
    flags = [gpu.context for gpu in said.gpus]
    if not want or all(flag is None for flag in flags):
        why = said.why or ("no GPU is listed" if not said.gpus else "contexts can't be told")
        settled = state.seen_at is not None and state.at - state.seen_at >= SETTLING_S
        return _launched(state, launch.CudaNotObservable(why=why)) if settled else state
    have = tuple(gpu.i for gpu in said.gpus if gpu.context)
    state = _launched(
        state,
        launch.ContextsSeen(have=have[:want], want=want, missing=_missing(state, have), rule=said.rule, bt=said.bt),
    )
    if state.launch is not None and state.launch.state(Stage.CUDA) is StageState.DONE:
        state = replace(state, log=replace(state.log, lines_at_cuda=state.training.lines_seen))
    return state


def _is_alive(state: TargetState) -> bool:
    return state.subject is not None and state.launch is not None and state.launch.over is None


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
    if began_bt is not None and now_bt - began_bt > deadline_s(state.target.deadlines, stage):
        return _launched(state, launch.DeadlinePassed(stage=stage))
    return state


def _ring(state: TargetState) -> Stepped:
    """Ring once for a failure that is news; what was red when we came is none."""
    judged = judge(state, state.at)
    if judged.verdict in UNSPOKEN:
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
