"""The engine when things go wrong within it: a lost answer, a link that is only half dead, and bugs of our own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from console import protocol
from console.config import Target
from console.engine import Engine, core
from console.link.events import AgentSaid, Rtt
from console.model import LinkState, Plan
from console.reasons import ConsoleError, Exit, Reason
from console.state import machine

_PLAN = Plan(plan_id="p", action="restart", target="t", name="r1", log_path="/log")


def _up(engine: Engine) -> None:
    engine._state = replace(engine._state, link=replace(engine._state.link, state=LinkState.UP))
    engine._snapshot = None


def _answering(engine: Engine, monkeypatch: pytest.MonkeyPatch, answer: Callable[[int], protocol.Reply]) -> list[str]:
    """Have the link answer the n-th request; return the ids that it is asked for."""
    asked: list[str] = []

    async def request(operation: protocol.Execute, timeout_s: float) -> protocol.Reply:
        asked.append(operation.request)
        return answer(len(asked))

    monkeypatch.setattr(engine._link, "request", request)
    return asked


async def test_request_is_sent_again_with_its_id_while_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine("t", Target(), operator="ops1", origin="here")
    _up(engine)  # and it stays so: the agent has died, the link doesn't know yet

    def answer(count: int) -> protocol.Reply:
        if count < 3:
            raise ConsoleError(Reason.NO_LINK, "the agent ended", Exit.LINK)
        return protocol.Reply(re=count, ok=True, data={"run": "r-1", "name": "r1"})

    asked = _answering(engine, monkeypatch, answer)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.01)
            turns += 1

    counting = asyncio.create_task(count_turns())
    accepted = await asyncio.wait_for(engine.execute(_PLAN), 20)
    counting.cancel()

    assert accepted.run_id == "r-1"
    assert (len(asked), len(set(asked))) == (3, 1)
    assert turns >= 10


async def test_request_that_is_never_answered_ends_with_what_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "_RESEND_WITHIN_S", 0.5)
    engine = Engine("t", Target(), operator="ops1", origin="here")
    _up(engine)

    def silence(_count: int) -> protocol.Reply:
        raise ConsoleError(Reason.LINK_TIMEOUT, "no answer", Exit.LINK)

    asked = _answering(engine, monkeypatch, silence)

    began = time.monotonic()
    with pytest.raises(ConsoleError, match=r"whether request r-[0-9a-f]+ was taken is not known") as caught:
        await asyncio.wait_for(engine.execute(_PLAN), 20)

    assert caught.value.reason is Reason.LINK_TIMEOUT
    assert len(asked) >= 2
    assert time.monotonic() - began < 3


async def test_bug_in_a_listener_called_by_a_timer_ends_the_console_with_it() -> None:
    engine = Engine("t", Target(host="local", python="/nonexistent"), operator="ops1", origin="here")

    def broken() -> None:
        raise ZeroDivisionError("a bug of ours")

    engine.on_change.append(broken)
    with pytest.raises(ZeroDivisionError, match="a bug of ours"):
        await asyncio.wait_for(engine.run(), 20)


async def test_bug_in_the_machine_behind_an_answered_ping_ends_the_console_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Engine("t", Target(host="local", python="/nonexistent"), operator="ops1", origin="here")

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug of ours")

    running = asyncio.create_task(engine.run())
    await asyncio.sleep(0)
    monkeypatch.setattr(machine, "step", broken)
    engine._on_link(Rtt(rtt_s=0.1, bt=1.0, wall=1.0))  # raises nothing: its caller is the event loop

    with pytest.raises(ZeroDivisionError):
        await engine.until(lambda _: None, None)
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(running, 20)


async def test_of_runs_of_one_name_the_newest_is_meant_and_an_id_means_its_own() -> None:
    engine = Engine("t", Target(), operator="ops1", origin="here")
    newest_first = tuple(
        protocol.RunRecord(id=f"r-{number}", name="mine", log=protocol.LogIdent(path=f"/w/{number}.log"))
        for number in (3, 2, 1)
    )
    live = protocol.RunRecord(id="r-4", name="other", log=protocol.LogIdent(path="/w/4.log"))

    engine._agent_said(
        AgentSaid(event=protocol.StateEvent(bt=1.0, wall=1.0, run=live, last=newest_first), data=b""), 1.0
    )

    assert engine.past_logs["mine"] == "/w/3.log"
    assert (engine.past_logs["r-1"], engine.past_logs["other"]) == ("/w/1.log", "/w/4.log")
    assert list(engine.past_runs) == ["r-1", "r-2", "r-3"]
