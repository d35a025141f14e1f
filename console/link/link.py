"""The link to one target: two connections, supervised, with backoff, and what is said over them.

The owner runs `run`, hears events in order through the callback, and asks through `request`. A Link knows nothing of
runs: after LinkUp the owner says what to watch, after BulkUp which log to follow.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import time
from collections.abc import Callable

from console.config import Target
from console.link import channel, retries
from console.link.agents import Agent, closing, open_agent
from console.link.bulk import Bulk
from console.link.channel import AgentChannel, Operation, beat, pong_times
from console.link.events import AgentSaid, LinkDown, LinkEvent, LinkUp, Rtt
from console.link.outside import OutsideEyes
from console.link.tasks import owned_tasks
from console.link.transport import Connection, connect
from console.protocol import LogCredit, Outside, Reply
from console.reasons import ConsoleError, Exit, Reason

log = logging.getLogger(__name__)

_LABEL_NOISE = {"exec", "--", "sudo", "attach", "env"}


class Link:
    """One target's link. `request` and `bulk_request` may be called by any task of the same loop."""

    def __init__(
        self,
        target_name: str,
        target: Target,
        *,
        payload: Callable[[], bytes],
        on_event: Callable[[LinkEvent], None],
        outside: Callable[[], bytes] | None = None,
    ) -> None:
        """`payload` returns the whole program text that the host's Python execs, entry line included.

        `outside`: the same of the helper on the host itself, where there is to be one.
        """
        self.target_name = target_name
        self.label = describe(target)
        self._target, self._payload, self._on_event = target, payload, on_event
        self._ids = itertools.count(1)
        self._chance = random.Random()
        self._wake = asyncio.Event()
        self._control: AgentChannel | None = None
        self._outside = OutsideEyes(target, outside, self.next_id, on_event) if outside is not None else None
        self._bulk = Bulk(target, payload, self.next_id, on_event, self._outside)
        self._attempt = 0
        self._up_since: float | None = None
        self._has_been_up = False

    async def run(self) -> None:
        """Keep the link up until cancelled; then end both agents and leave nothing behind."""
        while True:
            try:
                await self._serve()
            except ConsoleError as error:
                down = self._down(error)
                log.warning("link to %s down: %s", self.target_name, error)
                self._on_event(down)
                await retries.pause(down.retry_in_s, self._wake)

    def retry_now(self) -> None:
        """End the pause before the next attempt of either connection; without effect on one that is up or tried."""
        self._wake.set()
        self._bulk.retry_now()

    def next_id(self) -> int:
        return next(self._ids)

    @property
    def has_bulk(self) -> bool:
        """Whether the connection for the log is up."""
        return self._bulk.channel is not None

    async def request(self, operation: Operation, timeout_s: float = 10.0) -> Reply:
        """Ask over the control connection. Raises: ConsoleError (see AgentChannel.request; no_link)."""
        reply, _ = await _up(self._control).request(operation, timeout_s)
        return reply

    async def bulk_request(self, operation: Operation, timeout_s: float = 10.0) -> tuple[Reply, bytes]:
        """Ask over the bulk connection, and get the raw bytes that come with the answer."""
        return await _up(self._bulk.channel).request(operation, timeout_s)

    async def raw_request(self, operation: Operation, timeout_s: float) -> tuple[Reply, bytes]:
        """Ask for raw bytes over the bulk connection, or over control where that is down."""
        return await _up(self._bulk.channel or self._control).request(operation, timeout_s)

    def bulk_send(self, operation: LogCredit) -> None:
        """Say something that isn't answered; dropped while bulk is down, since its agent is gone too."""
        if self._bulk.channel is not None:
            try:
                self._bulk.channel.send(operation)
            except ConsoleError:
                pass  # it is about to be taken down

    def outside_send(self, operation: Outside) -> bool:
        """Tell the helper on the host itself what is meant; False where there is none."""
        return self._outside is not None and self._outside.send(operation)

    async def _serve(self) -> None:
        is_up = asyncio.Event()
        try:
            async with closing(await connect(self._target)) as connection, owned_tasks() as tasks:
                # Beside the control agent, which takes 0.2 s to start; where one has failed, only after it.
                bulk = tasks.create_task(self._bulk.supervise(connection, is_up, ahead=self._attempt == 0))
                async with open_agent(
                    connection,
                    self._target,
                    self._payload(),
                    on_event=lambda event, data: self._on_event(AgentSaid(event=event, data=data)),
                    on_held=self._held,
                ) as agent:
                    try:
                        self._came_up(connection, agent)
                        is_up.set()
                        if self._outside is not None:
                            agent.tasks.create_task(self._outside.supervise(connection, self._bulk.has_come))
                        await beat(
                            agent.channel,
                            self.next_id,
                            silence_s=channel.SILENCE_S,
                            on_pong=self._pong,
                            while_frozen=self._while_frozen,
                        )
                    finally:
                        bulk.cancel()  # both agents end at the same time
        finally:
            self._control = None

    def _came_up(self, connection: Connection, agent: Agent) -> None:
        self._control = agent.channel
        self._has_been_up = True
        self._up_since = time.monotonic()
        self.label = describe(self._target, connection.label)
        self._on_event(LinkUp(hello=agent.started.hello, rtt_s=agent.started.rtt_s, label=self.label))

    def _pong(self, rtt_s: float, reply: Reply) -> None:
        if times := pong_times(reply):
            self._on_event(Rtt(rtt_s=rtt_s, bt=times[0], wall=times[1]))

    async def _while_frozen(self) -> bool:
        if self._outside is None:
            return False
        detail = "the host itself says so: its cgroup is frozen"
        return await self._outside.thawed(lambda: self._held(ConsoleError(Reason.CONTAINER_FROZEN, detail, Exit.ENTRY)))

    def _held(self, error: ConsoleError) -> None:
        self._attempt += 1
        self._on_event(
            LinkDown(reason=error.reason, detail=error.detail, attempt=self._attempt, retry_in_s=None, held=True)
        )

    def _down(self, error: ConsoleError) -> LinkDown:
        if self._up_since is not None and time.monotonic() - self._up_since > retries.STABLE_S:
            self._attempt = 0
        self._up_since = None
        self._attempt += 1
        again = retries.is_retried(error, self._has_been_up)
        return LinkDown(
            reason=error.reason,
            detail=error.detail,
            attempt=self._attempt,
            retry_in_s=retries.delay_s(self._attempt, self._chance) if again else None,
            tail=error.tail,
        )


def describe(target: Target, way: str = "") -> str:
    """Return where a target is, in the words of its config, or of `way` once that is known."""
    if not way:
        way = f"{target.user}@{target.host}" if target.user else target.host
        if target.jump:
            way += f" · via {target.jump}"
    inside = " ".join(word for word in target.exec if word not in _LABEL_NOISE and not word.startswith("-"))
    return f"{way} · {inside}" if inside else way


def _up(channel: AgentChannel | None) -> AgentChannel:
    if channel is None:
        raise ConsoleError(Reason.NO_LINK, "there is no connection to the host now", Exit.LINK)
    return channel
