"""The word that is shown first, and why: facts, what is safe, what to do next.

Judged anew from the state whenever asked. The order of the questions is the order of the truths: is the link there, has
the host spoken, is the run's host still the same, is it over, is it being launched, how does it do. Pure.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from console.model import Fact, LinkState, PastRun, ReasonView, Severity, Stage, StageState, Verdict
from console.reasons import Reason, reason_of
from console.state import health, stall, texts
from console.state.condition import Condition, Health
from console.state.consequences import End
from console.state.diagnose import Diagnosis, diagnose
from console.state.events import LogLine
from console.state.launch import Launch
from console.state.lazy import lazy
from console.state.outside import with_kernel_word
from console.state.reasonview import told, view
from console.state.target import TargetState

FAILURES = frozenset({Verdict.FAILED, Verdict.ENDED, Verdict.INTERRUPTED, Verdict.HOST_RESTARTED})
"""What asks for a restart: what has changed since the last good run is told with it."""


class Judgement(Struct, frozen=True, kw_only=True):
    verdict: Verdict
    reason: ReasonView | None = None
    last_known: Verdict | None = None
    where: str = ""
    """For the pane's title: the stage it failed at."""


def judge(state: TargetState, now: float) -> Judgement:
    """Return the verdict with its reason."""
    if state.link.state is LinkState.CONNECTING:
        return Judgement(verdict=Verdict.NO_WORD)
    known = _judge_run(state, now) if state.host.said is not None else None
    last = known.verdict if known is not None else None
    if state.link.state is not LinkState.UP:
        is_frozen = reason_of(state.link.reason) is Reason.CONTAINER_FROZEN
        verdict = Verdict.FROZEN if is_frozen else Verdict.LINK_LOST
        return Judgement(verdict=verdict, reason=_link_reason(state), last_known=last)
    if known is None or not state.host.is_fresh:
        return Judgement(verdict=Verdict.NO_WORD, last_known=last)
    if known.verdict in FAILURES and known.reason is not None:
        return replace(known, reason=replace(known.reason, next=(*known.reason.next, *_again(state))))
    return known


def good_run(state: TargetState) -> PastRun | None:
    """The good run before this one; never this one, should history speak of another subject still."""
    good = state.history.good
    return None if good is None or (state.subject is not None and good.id == state.subject.key) else good


def _again(state: TargetState) -> tuple[str, ...]:
    good = good_run(state) if not state.read_only else None
    return (f"{good.name or good.id}'s settings again (o)",) if good is not None else ()


def _link_reason(state: TargetState) -> ReasonView:
    link = state.link
    return view(reason_of(link.reason), detail=link.detail, severity=Severity.WARNING)


def _judge_run(state: TargetState, now: float) -> Judgement:
    launch, subject = state.launch, state.subject
    if launch is None or subject is None:
        return Judgement(verdict=Verdict.IDLE)
    if launch.over is not None:
        return _over(state, launch)
    if launch.reopened:
        return Judgement(verdict=Verdict.LAUNCHING)
    found = health.assess(state, now)
    if launch.stepped or found.condition in _ANYWAY:
        return _alive(state, found)
    if subject.hand is not None and state.training.step is not None:
        # Its log may hold steps of a run before it: nothing is proved until one is seen to be written.
        return Judgement(verdict=Verdict.RUNNING)
    if found.condition is Condition.DOWNLOADING:
        return Judgement(verdict=Verdict.LAUNCHING, reason=told(state, found))
    if launch.active is not None and launch.state(launch.active) is StageState.LATE:
        return Judgement(verdict=Verdict.LAUNCHING, reason=_late(state, launch, launch.active, now))
    return Judgement(verdict=Verdict.LAUNCHING)


# -- alive ------------------------------------------------------------------------------------------------------------

_ALIVE = {
    Condition.OK: Verdict.STEPPING,
    Condition.SLOW: Verdict.SLOW,
    Condition.STALLED: Verdict.STALLED,
    Condition.NAN: Verdict.NAN,
    Condition.SUSPENDED: Verdict.SUSPENDED,
    Condition.NOT_EXITED: Verdict.NOT_EXITED,
    Condition.DOWNLOADING: Verdict.STALLED,
    Condition.SPIKE: Verdict.SPIKE,
    Condition.STARVED: Verdict.STEPPING,
    Condition.RECOMPILES: Verdict.STEPPING,
    Condition.UNSEEN: Verdict.RUNNING,
    Condition.UNREAD: Verdict.RUNNING,
    Condition.ELSEWHERE: Verdict.RUNNING,
    Condition.BUFFERED: Verdict.RUNNING,
    Condition.FORMAT_UNKNOWN: Verdict.RUNNING,
}
_ANYWAY = frozenset(
    {
        Condition.SUSPENDED,
        Condition.UNSEEN,
        Condition.ELSEWHERE,
        Condition.BUFFERED,
        Condition.FORMAT_UNKNOWN,
    }
)
"""What is said of a run in its last stages, too, before any step has proved it."""


