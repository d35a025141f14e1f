"""`wait`: until a run has reached a stage, or can't any more."""

from __future__ import annotations

import asyncio

from console.config import Target
from console.engine import Engine
from console.headless import follow
from console.headless.session import deadline_after, opened, settled
from console.reasons import ConsoleError, Exit, Reason


def run(name: str, target: Target, *, which: str | None, wanted: str, timeout: float | None, as_json: bool) -> int:
    """Carry the command out; return its exit code."""
    return asyncio.run(_wait(name, target, which, wanted, timeout, as_json=as_json))


async def _wait(
    name: str, target: Target, which: str | None, wanted: str, timeout: float | None, *, as_json: bool
) -> int:
    deadline = deadline_after(timeout)
    async with opened(name, target) as engine:
        await settled(engine, deadline)
        run_id = _run_id(engine, which)
        found, judged = await follow.until_outcome(
            engine, wanted, run_id=run_id, deadline=deadline, progress=follow.Progress(quiet_before=True)
        )
        return follow.report(engine, found, judged, wanted, as_json=as_json)


def _run_id(engine: Engine, which: str | None) -> str | None:
    """Return the id that `which` (an id, a name, or None for the run that is there) means.

    Raises: ConsoleError; UNEXPECTED_RUN for a run that this target has never heard of: it was not replaced.
    """
    run = engine.snapshot.run
    if which is None:
        if run is None:
            raise ConsoleError(Reason.NOTHING_RUNS, "no run is known on this target", Exit.NOTHING_RUNS)
        return run.id
    if run and which in (run.id, run.name):
        return run.id
    past = next((each for each, name in engine.past_runs.items() if which in (each, name)), None)
    if past is None:
        raise follow.unexpected(f"no run {which} is known on this target", run)
    return past
