"""Waiting for a stage of one run: progress lines as stages change, until the outcome is known or can't be any more.

What is then said of it is in `report`.
"""

from __future__ import annotations

import asyncio

import msgspec

from console.engine import Engine
from console.headless import output
from console.model import LogState, Run, Snapshot, Stage, StageState, StageStatus
from console.reasons import ConsoleError, Exit, Reason
from console.state import outcome
from console.state.consequences import ALL_GONE
from console.state.warnings import lost_words

_SPOKEN = (StageState.DONE, StageState.SKIPPED, StageState.FAILED, StageState.UNKNOWN, StageState.LATE)


class Progress:
    """Says each stage's change once, on stderr, in the order of the stages: a proof that came early waits its turn."""

    def __init__(self, *, quiet_before: bool = False) -> None:
        self._said: dict[Stage, StageState] = {}
        self._quiet = quiet_before

    def show(self, snapshot: Snapshot, *, is_last: bool = False) -> None:
        """Say what is new. `is_last`: nothing is waited for any more, what is still due is said as it is known now."""
        for status in snapshot.stages:
            if status.stage is Stage.CUDA and _is_cuda_due(snapshot) and not is_last:
                break  # steps have proven more than the GPUs' last sample, the next one is on its way
            self._say(status)
            if status.state not in _SPOKEN or status.state is StageState.LATE:
                break
        self._quiet = False

    def _say(self, status: StageStatus) -> None:
        if self._said.get(status.stage) is status.state:
            return
        began = status.state is StageState.ACTIVE and bool(status.evidence)
        if status.state in _SPOKEN or began:
            self._said[status.stage] = status.state
            if not self._quiet:
                output.progress(output.stage_progress(status))


async def until_outcome(
    engine: Engine,
    wanted: str,
    *,
    run_id: str | None,
    deadline: float | None,
    progress: Progress | None,
    since: float | None = None,
) -> tuple[Snapshot, outcome.Outcome]:
    """Wait until `wanted` is reached or can't be any more, or the deadline passes.

    `since`: when the run was asked for, where we did; the run that it replaces may still be shown for a moment.
    Raises: ConsoleError(INTERRUPTED).
    """

    def say(snapshot: Snapshot, *, is_last: bool = False) -> None:
        if progress is not None and (run_id is None or (snapshot.run is not None and snapshot.run.id == run_id)):
            progress.show(snapshot, is_last=is_last)  # not what the run that is being replaced once went through

    def settled(snapshot: Snapshot) -> tuple[Snapshot, outcome.Outcome] | None:
        _raise_lost(snapshot, run_id)
        say(snapshot)
        judged = judge(snapshot, wanted, run_id=run_id, since=since)
        return (snapshot, judged) if judged.settled else None

    def complete(snapshot: Snapshot) -> tuple[Snapshot, outcome.Outcome] | None:
        found = settled(snapshot)
        return None if found is not None and _is_incomplete(*found) else found

    loop = asyncio.get_running_loop()
    found = await engine.until(settled, deadline)
    if found is not None and _is_incomplete(*found):
        patience = loop.time() + (_READ_S if _is_unread(*found) else _PATIENCE_S)
        patience = patience if deadline is None else min(patience, deadline)
        found = await engine.until(complete, patience) or settled(engine.snapshot) or found
        if deadline is not None and loop.time() >= deadline and _is_unread(*found):
            found = (found[0], _unread(found[0]))
    snapshot = engine.snapshot if found is None else found[0]
    say(snapshot, is_last=True)
    return found or (snapshot, judge(snapshot, wanted, run_id=run_id, since=since))


def _raise_lost(snapshot: Snapshot, run_id: str | None) -> None:
    """Raises: ConsoleError(INTERRUPTED) where this restart was lost and the run that it was to replace lives on."""
    lost = snapshot.lost_restart
    if lost is None or lost.id != run_id:
        return
    code = Exit.FAILED_CACHE if lost.stage is Stage.CACHE else Exit.FAILED_KILLING
    data = {"run": lost.name, "id": lost.id, "stage": str(lost.stage)}
    raise ConsoleError(Reason.INTERRUPTED, lost_words(lost), code, data=data)


_PATIENCE_S = 3.0
_READ_S = 60.0  # a log that is being read says more than any exit status: a slow way to it is waited for
_LOOK_MARGIN_S = 0.25  # a look at the log may have taken so long to get here


def _is_cuda_due(snapshot: Snapshot) -> bool:
    """Whether the run steps although no sample of the GPUs has shown its contexts yet: a quick run is ahead of them."""
    cuda, stepping = (
        next(status for status in snapshot.stages if status.stage is stage) for stage in (Stage.CUDA, Stage.STEPPING)
    )
    return stepping.state is StageState.DONE and cuda.state is StageState.UNKNOWN and bool(cuda.want)