def _alive(state: TargetState, found: Health) -> Judgement:
    reason = told(state, found) if found.reason is not None else None
    return Judgement(verdict=_ALIVE[found.condition], reason=reason)


def _late(state: TargetState, launch: Launch, stage: Stage, now: float) -> ReasonView:
    mark = launch.mark(stage)
    spent = state.clock.at(mark.began_bt)
    took = f"{stage.label} for {texts.span(now - spent)}" if spent is not None else stage.label
    usual, longest = state.history.usual_s.get(stage), state.history.longest_s.get(stage)
    if usual is not None and longest is not None:
        took += f", usually {texts.span(usual)}, longest {texts.span(longest)}"
    missing = ""
    if stage is Stage.CUDA and mark.want:
        missing = f"{mark.have} of {mark.want} contexts"
        if mark.missing:
            missing = f"GPU {texts.ranges(mark.missing)} hold no context"
        elif mark.missing_parts:
            missing += f": none on {texts.parts(mark.missing_parts)}"
    silence = stall.log_silence_s(state, now)
    silent = f"log silent {texts.span(silence)}" if silence is not None and silence >= 30 else ""
    cores = state.procs.event.cpu_cores if state.procs.event is not None else None
    cpu = f"CPU {cores:.1f} cores" if cores is not None else ""
    suspicious = [fact for fact in (missing, silent, cpu) if fact]
    facts = [Fact(label="stage", text=took, severity=Severity.WARNING)]
    facts += [Fact(label="evidence", text=fact) for fact in suspicious]
    detail = "; ".join(suspicious) or mark.evidence or took
    return view(Reason.STAGE_LATE, detail=detail, facts=tuple(facts))


# -- over -------------------------------------------------------------------------------------------------------------


def _over(state: TargetState, launch: Launch) -> Judgement:
    assert launch.over is not None
    name = state.subject.name if state.subject is not None else ""
    failed = launch.failed
    match launch.over.end:
        case End.STOPPED:
            return Judgement(verdict=Verdict.STOPPED)
        case End.VANISHED:
            facts = (Fact(label="host", text="boot id changed", severity=Severity.ERROR),)
            detail = f"{name} is gone, it did not exit by itself"
            return Judgement(verdict=Verdict.HOST_RESTARTED, reason=view(Reason.HOST_RESTARTED, detail, facts))
        case End.KEEPER_LOST:
            return Judgement(verdict=Verdict.INTERRUPTED, reason=_interrupted(state, launch))
        case _:
            pass
    diagnosis = diagnosis_of(state)
    if launch.stepped:
        if diagnosis.is_good:
            return Judgement(verdict=Verdict.FINISHED)
        return Judgement(verdict=Verdict.ENDED, reason=_ended(state, launch, diagnosis))
    if launch.over.end is End.UNREADABLE and failed is None:
        reason = _ended(state, launch, replace(diagnosis, reason=Reason.FORMAT_UNKNOWN))
        return Judgement(verdict=Verdict.ENDED, reason=replace(reason, severity=Severity.WARNING))
    where = failed.value if failed is not None else ""
    return Judgement(verdict=Verdict.FAILED, reason=_ended(state, launch, diagnosis), where=where)


def lines_to_read(state: TargetState) -> tuple[LogLine, ...]:
    """The log's newest lines, with the first error in front where it has left them."""
    first, tail = state.log.first_error, state.log.tail
    if first is not None and (not tail or first.offset < tail[0].offset):
        return (first, *tail)
    return tail


def diagnosis_of(state: TargetState) -> Diagnosis:
    record = state.subject.record if state.subject is not None else None
    return with_kernel_word(state, diagnose(record, lines_to_read(state), state.training))


def _ended(state: TargetState, launch: Launch, found: Diagnosis) -> ReasonView:
    facts = list(found.facts)
    failed = launch.failed
    if failed is not None and not launch.mark(failed).derived:
        mark = launch.mark(failed)
        text = mark.detail or mark.why or mark.evidence
        facts.insert(0, Fact(label=failed.label, text=text, severity=Severity.ERROR))
    if (gpus := _gpu_fact(state, launch)) is not None:
        facts.append(gpus)
    return view(
        found.reason,
        detail=found.detail,
        facts=tuple(facts),
        safe=_what_is_safe(state, launch),
        next_=_next_steps(found),
    )


