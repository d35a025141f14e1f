"""`logs --errors`, `--grep`, `--since`, `--run`, `--no-steps`: lines out of the whole file, found on the host.

Lines that were searched for are printed as `PATH:LINE: text`, those around them as `PATH-LINE- text`, as grep does.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from console.bounded import Bounded, TooSlow, bounded
from console.engine import Engine
from console.engine.logreader import is_gone
from console.engine.since import since
from console.engine.unknown import unknown_run
from console.headless import output
from console.reasons import ConsoleError, Exit, Reason
from console.state.linekind import LineKind, classify
from console.state.lines import RawLine
from console.state.logquery import ERRORS, Place, Query, has_signs, typed
from console.state.stretch import Stretch

_RANGE_BYTES = 256 << 10
_CONTEXT_BYTES = 512  # a line has about a hundred; a range is asked for again where that was too little
_MOST_LOOKED_AT_BYTES = 64 << 20
"""For the last lines that are no steps: beyond it what was found is printed."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which lines are asked for; nothing set means all."""

    errors: bool = False
    grep: str | None = None
    since: float | None = None
    """Unix time."""
    run: str | None = None
    no_steps: bool = False
    context: int = 0
    max_bytes: int | None = None

    @property
    def query(self) -> Query | None:
        if self.errors:
            return ERRORS
        return typed(self.grep) if self.grep else None

    @cached_property
    def _bound(self) -> Bounded | None:
        query = self.query
        return bounded(query) if query is not None and not query.errors else None

    def is_found(self, text: str) -> bool:
        """Whether what is searched for is in a line. Raises: ConsoleError(PATTERN_SLOW)."""
        if self._bound is None:
            return self.errors and classify(text) is LineKind.ERROR
        try:
            return self._bound.search(text) is not None
        except TooSlow as exc:
            raise ConsoleError(Reason.PATTERN_SLOW, f"{self.grep}", Exit.REFUSED) from exc

    def takes(self, text: str) -> bool:
        """Whether a line is to be printed, as far as it tells by itself. Raises: ConsoleError(PATTERN_SLOW)."""
        if self.no_steps and classify(text) is LineKind.STEP:
            return False
        return self.query is None or self.is_found(text)


async def print_wanted(engine: Engine, wanted: Wanted, count: int, path: str | None) -> int:
    """Print what is wanted of the current run's log, or of the one of `wanted.run`.

    Raises: ConsoleError.
    """
    place = await _place(engine, wanted, path)
    printer = Printer(place.path, wanted.max_bytes, keeps_first=wanted.errors)
    start = await _start(engine, place, wanted, printer)
    query = wanted.query
    if query is None:
        await _print_last(engine, place, wanted, count, start, printer)
    else:
        await _print_found(engine, place, wanted, query, count, start, printer)
    printer.finish(keeps_start=query is not None)  # where a line was found stands before it
    return Exit.OK


async def _place(engine: Engine, wanted: Wanted, path: str | None) -> Place:
    """Return where the log is that is asked for. Raises: ConsoleError(RUN_UNKNOWN)."""
    run, which = engine.snapshot.run, wanted.run
    if which is None or (run is not None and which in (run.name, run.id)):
        current = path or engine.snapshot.log.path
        return Place(path=current or "", pid=run.pid if run is not None else None)
    known = engine.past_logs.get(which) or await _noted_path(engine, which)
    return Place(path=known) if known else await _guessed(engine, which)


async def _noted_path(engine: Engine, which: str) -> str | None:
    try:
        return await engine.archive.log_of(which)
    except ConsoleError as error:
        output.progress(f"what was noted of earlier runs can't be read: {output.one_line(error.detail)}")
        return None


