"""The launch of one run: five stages, each with the proof for it.

    killing -> clearing cache -> spawned -> CUDA initialized -> stepping

Theory. A stage is in one of eight states; what happens to it is one of eight *moves*. The table in `stages` says for
each pair where it leads; a pair that isn't there is illegal: `process_event` raises IllegalEvent and, values being
frozen, nothing has changed. The first three stages are *journalled*: the keeper's word, written before and after each
deed, is final. The last two are *observed*, by several witnesses whose words arrive in any order: the exit record can
be here before the log's last lines.

Two rules keep the table honest. A move into `done` needs evidence, and one into `failed`, `skipped` or `unknown` a
reason why: without, it is illegal as well. And consequences are no facts: `facts` holds what was witnessed, `marks` is
derived from it anew after every event (which stage the end of the run cut off, what the steps leave unproven), by the
same table. So the same facts give the same stages in whatever order they came, and a proof that turns up behind the
end corrects what was concluded without it.

CUDA and steps: a run that makes steps while some contexts are unproven has CUDA `unknown`, never `done`.

Times are the host's CLOCK_BOOTTIME (`*_bt`). An observed stage has one time for everybody: what the keeper noted takes
the place of what this console saw a moment earlier or later. Pure; who watches whom is `machine`'s business.
"""

from __future__ import annotations

from typing import TypedDict, assert_never

from msgspec import Struct
from msgspec.structs import replace

from console.model import Stage, StageState
from console.protocol import HostStage
from console.state import texts
from console.state.consequences import End, RunOver, consequences
from console.state.stages import JOURNALLED, OPEN, STAGES, IllegalEvent, Mark, Move, moved, proven


class Launch(Struct, frozen=True, kw_only=True):
    """The stages of one run. `key` is its id, or `hand:PID/START`."""

    key: str
    facts: tuple[Mark, ...] = (Mark(),) * len(STAGES)
    """What was witnessed of each stage."""
    marks: tuple[Mark, ...] = (Mark(),) * len(STAGES)
    """What that means for each stage: the facts with their consequences."""
    over: RunOver | None = None
    reopened: bool = False
    """The live run is being stopped, so killing is about its own processes now."""
    first_kill_bt: float | None = None
    """When killing began before it was reopened."""

    def fact(self, stage: Stage) -> Mark:
        return self.facts[STAGES.index(stage)]

    def mark(self, stage: Stage) -> Mark:
        return self.marks[STAGES.index(stage)]

    def state(self, stage: Stage) -> StageState:
        return self.mark(stage).state

    @property
    def active(self) -> Stage | None:
        """The first stage that is being worked on."""
        return next((stage for stage in STAGES if self.state(stage) in (StageState.ACTIVE, StageState.LATE)), None)

    @property
    def failed(self) -> Stage | None:
        return next((stage for stage in STAGES if self.state(stage) is StageState.FAILED), None)

    @property
    def stepped(self) -> bool:
        return self.state(Stage.STEPPING) is StageState.DONE


# -- events -----------------------------------------------------------------------------------------------------------


class JournalSaid(Struct, frozen=True, kw_only=True):
    """The keeper's journal has this entry for one of its three stages."""

    stage: Stage
    entry: HostStage


class StartedByHand(Struct, frozen=True, kw_only=True):
    """Nobody of ours launched it: the journalled stages can't be known."""

    spawned_bt: float | None


class ContextsSeen(Struct, frozen=True, kw_only=True):
    """GPUs on which this run holds a context."""

    have: tuple[int, ...]
    want: int
    missing: tuple[int, ...] = ()
    missing_parts: tuple[str, ...] = ()
    """MIG instances that the run sees and holds none on: `0:2` is part 2 of GPU 0."""
    rule: str = ""
    bt: float | None = None
    """When they were there; None where nobody saw them come."""
    noted: bool = False
    """`bt` is the keeper's."""


class CudaNotObservable(Struct, frozen=True, kw_only=True):
    why: str


class CudaNotWanted(Struct, frozen=True, kw_only=True):
    """The config expects no GPU."""


class StepsSeen(Struct, frozen=True, kw_only=True):
    """Two increasing step numbers in the log of this run; `bt` is when the second was written, None if unknown."""

    first: int
    second: int
    bt: float | None = None
    noted: bool = False
    """`bt` is by the keeper's notes of the log's growth."""


class DeadlinePassed(Struct, frozen=True, kw_only=True):
    stage: Stage


class StopBegan(Struct, frozen=True, kw_only=True):
    """The live run is being stopped."""

    bt: float | None = None
    by: str = ""
    evidence: str = ""


class StopEnded(Struct, frozen=True, kw_only=True):
    """The stop was given up: the run lives on."""


class RunLives(Struct, frozen=True, kw_only=True):
    """It was thought gone and is not. An end that was recorded can't be taken back."""


LaunchEvent = (
    JournalSaid
    | StartedByHand
    | ContextsSeen
    | CudaNotObservable
    | CudaNotWanted
    | StepsSeen
    | DeadlinePassed
    | StopBegan
    | StopEnded
    | RunOver
    | RunLives
)


