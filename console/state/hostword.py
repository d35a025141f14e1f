"""What the host says, read into facts of the target and events of the launch: records, hand-started runs, GPUs.

Used by `machine` alone. What makes no sense changes nothing and is kept as a warning. Pure.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from console.model import Stage, StageState
from console.protocol import GpusEvent, HostStage, RunRecord, WireGpu
from console.reasons import Reason
from console.state import events, figures, gpunotes, launch, outside
from console.state.cudaorder import cuda_order
from console.state.ending import gone, how_it_ended
from console.state.stages import JOURNALLED, STAGES, IllegalEvent
from console.state.subject import TRANSACTION, stop_of
from console.state.target import GpuFacts, HostWarning, ProcFacts, Subject, TargetState, expected_gpus, run_power_w

MAX_WARNINGS = 16
MAX_STEPPING_POWERS = 120
_SMOOTH_S = 30.0
SETTLING_S = 5.0
"""A run that was there before us gets so long to show its contexts and steps before anything is held against it."""


def launched(state: TargetState, event: launch.LaunchEvent) -> TargetState:
    """Let the launch machine take an event; nonsense is kept as a warning."""
    if state.launch is None:
        return state
    try:
        return replace(state, launch=launch.process_event(state.launch, event))
    except IllegalEvent as illegal:
        return warned(state, Reason.PROTOCOL, str(illegal))


def warned(state: TargetState, reason: str, detail: str) -> TargetState:
    if any(old.reason == reason and old.detail == detail for old in state.warnings):
        return state
    warning = HostWarning(at=state.at, reason=str(reason), detail=detail)
    return replace(state, warnings=(*state.warnings, warning)[-MAX_WARNINGS:])


# -- records and hand-started runs ------------------------------------------------------------------------------------


def read_record(state: TargetState, subject: Subject) -> TargetState:
    record = subject.record
    assert record is not None
    state = _reopened_unseen(state, record)
    for stage in STAGES:
        if (entry := record.stages.get(str(stage))) is not None and stage in JOURNALLED:
            state = launched(state, launch.JournalSaid(stage=stage, entry=entry))
    state = _read_cuda(state, record)
    state = _read_stop(state, subject)
    over = how_it_ended(state, record)
    if over is not None:
        return state if state.launch is None or state.launch.over == over else launched(state, over)
    if state.launch is not None and state.launch.over is not None:
        return launched(state, launch.RunLives())
    return state


def _reopened_unseen(state: TargetState, record: RunRecord) -> TargetState:
    """Begin killing once more for a stop that came and was through between two looks: what it proved comes at once."""
    entry, of_launch = record.stages.get(str(Stage.KILLING)), record.launch_killing
    if entry is None or of_launch is None or state.launch is None:
        return state
    if state.launch.fact(Stage.KILLING).began_bt != of_launch.began_bt:
        return state
    by = (record.exit.by if record.exit is not None else None) or record.stopping or ""
    return _reopened(state, entry, by)


def _reopened(state: TargetState, entry: HostStage, by: str) -> TargetState:
    """Begin killing once more where it is what a launch came to."""
    assert state.launch is not None
    if state.launch.reopened or state.launch.fact(Stage.KILLING).state not in _CAME_TO:
        return state
    return launched(state, launch.StopBegan(bt=entry.began_bt, by=by))


_CAME_TO = frozenset({StageState.DONE, StageState.SKIPPED, StageState.UNKNOWN})


def _read_cuda(state: TargetState, record: RunRecord) -> TargetState:
    want, cuda = expected_gpus(state), record.cuda
    if want == 0 and state.target.gpus.expected == 0:
        return launched(state, launch.CudaNotWanted())
    if cuda is None:
        return state
    if not cuda.contexts and (cuda.source == "none" or (cuda.why and not want)):
        return launched(state, launch.CudaNotObservable(why=cuda.why or "no GPU source on the host"))
    if not cuda.contexts and cuda.untold:
        return launched(state, launch.CudaNotObservable(why=cuda.untold))
    if not want:
        return state
    have = tuple(sorted(set(cuda.contexts))) if cuda.have is None else tuple(range(cuda.have))
    if not have and _is_blurred(state) and _cannot_tell(state.gpus.event):
        return state  # the keeper counts those it can prove: that it proved none says nothing there
    done = len(have) >= want
    return launched(
        state,
        launch.ContextsSeen(
            have=have[:want],
            want=want,
            missing=missing_gpus(state, cuda.contexts) if cuda.have is None else (),
            missing_parts=_missing_parts(state, cuda.parts) if cuda.have is not None else (),
            rule=cuda.rule,
            bt=(cuda.complete_bt if cuda.complete_bt is not None else cuda.first_bt) if done else None,
            noted=cuda.complete_bt is not None,
        ),
    )


def _is_blurred(state: TargetState) -> bool:
    return state.launch is not None and state.launch.fact(Stage.CUDA).state is StageState.UNKNOWN


def _cannot_tell(said: GpusEvent | None) -> bool:
    return said is not None and all(gpu.context is None for gpu in said.gpus)


def missing_gpus(state: TargetState, have: tuple[int, ...]) -> tuple[int, ...]:
    listed = [gpu.i for gpu in state.gpus.event.gpus] if state.gpus.event is not None else []
    want = expected_gpus(state) or 0
    return tuple(index for index in listed or range(want) if index not in have)[: max(0, want - len(set(have)))]


def _missing_parts(state: TargetState, have: Collection[str]) -> tuple[str, ...]:
    """Return the MIG instances that CUDA_VISIBLE_DEVICES names to the run, and that are not among these: `0:2`."""
    said = state.gpus.event
    if said is None:
        return ()
    named = cuda_order(said.gpus, said.cuda_env).parts
    instances = [(gpu.i, part) for gpu in said.gpus for part in gpu.mig or ()]
    return tuple(f"{i}:{part.i}" for i, part in instances if part.uuid in named and part.uuid not in have)


def has_spawned(state: TargetState) -> bool:
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
        evidence = evidence or (record.stopping_text if record is not None else "")
        if state.launch.reopened and not evidence:
            return state
        return launched(state, launch.StopBegan(bt=state.clock.bt(state.at), by=by, evidence=evidence))
    if stop is not None and entry is not None and entry.state == "done":
        killing = _reopened(state, entry, stop.operator) if subject.is_gone or not is_live else state
        if killing.launch is not None and killing.launch.reopened:
            return launched(killing, launch.JournalSaid(stage=Stage.KILLING, entry=entry))
    if not state.launch.reopened:
        return state
    return _give_up_stop(state, subject) if is_live and not subject.is_gone else state


def _give_up_stop(state: TargetState, subject: Subject) -> TargetState:
    state = launched(state, launch.StopEnded())
    if subject.record is None:
        return launched(state, launch.StartedByHand(spawned_bt=subject.hand_start_bt))
    entry = subject.record.stages.get(str(Stage.KILLING))
    return launched(state, launch.JournalSaid(stage=Stage.KILLING, entry=entry)) if entry is not None else state


def read_hand(state: TargetState, subject: Subject) -> TargetState:
    assert state.launch is not None
    state = _read_stop(state, subject)
    assert state.launch is not None
    if subject.is_gone:
        over = gone(state)
        return state if over is None or state.launch.over == over else launched(state, over)
    return state if state.launch.over is None else launched(state, launch.RunLives())


# -- processes --------------------------------------------------------------------------------------------------------

STOPPED = frozenset("Tt")


def procs_said(state: TargetState, event: events.ProcsSaid) -> TargetState:
    """Note who of the run is stopped, and since when; the pause is no step time to learn from."""
    before = state.procs
    stopped = tuple(each for each in event.procs.procs if each.state in STOPPED)
    resumed = bool(before.stopped) and not stopped
    since = before.stopped_since_at if before.stopped else state.at
    was_seen = before.stop_was_seen if before.stopped else bool(before.event is not None and before.event.procs)
    procs = ProcFacts(
        event=event.procs,
        at=state.at,
        stopped=stopped,
        stopped_since_at=since if stopped else None,
        stop_was_seen=bool(stopped) and was_seen,
        resumed_at=state.at if resumed else before.resumed_at,
    )
    state = replace(state, procs=procs, outside=outside.tree_seen(state, event.procs))
    return replace(state, training=replace(state.training, gap_from=None)) if resumed else state


# -- GPUs -------------------------------------------------------------------------------------------------------------


def gpus_said(state: TargetState, event: events.GpusSaid) -> TargetState:
    said = outside.attributed(state, event.gpus)
    peaks = dict(state.gpus.peaks)
    for gpu in said.gpus:
        used = gpu.used if _may_be_the_runs(state, said, gpu) else None
        known = [value for value in (gpu.peak, used) if value is not None]
        if known:
            peaks[gpu.i] = max(peaks.get(gpu.i, 0), *known)
    gpus = replace(
        state.gpus, event=said, at=state.at, peaks=peaks,
        since=gpunotes.lasting(state.gpus.since, said.gpus, state.at), busy=_smoothed(state.gpus, said, state.at),
    )  # fmt: skip
    power = run_power_w(replace(state, gpus=gpus))
    last = state.training.last_step_at
    usual = figures.usual_gap_s(state.training)
    if power is not None and last is not None and usual is not None and state.at - last <= 2 * usual + 1.0:
        gpus = replace(gpus, stepping_w=(*gpus.stepping_w, power)[-MAX_STEPPING_POWERS:])
    return _see_contexts(replace(state, gpus=gpus))


def _may_be_the_runs(state: TargetState, said: GpusEvent, gpu: WireGpu) -> bool:
    """Whether what is used of a GPU counts for the run's peak: not what the run before it still held, nor others'."""
    subject = state.subject
    if subject is None or state.launch is None or state.launch.over is not None or not has_spawned(state):
        return False
    spawned_bt = subject.record.spawned_bt if subject.record is not None else None
    if gpu.owner in ("other", "nobody") or gpu.context is False:
        return False
    return spawned_bt is None or said.bt >= spawned_bt


def _smoothed(before: GpuFacts, said: GpusEvent, at: float) -> dict[int, float]:
    """How busy each GPU is, a single sample of which says little."""
    share = min(1.0, max(0.0, at - before.at) / _SMOOTH_S) if before.at is not None else 1.0
    known = {gpu.i: gpu.util for gpu in said.gpus if gpu.util is not None}
    return {i: before.busy.get(i, util) + (util - before.busy.get(i, util)) * share for i, util in known.items()}


def _contexts_of(state: TargetState, said: GpusEvent) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return what the run has a context on, and what it hasn't; of MIG instances only how many."""
    have = tuple(gpu.i for gpu in said.gpus if gpu.context)
    parts = sum(bool(part.context) for gpu in said.gpus for part in gpu.mig or ())
    if not parts:
        return have, missing_gpus(state, have)
    return tuple(range(parts + sum(bool(gpu.context) and not gpu.mig for gpu in said.gpus))), ()


