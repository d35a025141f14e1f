"""The SSH way: hop by hop to the target, and processes in its sessions.

Hops are connected one after the other by ourselves, each with its own limits, so that a failure names its hop. A
refused login is tried once; trying again is decided by `link`.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import asyncssh

from console.config import Target
from console.link.errors import lost_link, refused_channel, refused_connection
from console.link.sshoptions import Hop, resolve
from console.link.transport import READ_BYTES, Connection, Ended, Process
from console.reasons import ConsoleError

CONNECT_S = 10.0
LOGIN_S = 10.0
CLOSE_S = 1.0
NARROW_WINDOW_BYTES = 65536  # a flood on a shared connection then delays control by 22 ms, not by 1.2 s


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A hop that let us in."""

    shown: str
    is_jump: bool
    version: str
    """What its server calls itself: `SSH-2.0-OpenSSH_9.2p1`."""
    host_key: str
    """Kind, fingerprint, and where it is known from."""
    connect_s: float
    """Until the connection stood, which is a round trip and what the names cost."""
    login_s: float
    """From then until we were in."""


class _Client(asyncssh.SSHClient):
    """Notes what a failed connection attempt leaves no other trace of."""

    def __init__(self, on_connected: Callable[[], None]) -> None:
        self.connected = False
        self.connected_at = 0.0
        self.refused_key: asyncssh.SSHKey | None = None
        self._on_connected = on_connected

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self.connected = True
        self.connected_at = asyncio.get_running_loop().time()
        self._on_connected()

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.refused_key = key
        return False

    def validate_host_ca_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.refused_key = key
        return False


class SshProcess(Process):
    def __init__(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        self._process = process

    def write(self, data: bytes) -> None:
        try:
            self._process.stdin.write(data)
        except (OSError, asyncssh.Error):
            pass  # its end is told by stdout and the exit status

    @property
    def unsent_bytes(self) -> int:
        return self._process.channel.get_write_buffer_size()

    async def drain(self) -> None:
        try:
            await self._process.stdin.drain()
        except (OSError, asyncssh.Error) as exc:
            raise lost_link(exc) from exc

    async def read(self) -> bytes:
        try:
            return await self._process.stdout.read(READ_BYTES)
        except (OSError, asyncssh.Error) as exc:
            raise lost_link(exc) from exc

    async def read_stderr(self) -> bytes:
        try:
            return await self._process.stderr.read(READ_BYTES)
        except (OSError, asyncssh.Error):
            return b""

    async def wait(self) -> Ended:
        await self._process.wait_closed()
        signal = self._process.exit_signal
        return Ended(signal=signal[0]) if signal else Ended(code=self._process.exit_status)

    async def close(self) -> None:
        self._process.close()


class SshConnection(Connection):
    def __init__(self, hops: tuple[Hop, ...], connections: list[asyncssh.SSHClientConnection]) -> None:
        self._connections = connections
        self.label = " · via ".join([hops[-1].shown, *(hop.shown for hop in hops[:-1])])

    async def open(self, words: Sequence[str], *, narrow: bool = False) -> SshProcess:
        window = {"window": NARROW_WINDOW_BYTES} if narrow else {}
        try:
            process = await self._connections[-1].create_process(
                shlex.join(words), encoding=None, request_pty=False, **window
            )
        except (OSError, asyncssh.Error) as exc:
            raise refused_channel(exc) from exc
        return SshProcess(process)

    async def close(self, *, abruptly: bool = False) -> None:
        for connection in reversed(self._connections):
            await _close(connection, abruptly)


async def connect_ssh(target: Target, on_reached: Callable[[Reached], None] | None = None) -> SshConnection:
    """Connect and log in, through the jump hosts; `on_reached` is told each hop. Raises: ConsoleError with Exit.LINK.

    An error's data names the hop that failed: `hop`, and whether it is a jump host: `is_jump`.
    """
    hops = await asyncio.to_thread(resolve, target)
    connections: list[asyncssh.SSHClientConnection] = []
    try:
        for hop in hops:
            connection, reached = await _connect_hop(hop, connections[-1] if connections else None)
            connections.append(connection)
            if on_reached is not None:
                on_reached(reached)
    except BaseException:
        for connection in reversed(connections):
            await _close(connection, abruptly=True)
        raise
    return SshConnection(hops, connections)


async def _close(connection: asyncssh.SSHClientConnection, abruptly: bool) -> None:
    if not abruptly:
        connection.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await connection.wait_closed()
        except TimeoutError:
            pass
    connection.abort()
    await connection.wait_closed()


async def _connect_hop(
    hop: Hop, tunnel: asyncssh.SSHClientConnection | None
) -> tuple[asyncssh.SSHClientConnection, Reached]:
    loop = asyncio.get_running_loop()
    limit = asyncio.timeout(CONNECT_S)
    client = _Client(lambda: limit.reschedule(loop.time() + LOGIN_S))
    began = loop.time()
    try:
        async with limit:
            connection = await asyncssh.connect(hop.host, tunnel=tunnel, client_factory=lambda: client, **hop.options)
    except ConsoleError:
        raise
    except (OSError, asyncssh.Error, ValueError) as exc:
        raise refused_connection(exc, hop, client.refused_key, client.connected) from exc
    key = connection.get_server_host_key()
    return connection, Reached(
        shown=hop.shown,
        is_jump=hop.is_jump,
        version=str(connection.get_extra_info("server_version", "")),
        host_key=hop.known_hosts.vouches(hop, key) if key is not None else "",
        connect_s=client.connected_at - began,
        login_s=loop.time() - client.connected_at,
    )
