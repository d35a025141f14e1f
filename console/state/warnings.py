"""What a person should know of a target beside its verdict. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from console.model import GpuNote, GpuPanel, GpuTrouble, LostRestart, ReasonView, Severity, Stage
from console.reasons import Reason, reason_of
from console.state import health
from console.state.reasonview import told, view
from console.state.subject import is_interrupted
from console.state.target import TargetState


def warnings(state: TargetState, now: float, gpus: GpuPanel) -> tuple[ReasonView, ...]:
    """What a person should know beside the verdict."""
    found = [*_also(state, now), *_run_warnings(state), *_gpu_warnings(gpus.notes)]
    found += [view(_host_reason(w.reason), detail=_host_detail(w.reason, w.detail)) for w in state.warnings]
    return tuple(replace(each, severity=_at_most_warning(each.severity)) for each in found)


def _also(state: TargetState, now: float) -> list[ReasonView]:
    """What else is the matter with a run that steps, behind what the verdict says."""
    launch = state.launch
    if launch is None or launch.over is not None or not launch.stepped or launch.reopened:
        return []
    return [told(state, found) for found in health.findings(state, now)[1:] if found.reason is not None]


def _host_reason(slug: str) -> Reason:
    return reason_of(slug)


def _host_detail(slug: str, detail: str) -> str:
    return detail if reason_of(slug) is not Reason.UNKNOWN else f"{slug}: {detail}"


def _at_most_warning(severity: Severity) -> Severity:
    return Severity.WARNING if severity is Severity.ERROR else severity


def lost_restart(state: TargetState) -> LostRestart | None:
    """The newest restart, where its keeper was lost before it had ended the run that is spoken of."""
    asked = state.host.said.run if state.host.said is not None else None
    if asked is None or state.subject is None or state.launch is None or state.launch.over is not None:
        return None
    if asked.id == state.subject.key or not is_interrupted(asked):
        return None
    at = Stage.CACHE if str(Stage.CACHE) in asked.stages else Stage.KILLING
    return LostRestart(id=asked.id, name=asked.name or asked.id, operator=asked.operator, stage=at)


def lost_words(lost: LostRestart) -> str:
    by = f" by {lost.operator}" if lost.operator else ""
    return f"{lost.name}{by} was to replace this run and was lost at {lost.stage.label}: this run lives on"


def _run_warnings(state: TargetState) -> list[ReasonView]:
    found = []
    subject, launch = state.subject, state.launch
    alive = launch is not None and launch.over is None
    if subject is not None and subject.record is not None and alive and subject.record.keeper_alive is False:
        found.append(view(Reason.KEEPER_LOST, detail="its exit status can not be recorded any more"))
    if (lost := lost_restart(state)) is not None:
        found.append(view(Reason.INTERRUPTED, detail=lost_words(lost)))
    if alive and state.log.event is not None and state.log.event.full:
        found.append(view(Reason.DISK_FULL, detail=f"no room is left for {state.log.event.path}"))
    if subject is not None and subject.hand is not None and alive and subject.hand.session:
        found.append(view(Reason.DIES_AT_LOGOUT, detail=f"it lives in {subject.hand.session} and may die at logout"))
    return found


_OF_GPUS = {
    GpuTrouble.LOST: Reason.GPU_FELL_OFF_BUS,
    GpuTrouble.ERRORS: Reason.GPU_FAULT,
    GpuTrouble.FOREIGN: Reason.GPU_MEMORY_FOREIGN,
    GpuTrouble.NOBODY: Reason.GPU_MEMORY_FOREIGN,
    GpuTrouble.UNTOLD: None,  # nobody says that anything is wrong
    GpuTrouble.HEADROOM: Reason.GPU_HEADROOM,
    GpuTrouble.HOT: Reason.GPU_SLOWED,
    GpuTrouble.SLOWED: Reason.GPU_SLOWED,
    GpuTrouble.UNEVEN: None,  # an observation about the load, nothing that is wrong
    GpuTrouble.SPINNING: None,  # part of the evidence for a stall, and no proof of one
}
# What the reason says itself is left to it: `1.9 GiB headroom`, `not ours`.
_SAID_BY_REASON = {GpuTrouble.HEADROOM: " · ", GpuTrouble.FOREIGN: ", not ours"}


def _gpu_warnings(notes: tuple[GpuNote, ...]) -> list[ReasonView]:
    reasons = [(_OF_GPUS[note.kind], note) for note in notes]
    return [
        view(reason, detail=note.text.partition(_SAID_BY_REASON.get(note.kind, "\n"))[0])
        for reason, note in reasons
        if reason is not None
    ]
