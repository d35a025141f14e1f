"""`wait`: until a run has reached a stage, or can't any more."""

from __future__ import annotations

from console.config import Target
from console.headless import follow, output
from console.headless.session import deadline_after, opened, run_async, settled
from console.model import Snapshot
from console.reasons import ConsoleError, Exit, Reason


def run(name: str, target: Target, *, which: str | None, wanted: str, timeout: float | None, as_json: bool) -> int:
    """Carry the command out; return its exit code."""
    try:
        return run_async(_wait(name, target, which, wanted, timeout, as_json=as_json))
    except ConsoleError as error:
        if not as_json:
            raise
        output.emit_json(output.error_json(error, name, wanted=wanted))
        return error.exit_code


async def _wait(
    name: str, target: Target, which: str | None, wanted: str, timeout: float | None, *, as_json: bool
) -> int:
    deadline = deadline_after(timeout)
    async with opened(name, target) as engine:
        snapshot = await settled(engine, deadline)
        run_id = _run_id(snapshot, which)
        found, judged = await follow.until_outcome(
            engine, wanted, run_id=run_id, deadline=deadline, progress=follow.Progress(quiet_before=True)
        )
        return follow.report(engine, found, judged, wanted, as_json=as_json)


def _run_id(snapshot: Snapshot, which: str | None) -> str | None:
    """Return the id that `which` (id or name) means; an id that isn't there is left for the outcome to judge."""
    run = snapshot.run
    if which is None:
        if run is None:
            raise ConsoleError(Reason.NOTHING_RUNS, "no run is known on this target", Exit.NOTHING_RUNS)
        return run.id
    if run and which in (run.id, run.name):
        return run.id
    return which