def process_event(launch: Launch, event: LaunchEvent) -> Launch:
    """Return the launch after the event. Raises: IllegalEvent, having changed nothing."""
    after = _begin_next(_apply(launch, event))
    return replace(after, marks=consequences(after.facts, after.over, is_stopping=after.reopened))


def _apply(launch: Launch, event: LaunchEvent) -> Launch:
    match event:
        case JournalSaid():
            return _journal(launch, event.stage, event.entry)
        case StartedByHand():
            return _by_hand(launch, event)
        case ContextsSeen():
            return _contexts(launch, event)
        case CudaNotObservable():
            if launch.fact(Stage.CUDA).state in (StageState.DONE, StageState.SKIPPED):
                return launch
            return _move(_none_counted(launch), Stage.CUDA, Move.BLURRED, why=f"not observable: {event.why}")
        case CudaNotWanted():
            if launch.fact(Stage.CUDA).state is StageState.DONE:
                return launch
            return _move(launch, Stage.CUDA, Move.SKIPPED, why="no GPU expected")
        case StepsSeen():
            return _steps(launch, event)
        case DeadlinePassed():
            return _move(launch, event.stage, Move.OVERDUE, reason="stage_late")
        case StopBegan():
            return _stop(launch, event)
        case StopEnded():
            return replace(launch, reopened=False)
        case RunOver():
            return replace(launch, over=event)
        case RunLives():
            return _lives(launch)
        case _:
            assert_never(event)


# -- what each event moves --------------------------------------------------------------------------------------------

_JOURNAL_MOVES = {"active": Move.BEGAN, "done": Move.PROVED, "skipped": Move.SKIPPED, "failed": Move.FAILED}


def _journal(launch: Launch, stage: Stage, entry: HostStage) -> Launch:
    move = _JOURNAL_MOVES.get(entry.state)
    if stage not in JOURNALLED or move is None:
        raise IllegalEvent(stage, launch.fact(stage).state, f"the journal says {entry.state!r}")
    if stage is Stage.KILLING and launch.reopened and entry.began_bt == launch.first_kill_bt:
        return launch  # the entry of the launch, which the stop has reopened
    why = entry.why
    if move is Move.PROVED and not entry.evidence:
        move, why = Move.BLURRED, "the keeper states no proof"
    if move in (Move.SKIPPED, Move.FAILED) and not why and not entry.reason:
        why = entry.detail or entry.evidence or "the keeper states no reason"
    return _move(
        launch,
        stage,
        move,
        began_bt=entry.began_bt,
        ended_bt=None if move is Move.BEGAN else entry.ended_bt,
        evidence=entry.evidence,
        detail=entry.detail,
        why=why,
        reason=entry.reason,
    )


def _by_hand(launch: Launch, event: StartedByHand) -> Launch:
    for stage in (Stage.KILLING, Stage.CACHE, Stage.SPAWNED):
        ended = event.spawned_bt if stage is Stage.SPAWNED else None
        if not (stage is Stage.KILLING and launch.reopened):
            launch = _move(launch, stage, Move.BLURRED, ended_bt=ended, why="started by hand")
    return launch


def _contexts(launch: Launch, event: ContextsSeen) -> Launch:
    mark, have = launch.fact(Stage.CUDA), len(event.have)
    if event.want < 1 or have > event.want:
        raise IllegalEvent(Stage.CUDA, mark.state, f"{have} contexts of {event.want}")
    if mark.state is StageState.DONE:
        return _with(launch, Stage.CUDA, _timed(mark, event.bt, noted=event.noted)) if have == event.want else launch
    if have == event.want:
        rule = f" ({event.rule})" if event.rule else ""
        return _move(
            launch,
            Stage.CUDA,
            Move.PROVED,
            ended_bt=event.bt,
            evidence=f"{have}/{event.want} contexts",
            detail=f"{have}/{event.want} GPUs hold a context{rule}",
            have=have,
            want=event.want,
            noted=event.noted,
        )
    mark = replace(mark, have=have, want=event.want, missing=event.missing, missing_parts=event.missing_parts)
    if mark.state in (StageState.ACTIVE, StageState.LATE, StageState.UNKNOWN):
        launch = _with(launch, Stage.CUDA, mark)
        return _move(launch, Stage.CUDA, Move.BEGAN, **_progress(mark))
    return _with(launch, Stage.CUDA, mark) if mark.state is StageState.PENDING else launch


def _none_counted(launch: Launch) -> Launch:
    """That none was seen where none can be told is no count."""
    mark = launch.fact(Stage.CUDA)
    if mark.have:
        return launch
    mark = replace(mark, have=None, missing=(), missing_parts=(), evidence="", detail="")
    return _with(launch, Stage.CUDA, mark)


class _Evidence(TypedDict):
    evidence: str
    detail: str


