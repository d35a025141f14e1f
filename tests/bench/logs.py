"""The log: from a line written to a line painted, keys under a flood, the parser, and opening small and big files."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Iterable

from console.config import Metrics
from console.engine import Engine
from console.engine.logflow import LogFlow
from console.protocol import LogEvent
from console.state.logbuffer import LogBuffer
from tests.bench.bench_trainer import text_of
from tests.bench.lab import Lab
from tests.bench.starting import EMPTY_APP
from tests.bench.table import Row
from tests.bench.terminal import Terminal, plain

_SEEN_S = 20.0
"""Two paints with lines in them take no longer, however slow the machine is at the moment."""
_CLOSED_S = 1.0
"""By then a dialog is closed: a key must not reach the one before."""
_TRIES, _ANSWERED_S = 6, 15.0
"""On a busy machine it may not be: a key that has shown nothing for so long is pressed again."""
_MARK = re.compile(rb"n=(\d+) t=(\d+\.\d{6})")
_HELP = "show the plan of a restart"  # of its first row: the last ones may be beyond the dialog


def line_to_paint(lab: Lab) -> list[Row]:
    """A line counts as painted with the first paint that shows it or a later one."""
    target = lab.writing("--lines-per-s", str(lab.sizes.lines_per_s))
    started = lab.start(target)
    assert started.run.log_path
    in_buffer = lab.ask(target, lambda engine: _buffer_delays(engine, lab.sizes.steady_s / 4))
    with lab.console(target, columns=120) as screen:
        screen.wait_for("STEPPING")
        time.sleep(lab.sizes.settle_s / 4)
        first = screen.position
        tail = Terminal(["tail", "-n", "0", "-F", started.run.log_path], columns=120)
        with tail:
            time.sleep(max(1.0, lab.sizes.steady_s / 2))
            deadline = time.monotonic() + _SEEN_S
            while not (painted := _paint_delays(screen, first)) and time.monotonic() < deadline:
                time.sleep(0.2)
        by_tail = _paint_delays(tail, 0)
    lab.stop(target)
    rate = f"{lab.sizes.lines_per_s:,}/s"
    return [
        Row(f"log line written -> in the buffer, {rate}", in_buffer, peer_name="tail -F", peer=by_tail),
        Row(f"log line written -> painted, {rate}", painted, "ms", "tail -F", by_tail, 0.08, "p50"),
    ]


async def _buffer_delays(engine: Engine, seconds: float) -> list[float]:
    delays: list[float] = []
    append = engine.log.append

    def timed(lines: Iterable[object]) -> int:
        now, lines = time.monotonic(), list(lines)
        for line in lines:
            if found := _MARK.search(line.text.encode()):  # type: ignore[attr-defined]
                delays.append(now - float(found[2]))
        return append(lines)  # type: ignore[arg-type]

    await engine.until(lambda now: now if now.log.caught_up else None, None)
    engine.log.append = timed  # type: ignore[method-assign]
    await engine.until(lambda now: None, _loop_time() + max(0.5, seconds))
    await engine.until(lambda now: now if delays else None, _loop_time() + _SEEN_S)
    return delays


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


def _paint_delays(screen: Terminal, start: int) -> list[float]:
    """Return for every line by its number how long it took until it, or a later one, was shown."""
    delays: list[float] = []
    newest, newest_t, before = 0, 0.0, start
    raw = screen.painted()
    for at, end in screen.chunks:
        if end <= start:
            continue
        # What was cut off at the end of the last piece is looked at again with this one.
        found = _MARK.findall(plain(raw[max(start, before - 400) : end]))
        before = end
        last = max(((int(number), float(t)) for number, t in found), default=(0, 0.0))
        if last[0] <= newest:
            continue
        if newest:
            lines = last[0] - newest
            step_s = (last[1] - newest_t) / lines
            delays += [at - (last[1] - step_s * back) for back in range(lines)]
        newest, newest_t = last
    return delays


def key_to_paint(lab: Lab) -> list[Row]:
    target = lab.writing("--lines-per-s", "100", "--bytes-per-s", str(lab.sizes.flood_bytes_per_s))
    lab.start(target)
    opened, moved, bare = [], [], []
    with lab.console(target, rows=40) as screen, Terminal(EMPTY_APP) as empty:
        screen.wait_for("STEPPING|RUNNING")
        empty.wait_for("READY")
        time.sleep(lab.sizes.settle_s / 4)
        for count in range(lab.sizes.presses):
            opened.append(_press(screen, "?", _HELP))
            screen.type("?")
            time.sleep(_CLOSED_S)
            moved.append(_press(screen, "/", "search the whole log"))
            screen.type("\x1b")
            time.sleep(_CLOSED_S)
            bare.append(_press(empty, "?", f"seen {count + 1}"))
    lab.stop(target)
    flood = f"{lab.sizes.flood_bytes_per_s / 1e6:.0f} MB/s"
    return [
        Row(f"key ? -> help painted, log at {flood}", opened, "ms", "empty Textual app", bare, 0.05),
        Row(f"key / -> search box painted, log at {flood}", moved, "ms", "empty Textual app", bare, 0.05),
    ]


def _press(screen: Terminal, key: str, expected: str) -> float:
    wanted = screen.expect(re.escape(expected), screen.position)
    for _ in range(_TRIES):
        began = screen.type(key)
        with contextlib.suppress(TimeoutError):
            return screen.wait(wanted, _ANSWERED_S) - began
    raise TimeoutError(f"{key} was pressed {_TRIES} times, and nothing is seen of {expected!r}")


def parser(lab: Lab) -> list[Row]:
    lines = [text_of(step, step) for step in range(1, lab.sizes.parsed_lines + 1)]
    data = "".join(lines).encode()
    steps = _lines_per_s(data)
    other = _lines_per_s((b"INFO worker 3: prefetched batch, queue depth 12 of 16, waited 0.3 ms\n") * len(lines))
    began = time.perf_counter()
    split = data.decode().splitlines()
    limit = len(split) / (time.perf_counter() - began)
    return [
        Row("step lines parsed a second", [steps], "", "decode + splitlines", [limit]),
        Row("other lines parsed a second", [other], "", "decode + splitlines", [limit]),
    ]


def _lines_per_s(data: bytes) -> float:
    """Feed a log as the bulk connection would, in chunks of 64 KiB, into everything that reads it."""
    flow = LogFlow(Metrics(), LogBuffer(), {})
    flow.begin("log", None)
    chunk = 64 * 1024
    began = time.perf_counter()
    for offset in range(0, len(data), chunk):
        piece = data[offset : offset + chunk]
        event = LogEvent(bt=0.0, state="following", offset=offset, size=offset + len(piece), path="log", n=len(piece))
        flow.take(event, piece, lambda _: 0.0, 0.0)
    return data.count(b"\n") / (time.perf_counter() - began)
