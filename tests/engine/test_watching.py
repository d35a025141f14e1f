"""What the host says of its runs, and bugs of our own: none of them may leave a console half-dead."""

from __future__ import annotations

import asyncio

import pytest

from console import protocol
from console.config import Target
from console.engine import Engine
from console.link.events import AgentSaid, Rtt
from console.state import machine


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


async def test_who_waits_for_news_can_be_ended_at_the_very_moment_that_some_come() -> None:
    engine = Engine("t", Target(host="local", python="/nonexistent"), operator="ops1", origin="here")
    waiting = asyncio.create_task(engine.until(lambda _: None, None))
    for _ in range(3):
        await asyncio.sleep(0)

    engine._changed.set()
    await asyncio.sleep(0)
    waiting.cancel()
    done, _ = await asyncio.wait([waiting], timeout=20)

    waiting.cancel()
    assert done
    assert waiting.cancelled()
