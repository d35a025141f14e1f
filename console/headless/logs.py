"""`logs`: the end of a log on stdout, or the lines of the whole file that are asked for; control characters as text."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine

from console.config import Target
from console.engine import Engine
from console.headless import output
from console.headless.interruption import carried_out
from console.headless.loglines import Wanted, print_wanted
from console.headless.session import deadline_after, first_word, link_error, opened
from console.model import LinkState, LogState, Snapshot
from console.reasons import ConsoleError, Exit, Reason
from console.state.logbuffer import EntryKind

_ABSENT = {
    LogState.NONE: "no log is known for this run",
    LogState.MISSING: "the log is not there yet",
    LogState.UNREADABLE: "the log can't be read",
}


def run(name: str, target: Target, *, lines: int, follow: bool, timeout: float | None, wanted: Wanted) -> int:
    """Carry the command out; return its exit code."""
    return carried_out(_logs(name, target, lines, follow=follow, timeout_s=timeout, wanted=wanted))


async def _logs(name: str, target: Target, lines: int, *, follow: bool, timeout_s: float | None, wanted: Wanted) -> int:
    deadline = deadline_after(timeout_s)
    async with opened(name, target) as engine:
        await first_word(engine, deadline)
        if wanted.run is not None:
            return await _bounded(print_wanted(engine, wanted, lines, None), deadline, engine)
        snapshot = await engine.until(_log_is_known, deadline)
        if snapshot is None:
            raise ConsoleError(Reason.LINK_TIMEOUT, "the log was not read in time", Exit.TIMEOUT)
        if snapshot.run is None:
            raise ConsoleError(Reason.NOTHING_RUNS, "no run is known on this target", Exit.NOTHING_RUNS)
        if snapshot.log.state in _ABSENT and not follow:
            words = f"{_ABSENT[snapshot.log.state]}: {snapshot.log.path or ''} {snapshot.log.detail}".rstrip(": ")
            print(f"no lines: {output.one_line(words)}", file=sys.stderr)
            return Exit.UNHEALTHY if snapshot.run.alive else Exit.NOTHING_RUNS
        if not follow and wanted != Wanted():
            return await _bounded(print_wanted(engine, wanted, lines, snapshot.log.path), deadline, engine)
        shown = _print_from(engine, _start_of_last(engine, lines), wanted)
        if not follow:
            return Exit.OK
        return await _follow(engine, shown, deadline, wanted)


async def _bounded(work: Coroutine[None, None, int], deadline: float | None, engine: Engine) -> int:
    """Carry it out once the log's connection is there, within the deadline."""
    left = None if deadline is None else max(0.0, deadline - asyncio.get_running_loop().time())
    try:
        async with asyncio.timeout(left):
            await engine.until(lambda _: True if engine.can_look else None, None)
            return await work
    except TimeoutError as exc:
        raise ConsoleError(Reason.LINK_TIMEOUT, "the log was not read in time", Exit.TIMEOUT) from exc
    finally:
        work.close()


def _log_is_known(snapshot: Snapshot) -> Snapshot | None:
    """Return the snapshot once the tail of the log (or its absence) has been told."""
    if snapshot.run is None or snapshot.log.state in _ABSENT:
        return snapshot
    return snapshot if snapshot.log.caught_up or snapshot.log.state is LogState.EMPTY else None


def _start_of_last(engine: Engine, lines: int) -> int:
    """Return the number from which on there are `lines` lines of the log; the console's own marks don't count."""
    number, left = engine.log.end, lines
    while number > engine.log.first and left > 0:
        number -= 1
        entry = engine.log.line(number)
        left -= entry is not None and entry.kind is EntryKind.LINE
    return number


def _print_from(engine: Engine, shown: int, wanted: Wanted) -> int:
    """Print the log's lines; what the console itself has to say of the file goes to stderr."""
    for number in range(max(shown, engine.log.first), engine.log.end):
        entry = engine.log.line(number)
        if entry is None:
            continue
        if entry.kind is EntryKind.LINE:
            if not wanted.takes(entry.text):
                continue
            output.say(entry.text)
        else:
            output.progress(entry.text)
    return engine.log.end


async def _follow(engine: Engine, shown: int, deadline: float | None, wanted: Wanted) -> int:
    link, path = engine.snapshot.link.state, engine.snapshot.log.path
    while True:

        def moved(snapshot: Snapshot, shown: int = shown, link: LinkState = link) -> Snapshot | None:
            return snapshot if engine.log.end > shown or snapshot.link.state is not link else None

        snapshot = await engine.until(moved, deadline)
        if snapshot is None:
            return Exit.TIMEOUT
        if snapshot.link.state is not link:
            link = snapshot.link.state
            if link is LinkState.REFUSED:
                raise link_error(snapshot)
            output.progress(f"link {link}" + (f": {snapshot.link.detail}" if snapshot.link.detail else ""))
        if snapshot.log.path != path:
            path = snapshot.log.path
            output.progress(f"the next run's log: {path}")
        if engine.log.first > shown:
            output.progress(f"{engine.log.first - shown} lines were too many to keep and are left out")
        shown = _print_from(engine, shown, wanted)
        await asyncio.sleep(0)
