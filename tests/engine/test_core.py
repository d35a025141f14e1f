"""A request whose answer is lost, over a link that is only half dead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from console import protocol
from console.config import Target
from console.engine import Engine, core
from console.model import LinkState, Plan
from console.reasons import ConsoleError, Exit, Reason

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
    assert turns >= 2  # it waits twice, however seldom a busy machine turns the loop


async def test_request_that_is_never_answered_ends_with_what_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Patience(float):
        """Is over once it was asked twice, however long a busy machine takes till then."""

        def __radd__(self, now: float, /) -> Patience:
            return self

        def __lt__(self, now: float, /) -> bool:
            return len(asked) >= 2

    monkeypatch.setattr(core, "_RESEND_WITHIN_S", Patience(1e9))
    engine = Engine("t", Target(), operator="ops1", origin="here")
    _up(engine)

    def silence(_count: int) -> protocol.Reply:
        raise ConsoleError(Reason.LINK_TIMEOUT, "no answer", Exit.LINK)

    asked = _answering(engine, monkeypatch, silence)

    with pytest.raises(ConsoleError, match=r"whether request r-[0-9a-f]+ was taken is not known") as caught:
        await asyncio.wait_for(engine.execute(_PLAN), 20)

    assert caught.value.reason is Reason.LINK_TIMEOUT
    assert len(asked) >= 2
