"""What the facts of a launch mean for its stages: what the steps leave unproven, and what the end of the run cut off.

Derived anew from the facts each time, so that the order in which they came doesn't matter. The same table as for facts
says what is legal. Pure.
"""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from console.model import Stage, StageState
from console.state.stages import OPEN, STAGES, Mark, Move, moved, proven

ALL_GONE = "all gone"
"""Evidence of a stop whose keeper has not journalled yet what it came to."""


class End(StrEnum):
    """How the run that was launched is over."""

    EXITED = "exited"  # by itself, or killed by somebody
    STOPPED = "stopped"  # an operator of ours asked for it
    UNREADABLE = "unreadable"  # ended well, but whether it stepped could not be read
    KEEPER_LOST = "keeper_lost"  # in the middle of the transaction
    UNWITNESSED = "unwitnessed"  # it is gone, and nobody recorded how it ended
    VANISHED = "vanished"  # the host restarted


class RunOver(Struct, frozen=True, kw_only=True):
    """The run has ended; which stage that cut off is derived."""

    end: End
    why: str
    bt: float | None = None
    all_gone: bool = False


def consequences(facts: tuple[Mark, ...], over: RunOver | None, *, is_stopping: bool) -> tuple[Mark, ...]:
    """Derive the stages from the facts: what the steps leave unproven, what the end cut off."""
    marks = dict(zip(STAGES, facts, strict=True))
    stepped = marks[Stage.STEPPING].state is StageState.DONE
    if stepped and marks[Stage.CUDA].state in OPEN:
        cuda = marks[Stage.CUDA]
        seen = f"{cuda.have} of {cuda.want} contexts seen" if cuda.want else "no context seen"
        marks[Stage.CUDA] = _derive(Stage.CUDA, cuda, Move.BLURRED, why=f"{seen}, yet steps are made")
    if over is None:
        return tuple(marks.values())
    killing = marks[Stage.KILLING]
    if is_stopping and killing.state in (StageState.ACTIVE, StageState.LATE) and over.all_gone:
        gone = _derive(Stage.KILLING, killing, Move.PROVED, over.bt, evidence=ALL_GONE)
        marks[Stage.KILLING] = replace(gone, detail=ALL_GONE)
    if stepped:
        for stage in STAGES:
            if marks[stage].state in OPEN:
                why = "the run ended, and this was not recorded"
                marks[stage] = _derive(stage, marks[stage], Move.BLURRED, why=why)
        return tuple(marks.values())
    _cut_off(marks, over)
    return tuple(marks.values())


def _cut_off(marks: dict[Stage, Mark], over: RunOver) -> None:
    """The first open stage is the one where the run ended; those behind it were not reached."""
    blamed = any(mark.state is StageState.FAILED for mark in marks.values())
    for stage, mark in marks.items():
        if mark.state not in OPEN:
            continue
        move = Move.CUT_OFF if blamed else _end_move(over.end, stage, mark)
        blamed = True
        if move is Move.CUT_OFF:
            marks[stage] = _derive(stage, mark, move, why="" if over.end in (End.EXITED, End.UNWITNESSED) else over.why)
        elif move is Move.FAILED:
            marks[stage] = _derive(stage, mark, move, over.bt, evidence=over.why, why=over.why)
        else:
            marks[stage] = _derive(stage, mark, move, over.bt, why=over.why)


def _end_move(end: End, stage: Stage, mark: Mark) -> Move:
    match end:
        case End.EXITED | End.UNWITNESSED:
            return Move.FAILED
        case End.STOPPED | End.VANISHED:
            return Move.CUT_OFF
        case End.UNREADABLE:
            return Move.BLURRED if stage is Stage.STEPPING else Move.FAILED
        case End.KEEPER_LOST:
            return Move.CUT_OFF if mark.state is StageState.PENDING else Move.BLURRED
        case _:
            assert_never(end)


def _derive(
    stage: Stage, mark: Mark, move: Move, ended_bt: float | None = None, *, evidence: str = "", why: str = ""
) -> Mark:
    state = moved(stage, mark, move)
    kept = mark.evidence if state is StageState.UNKNOWN and not mark.evidence.startswith("wants") else ""
    derived = replace(
        mark, state=state, ended_bt=ended_bt, evidence=evidence or kept, detail="", why=why, reason=None, derived=True
    )
    return proven(stage, derived)