def _see_contexts(state: TargetState) -> TargetState:
    """The agent's own look at contexts, where it is of this run: taken after the run was spawned, while it lives."""
    said, subject = state.gpus.event, state.subject
    if said is None or subject is None or state.launch is None or state.launch.over is not None:
        return state
    if not has_spawned(state) or state.launch.state(Stage.CUDA) is StageState.DONE:
        return state
    if subject.record is not None and (subject.record.spawned_bt is None or said.bt < subject.record.spawned_bt):
        return state
    if state.target.gpus.expected == 0:
        return launched(state, launch.CudaNotWanted())
    want = expected_gpus(state)
    if not want or _cannot_tell(said):
        why = said.why or ("no GPU is listed" if not said.gpus else "contexts can't be told")
        settled = state.seen_at is not None and state.at - state.seen_at >= SETTLING_S
        return launched(state, launch.CudaNotObservable(why=why)) if settled else state
    have, missing = _contexts_of(state, said)
    held = {part.uuid for gpu in said.gpus for part in gpu.mig or () if part.context is not False and part.uuid}
    missing_parts = _missing_parts(state, held) if len(have) < want else ()
    # All that were there when we came may have been there for hours.
    came_bt = said.bt if state.gpus.saw_fewer else None
    if len(have) < want:
        state = replace(state, gpus=replace(state.gpus, saw_fewer=True))
    state = launched(
        state,
        launch.ContextsSeen(
            have=have[:want],
            want=want,
            missing=() if missing_parts else missing,
            missing_parts=missing_parts,
            rule=said.rule,
            bt=came_bt,
        ),
    )
    if state.launch is not None and state.launch.state(Stage.CUDA) is StageState.DONE:
        state = replace(state, log=replace(state.log, lines_at_cuda=state.training.lines_seen))
    return state
