"""The helper on the host itself: a second agent on the control connection, started without the container's prefix.

It is optional, and its failures are its own: they are told as one event, and neither connection ever suffers for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from console.config import Target
from console.link import channel
from console.link.agents import open_agent
from console.link.channel import AgentChannel, beat
from console.link.events import AgentSaid, LinkEvent, OutsideDown, OutsideUp
from console.link.transport import Connection
from console.protocol import AgentEvent, Outside, OutsideEvent
from console.reasons import ConsoleError

log = logging.getLogger(__name__)

AGAIN_S = 60.0
PYTHON = "python3"
"""The configured interpreter is the container's."""


class OutsideEyes:
    """Keeps the helper alive beside a control connection, and knows whether the container is frozen."""

    def __init__(
        self,
        target: Target,
        payload: Callable[[], bytes],
        next_id: Callable[[], int],
        on_event: Callable[[LinkEvent], None],
    ) -> None:
        self._target = msgspec.structs.replace(target, exec=(), python=PYTHON)
        self._payload, self._next_id, self._on_event = payload, next_id, on_event
        self._channel: AgentChannel | None = None
        self._thawed = asyncio.Event()
        self._thawed.set()

    async def supervise(self, control: Connection, settled: asyncio.Event) -> None:
        """Keep a helper alive for as long as `control` lives, once the other agents have got their channels."""
        await settled.wait()
        while True:
            try:
                await self._serve(control)
            except ConsoleError as error:
                log.info("no helper on the host: %s", error)
                self._on_event(OutsideDown(detail=error.detail))
            except Exception as bug:
                log.exception("the helper on the host failed")
                self._on_event(OutsideDown(detail=f"an error of the console itself: {bug}"))
            await asyncio.sleep(AGAIN_S)

    def send(self, operation: Outside) -> bool:
        """Say which container and which pids are meant; False where nobody hears it."""
        if self._channel is None:
            return False
        try:
            self._channel.post(operation)
        except ConsoleError:
            return False
        return True

    async def thawed(self, on_frozen: Callable[[], None]) -> bool:
        """Where the container is frozen say so, wait until it is thawed, and return True.

        False where it isn't frozen, or where the helper itself falls silent meanwhile: then nobody knows.
        """
        if self._thawed.is_set():
            return False
        on_frozen()
        await self._thawed.wait()
        return self._channel is not None

    async def _serve(self, control: Connection) -> None:
        try:
            async with open_agent(
                control,
                self._target,
                self._payload(),
                narrow=True,
                on_event=self._heard,
                on_held=lambda error: log.info("the helper on the host waits: %s", error),
            ) as agent:
                self._channel = agent.channel
                self._on_event(OutsideUp())
                await beat(agent.channel, self._next_id, silence_s=channel.SILENCE_S)
        finally:
            self._channel = None
            self._thawed.set()

    def _heard(self, event: AgentEvent, data: bytes) -> None:
        if isinstance(event, OutsideEvent):
            if event.container is not None and event.container.frozen:
                self._thawed.clear()
            else:
                self._thawed.set()
            self._on_event(AgentSaid(event=event, data=data))