def _progress(cuda: Mark) -> _Evidence:
    if not cuda.want:
        return {"evidence": "", "detail": ""}
    missing = f", not yet: {texts.ranges(cuda.missing)}" if cuda.missing else ""
    counted = f"{cuda.have}/{cuda.want}"
    if cuda.missing_parts:
        short, named = ", ".join(cuda.missing_parts), texts.parts(cuda.missing_parts)
        detail = f"{counted} GPUs hold a context, not yet: {named}"
        return {"evidence": f"{counted}, not yet: {short}", "detail": detail}
    return {"evidence": counted + missing, "detail": f"{counted} GPUs hold a context{missing}"}


def _steps(launch: Launch, event: StepsSeen) -> Launch:
    mark = launch.fact(Stage.STEPPING)
    if event.second <= event.first:
        raise IllegalEvent(Stage.STEPPING, mark.state, f"step {event.second} does not follow {event.first}")
    if mark.state is StageState.DONE:
        return _with(launch, Stage.STEPPING, _timed(mark, event.bt, noted=event.noted))
    return _move(
        launch,
        Stage.STEPPING,
        Move.PROVED,
        ended_bt=event.bt,
        evidence=f"steps {event.first}, {event.second} seen",
        detail=f"steps {event.first}, {event.second}",
        noted=event.noted,
    )


def _timed(mark: Mark, bt: float | None, *, noted: bool) -> Mark:
    """Proved once is proved; a time that was noted is better than one that was seen, and an earlier one of its kind."""
    if bt is None or (mark.noted and not noted):
        return mark
    is_better = mark.ended_bt is None or (noted and not mark.noted) or bt < mark.ended_bt
    return replace(mark, ended_bt=bt, noted=noted) if is_better else mark


def _stop(launch: Launch, event: StopBegan) -> Launch:
    mark = launch.fact(Stage.KILLING)
    evidence = event.evidence or (f"by {event.by}" if event.by else "TERM")
    if launch.reopened or mark.state in (StageState.PENDING, StageState.ACTIVE, StageState.LATE):
        return _move(launch, Stage.KILLING, Move.BEGAN, began_bt=mark.began_bt or event.bt, evidence=evidence)
    move = Move.BEGAN if mark.state is StageState.UNKNOWN else Move.REOPENED
    launch = replace(launch, reopened=True, first_kill_bt=mark.began_bt)
    launch = _with(launch, Stage.KILLING, Mark(state=mark.state))
    return _move(launch, Stage.KILLING, move, began_bt=event.bt, evidence=evidence)


def _lives(launch: Launch) -> Launch:
    if launch.over is not None and launch.over.end not in (End.UNWITNESSED, End.VANISHED, End.KEEPER_LOST):
        raise IllegalEvent(Stage.SPAWNED, launch.state(Stage.SPAWNED), "the end of the run is recorded")
    return replace(launch, over=None)


def _begin_next(launch: Launch) -> Launch:
    """A stage that is observed begins when the one before it is behind."""
    if launch.over is not None:
        return launch
    spawned, cuda = launch.fact(Stage.SPAWNED), launch.fact(Stage.CUDA)
    if spawned.state not in (StageState.DONE, StageState.UNKNOWN):
        return launch
    if cuda.state is StageState.PENDING:
        launch = _move(launch, Stage.CUDA, Move.BEGAN, began_bt=spawned.ended_bt, **_progress(cuda))
    if (
        cuda.state in (StageState.DONE, StageState.SKIPPED, StageState.UNKNOWN)
        and launch.fact(Stage.STEPPING).state is StageState.PENDING
    ):
        began = cuda.ended_bt if cuda.ended_bt is not None else spawned.ended_bt
        launch = _move(launch, Stage.STEPPING, Move.BEGAN, began_bt=began, evidence="wants 2 steps")
    return launch


# -- the table at work ------------------------------------------------------------------------------------------------


def _move(
    launch: Launch,
    stage: Stage,
    move: Move,
    *,
    began_bt: float | None = None,
    ended_bt: float | None = None,
    evidence: str = "",
    detail: str = "",
    why: str = "",
    reason: str | None = None,
    have: int | None = None,
    want: int | None = None,
    noted: bool = False,
) -> Launch:
    old = launch.fact(stage)
    new = moved(stage, old, move)
    live = new in OPEN  # live evidence stays until there is newer
    mark = Mark(
        state=new,
        began_bt=began_bt if began_bt is not None else old.began_bt,
        ended_bt=ended_bt,
        evidence=evidence or (old.evidence if live else ""),
        detail=detail or (old.detail if live else ""),
        why=why,
        reason=reason or (old.reason if new is StageState.LATE else None),
        have=have if have is not None else old.have,
        want=want if want is not None else old.want,
        missing=() if new is StageState.DONE else old.missing,
        missing_parts=() if new is StageState.DONE else old.missing_parts,
        noted=noted and ended_bt is not None,
    )
    return _with(launch, stage, proven(stage, mark))


def _with(launch: Launch, stage: Stage, mark: Mark) -> Launch:
    at = STAGES.index(stage)
    return replace(launch, facts=(*launch.facts[:at], mark, *launch.facts[at + 1 :]))
