"""TargetState into the Snapshot that the faces see. Pure: ages and elapsed times are computed from `now`.

While the link is lost nothing is shown as the last good value: what was going on is unknown, and says how old it is.
"""

from __future__ import annotations

from msgspec.structs import replace

from console.model import (
    OUT_OF_REACH,
    Ages,
    Changes,
    ExitStatus,
    LinkState,
    LinkStatus,
    Lock,
    LogState,
    LogStatus,
    Process,
    Progress,
    Run,
    Snapshot,
    Stage,
    StageState,
    StageStatus,
    Verdict,
)
from console.protocol import LogIdent, ProcsEvent, RunRecord
from console.state import figures, stall, texts
from console.state.changes import changes, settings_of
from console.state.consequences import End
from console.state.gpuview import KeptPanel, gpu_panel
from console.state.launch import Launch
from console.state.outside import container_view
from console.state.stages import JOURNALLED, STAGES, Mark
from console.state.subject import TRANSACTION, stop_of
from console.state.target import Subject, TargetState, deadline_s, record_at
from console.state.verdict import FAILURES, Judgement, good_run, judge
from console.state.warnings import lost_restart, warnings
from console.state.wireviews import lock, process

_BLIND = OUT_OF_REACH | {Verdict.NO_WORD}


def snapshot(state: TargetState, now: float, kept: KeptPanel | None = None) -> Snapshot:
    """Return everything that a face needs to know, as of `now` (never earlier than what was told last).

    `kept` spares whoever asks often the GPUs.
    """
    now = max(now, state.at)
    gpus = kept.of(state) if kept is not None else gpu_panel(state)
    judged = judge(state, now)
    blind = judged.verdict in _BLIND
    launch = state.launch
    return Snapshot(
        target=state.name,
        at=now,
        link=_link(state),
        verdict=judged.verdict,
        stages=_stages(state, judged, now, blind=blind),
        active_stage=launch.active if launch is not None and not blind and launch.over is None else None,
        run=_run(state, blind=blind),
        last_known=judged.last_known,
        reason=judged.reason,
        warnings=warnings(state, now, gpus),
        lost_restart=lost_restart(state),
        usual_launches=state.history.launches,
        good=good_run(state),
        changes=_changes(state, judged),
        progress=_progress(state, now, judged.verdict),
        gpus=gpus,
        container=container_view(state),
        log=_log(state),
        processes=_processes(state.procs.event),
        lock=_lock(state),
        ages=_ages(state, now),
        operator=state.operator,
        read_only=state.read_only,
        host_started_at=state.clock.at_wall(state.host.booted_wall),
        color=state.target.color,
    )


def _link(state: TargetState) -> LinkStatus:
    link = state.link
    return LinkStatus(
        state=link.state,
        rtt_s=link.rtt_s,
        last_word_at=link.last_word_at,
        attempt=link.attempt,
        retry_at=link.retry_at,
        reason=link.reason,
        detail=link.detail,
        clock_offset_s=state.clock.wall_offset,
        label=link.label,
    )


def _changes(state: TargetState, judged: Judgement) -> Changes | None:
    """What differs from the last good run, once something has failed and both are known."""
    record, good = state.subject.record if state.subject is not None else None, good_run(state)
    if record is None or good is None or judged.verdict not in FAILURES:
        return None
    return changes(good, settings_of(record))


# -- stages -----------------------------------------------------------------------------------------------------------


def _stages(state: TargetState, judged: Judgement, now: float, *, blind: bool) -> tuple[StageStatus, ...]:
    launch = state.launch
    if launch is None:
        return tuple(StageStatus(stage=stage, state=StageState.PENDING) for stage in STAGES)
    stages = [_stage(state, launch, stage, judged) for stage in STAGES]
    if blind and launch.over is None:
        stages = _went_blind(state, launch, stages, now)
    return tuple(stages)


def _stage(state: TargetState, launch: Launch, stage: Stage, judged: Judgement) -> StageStatus:
    mark = launch.mark(stage)
    began_bt = _began_bt(launch, stage, mark)
    took_s = None
    if began_bt is not None and mark.ended_bt is not None and mark.state not in _TIMELESS:
        took_s = max(0.0, mark.ended_bt - began_bt)
    is_derived_failure = mark.state is StageState.FAILED and mark.derived and judged.reason is not None
    return StageStatus(
        stage=stage,
        state=mark.state,
        began_at=_at(state, began_bt) if mark.state not in _UNBEGUN else None,
        # Never before it began, however the keeper rounded the two.
        ended_at=_at(state, _latest(began_bt, mark.ended_bt)) if mark.state not in _TIMELESS else None,
        took_s=took_s,
        usual_s=state.history.usual_s.get(stage),
        longest_s=state.history.longest_s.get(stage),
        deadline_s=deadline_s(state.target.deadlines, stage),
        evidence=mark.evidence,
        detail=mark.detail,
        why=mark.why,
        reason=judged.reason.slug if is_derived_failure and judged.reason is not None else mark.reason,
        have=mark.have,
        want=mark.want,
        missing=mark.missing,
        missing_parts=mark.missing_parts,
        noted=mark.noted or stage in JOURNALLED,
    )


