"""The second connection, for bulk log: its failure alone never takes the control connection down.

A flood on the same TCP stream would delay control by a second; so it has a connection of its own wherever the host
allows that, else a narrow channel beside control, and says so.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from console.config import Target
from console.link import channel, retries
from console.link.agents import closing, open_agent
from console.link.channel import AgentChannel, beat
from console.link.events import AgentSaid, BulkDown, BulkUp, LinkEvent
from console.link.outside import OutsideEyes
from console.link.transport import Connection, connect
from console.reasons import ConsoleError

log = logging.getLogger(__name__)


class Bulk:
    def __init__(
        self,
        target: Target,
        payload: Callable[[], bytes],
        next_id: Callable[[], int],
        on_event: Callable[[LinkEvent], None],
        outside: OutsideEyes | None = None,
    ) -> None:
        """`outside` knows whether the container is frozen: a bulk agent that can't answer isn't given up then."""
        self._outside = outside
        self._target, self._payload, self._next_id, self._on_event = target, payload, next_id, on_event
        self._chance = random.Random()
        self._wake = asyncio.Event()
        self.channel: AgentChannel | None = None
        self.has_come = asyncio.Event()
        """It has been up, so it has got the channel that it needs."""

    async def supervise(self, control: Connection, is_up: asyncio.Event, *, ahead: bool = False) -> None:
        """Keep a bulk agent alive for as long as the control connection `control` lives.

        Nothing is told, and nobody may ask, before the agent on that is up. `ahead` connects without waiting for it.
        """
        if not ahead:
            await is_up.wait()
        why_shared = ""
        attempt = 0
        while True:
            began = time.monotonic()
            try:
                async with self._way(control, is_up, why_shared) as (connection, why_shared):
                    await self._serve(connection, is_up, why_shared)
            except ConsoleError as error:
                await is_up.wait()
                attempt = 1 if time.monotonic() - began > retries.STABLE_S else attempt + 1
                delay = retries.delay_s(attempt, self._chance)
                self._on_event(BulkDown(reason=error.reason, detail=error.detail, retry_in_s=delay))
                await retries.pause(delay, self._wake)

    def retry_now(self) -> None:
        """End the pause before the next attempt; without effect while the connection is up or tried."""
        self._wake.set()

    @asynccontextmanager
    async def _way(
        self, control: Connection, is_up: asyncio.Event, why_shared: str
    ) -> AsyncIterator[tuple[Connection, str]]:
        """Give a connection of our own, or `control` and why: a host that refused once isn't asked again."""
        own = None
        if not why_shared:
            try:
                own = await connect(self._target)
            except ConsoleError as error:
                why_shared = f"no second connection: {error.detail}"
                log.warning("bulk shares the control connection: %s", error)
        if own is None:
            await is_up.wait()  # its own agent comes first
            yield control, why_shared
        else:
            async with closing(own):
                yield own, ""

    async def _serve(self, connection: Connection, is_up: asyncio.Event, why_shared: str) -> None:
        try:
            async with open_agent(
                connection,
                self._target,
                self._payload(),
                narrow=bool(why_shared),
                on_event=lambda event, data: self._on_event(AgentSaid(event=event, data=data)),
                on_held=lambda error: log.warning("bulk waits: %s", error),
            ) as agent:
                await is_up.wait()
                self.channel = agent.channel
                self.has_come.set()
                self._on_event(BulkUp(shared=bool(why_shared), detail=why_shared))
                await beat(
                    agent.channel,
                    self._next_id,
                    silence_s=channel.SILENCE_S,
                    while_frozen=self._while_frozen,
                    only_in_silence=True,
                )
        finally:
            self.channel = None

    async def _while_frozen(self) -> bool:
        return self._outside is not None and await self._outside.thawed(lambda: None)
