"""One stage of a launch: the states it can be in, and the one table of what leads from each to which.

Eight states, eight moves. A pair that isn't in `_NEXT` is illegal, and so is a move into `done` without evidence, or
one into `failed`, `skipped` or `unknown` without a reason why. Pure; which stages there are facts about is `launch`.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from console.model import Stage, StageState

STAGES = tuple(Stage)
JOURNALLED = frozenset({Stage.KILLING, Stage.CACHE, Stage.SPAWNED})


class Move(StrEnum):
    """What happens to one stage."""

    BEGAN = "began"  # it is being worked on; said again, it brings live evidence
    OVERDUE = "overdue"
    PROVED = "proved"
    SKIPPED = "skipped"
    FAILED = "failed"
    CUT_OFF = "cut_off"  # the run was over before it began
    BLURRED = "blurred"  # whether it was reached can't be known
    REOPENED = "reopened"  # the live run is being stopped: killing, once more


_P, _A, _L, _D = StageState.PENDING, StageState.ACTIVE, StageState.LATE, StageState.DONE
_S, _F, _N, _U = StageState.SKIPPED, StageState.FAILED, StageState.NOT_REACHED, StageState.UNKNOWN

_ENDS = {
    Move.PROVED: _D,
    Move.SKIPPED: _S,
    Move.FAILED: _F,
    Move.CUT_OFF: _N,
    Move.BLURRED: _U,
}
"""How a stage that is still open can end."""

_NEXT: dict[StageState, dict[Move, StageState]] = {
    _P: {Move.BEGAN: _A, **_ENDS},
    _A: {Move.BEGAN: _A, Move.OVERDUE: _L, **_ENDS},
    _L: {Move.BEGAN: _L, **_ENDS},
    _U: {Move.BEGAN: _A, **_ENDS},
    _D: {Move.PROVED: _D, Move.REOPENED: _A},
    _S: {Move.SKIPPED: _S, Move.PROVED: _D, Move.REOPENED: _A},
    _F: {Move.FAILED: _F},
    _N: {},  # only ever a consequence
}

OPEN = frozenset({_P, _A, _L})


def _is_allowed(stage: Stage, state: StageState, move: Move) -> bool:
    """What the table can't say: which moves belong to some stages only."""
    if move is Move.REOPENED:
        return stage is Stage.KILLING
    return not (state is _S and move is Move.PROVED and stage in JOURNALLED)


class IllegalEvent(Exception):
    """An event that can't happen in this state of the launch; the launch is as it was."""

    def __init__(self, stage: Stage, state: StageState, why: str) -> None:
        super().__init__(f"{stage} is {state}: {why}")
        self.stage, self.state = stage, state


class Mark(Struct, frozen=True, kw_only=True):
    """Where one stage stands."""

    state: StageState = StageState.PENDING
    began_bt: float | None = None
    ended_bt: float | None = None
    evidence: str = ""
    detail: str = ""
    why: str = ""
    reason: str | None = None
    have: int | None = None
    want: int | None = None
    missing: tuple[int, ...] = ()
    missing_parts: tuple[str, ...] = ()
    """MIG instances among them, as `0:2`, part 2 of GPU 0."""
    derived: bool = False
    """A consequence, and so open to what is learned later."""
    noted: bool = False
    """`ended_bt` stands in the keeper's notes, so every console reads the same; else it is when we saw it."""


def moved(stage: Stage, mark: Mark, move: Move) -> StageState:
    new = _NEXT[mark.state].get(move)
    if new is None or not _is_allowed(stage, mark.state, move):
        raise IllegalEvent(stage, mark.state, f"it can't be {move}")
    return new


def proven(stage: Stage, mark: Mark) -> Mark:
    if mark.state is _D and not mark.evidence:
        raise IllegalEvent(stage, mark.state, "done without evidence")
    if mark.state in (_F, _S, _U) and not mark.why and not mark.reason:
        raise IllegalEvent(stage, mark.state, f"{mark.state} without a reason")
    return mark