_TIMELESS = frozenset({StageState.PENDING, StageState.ACTIVE, StageState.LATE, StageState.NOT_REACHED})
_UNBEGUN = frozenset({StageState.PENDING, StageState.NOT_REACHED})


def _latest(began_bt: float | None, ended_bt: float | None) -> float | None:
    return max(began_bt, ended_bt) if began_bt is not None and ended_bt is not None else ended_bt


def _began_bt(launch: Launch, stage: Stage, mark: Mark) -> float | None:
    """An observed stage begins where the one before it ended, whenever we learned of that."""
    if stage in JOURNALLED:
        return mark.began_bt
    spawned, cuda = launch.mark(Stage.SPAWNED), launch.mark(Stage.CUDA)
    began = spawned.ended_bt
    if stage is Stage.STEPPING and cuda.state is StageState.DONE and cuda.ended_bt is not None:
        began = cuda.ended_bt if mark.ended_bt is None else min(cuda.ended_bt, mark.ended_bt)
    return began if began is not None else mark.began_bt


def _at(state: TargetState, bt: float | None) -> float | None:
    record = state.subject.record if state.subject is not None else None
    return record_at(state, record, bt) if record is not None else state.clock.at(bt)


def _went_blind(state: TargetState, launch: Launch, stages: list[StageStatus], now: float) -> list[StageStatus]:
    """What was going on when the link was lost may be over by now."""
    going_on = Stage.STEPPING if launch.stepped and not launch.reopened else launch.active
    if going_on is None:
        return stages
    age = f"{texts.span(now - state.link.last_word_at)} old" if state.link.last_word_at is not None else "not watched"
    step = state.training.step
    was = f"was at step {texts.count(step)}" if going_on is Stage.STEPPING and step is not None else ""
    return [
        replace(status, state=StageState.UNKNOWN, evidence=was or f"was {status.evidence or 'going on'}", why=age)
        if status.stage is going_on
        else status
        for status in stages
    ]


# -- the run ----------------------------------------------------------------------------------------------------------


def _run(state: TargetState, *, blind: bool) -> Run | None:
    subject = state.subject
    if subject is None or state.launch is None:
        return None
    alive = None if blind else _is_alive(state, subject)
    if subject.record is not None:
        return _own_run(state, state.launch, subject, subject.record, alive)
    hand = subject.hand
    if hand is None:
        return None
    return Run(
        id=None,
        name=subject.name,
        by_hand=True,
        alive=alive,
        keeper_alive=False,
        pid=hand.main.pid,
        argv=hand.argv,
        cwd=hand.cwd,
        log_path=hand.log.path if hand.log is not None else None,
        operator=hand.started_by,
        spawned_at=state.clock.at(subject.hand_start_bt),
        session=hand.session,
        exit=ExitStatus(at=state.clock.at(subject.gone_bt), by=_stopped_by(state, subject))
        if subject.is_gone
        else None,
        stopping_by=_stopped_by(state, subject) if state.launch.reopened and not subject.is_gone else None,
    )


def _stopped_by(state: TargetState, subject: Subject) -> str | None:
    stop = stop_of(subject, state.host.runs, state.host.boot)
    return stop.operator or None if stop is not None and stop.state != "failed" else None


def _is_alive(state: TargetState, subject: Subject) -> bool | None:
    if subject.record is None:
        return not subject.is_gone
    over = state.launch.over if state.launch is not None else None
    if over is not None and over.end is not End.KEEPER_LOST:
        return False
    if subject.record.state in TRANSACTION and not subject.record.alive:
        return None  # the run that is being launched isn't there yet
    return subject.record.alive


