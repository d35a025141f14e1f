"""Talking with an agent that has said hello: requests and their replies, events, raw bytes.

One reader owns stdout; replies go to whoever waits for them, events to the callback, in order. Sending never waits:
what has not left yet is bounded, and beyond the bound a send is refused.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import cache
from typing import NamedTuple, NoReturn

import msgspec
from msgspec import Struct

from console.link.refusals import refused_by_agent
from console.link.streams import LineStream, Tail
from console.link.transport import Ended, Process
from console.protocol import (
    AgentEvent,
    Bye,
    Diagnose,
    Examine,
    Execute,
    LogCount,
    LogCredit,
    LogFiles,
    LogFollow,
    LogLines,
    LogRead,
    LogSample,
    MakePlan,
    Outside,
    Ping,
    Recorder,
    Reply,
    Watch,
)
from console.reasons import ConsoleError, Exit, Reason

log = logging.getLogger(__name__)

Look = LogRead | LogSample | LogLines | LogCount | LogFiles
Operation = Watch | Ping | MakePlan | Execute | LogFollow | Look | Recorder | Examine | Diagnose | Outside
"""What is answered with a Reply; LogCredit and Bye are not."""
Answer = tuple[Reply, bytes]
OnEvent = Callable[[AgentEvent, bytes], None]

MAX_UNSENT_BYTES = 1 << 20  # operations have a few kilobytes: beyond this nothing has left for a long time
MAX_RAW_BYTES = 32 << 20
_MAX_GARBLED_LINES = 100
_BYE_S = 0.3
_ENDED_S = 1.0


class _Head(Struct):
    """What tells the kinds of lines apart."""

    re: int | None = None
    ev: str | None = None
    n: int = 0


class _Decoders(NamedTuple):
    heads: msgspec.json.Decoder[_Head]
    events: msgspec.json.Decoder[AgentEvent]
    replies: msgspec.json.Decoder[Reply]


@cache
def _decoders() -> _Decoders:
    """Made for the first connection: looking at all the types takes 10 ms."""
    return _Decoders(msgspec.json.Decoder(_Head), msgspec.json.Decoder(AgentEvent), msgspec.json.Decoder(Reply))


_encoder = msgspec.json.Encoder()


class AgentChannel:
    def __init__(self, process: Process, stream: LineStream, tail: Tail, on_event: OnEvent) -> None:
        self._process, self._stream, self._tail, self._on_event = process, stream, tail, on_event
        self._decoders = _decoders()
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._ended: ConsoleError | None = None
        self._garbled = 0

    @property
    def last_word(self) -> float:
        """Monotonic time at which anything last came in."""
        return self._stream.last_word

    async def run(self) -> NoReturn:
        """Read until the stream ends. Always raises: link_lost, agent_ended or protocol."""
        try:
            while True:
                await self._take(await self._stream.line())
        except ConsoleError as error:
            self._ended = error
            raise
        finally:
            self._ended = self._ended or ConsoleError(Reason.LINK_LOST, "the link was closed", Exit.LINK)
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(self._ended)
                    future.exception()  # whoever waits still gets it; nobody waiting is no accident worth a log line
            self._waiting.clear()

    def send(self, operation: Operation | LogCredit | Bye) -> None:
        """Queue an operation. Raises: ConsoleError where the channel is over or nothing leaves any more."""
        if self._ended is not None:
            raise ConsoleError(Reason.NO_LINK, self._ended.detail, Exit.LINK)
        if self._process.unsent_bytes > MAX_UNSENT_BYTES:
            detail = f"{self._process.unsent_bytes} bytes wait to be sent"
            raise ConsoleError(Reason.LINK_TIMEOUT, detail, Exit.LINK)
        self._process.write(_encoder.encode(operation) + b"\n")

    def post(self, operation: Operation) -> asyncio.Future[Answer]:
        """Queue an operation and return the future of its answer."""
        self.send(operation)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[operation.id] = future
        future.add_done_callback(lambda _: self._waiting.pop(operation.id, None))
        return future

    async def request(self, operation: Operation, timeout_s: float) -> Answer:
        """Return the agent's answer.

        Raises: ConsoleError: what the agent refused with; link_timeout, link_lost or no_link, after which the outcome
        of the operation is unknown.
        """
        future = self.post(operation)
        try:
            async with asyncio.timeout(timeout_s):
                reply, data = await future
        except TimeoutError as exc:
            detail = f"no answer to {type(operation).__name__} within {timeout_s:g} s"
            raise ConsoleError(Reason.LINK_TIMEOUT, detail, Exit.LINK) from exc
        if not reply.ok:
            raise refused_by_agent(reply)
        return reply, data

    async def bye(self) -> None:
        """Tell the agent to end, as far as that still reaches it."""
        try:
            async with asyncio.timeout(_BYE_S):
                self.send(Bye())
                await self._process.drain()
        except (ConsoleError, TimeoutError):
            pass

    async def _take(self, line: bytes | None) -> None:
        if line is None:
            raise await self._agent_ended()
        try:
            head = self._decoders.heads.decode(line)
            event = self._decoders.events.decode(line) if head.ev is not None else None
            reply = self._decoders.replies.decode(line) if head.re is not None else None
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._complain(line)
            return
        data = await self._raw(head.n)
        if event is not None:
            self._on_event(event, data)
        elif reply is not None:
            self._answer(reply, data)
        else:
            self._complain(line)

    async def _raw(self, count: int) -> bytes:
        if count == 0:
            return b""
        if not 0 < count <= MAX_RAW_BYTES:
            raise ConsoleError(Reason.PROTOCOL, f"{count} raw bytes announced", Exit.ENTRY)
        data = await self._stream.exactly(count)
        if data is None:
            raise await self._agent_ended()
        return data

    def _answer(self, reply: Reply, data: bytes) -> None:
        future = self._waiting.get(reply.re)
        if future is not None and not future.done():
            future.set_result((reply, data))

    def _complain(self, line: bytes) -> None:
        """A line that isn't ours is passed over, in case something printed it; a stream of them ends the channel."""
        self._garbled += 1
        log.warning("not a line of the protocol: %r", line[:200])
        if self._garbled > _MAX_GARBLED_LINES:
            raise ConsoleError(Reason.PROTOCOL, f"not a line of the protocol: {line[:80]!r}", Exit.ENTRY)

    async def _agent_ended(self) -> ConsoleError:
        ended = Ended()
        try:
            async with asyncio.timeout(_ENDED_S):
                ended = await self._process.wait()
        except TimeoutError:
            pass
        tail = tuple(await self._tail.whole())
        said = f": {tail[-1]}" if tail else ""
        return ConsoleError(Reason.AGENT_ENDED, f"the agent {ended}{said}", Exit.ENTRY, tail=tail[-12:])