async def _guessed(engine: Engine, which: str) -> Place:
    """Return where the target's template puts the log of a run of which no path is known: a log may outlive all that
    was noted of its run. Raises: ConsoleError(RUN_UNKNOWN)."""
    place = engine.logs.place_of(engine.past_runs.get(which, which))
    no_log = "" if place is None else f", and no log {place.path}"
    run = engine.snapshot.run
    known = [*([run.name] if run is not None else []), *reversed(engine.past_runs.values())]
    unknown = unknown_run(which, f"{engine.name}{no_log}", known)
    if place is None:
        raise unknown
    if which in engine.past_runs or which in engine.past_runs.values():
        return place
    try:
        await engine.logs.lines(place, -1, 1, back=True)
    except ConsoleError as error:
        if is_gone(error):
            raise unknown from error
        raise
    return place


async def _start(engine: Engine, place: Place, wanted: Wanted, printer: Printer) -> int:
    """Return where begins what was written since the moment that is asked for: by its own dates, else by the keeper's
    notes. Raises: ConsoleError(LOG_UNDATED)."""
    if wanted.since is None:
        return 0

    async def look(offset: int, length: int, back: bool) -> Stretch:
        return await engine.logs.lines(place, offset, length, back=back, align=not back)

    found = await since(look, engine.dated, wanted.since, engine.now())
    if found is not None and found.undated_below_at is None:
        return found.offset
    end = await engine.logs.lines(place, -1, 1, back=True)
    if (run := _run_id(engine, wanted)) is not None:
        noted = await engine.noted_size_at(run, wanted.since, end.size_bytes)
        if noted is not None:
            return noted if found is None else max(noted, found.offset)
    if found is None:
        what = f"the lines of {place.path} bear no dates, and nobody noted when they were written"
        raise ConsoleError(Reason.LOG_UNDATED, what, Exit.REFUSED)
    if found.offset < end.size_bytes:
        at = datetime.fromtimestamp(found.undated_below_at or 0.0, UTC).astimezone()
        printer.notes.append(
            f"the last line with a date is of {at:%Y-%m-%d %H:%M:%S}; how old those below it are is not known"
        )
    return found.offset


def _run_id(engine: Engine, wanted: Wanted) -> str | None:
    """Return the id of the run whose log is meant, where the host still tells of it."""
    run = engine.snapshot.run
    if wanted.run is None or (run is not None and wanted.run in (run.name, run.id)):
        return run.id if run is not None else None
    return next((each for each, name in reversed(engine.past_runs.items()) if wanted.run in (each, name)), None)


class Printer:
    """Prints lines up to a number of bytes, whole ones as far as one fits; says on stderr what was left out.

    The newest lines are kept, which is what the end of a log is read for; of errors the first ones.
    """

    def __init__(self, path: str, max_bytes: int | None, *, keeps_first: bool = False) -> None:
        self._path, self._max_bytes, self._keeps_first = path, max_bytes, keeps_first
        self._kept: deque[str] = deque()
        self._kept_bytes = self._left_out = 0
        self.notes: list[str] = []

    def say(self, text: str) -> None:
        if self._max_bytes is None:
            output.say(text)
        elif self._left_out and self._keeps_first:
            self._left_out += 1
        else:
            self._kept.append(text)
            self._kept_bytes += _size(text)
            self._leave_out(self._max_bytes)

    def _leave_out(self, max_bytes: int) -> None:
        """Give up what doesn't fit; of a single line that doesn't a part is printed in the end."""
        while self._kept_bytes > max_bytes and len(self._kept) > 1:
            gone = self._kept.pop() if self._keeps_first else self._kept.popleft()
            self._left_out, self._kept_bytes = self._left_out + 1, self._kept_bytes - _size(gone)

    def found(self, number: int | None, text: str, *, around: bool) -> None:
        mark = "-" if around else ":"
        where = f"{number}{mark}" if number is not None else ""
        self.say(f"{self._path}{mark}{where} {text}")

    def finish(self, *, keeps_start: bool) -> None:
        """Print what was kept; of one line that is too long by itself its start or its end."""
        if self._max_bytes is not None and self._kept_bytes > self._max_bytes:
            line = self._kept.pop()
            part = _cut(line, self._max_bytes - 1, keeps_start=keeps_start)
            which = "start" if keeps_start else "end"
            self.notes.append(
                f"a line of {_size(line):,} bytes did not fit into --max-bytes: its {which} is printed"
                if part
                else f"not even the {which} of a line of {_size(line):,} bytes fits into --max-bytes"
            )
            self._kept.extend([part] if part else [])
        for line in self._kept:
            output.say(line)
        if self._left_out:
            output.progress(f"{self._left_out} lines more did not fit into --max-bytes")
        for note in self.notes:
            output.progress(note)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace")) + 1