def _own_run(state: TargetState, launch: Launch, subject: Subject, record: RunRecord, alive: bool | None) -> Run:
    stepping = launch.mark(Stage.STEPPING)
    launch_s = None
    if launch.stepped and stepping.ended_bt is not None and record.accepted_bt:
        launch_s = max(0.0, stepping.ended_bt - record.accepted_bt)
    return Run(
        id=record.id,
        name=subject.name,
        alive=alive,
        keeper_alive=record.keeper_alive,
        pid=record.main.pid if record.main is not None else None,
        argv=record.argv,
        cwd=record.cwd,
        log_path=record.log.path if record.log is not None else None,
        operator=record.operator,
        accepted_at=record_at(state, record, record.accepted_bt) if record.accepted_bt else None,
        spawned_at=record_at(state, record, record.spawned_bt),
        launch_s=launch_s,
        replaced=record.replaced_name or record.replaced_id,
        exit=_exit(state, record),
        stopping_by=record.stopping,
    )


def _exit(state: TargetState, record: RunRecord) -> ExitStatus | None:
    end = record.exit
    if end is None:
        return None
    return ExitStatus(
        code=end.code,
        signal=end.signal,
        at=record_at(state, record, end.ended_bt),
        lived_s=max(0.0, end.lived_s) if end.lived_s is not None else None,
        by=end.by,
        oom=end.oom,
    )


_UNSEEN = _BLIND | {Verdict.RUNNING}
_STANDS = frozenset({Verdict.STALLED, Verdict.SUSPENDED, Verdict.NOT_EXITED})


def _progress(state: TargetState, now: float, verdict: Verdict) -> Progress:
    steps, history = state.training, state.history
    rate = figures.rate(steps, now, history.baseline)
    if verdict in _UNSEEN:
        rate = replace(rate, now=None)
    elif verdict in _STANDS and rate.now is not None:
        rate = replace(rate, now=0.0)
    return Progress(
        format=steps.format,
        lines_seen=steps.lines_seen,
        lines_understood=steps.lines_understood,
        step=steps.step,
        total_steps=steps.total_steps,
        first_step_at=steps.first_step_at,
        last_step_at=steps.last_step_at,
        loss=steps.loss,
        loss_state=steps.loss_state,
        bad_since_step=steps.bad_since_step,
        last_good_loss=steps.last_good_loss,
        last_good_step=steps.last_good_step,
        rate=rate,
        queue=figures.queue(steps, now),
        checkpoint_step=steps.checkpoint_step,
        checkpoint_at=steps.checkpoint_at,
        phase=steps.phase,
        usual_step_s=figures.usual_step_s(steps),
        stall_budget_s=stall.stall_budget_s(state, now) if steps.step is not None else None,
    )


# -- log, processes ---------------------------------------------------------------------------------------------------


def _log(state: TargetState) -> LogStatus:
    log, event = state.log, state.log.event
    ident = state.subject.log if state.subject is not None else None
    lost = state.link.log_lost if state.link.state is LinkState.UP else None
    if event is None:
        known = ident is not None and bool(ident.path)
        return LogStatus(
            state=LogState.UNKNOWN if known or state.host.said is None else LogState.NONE,
            path=ident.path if ident is not None else None,
            lost=lost,
        )
    return LogStatus(
        state=LogState(event.state) if event.state in set(LogState) else LogState.UNKNOWN,
        path=event.path,
        size_bytes=event.size,
        inode=event.inode,
        detail=event.detail or _redirected(ident),
        at=log.at,
        grew_at=log.grew_at,
        caught_up=log.has_caught_up,
        unread=log.is_unread,
        lost=lost,
        mishap=LogState(log.mishap) if log.mishap else None,
        mishap_at=log.mishap_at,
        filesystem=event.fs,
    )


def _redirected(ident: LogIdent | None) -> str:
    return f"redirected: the run writes here instead of to {ident.opened}" if ident is not None and ident.opened else ""


def _processes(event: ProcsEvent | None) -> tuple[Process, ...]:
    return tuple(process(each) for each in event.procs) if event is not None else ()


def _lock(state: TargetState) -> Lock | None:
    holder = state.host.said.lock if state.host.said is not None else None
    if holder is None:
        return None
    since = state.clock.at(holder.since_bt)
    return replace(
        lock(holder),
        since_at=since if since is not None else state.clock.at_wall(holder.since_wall),
        mine=bool(state.operator) and holder.operator == state.operator and state.origin in ("", holder.origin),
    )


def _ages(state: TargetState, now: float) -> Ages:
    def age(at: float | None) -> float | None:
        return max(0.0, now - at) if at is not None else None

    up = state.link.state is LinkState.UP
    log = age(state.log.at)
    # A silent log sends nothing: with the link up it is as young as the last word of the host.
    if log is not None and up and state.link.log_lost is None:
        log = min(log, age(state.link.last_word_at) or log)
    return Ages(link=age(state.link.last_word_at), log=log, gpu=age(state.gpus.at), process=age(state.procs.at))