def pong_times(reply: Reply) -> tuple[float, float] | None:
    """Return the host's (boot time, wall clock) of a Ping's reply."""
    bt, wall = reply.data.get("bt"), reply.data.get("wall")
    return (float(bt), float(wall)) if isinstance(bt, int | float) and isinstance(wall, int | float) else None


async def beat(
    channel: AgentChannel,
    next_id: Callable[[], int],
    *,
    silence_s: float,
    on_pong: Callable[[float, Reply], None] | None = None,
    while_frozen: Callable[[], Awaitable[bool]] | None = None,
    only_in_silence: bool = False,
) -> NoReturn:
    """Ping each second, which also renews the agent's lease, until nothing has come in for `silence_s`.

    `only_in_silence`: what comes in tells as much as the answer to a ping, so none is sent while it does, but for the
    lease. Not where pings measure the round trip.
    `on_pong` gets the round trip in seconds. `while_frozen` waits for as long as the container is known to be frozen,
    and says whether it was. Raises: ConsoleError (link_lost, or container_frozen once it is thawed).
    """
    next_ping = heard_from = time.monotonic()
    renew_at = next_ping + RENEW_S
    while True:
        now = time.monotonic()
        silent_s = now - max(channel.last_word, heard_from)
        if while_frozen is not None and silent_s >= FROZEN_S and await while_frozen():
            raise ConsoleError(Reason.CONTAINER_FROZEN, "it was frozen, and is not any more", Exit.ENTRY)
        if only_in_silence and now < renew_at:
            next_ping = max(next_ping, channel.last_word + PING_S)
        if now >= next_ping:
            _ping(channel, next_id(), on_pong)
            next_ping, renew_at = now + PING_S, now + RENEW_S
        deadline = max(channel.last_word, heard_from) + silence_s
        if now >= deadline:
            raise ConsoleError(Reason.LINK_LOST, f"no word from the host for {silence_s:g} s", Exit.LINK)
        wake = min(next_ping, deadline)
        await asyncio.sleep(wake - now)
        if time.monotonic() - wake > _OVERSLEPT_S:
            # We were stopped ourselves (laptop lid, Ctrl-Z): what the host said meanwhile has not been read yet.
            heard_from = time.monotonic()


PING_S = 1.0
RENEW_S = 5.0
"""At the latest after this an agent is to hear from us: a sixth of the lease of one that watches nothing."""
SILENCE_S = 3.5
"""A silent cut is noticed within 5 s: three pings missed, and half a second. Log that arrives is a word, too."""
FROZEN_S = 1.5
"""Silence after which it is asked whether the container is frozen: a ping missed."""
_OVERSLEPT_S = 1.0


def _ping(channel: AgentChannel, id_: int, on_pong: Callable[[float, Reply], None] | None) -> None:
    sent = time.monotonic()

    def answered(future: asyncio.Future[Answer]) -> None:
        if on_pong is not None and not future.cancelled() and future.exception() is None:
            on_pong(time.monotonic() - sent, future.result()[0])

    channel.post(Ping(id=id_)).add_done_callback(answered)
