"""What past launches say of the next one: medians and the longest of each stage, by what was done about the cache.

Killing an old run and exec don't depend on the cache, so these two learn from every launch. The rest does: compiling
anew takes minutes. Medians, since one launch on a cold disk says nothing of the next. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from msgspec import Struct

from console.history.entry import CLEARED, KEPT
from console.model import PastRun, Stage

_WHATEVER_THE_CACHE = frozenset({Stage.KILLING, Stage.SPAWNED})
# Older launches are of another model, another disk, another code.
NEWEST = 20


class Timing(Struct, frozen=True, kw_only=True):
    """How long the stages of one launch took; a stage that was not reached, not watched or skipped is absent."""

    id: str
    cache: str | None
    stages: Mapping[Stage, float]
    stepped: bool = False


class Usual(Struct, frozen=True, kw_only=True):
    """How long the stages of a launch of one kind usually take, in seconds."""

    usual_s: dict[Stage, float] = {}
    longest_s: dict[Stage, float] = {}
    launches: int = 0
    """Launches of this kind that reached stepping in a known time."""

    def total_s(self, *, kills: bool, has_gpus: bool = True) -> float | None:
        """Return the time to the first step, None while it isn't known.

        Killing counts where something is to be killed and it has been done before: how long a run takes to die is the
        old run's business, so an estimate without it is still one of this launch.
        """
        needed = {Stage.SPAWNED, Stage.STEPPING} | ({Stage.CUDA} if has_gpus else set())
        if not needed <= self.usual_s.keys():
            return None
        return sum(took for stage, took in self.usual_s.items() if kills or stage is not Stage.KILLING)


class Kinds(Struct, frozen=True, kw_only=True):
    """The usual times by what is done about the cache."""

    cleared: Usual = Usual()
    kept: Usual = Usual()

    def of(self, cache: str | None) -> Usual:
        """Return the times of a kind; the config clears unless told otherwise, so unknown means cleared."""
        return self.kept if cache == KEPT else self.cleared


class Outlook(Struct, frozen=True, kw_only=True):
    """What the ledger says."""

    current: Kinds = Kinds()
    """For the run that is spoken of: by all launches but itself."""
    following: Kinds = Kinds()
    """For the next one: by all launches."""
    before: PastRun | None = None
    """The last good run before the one that is spoken of."""
    newest: PastRun | None = None
    """The last good run, be it the one that is spoken of."""
    baseline_tok_s: float | None = None
    """Steady rate of the run that the config names as the baseline."""
    baseline_scope: str | None = None


def usual(timings: Sequence[Timing], cache: str) -> Usual:
    """Return what launches, newest first, say of the next one with the cache `cleared` or `kept`."""
    own = [each for each in timings if each.cache == cache]
    times: dict[Stage, list[float]] = {}
    for stage in Stage:
        source = timings if stage in _WHATEVER_THE_CACHE else own
        times[stage] = _newest(each.stages.get(stage) for each in source)
    known = {stage: found for stage, found in times.items() if found}
    medians = {stage: float(median(found)) for stage, found in known.items()}
    if cache == KEPT:
        medians[Stage.CACHE] = 0.0
    return Usual(
        usual_s=medians,
        longest_s={stage: max(found) for stage, found in known.items()},
        launches=len(times[Stage.STEPPING]),
    )


def _newest(values: Iterable[float | None]) -> list[float]:
    found = [value for value in values if value is not None]
    return found[:NEWEST]


def kinds(timings: Sequence[Timing]) -> Kinds:
    return Kinds(cleared=usual(timings, CLEARED), kept=usual(timings, KEPT))
