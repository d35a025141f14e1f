"""A TCP proxy that lets so many bytes a second through each way, all connections together: a slow line to the host."""

from __future__ import annotations

import asyncio
import socket
import threading

_PIECE_BYTES = 4096
_BUFFER_BYTES = 32 * 1024  # small: what waits in buffers must not be many times the link's own delay


class SlowLink:
    """Listens on `port` in a thread of its own and forwards to 127.0.0.1:`to_port`. A context manager."""

    def __init__(self, to_port: int, bytes_per_s: float) -> None:
        self._to_port, self._bytes_per_s = to_port, bytes_per_s
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._free_at = {"up": 0.0, "down": 0.0}
        self.port = 0
        self.passed_bytes = {"up": 0, "down": 0}

    def __enter__(self) -> SlowLink:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        return self

    def __exit__(self, *exc_info: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _listen(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)  # inherited by what is accepted
        self._server = await asyncio.start_server(self._forward, sock=listener, limit=_BUFFER_BYTES)
        self.port = listener.getsockname()[1]

    async def _end(self) -> None:
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far = socket.socket()
        far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        far.setblocking(False)
        await self._loop.sock_connect(far, ("127.0.0.1", self._to_port))
        far_reader, far_writer = await asyncio.open_connection(sock=far, limit=_BUFFER_BYTES)
        try:
            await asyncio.gather(self._pump("up", reader, far_writer), self._pump("down", far_reader, writer))
        except (OSError, asyncio.CancelledError):
            pass  # one side hung up, or all is over: nothing waits for this task
        finally:
            writer.close()
            far_writer.close()

    async def _pump(self, way: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(_PIECE_BYTES):
            # One queue a way: a piece waits until what was before it, of any connection, has passed.
            now = self._loop.time()
            self._free_at[way] = max(now, self._free_at[way]) + len(piece) / self._bytes_per_s
            await asyncio.sleep(self._free_at[way] - now)
            self.passed_bytes[way] += len(piece)
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
