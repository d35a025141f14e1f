"""SSH servers on loopback in this process, with real shells behind them, and a wire that can fall silent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

from console.link.children import start_child

LOOPBACK = "127.0.0.1"


@dataclass
class SshServer:
    """One server. What it saw is in the lists; what it allows can be changed while it runs."""

    key: asyncssh.SSHKey
    authorized: Path
    env: dict[str, str]
    shell: Sequence[str] = ("/bin/sh", "-c")
    banner: str = ""
    forwards: bool = True
    max_connections: int | None = None
    max_sessions: int | None = None
    stuck: Sequence[str] = ()
    """Command lines that contain one of these never answer."""
    port: int = 0
    connections: list[asyncssh.SSHServerConnection] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    children: list[asyncio.subprocess.Process] = field(default_factory=list)
    forwarded: list[tuple[str, int]] = field(default_factory=list)
    _runs: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def alive(self) -> list[asyncio.subprocess.Process]:
        return [child for child in self.children if child.returncode is None]

    @property
    def open_connections(self) -> list[asyncssh.SSHServerConnection]:
        return [connection for connection in self.connections if not connection.is_closed()]

    def known_hosts_line(self, host: str = LOOPBACK) -> str:
        return f"[{host}]:{self.port} {self.key.export_public_key().decode('ascii')}"

    async def run(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        command = process.command or ""
        self.commands.append(command)
        run = asyncio.current_task()
        assert run is not None
        self._runs.add(run)
        run.add_done_callback(self._runs.discard)
        if any(word in command for word in self.stuck):
            await process.channel.wait_closed()
            return
        child, transport = await start_child(*self.shell, command, env=self.env)
        self.children.append(child)
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        feed = asyncio.create_task(_pump(process.stdin, child.stdin))
        try:
            await asyncio.gather(_pump(child.stdout, process.stdout), _pump(child.stderr, process.stderr))
            code = await child.wait()
            process.exit(code if code >= 0 else 128 - code)
        finally:
            feed.cancel()
            transport.close()  # also while a grandchild holds the other end of a pipe
        await asyncio.gather(feed, return_exceptions=True)

    async def end(self) -> None:
        """End every command that runs, also one that is only just starting."""
        runs = list(self._runs)
        for run in runs:
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)
        for child in self.children:
            await child.wait()


async def _pump(source: Any, sink: Any) -> None:
    """Copy until the end or until either side is gone; then end the sink, as sshd does."""
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    except (OSError, asyncssh.Error):
        pass
    if isinstance(sink, asyncio.StreamWriter):
        sink.close()


class _Server(asyncssh.SSHServer):
    def __init__(self, owner: SshServer) -> None:
        self._owner = owner
        self._sessions = 0

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._owner.connections.append(conn)
        self._connection = conn
        limit = self._owner.max_connections
        if limit is not None and len(self._owner.open_connections) > limit:
            conn.abort()

    def begin_auth(self, username: str) -> bool:
        self._owner.logins.append(username)
        if self._owner.banner:
            self._connection.send_auth_banner(self._owner.banner)
        return True

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        self._owner.forwarded.append((dest_host, dest_port))
        if not self._owner.forwards:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "open failed")
        return True

    def session_requested(self) -> asyncssh.SSHServerProcess[bytes]:
        self._sessions += 1
        limit = self._owner.max_sessions
        if limit is not None and self._sessions > limit:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "open failed")
        return asyncssh.SSHServerProcess(self._owner.run, None, 3, False)


@asynccontextmanager
async def serving(server: SshServer) -> AsyncIterator[SshServer]:
    acceptor = await asyncssh.listen(
        LOOPBACK,
        server.port,
        server_factory=lambda: _Server(server),
        server_host_keys=[server.key],
        authorized_client_keys=str(server.authorized),
        encoding=None,
        gss_host=None,
        login_timeout=60,
    )
    server.port = acceptor.get_port()
    try:
        yield server
    finally:
        acceptor.close()
        await acceptor.wait_closed()
        for connection in server.connections:
            connection.abort()
            await connection.wait_closed()
        await server.end()


@dataclass
class Wire:
    """A TCP forwarder. `freeze` stops forwarding without closing anything, as a pulled cable does."""

    target_port: int
    port: int = 0
    frozen: bool = False
    _writers: list[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _thawed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def count(self) -> int:
        return len(self._writers)

    def freeze(self) -> None:
        self.frozen = True
        self._thawed.clear()

    def thaw(self) -> None:
        self.frozen = False
        self._thawed.set()

    def cut(self, index: int) -> None:
        """Reset one connection, by the order in which they came."""
        for writer in self._writers[index]:
            writer.transport.abort()

    def cut_all(self) -> None:
        for index in range(len(self._writers)):
            self.cut(index)

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(LOOPBACK, self.target_port)
        self._writers.append((writer, back))
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                if self.frozen:
                    await self._thawed.wait()
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.close()

    async def end(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.cut_all()


@asynccontextmanager
async def wired(target_port: int) -> AsyncIterator[Wire]:
    wire = Wire(target_port)
    server = await asyncio.start_server(wire.accept, LOOPBACK, 0)
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        server.close()
        await wire.end()
        await server.wait_closed()


def clean_env(home: Path, **extra: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), **extra}
