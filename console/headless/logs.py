"""`logs`: the end of the current run's log on stdout, with control characters shown as text."""

from __future__ import annotations

import asyncio

from console.config import Target
from console.engine import Engine
from console.headless import output
from console.headless.session import deadline_after, first_word, opened, run_async
from console.model import LogState, Snapshot
from console.reasons import ConsoleError, Exit, Reason

_ABSENT = {
    LogState.NONE: "no log is known for this run",
    LogState.MISSING: "the log is not there yet",
    LogState.UNREADABLE: "the log can't be read",
}


def run(name: str, target: Target, *, lines: int, follow: bool, timeout: float | None) -> int:
    """Carry the command out; return its exit code."""
    return run_async(_logs(name, target, lines, follow=follow, timeout_s=timeout))


async def _logs(name: str, target: Target, lines: int, *, follow: bool, timeout_s: float | None) -> int:
    deadline = deadline_after(timeout_s)
    async with opened(name, target) as engine:
        await first_word(engine, deadline)
        snapshot = await engine.until(_log_is_known, deadline)
        if snapshot is None:
            raise ConsoleError(Reason.LINK_TIMEOUT, "the log was not read in time", Exit.TIMEOUT)
        if snapshot.run is None:
            raise ConsoleError(Reason.NOTHING_RUNS, "no run is known on this target", Exit.NOTHING_RUNS)
        if snapshot.log.state in _ABSENT and not follow:
            detail = f"{_ABSENT[snapshot.log.state]}: {snapshot.log.path or ''} {snapshot.log.detail}".rstrip(": ")
            raise ConsoleError(Reason.FILE_MISSING, detail, Exit.UNHEALTHY)
        shown = max(engine.log.first, engine.log.end - lines)
        shown = _print_from(engine, shown)
        if not follow:
            return Exit.OK
        return await _follow(engine, shown, deadline)


def _log_is_known(snapshot: Snapshot) -> Snapshot | None:
    """Return the snapshot once the tail of the log (or its absence) has been told."""
    if snapshot.run is None or snapshot.log.state in _ABSENT:
        return snapshot
    return snapshot if snapshot.log.caught_up or snapshot.log.state is LogState.EMPTY else None


def _print_from(engine: Engine, shown: int) -> int:
    for number in range(max(shown, engine.log.first), engine.log.end):
        if (entry := engine.log.line(number)) is not None:
            output.say(entry.text)
    return engine.log.end


async def _follow(engine: Engine, shown: int, deadline: float | None) -> int:
    while True:
        start = shown

        def grew(snapshot: Snapshot, start: int = start) -> Snapshot | None:
            return snapshot if engine.log.end > start else None

        if await engine.until(grew, deadline) is None:
            return Exit.TIMEOUT
        if engine.log.first > shown:
            output.progress(f"{engine.log.first - shown} lines were too many to keep and are left out")
        shown = _print_from(engine, shown)
        await asyncio.sleep(0)
