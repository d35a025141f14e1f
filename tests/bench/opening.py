"""Opening a log of any size: until its newest line and the plot of the whole run are painted, and what that takes.

The tenth of the log in its middle has a rate of its own, for which the plot gets a mark of its axis: it is drawn once
the middle is. The same console on a young run, whose log is next to nothing, is what growth is measured against.
"""

from __future__ import annotations

import itertools
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import procstat
from tests.bench.lab import Lab, Started
from tests.bench.stopping import noted
from tests.bench.table import Row
from tests.bench.terminal import Terminal

_NEWEST = r"n=\d+ t="
"""Of the lines that are written when the log has its size: no screen of any program is full of older ones."""
_MIDDLE = "40K ┤"
_BUDGET_S, _BUDGET_BYTES, _BUDGET_RATIO = 0.6, 5e6, 1.3
_FILL_S = 60.0
_PEER_S = 120.0
_REST_S, _REST_SHARE = 0.5, 0.1
"""A program rests once it takes less than this share of a core for so long."""


@dataclass(slots=True)
class _Seen:
    """What was measured of one program, once for each time it was opened."""

    took_s: list[float] = field(default_factory=list)
    """From exec until all was painted."""
    waited_s: list[float] = field(default_factory=list)
    """Of that, after the run's name was painted."""
    cpu_s: list[float] = field(default_factory=list)
    """CPU time until all was painted: what it costs however busy the machine is with other things."""
    rss_bytes: list[float] = field(default_factory=list)
    agents_bytes: list[float] = field(default_factory=list)


@dataclass(slots=True)
class _Opened:
    """One log, opened by all."""

    name: str
    console: _Seen
    tail: _Seen
    peers: dict[str, _Seen]


def of_any_size(lab: Lab) -> list[Row]:
    young = _open(lab, 0, ())
    logs = [_open(lab, size, lab.sizes.viewers) for size in lab.sizes.log_bytes]
    first, rows = logs[0].console, []
    for log in logs:
        ours = log.console
        rows += [
            Row(f"open {log.name}: run's name -> lines and plot", ours.waited_s, budget=_BUDGET_S, judged="p50"),
            Row("  from the start of the console", ours.took_s, "ms", "young run", young.console.took_s),
            Row("  CPU time until then", ours.cpu_s, "ms", "young run", young.console.cpu_s),
            *_beside("  ", ours, {"tail -F": log.tail, **log.peers}),
            _growth("  RSS growth of the console", ours.rss_bytes, young.console.rss_bytes),
            _growth("  RSS growth of its agents", ours.agents_bytes, young.console.agents_bytes),
        ]
    for log in logs[1:]:
        ratio = statistics.median(log.console.took_s) / statistics.median(first.took_s)
        rows.append(
            Row(f"open {log.name} in times of {logs[0].name}", [ratio], "x", budget=_BUDGET_RATIO, judged="p50")
        )
    return rows


def _beside(indent: str, ours: _Seen, others: dict[str, _Seen]) -> list[Row]:
    """Return ours beside those of others, from the start of each."""
    return [
        row
        for name, other in others.items()
        for row in (
            Row(f"{indent}from the start", ours.took_s, "ms", name, other.took_s),
            Row(f"{indent}RSS", ours.rss_bytes, "MB", name, other.rss_bytes),
        )
    ]


def _growth(what: str, values: Sequence[float], young: Sequence[float]) -> Row:
    base = statistics.median(young)
    return Row(what, [max(0.0, value - base) for value in values], "MB", budget=_BUDGET_BYTES, judged="p50")


def _open(lab: Lab, size: int, viewers: Sequence[str]) -> _Opened:
    notes = lab.folder / f"filled-{size}"
    target = lab.writing("--fill-bytes", str(size), "--notes", str(notes))
    started = lab.start(target)
    path = started.run.log_path
    assert path
    _wait_until(lambda: notes.exists() and "filled" in notes.read_text(), _FILL_S)
    _wait_until(lambda: time.monotonic() - noted(notes, "filled") > 1.0, _FILL_S)  # a line of the run has come
    try:
        console, tail = _Seen(), _Seen()
        found = _Opened(f"{size / 1e6:,.0f} MB", console, tail, {})
        for _ in range(lab.sizes.launches):
            _console(lab, lab.console(target, columns=120, rows=36), started, console, has_middle=size > 0)
            _other(["tail", "-n", "50", "-F", path], tail)
        for name, command in _peers(viewers, path).items():
            seen = _Seen()
            try:
                _other(command, seen)
                found.peers[name] = seen
            except TimeoutError:
                print(f"{name} has not shown the end of {found.name} within {_PEER_S:g} s: left out", file=sys.stderr)
        return found
    finally:
        lab.stop(target)
        Path(path).unlink()  # two gigabytes of it, perhaps


def _console(lab: Lab, terminal: Terminal, started: Started, seen: _Seen, *, has_middle: bool) -> None:
    with terminal as screen:
        wanted = [started.run.name, _NEWEST, *([_MIDDLE] if has_middle else [])]
        for pattern in wanted:
            screen.wait_for(pattern)
        seen.cpu_s.append(procstat.cpu_s(screen.pid))
        name_at, *all_at = (screen.first_at(pattern) for pattern in wanted)
        seen.took_s.append(max(all_at) - screen.started)
        seen.waited_s.append(max(0.0, max(all_at) - name_at))
        time.sleep(lab.sizes.settle_s / 4)  # what a start leaves behind in memory for a moment isn't growth
        seen.rss_bytes.append(procstat.rss_bytes(screen.pid))
        agents = [pid for pid, name in procstat.below(lab.server_pid).items() if name == "dflash-agent"]
        seen.agents_bytes.append(sum(map(procstat.rss_bytes, agents)))


def _other(command: list[str], seen: _Seen) -> None:
    """Open the log with another program; it has its size once it has read what it wants to."""
    with Terminal(command, columns=120, rows=36) as screen:
        seen.took_s.append(screen.wait_for(_NEWEST, timeout_s=_PEER_S) - screen.started)
        before = procstat.cpu_s(screen.pid)
        for _ in range(int(_PEER_S / _REST_S)):
            time.sleep(_REST_S)
            now = procstat.cpu_s(screen.pid)
            if now - before < _REST_SHARE * _REST_S:
                break
            before = now
        seen.rss_bytes.append(procstat.rss_bytes(screen.pid))


def _peers(programs: Sequence[str], path: str) -> dict[str, list[str]]:
    """Return the command of each viewer that is here: not dependencies, measured where somebody has installed them."""
    found = {}
    for program in programs:
        beside = Path(sys.executable).with_name(program)
        where = str(beside) if beside.exists() else shutil.which(program)
        if where is None:
            print(f"{program} is not installed: left out", file=sys.stderr)
        else:
            found[program] = [where, path]
    return found


def _wait_until(condition: Callable[[], bool], timeout_s: float) -> None:
    for _ in itertools.repeat(None, int(timeout_s / 0.05)):
        if condition():
            return
        time.sleep(0.05)
    raise TimeoutError("the log was not filled in time")