def _interrupted(state: TargetState, launch: Launch) -> ReasonView:
    behind = [stage for stage in Stage if launch.state(stage) in (StageState.DONE, StageState.SKIPPED)]
    at = next((stage for stage in Stage if launch.state(stage) is StageState.UNKNOWN), None)
    if at is not None:
        where = f"interrupted while {_DOING.get(at, at.label)}"
    elif behind:
        where = f"interrupted after {behind[-1].label}"
    else:
        where = "interrupted before anything was done"
    detail = f"{where}, {_what_runs(state)}"
    facts = [Fact(label="keeper", text="killed or lost in the middle of the restart", severity=Severity.ERROR)]
    facts += [
        Fact(label=stage.label, text=launch.mark(stage).detail or launch.mark(stage).evidence or "skipped")
        for stage in behind
    ]
    return view(Reason.INTERRUPTED, detail=detail, facts=tuple(facts), safe=_what_is_safe(state, launch))


_DOING = {Stage.KILLING: "killing", Stage.CACHE: "clearing the cache", Stage.SPAWNED: "starting the run"}


# -- true sentences ---------------------------------------------------------------------------------------------------


def _what_runs(state: TargetState) -> str:
    said = state.host.said
    if said is not None and said.hand:
        return f"a run started by hand is there (pid {said.hand[0].main.pid})"
    record = state.subject.record if state.subject is not None else None
    if record is not None and record.alive:
        return "something of the run still lives"
    return "nothing runs" if record is None or record.alive is False else "whether anything runs is not known"


def _what_is_safe(state: TargetState, launch: Launch) -> str:
    """What was stopped, what runs, which GPUs are free: each only where it is known."""
    record = state.subject.record if state.subject is not None else None
    sentences = []
    if record is not None and (record.replaced_name or record.replaced_id):
        old = record.replaced_name or record.replaced_id
        killing = launch.state(Stage.KILLING)
        if killing is StageState.DONE:
            sentences.append(f"{old} was stopped as planned.")
        elif killing is not StageState.SKIPPED:
            sentences.append(f"Whether {old} still runs is not known.")
    what = _what_runs(state)
    free = _free_gpus(state)
    sentences.append(f"{what[0].upper()}{what[1:]}{f', {free}' if free else ''}.")
    steps = state.training
    if launch.stepped and steps.checkpoint_step is not None:
        sentences.append(f"Last checkpoint: step {texts.count(steps.checkpoint_step)}.")
    return " ".join(sentences)


def _free_gpus(state: TargetState) -> str:
    """Say which GPUs are free, by a sample from after the end: one from before it still shows the run's memory."""
    event, record = state.gpus.event, state.subject.record if state.subject is not None else None
    if event is None or not event.gpus or any(gpu.owner == "unknown" for gpu in event.gpus):
        return ""
    ended_bt = record.exit.ended_bt if record is not None and record.exit is not None else None
    if ended_bt is not None and event.bt < ended_bt:
        return ""
    free = sum(gpu.owner == "free" for gpu in event.gpus)
    return f"{free}/{len(event.gpus)} GPUs are free"


def _gpu_fact(state: TargetState, launch: Launch) -> Fact | None:
    if state.gpus.event is None or not state.gpus.event.gpus:
        return None
    cuda = launch.mark(Stage.CUDA)
    opened = ""
    if cuda.state is StageState.DONE:
        opened = f"{cuda.have}/{cuda.want} contexts were opened"
    elif cuda.state is StageState.UNKNOWN and not cuda.have:
        opened = "contexts not known"  # that none was seen where none can be told says nothing
    elif cuda.want is not None:
        opened = f"{cuda.have} of {cuda.want} contexts were opened" if cuda.have else "no context was opened"
    text = texts.joined(opened, _free_gpus(state))
    return Fact(label="GPUs", text=text) if text else None


_REFUSED_PATH = lazy(r"(?P<path>/[^\s:]+): Permission denied")


def _next_steps(found: Diagnosis) -> tuple[str, ...] | None:
    """Advice with the path of the case in it, where the line names one."""
    if found.reason is Reason.EXEC_NOT_PERMITTED and (match := _REFUSED_PATH.search(found.detail)):
        return (f"chmod +x {match['path']} on the host, then restart (r)",)
    return None
