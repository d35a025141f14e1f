"""Programs on this machine, as our own children."""

from __future__ import annotations

import asyncio
from asyncio import subprocess
from typing import Any

_PIPE_BYTES = 65536


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
    transport, protocol = await loop.subprocess_exec(
        lambda: _Streams(_PIPE_BYTES, loop), *words, start_new_session=True, **options
    )
    return subprocess.Process(transport, protocol, loop), transport
