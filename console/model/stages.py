"""The five stages of a launch, and what is known of each with the proof for it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Stage(StrEnum):
    """The five stages of a launch, in order; the values are the slugs of the command line."""

    KILLING = "killing"
    CACHE = "cache"
    SPAWNED = "spawned"
    CUDA = "cuda"
    STEPPING = "stepping"

    @property
    def label(self) -> str:
        return _STAGE_LABELS[self]


_STAGE_LABELS = {
    Stage.KILLING: "killing",
    Stage.CACHE: "clearing cache",
    Stage.SPAWNED: "spawned",
    Stage.CUDA: "CUDA initialized",
    Stage.STEPPING: "stepping",
}


class StageState(StrEnum):
    """What is known of one stage (UI specification, section 3)."""

    PENDING = "pending"
    ACTIVE = "active"
    LATE = "late"  # active beyond its deadline: a warning, never a kill
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    NOT_REACHED = "not_reached"
    UNKNOWN = "unknown"


class StageStatus(Struct, frozen=True, kw_only=True):
    """One stage with the proof for it."""

    stage: Stage
    state: StageState
    began_at: float | None = None
    ended_at: float | None = None
    took_s: float | None = None
    usual_s: float | None = None
    """Median of past launches of the same kind; None while none is known."""
    longest_s: float | None = None
    """The longest of those launches."""
    deadline_s: float | None = None
    evidence: str = ""
    """Short form for the rail, at most about 17 cells: `2 pids, 574 GiB`."""
    detail: str = ""
    """Long form for `--json` and progress lines: `2 pids gone, 574 GiB freed`."""
    why: str = ""
    """Why it was skipped, failed or can't be known."""
    reason: str | None = None
    have: int | None = None
    want: int | None = None
    missing: tuple[int, ...] = ()
    """GPUs that hold no context yet (stage CUDA only)."""
    missing_parts: tuple[str, ...] = ()
    """MIG instances that hold none yet, in their place: `0:2` is part 2 of GPU 0."""
    noted: bool = False
    """`ended_at` is what the keeper noted, the same for every console; else when this one saw it."""
