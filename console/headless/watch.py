"""`watch`: what happens on a target as NDJSON: first the snapshot, then events, a heartbeat while nothing happens.

Silence for longer than a heartbeat therefore means that the watcher is dead. Where the last watch stopped is noted, so
that `--after SEQ` tells what has happened meanwhile as far as it left traces; else a `gap` says that it doesn't.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterable
from typing import Any

from console.config import Target
from console.endsignals import handlers
from console.engine import Engine
from console.headless import output, store
from console.headless.interruption import carried_out
from console.headless.session import deadline_after, opened, settled
from console.headless.status import status_json
from console.model import Snapshot, StageState, Verdict
from console.reasons import ConsoleError, Exit
from console.state.happenings import happenings

HEARTBEAT_S = 5.0
_LOOK_S = 0.25
UNTIL = ("stepping", "cuda", "spawned", "failed", "ended", "stalled", "free")
_ENDED = frozenset(
    {Verdict.ENDED, Verdict.FINISHED, Verdict.STOPPED, Verdict.HOST_RESTARTED, Verdict.FAILED, Verdict.INTERRUPTED}
)
_FAILED = frozenset({Verdict.FAILED, Verdict.INTERRUPTED})
_STAGES = ("spawned", "cuda", "stepping")


def run(
    name: str, target: Target, *, until: tuple[str, ...], for_s: float | None, after: int | None, every_s: float
) -> int:
    """Carry the command out; return its exit code."""
    return carried_out(_watch(name, target, until, for_s, after, every_s))


class Stream:
    """Writes the events, each with its number; remembers when something was said last."""

    def __init__(self, target: str, after: int | None) -> None:
        self._target, self._next = target, (after or 0) + 1
        self.said_at = float("-inf")

    @property
    def last(self) -> int:
        return self._next - 1

    def say(self, kind: str, snapshot: Snapshot, fields: dict[str, Any], at: float | None = None) -> None:
        run = snapshot.run
        known: dict[str, Any] = {
            "seq": self._next,
            "type": kind,
            "target": self._target,
            "run": run.name if run is not None else None,
            "id": run.id if run is not None else None,
        }
        output.emit_json({**known, **fields, "at": output.utc(snapshot.at if at is None else at)})
        self._next += 1
        self.said_at = asyncio.get_running_loop().time()


class _ToldToEnd:
    """That a signal has told the watch to end, and which; one that was ignored before we came stays so."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._came = asyncio.Event()
        for number, handler in handlers(signal.SIGTERM, signal.SIGHUP, signal.SIGINT).items():
            if handler is not signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(number, self._tell, number)

    def _tell(self, number: int) -> None:
        self.number = self.number or number
        self._came.set()

    async def or_done(self, work: Coroutine[Any, Any, object]) -> None:
        """Return when the work is done, or given up because a signal came. Raises: what the work raises."""
        tasks = [asyncio.create_task(work), asyncio.create_task(self._came.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if not tasks[0].cancelled():
            tasks[0].result()


async def _watch(
    name: str, target: Target, until: tuple[str, ...], for_s: float | None, after: int | None, every_s: float
) -> int:
    deadline, told_to_end = deadline_after(for_s), _ToldToEnd()
    stream = Stream(name, after)
    async with opened(name, target) as engine:
        try:
            await told_to_end.or_done(settled(engine, deadline))
        except ConsoleError as error:
            fields: dict[str, Any] = {"why": "link", "reason": str(error.reason), "detail": error.detail}
            stream.say("end", engine.snapshot, {**fields, "exit_code": int(error.exit_code), "resume": None})
            return error.exit_code
        snapshot = engine.snapshot
        _resumed(stream, snapshot, after)
        stream.say("snapshot", snapshot, status_json(snapshot))
        why, code, last = await _follow(engine, stream, until, deadline, told_to_end, every_s)
        end = stream.last + 1
        fields = {"why": why, "exit_code": int(code), "resume": f"--after {end}"}
        if (failure := store.save_watch(name, end, last)) is not None:
            fields |= {"resume": None, "resume_why": f"where this watch ended can't be noted: {failure}"}
        stream.say("end", last, fields)
        return code


def _resumed(stream: Stream, now: Snapshot, after: int | None) -> None:
    """Tell what has happened since the watch that ended with this number; or that it can't be told."""
    if after is None:
        return
    noted = store.load_watch(now.target)
    if noted is None or noted.seq != after:
        why = "no watch that ended with this seq is known here: what happened since is not told"
        stream.say("gap", now, {"n": None, "why": why})
        return
    _tell(stream, noted.snapshot, now)
    stream.say("gap", now, {"n": None, "why": "nobody watched: only what left traces was told", "from_seq": after})


def _tell(stream: Stream, before: Snapshot, now: Snapshot) -> None:
    for each in happenings(before, now):
        stream.say(str(each.kind), now, {**each.fields, "text": each.text, "severity": str(each.severity)}, each.at)


async def _follow(
    engine: Engine,
    stream: Stream,
    until: tuple[str, ...],
    deadline: float | None,
    told_to_end: _ToldToEnd,
    every_s: float,
) -> tuple[str, int, Snapshot]:
    """Tell what happens until something ends it; return why, the exit code and the last snapshot."""
    loop, before = asyncio.get_running_loop(), engine.snapshot
    step, step_at = before.progress.step, float("-inf")
    while True:
        now = engine.snapshot
        _tell(stream, before, now)
        before = now
        if now.progress.step != step and loop.time() - step_at >= every_s and now.progress.step is not None:
            step, step_at = now.progress.step, loop.time()
            rate, progress = now.progress.rate, now.progress
            fields = {"step": step, "loss": progress.loss, "loss_state": progress.loss_state, "tok_s": rate.now}
            stream.say("step", now, fields)
        if (reached := _reached(now, until)) is not None:
            return (*reached, now)
        if told_to_end.number is not None:
            return "signal", 128 + told_to_end.number, now
        if deadline is not None and loop.time() >= deadline:
            return "for", Exit.TIMEOUT, now
        if loop.time() - stream.said_at >= HEARTBEAT_S:
            ages = now.ages
            known = {"link": ages.link, "log": ages.log, "gpu": ages.gpu}
            rounded = {name: output.rounded(age) for name, age in known.items()}
            stream.say("heartbeat", now, {"verdict": str(now.verdict), "age_s": rounded})
        await _pause(engine, told_to_end)


async def _pause(engine: Engine, told_to_end: _ToldToEnd) -> None:
    """Wait a moment. Raises: the bug that ended the engine."""
    until = asyncio.get_running_loop().time() + _LOOK_S
    await engine.until(lambda _: True if told_to_end.number is not None else None, until)


def _reached(now: Snapshot, until: Iterable[str]) -> tuple[str, int] | None:
    """Return the condition that holds and the exit code: 0 for what was hoped for, as `wait` has it for the rest."""
    for word in until:
        if word in _STAGES and now.verdict not in _ENDED:
            status = next(each for each in now.stages if each.stage == word)
            if status.state is StageState.DONE:
                return word, Exit.OK
        if word == "failed" and now.verdict in _FAILED:
            failed = next((i for i, each in enumerate(now.stages) if each.state is StageState.FAILED), 2)
            return word, (Exit.FAILED_KILLING, Exit.FAILED_CACHE, Exit.FAILED_SPAWNED, Exit.FAILED_CUDA,
                          Exit.FAILED_STEPPING)[failed]  # fmt: skip
        if word == "ended" and now.verdict in _ENDED:
            return word, Exit.OK if now.verdict is Verdict.FINISHED else Exit.ENDED
        if word == "stalled" and now.verdict is Verdict.STALLED:
            return word, Exit.UNHEALTHY
        if word == "free" and now.verdict in _ENDED | {Verdict.IDLE} and (now.run is None or now.run.alive is False):
            return word, Exit.OK
    return None
