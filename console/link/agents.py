"""An agent for the length of a block: process, bootstrap, reader, and an end that leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from console.config import Target
from console.link import entry
from console.link.bootstrap import Bootstrap, Started
from console.link.channel import AgentChannel, OnEvent
from console.link.streams import LineStream, Tail
from console.link.tasks import owned_tasks
from console.link.transport import Connection, Ended
from console.reasons import ConsoleError, Reason

CLOSE_S = 1.5
GONE = {Reason.LINK_LOST, Reason.LINK_TIMEOUT}
"""After these nobody is there to say goodbye to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    started: Started
    channel: AgentChannel
    tasks: asyncio.TaskGroup
    """For what must end with this agent."""


@asynccontextmanager
async def open_agent(
    connection: Connection,
    target: Target,
    payload: bytes,
    *,
    on_event: OnEvent,
    on_held: Callable[[ConsoleError], None],
    narrow: bool = False,
) -> AsyncIterator[Agent]:
    """Start an agent and read it until the block is left. Raises: ConsoleError, also out of the middle of the block."""
    try:
        process = await connection.open([*target.exec, target.python, "-Iqi"], narrow=narrow)
    except ConsoleError as error:
        if "missing" in error.data:  # there is no shell between us and a local program to complain about it
            raise entry.never_answered(Ended(code=127), error.tail, target.exec, target.python) from error
        raise
    try:
        async with owned_tasks() as tasks:
            stream, tail = LineStream(process), Tail(process)
            readers = [tasks.create_task(tail.drain())]
            bootstrap = Bootstrap(
                connection, process, stream, tail, prefix=target.exec, python=target.python, on_held=on_held
            )
            started = await bootstrap.start(payload)
            channel = AgentChannel(process, stream, tail, on_event)
            readers.append(tasks.create_task(channel.run()))
            try:
                yield Agent(started=started, channel=channel, tasks=tasks)
            except asyncio.CancelledError:
                await channel.bye()
                raise
            await channel.bye()
            for reader in readers:  # nobody wants to hear how the agent ends
                reader.cancel()
    finally:
        await process.close()


@asynccontextmanager
async def closing(connection: Connection) -> AsyncIterator[Connection]:
    """Close `connection` at the end of the block; abruptly where the other side is gone."""
    abruptly = False
    try:
        yield connection
    except ConsoleError as error:
        abruptly = error.reason in GONE
        raise
    finally:
        await connection.close(abruptly=abruptly)
