"""What became of a run that another one has followed: its own ending, and that it was replaced only where it was.

What the host has on record of it is judged by the code that judges a run that is watched: its recording is set to its
end. Where that tells nothing (its keeper was lost, the host restarted), what the ledger knows is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from msgspec.structs import replace

from console.engine import Engine
from console.engine.replay import Replay, target_of
from console.headless import follow
from console.headless.report import Ending
from console.headless.session import first_word, ran
from console.history.entry import entry, is_launch
from console.history.pastview import past_snapshot
from console.model import Snapshot, Stage, StageState
from console.protocol import RunRecord
from console.reasons import ConsoleError, Exit, Reason
from console.state import outcome


async def ending(
    engine: Engine, found: Snapshot, judged: outcome.Outcome, wanted: str, *, run_id: str | None, deadline: float | None
) -> Ending:
    """Return what is to be reported, in the place of "replaced" what became of that run.

    Raises: ConsoleError; LINK_TIMEOUT past the deadline.
    """
    run = found.run
    if judged.outcome != "replaced" or run_id is None or run is None or run.id == run_id:
        return Ending(engine=engine, snapshot=found, judged=judged)
    left = None if deadline is None else max(0.0, deadline - asyncio.get_running_loop().time())
    try:
        async with asyncio.timeout(left):
            return await _ending(engine, run_id, wanted)
    except TimeoutError as exc:
        raise ConsoleError(Reason.LINK_TIMEOUT, f"what became of {run_id} was not read in time", Exit.TIMEOUT) from exc


async def _ending(engine: Engine, run_id: str, wanted: str) -> Ending:
    await engine.until(lambda _: None if _lives(engine.record_of(run_id)) else True, None)
    record, now = engine.record_of(run_id), engine.snapshot
    if record is not None and (by := replaced_by(record, engine.records)) is not None:
        is_there = now.run is not None and now.run.id == by.id
        return _replaced(now if is_there else past_snapshot(entry(by), now, record=by))
    if record is None or (record.exit is None and record.state != "failed"):
        return await _noted(engine, run_id, record, wanted)
    async with _at_its_end(engine, run_id) as played:
        asked = "exit" if wanted == "free" else wanted  # nothing of it lives, so that nothing of it holds a GPU
        found, judged = await follow.until_outcome(played, asked, run_id=run_id, deadline=None, progress=None)
    judged = replace(judged, where=wanted) if judged.where == asked else judged
    return Ending(engine=played, snapshot=_as_of(now, found), judged=judged, is_earlier=True)


def _lives(record: RunRecord | None) -> bool:
    """Whether something of it is there still, although it is followed already."""
    return record is not None and record.alive is True


def replaced_by(record: RunRecord, others: Iterable[RunRecord]) -> RunRecord | None:
    """Return the run that this one was stopped for; None where it had ended by itself, or was only stopped."""
    if record.exit is not None and not record.exit.by:
        return None
    return next((each for each in others if is_launch(each) and each.replaced_id == record.id), None)


def _replaced(by: Snapshot) -> Ending:
    name = by.run.name if by.run is not None else "?"
    judged = outcome.Outcome(outcome="replaced", word="REPLACED", where=f"by {name}", exit_code=Exit.REPLACED)
    return Ending(engine=None, snapshot=by, judged=judged, is_earlier=True)


@asynccontextmanager
async def _at_its_end(engine: Engine, run_id: str) -> AsyncIterator[Engine]:
    """Play the run's recording at its end, as a console that comes then would see it."""
    tape = await engine.tape_of(run_id)
    player = Replay(tape)
    player.is_paused = True
    player.seek(player.length_s)
    origin, operator = engine.origin, engine.operator
    async with ran(Engine(engine.name, target_of(tape), operator=operator, origin=origin, tape=player)) as played:
        await first_word(played, None)
        yield played


def _as_of(now: Snapshot, found: Snapshot) -> Snapshot:
    """Return the run at its end as it is told now, its times on this console's clock."""
    run, reason, there = found.run, found.reason, now.run
    offset_s = now.link.clock_offset_s or 0.0
    if run is not None and run.exit is not None and run.exit.at is not None:
        run = replace(run, exit=replace(run.exit, at=run.exit.at - offset_s))
    if reason is not None:  # that nothing runs was true then
        safe = f"it is over; {there.name} is there now ({now.verdict})" if there is not None else "it is over"
        reason = replace(reason, safe=safe)
    ages = replace(found.ages, link=now.ages.link)
    return replace(found, at=now.at, link=now.link, ages=ages, run=run, reason=reason)


async def _noted(engine: Engine, run_id: str, record: RunRecord | None, wanted: str) -> Ending:
    """Tell of a run of which the host has no ending what the ledger knows; where that can't be used, its record alone.

    Raises: ConsoleError.
    """
    now = engine.snapshot
    try:
        past = (await engine.view(run_id)).snapshot
    except ConsoleError:
        if record is None:
            raise
        past = past_snapshot(entry(record), now, record=record)
    past = replace(past, at=now.at)
    judged = follow.judge(past, "exit" if wanted == "free" else wanted, run_id=run_id)
    if judged.word == "ENDED" and not any(
        s.state is StageState.DONE and s.stage is Stage.STEPPING for s in past.stages
    ):
        judged = replace(judged, where="unknown")  # nobody has seen a step of it, nor that it made none
    judged = replace(judged, where=wanted) if judged.word == "OK" else judged
    return Ending(engine=None, snapshot=past, judged=judged, is_earlier=True)