def _cut(text: str, most_bytes: int, *, keeps_start: bool) -> str:
    """Return what fits of a line, whole characters only."""
    data = text.encode("utf-8", "replace")
    part = data[:most_bytes] if keeps_start else data[max(0, len(data) - most_bytes) :]
    return part.decode("utf-8", "ignore")


async def _print_last(engine: Engine, place: Place, wanted: Wanted, count: int, start: int, printer: Printer) -> None:
    """Print the last lines from `start` on, step lines left out where that is wanted."""
    lines: deque[RawLine] = deque()
    offset, looked = -1, 0
    while len(lines) < count and looked < _MOST_LOOKED_AT_BYTES:
        found = await engine.logs.lines(place, offset, _RANGE_BYTES, back=True)
        for line in reversed(found.lines):
            if len(lines) < count and line.offset >= start and wanted.takes(line.text):
                lines.appendleft(line)
        if found.end <= start or found.end in (0, found.begin):
            break
        looked += found.begin - found.end
        offset = found.end
    for line in lines:
        printer.say(line.text)


async def _print_found(
    engine: Engine, place: Place, wanted: Wanted, query: Query, count: int, start: int, printer: Printer
) -> None:
    """Print the first errors, or the last lines that match a pattern, with what stands around them."""
    first: list[tuple[int, int]] = []
    last: deque[tuple[int, int]] = deque(maxlen=max(1, count))
    offset, before, total, is_enough = 0, 0, 0, False
    while True:
        part = await engine.logs.count(place, query, offset)
        places = [(where, before + lines) for where, lines in part.found if where >= start]
        total += len(places) + part.hits - len(part.found)
        first += places[: max(0, count - len(first))]
        last.extend(places)
        before += part.lines
        is_enough = query.errors and len(first) >= count
        if part.to <= offset or is_enough:
            break
        offset = part.to
        if sys.stderr.isatty():
            print(f"\r{100 * offset // max(1, part.size_bytes)} % searched", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    shown = first if query.errors else list(last)[-count:] if count else []
    if not total:
        as_text = f" {query.text} as text: it is no valid expression" if query.literal and has_signs(query.text) else ""
        printer.notes.append(f"no line of {output.one_line(os.fspath(place.path))} matches{output.one_line(as_text)}")
    elif is_enough and total <= len(shown):
        printer.notes.append("there may be more: -n asks for more")
    elif total > len(shown):
        which = "first" if query.errors else "last"
        printer.notes.append(f"{len(shown):,} of {total:,} lines, the {which} ones; -n for more")
    printed = -1
    for where, number in shown:
        printed = await _print_around(engine, place, wanted, where, number, printed, printer)


async def _print_around(
    engine: Engine, place: Place, wanted: Wanted, where: int, number: int, printed: int, printer: Printer
) -> int:
    """Print a hit and its context as far as it isn't printed yet; return the offset up to which all is."""
    context = wanted.context
    length = max(4096, (context + 1) * _CONTEXT_BYTES)
    after = await engine.logs.lines(place, where, length)
    before = (await engine.logs.lines(place, where, length, back=True)).lines[-context:] if context and where else ()
    hit = next((i for i, line in enumerate(after.lines) if wanted.is_found(line.text)), 0)
    shown = [*before, *after.lines[: hit + context + 1]]
    if context and printed >= 0 and shown[0].offset > printed:
        printer.say("--")
    for index, line in enumerate(shown, number + 1 - len(before)):
        if line.offset >= printed:
            printer.found(index, line.text, around=not wanted.is_found(line.text))
    return max(printed, shown[-1].end_offset)
