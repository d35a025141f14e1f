"""Programs on this machine, as our own children."""

from __future__ import annotations

import asyncio
from asyncio import subprocess
from typing import Any

from console.link.tasks import to_its_end

_PIPE_BYTES = 65536
_REAPED_S = 10.0


class _Streams(subprocess.SubprocessStreamProtocol):
    """Leaves no pipe behind where the start is cancelled.

    asyncio then closes the pipes that it has connected by then, and waits forever for those that it connects later:
    these are closed here.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.SubprocessTransport)
        if transport.is_closing():
            for pipe in filter(None, map(transport.get_pipe_transport, range(3))):
                pipe.close()


async def start_child(*words: str, **options: Any) -> tuple[subprocess.Process, asyncio.SubprocessTransport]:
    """Start a program in a session of its own, with pipes at its three streams. `options` are those of Popen.

    The transport's `close` kills the child if it still lives, and closes our ends: `Process.wait` never returns while a
    pipe that nobody reads is full, or while a grandchild holds one open.

    Raises: OSError.
    """
    loop = asyncio.get_running_loop()

    async def start() -> tuple[subprocess.Process, asyncio.SubprocessTransport]:
        transport, protocol = await loop.subprocess_exec(
            lambda: _Streams(_PIPE_BYTES, loop), *words, start_new_session=True, **options
        )
        return subprocess.Process(transport, protocol, loop), transport

    starting = loop.create_task(start())
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await to_its_end(_give_up(starting))
        raise


async def reaped(child: subprocess.Process) -> None:
    """Wait for the end of a child that was killed; not for one that sleeps uninterruptibly, on a file system that is
    gone."""
    try:
        async with asyncio.timeout(_REAPED_S):
            await child.wait()
    except TimeoutError:
        pass


async def _give_up(starting: asyncio.Task[tuple[subprocess.Process, asyncio.SubprocessTransport]]) -> None:
    """Undo a start: asyncio's own clean-up is left by whoever is cancelled once more, and the child with it."""
    if not starting.cancelling():  # as the end of the loop does to all
        starting.cancel()
    try:
        child, transport = await starting
    except (asyncio.CancelledError, OSError):
        return
    transport.close()
    await reaped(child)