def _are_notes_due(snapshot: Snapshot, run: Run) -> bool:
    """Whether the keeper has yet to note when a stage was reached that was seen here a moment ago."""
    return run.keeper_alive is True and any(s.state is StageState.DONE and not s.noted for s in snapshot.stages)


def _is_unread(snapshot: Snapshot, judged: outcome.Outcome) -> bool:
    """Whether a run that is over is called failed before its log was read: it may have made steps."""
    log = snapshot.log
    is_readable = log.lost is None and log.state not in (LogState.NONE, LogState.MISSING, LogState.UNREADABLE)
    return judged.outcome == "failed" and is_readable and not log.caught_up


def _unread(snapshot: Snapshot) -> outcome.Outcome:
    """The time is up, and how far the run came is not known."""
    code, stages = Exit.TIMEOUT, snapshot.stages
    return outcome.Outcome(
        outcome="pending", word="PENDING", where="log_unread", exit_code=code, settled=False, stage=stages[-1]
    )


def _is_incomplete(snapshot: Snapshot, judged: outcome.Outcome) -> bool:
    """Whether more is about to come: what settles an outcome is here before all that proves or explains it.

    A quick run steps before the GPUs were asked again, and before its keeper has noted when; the death is told before
    the log's last lines are read and before the GPUs' memory is seen to be free.
    """
    run, log = snapshot.run, snapshot.log
    killing = next(status for status in snapshot.stages if status.stage is Stage.KILLING)
    if judged.outcome == "reached":
        if run is None or not run.alive:
            return killing.evidence == ALL_GONE
        return _is_cuda_due(snapshot) or _are_notes_due(snapshot, run)
    if run is None or run.exit is None or run.exit.at is None or judged.outcome not in ("failed", "ended"):
        return False
    if log.state in (LogState.NONE, LogState.MISSING, LogState.UNREADABLE):
        return False
    return not log.caught_up or log.at is None or log.at < run.exit.at + _LOOK_MARGIN_S


def judge(snapshot: Snapshot, wanted: str, *, run_id: str | None = None, since: float | None = None) -> outcome.Outcome:
    """Judge as `outcome.judge` does; `step=300` and `checkpoint` go on waiting after the first steps."""
    number = step_of(wanted)
    if number is None and wanted not in ("checkpoint", "steady"):
        return outcome.judge(snapshot, wanted, run_id=run_id, since=since)
    judged = outcome.judge(snapshot, "stepping", run_id=run_id, since=since)
    if judged.word != "OK":
        return judged
    if _is_there(snapshot, wanted, number):
        return msgspec.structs.replace(judged, where=wanted)
    step = snapshot.progress.step
    where = f"step {step}" if number is None else f"step {step}/{number}"
    if wanted == "steady":
        where = f"steady {outcome.towards_steady(snapshot)}"
    return msgspec.structs.replace(
        judged, outcome="pending", word="PENDING", where=where, exit_code=Exit.TIMEOUT, settled=False
    )


def _is_there(snapshot: Snapshot, wanted: str, number: int | None) -> bool:
    """Whether what comes after the first steps has come."""
    progress = snapshot.progress
    if wanted == "steady":
        return outcome.is_steady(snapshot)
    if number is None:
        return progress.checkpoint_step is not None
    return progress.step is not None and progress.step >= number


def step_of(wanted: str) -> int | None:
    """Return N of `step=N`, else None."""
    return int(wanted.removeprefix("step=")) if wanted.startswith("step=") else None


def require_expected(snapshot: Snapshot, expected: str | None) -> None:
    """Refuse when another run than the expected one is there.

    Raises: ConsoleError(UNEXPECTED_RUN), code 4.
    """
    if expected is None:
        return
    run = snapshot.run
    live = run if run and run.alive is not False else None
    names = {live.name, live.id} if live else set()
    if expected not in names:
        raise unexpected(f"expected {expected}", live)


def unexpected(expected: str, there: Run | None) -> ConsoleError:
    """Return the error that names the run that is there instead."""
    if there is None:
        return ConsoleError(Reason.UNEXPECTED_RUN, f"{expected}, found nothing", Exit.LOCKED)
    how = f"id {there.id}" if there.id else "started by hand"
    data = {"run": there.name, "id": there.id}
    return ConsoleError(Reason.UNEXPECTED_RUN, f"{expected}, found {there.name} ({how})", Exit.LOCKED, data=data)


def active_stage(snapshot: Snapshot) -> StageStatus | None:
    """Return the stage that a launch under way is in, or None where none is."""
    for status in snapshot.stages:
        if status.state in (StageState.ACTIVE, StageState.LATE):
            return status
    return None
