"""Requests, replies, events and raw bytes over a real process that plays the agent."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from console.config import Target
from console.link import channel as channel_module
from console.link.agents import closing, open_agent
from console.link.channel import AgentChannel, beat
from console.link.transport import connect
from console.protocol import AgentEvent, LogEvent, LogFollow, LogRead, Ping, Recorder, Warn
from console.reasons import ConsoleError, Exit, Reason
from tests.link.fakeagent import PAYLOAD
from tests.waiting import until_async

Said = list[tuple[AgentEvent, bytes]]


@asynccontextmanager
async def talking(said: Said | None = None) -> AsyncIterator[AgentChannel]:
    """A channel until the block is left; the agent's own end within the block is no error here."""
    heard = said if said is not None else []
    try:
        async with (
            closing(await connect(Target())) as connection,
            open_agent(
                connection,
                Target(python=sys.executable),
                PAYLOAD,
                on_event=lambda event, data: heard.append((event, data)),
                on_held=lambda error: None,
            ) as agent,
        ):
            yield agent.channel
            raise _Over
    except _Over:
        pass


class _Over(Exception):
    pass


async def test_replies_find_who_asked_whatever_their_order() -> None:
    async with talking() as channel:
        answers = await asyncio.gather(*(channel.request(Ping(id=number), 20) for number in range(50)))

        assert [reply.re for reply, _ in answers] == list(range(50))


async def test_raw_bytes_come_whole_and_events_in_between_are_told() -> None:
    said: Said = []
    async with talking(said) as channel:
        reply, data = await channel.request(LogRead(id=1, path="x", offset=0, length=1 << 20), 20)
        again, _ = await channel.request(Ping(id=2), 20)

        assert data == bytes(range(256)) * 4096
        assert reply.data == {"size": 7}
        assert again.ok
        assert said == [(Warn(bt=1.0, reason="before"), b"")]


async def test_log_chunk_carries_its_bytes() -> None:
    said: Said = []
    async with talking(said) as channel:
        await channel.request(LogFollow(id=1, path="/x", offset=0), 20)
        await until_async(lambda: said)

        event, data = said[0]
        assert isinstance(event, LogEvent)
        assert data == b"a\nb\n\n"


async def test_refusal_is_an_error_with_reason_and_exit_code() -> None:
    async with talking() as channel:
        with pytest.raises(ConsoleError) as caught:
            await channel.request(Recorder(id=1, run="any"), 20)

    assert (caught.value.reason, caught.value.exit_code) == (Reason.NOTHING_RUNS, Exit.NOTHING_RUNS)


async def test_no_answer_in_time_is_a_timeout_and_the_channel_goes_on() -> None:
    async with talking() as channel:
        with pytest.raises(ConsoleError) as caught:
            await channel.request(Recorder(id=1, run="silent"), 0.1)
        assert caught.value.reason is Reason.LINK_TIMEOUT

        assert (await channel.request(Ping(id=2), 20))[0].ok


async def test_garbled_lines_are_passed_over() -> None:
    async with talking() as channel:
        assert (await channel.request(Recorder(id=1, run="garble"), 20))[0].ok


async def test_endless_garbage_ends_the_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "_MAX_GARBLED_LINES", 2)
    with pytest.raises(ConsoleError) as caught:
        async with talking() as channel:
            await channel.request(Recorder(id=1, run="garble"), 20)

    assert caught.value.reason is Reason.PROTOCOL


async def test_agent_that_ends_by_itself_is_told_with_status_and_last_words() -> None:
    with pytest.raises(ConsoleError) as caught:
        async with talking() as channel:
            await channel.request(Recorder(id=1, run="die"), 20)

    assert caught.value.reason is Reason.AGENT_ENDED
    assert "status 3" in caught.value.detail
    assert "something broke" in caught.value.detail


async def test_too_much_unsent_refuses_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "MAX_UNSENT_BYTES", 100_000)
    async with talking() as channel:
        # The loop never runs in between, so nothing leaves beyond what the pipe takes.
        with pytest.raises(ConsoleError) as caught:
            _send_much(channel)

    assert caught.value.reason is Reason.LINK_TIMEOUT


async def test_beat_ignores_silence_while_we_were_stopped_ourselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A console that was suspended must not call the link lost before it has read what came in meanwhile."""
    clock = _Clock()
    monkeypatch.setattr(channel_module, "time", clock)
    monkeypatch.setattr(channel_module, "asyncio", clock)
    channel = _QuietChannel(clock)
    clock.at_sleep = lambda number: 3600.0 if number == 0 else 0.0

    with pytest.raises(ConsoleError) as caught:
        await beat(channel, lambda: 1, silence_s=3.5)  # type: ignore[arg-type]

    assert caught.value.reason is Reason.LINK_LOST
    assert clock.now == pytest.approx(1.0 + 3600.0 + 3.5, abs=0.1)


async def test_beat_in_silence_only_leaves_pings_to_what_comes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that flows shows that the link lives; the lease is renewed all the same."""
    clock = _Clock()
    monkeypatch.setattr(channel_module, "time", clock)
    monkeypatch.setattr(channel_module, "asyncio", clock)
    channel = _FlowingChannel(clock, until_s=20.0)

    with pytest.raises(ConsoleError) as caught:
        await beat(channel, lambda: 1, silence_s=3.5, only_in_silence=True)  # type: ignore[arg-type]

    assert caught.value.reason is Reason.LINK_LOST
    assert clock.now == pytest.approx(20.0 + 3.5, abs=0.5)
    flowing = [at for at in channel.pinged if at < 20.0]
    assert len(flowing) in (3, 4)
    assert max(after - before for before, after in pairwise([0.0, *channel.pinged])) <= channel_module.RENEW_S + 1.0
    assert len([at for at in channel.pinged if at >= 20.0]) == 3


def _send_much(channel: AgentChannel) -> None:
    for number in range(1000):
        channel.send(LogFollow(id=number, path="p" * 4000, offset=0))


class _Clock:
    """Stands for `time` and for `asyncio.sleep`; `at_sleep` says how much longer than asked a sleep takes."""

    at_sleep: Callable[[int], float]

    def __init__(self) -> None:
        self.now = 0.0
        self.sleeps = 0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds + self.at_sleep(self.sleeps)
        self.sleeps += 1


class _QuietChannel:
    def __init__(self, clock: _Clock) -> None:
        self.last_word = clock.now

    def post(self, operation: Ping) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()


class _FlowingChannel:
    """Something comes in each fifth of a second, until nothing does any more."""

    def __init__(self, clock: _Clock, until_s: float) -> None:
        self._clock, self._until_s = clock, until_s
        clock.at_sleep = lambda number: 0.0
        self.pinged: list[float] = []

    @property
    def last_word(self) -> float:
        return min(self._clock.now - self._clock.now % 0.2, self._until_s)

    def post(self, operation: Ping) -> asyncio.Future[None]:
        self.pinged.append(self._clock.now)
        return asyncio.get_running_loop().create_future()
