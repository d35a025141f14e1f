"""Being told to end, by control-c, SIGTERM or SIGHUP: a command ends at once, and what it knows by then is said.

Nothing on the host ends with it. A signal that was ignored when we were started (nohup) stays so.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from console.endsignals import handlers
from console.engine import Engine
from console.headless import follow, output
from console.model import Accepted, Snapshot, Verdict
from console.reasons import Interrupted


@dataclass(slots=True)
class Standing:
    """How far the command has come that is carried out."""

    engine: Engine | None = None
    wants: str = ""
    """`restart` or `stop`, where it is more than looking."""
    asked: str = ""
    """`restart` or `stop`, once the host may have been asked for it."""
    accepted: Accepted | None = None
    follow_up: str = ""
    """The command that asks what came of it."""
    answer: int | None = None
    """The exit code, once the result has been printed."""


_STANDING: ContextVar[Standing] = ContextVar("standing")


def standing() -> Standing:
    """Return how far this command has come, to be brought up to date."""
    found = _STANDING.get(None)
    if found is None:
        found = Standing()
        _STANDING.set(found)
    return found


def carried_out(work: Coroutine[Any, Any, int]) -> int:
    """Run a command to its end; return its exit code. Raises: Interrupted, unless its result is out already."""
    known, told = Standing(), list[int]()
    before = handlers()

    async def body() -> int:
        _STANDING.set(known)
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end(number: int) -> None:
            told.append(number)
            task.cancel()

        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                loop.add_signal_handler(number, end, number)
        return await work

    try:
        return asyncio.run(body())
    except asyncio.CancelledError:
        if not told:
            raise
    except KeyboardInterrupt:
        told.append(signal.SIGINT)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if known.answer is not None:
        return known.answer
    raise interrupted(told[0], known)


def interrupted(number: int, known: Standing) -> Interrupted:
    """Return what is to be said, with what is known of the run or of the request."""
    snapshot = known.engine.snapshot if known.engine is not None else None
    data: dict[str, Any] = {"run": None, "id": None}
    if snapshot is not None:
        data = {**output.run_fields(snapshot), "verdict": str(snapshot.verdict), "stage": _stage(snapshot)}
    if known.accepted is not None:
        accepted = known.accepted
        is_there = snapshot is not None and snapshot.run is not None and snapshot.run.id == accepted.run_id
        stage = data.get("stage") if is_there else "killing"
        data |= {"run": accepted.name or None, "id": accepted.run_id, "stage": stage, "next": [known.follow_up]}
        words = f"the {accepted.action} goes on in its keeper: {_named(data)}" + (f" stage={stage}" if stage else "")
        if snapshot is not None and is_there and stage is None and snapshot.verdict is not Verdict.LAUNCHING:
            words = _goes_on(snapshot, data, known)  # its launch is over
        return Interrupted(number, f"{words} | next: {known.follow_up}", data)
    if known.asked:
        return Interrupted(number, f"whether the {known.asked} was taken is not known | next: ask for its status", data)
    untouched = f"nothing was touched, the {known.wants} was not asked for yet; " if known.wants else ""
    return Interrupted(number, f"{untouched}{_goes_on(snapshot, data, known)}", data)


def _goes_on(snapshot: Snapshot | None, data: dict[str, Any], known: Standing) -> str:
    if snapshot is None or snapshot.run is None or known.engine is None or not known.engine.has_word:
        return "the run goes on, if there is one: none was heard of yet"
    step = f" step={snapshot.progress.step}" if snapshot.progress.step is not None else ""
    goes_on = "the run goes on" if snapshot.run.alive is not False else "the run is over"
    return f"{goes_on}: {_named(data)} {snapshot.verdict}{step}"


def _stage(snapshot: Snapshot) -> str | None:
    active = follow.active_stage(snapshot)
    return str(active.stage) if active is not None else None


def _named(data: dict[str, Any]) -> str:
    return " ".join(filter(None, [output.one_line(data["run"] or ""), f"id={data['id']}" if data["id"] else ""]))
