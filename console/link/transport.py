"""Ways to run a program elsewhere: one interface, and the local way without SSH.

A Connection opens Processes; what is said to them is not known here. The SSH way is `ssh`, imported only when needed,
since asyncssh takes 0.2 s to import. Foreign exceptions never leave a transport: they arrive as ConsoleError.
"""

from __future__ import annotations

import abc
import asyncio
from asyncio import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from console.config import Target
from console.link.children import reaped, start_child
from console.link.tasks import to_its_end
from console.reasons import ConsoleError, Exit, Reason

READ_BYTES = 65536
CLOSE_S = 1.0  # a local agent that reads EOF ends in milliseconds; beyond this it is killed


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a process ended; both None where nobody can say (the link was lost): unknown, never success."""

    code: int | None = None
    signal: str | None = None

    def __str__(self) -> str:
        if self.signal is not None:
            return f"ended by signal {self.signal}"
        return "ended, how is not known" if self.code is None else f"ended with status {self.code}"


class Process(abc.ABC):
    """One running program with its three streams."""

    @abc.abstractmethod
    def write(self, data: bytes) -> None:
        """Queue `data` for stdin without waiting; `unsent_bytes` tells how much has not left yet."""

    @property
    @abc.abstractmethod
    def unsent_bytes(self) -> int: ...

    @abc.abstractmethod
    async def drain(self) -> None:
        """Wait until the queue is short again. Raises: ConsoleError (link_lost)."""

    @abc.abstractmethod
    async def read(self) -> bytes:
        """Return the next bytes of stdout, b"" at its end. Raises: ConsoleError (link_lost)."""

    @abc.abstractmethod
    async def read_stderr(self) -> bytes:
        """Return the next bytes of stderr, b"" at its end or when the link is lost."""

    @abc.abstractmethod
    async def wait(self) -> Ended: ...

    @abc.abstractmethod
    async def close(self) -> None:
        """End stdin and let go of the process; a local one that goes on is killed."""


class Connection(abc.ABC):
    """A way to one machine, already logged in."""

    label: str
    """Where it leads, as resolved: `root@10.1.2.6 · via ops@jump`."""

    @abc.abstractmethod
    async def open(self, words: Sequence[str], *, narrow: bool = False) -> Process:
        """Start a program by its words; `narrow` keeps the window small for a channel that shares its connection."""

    @abc.abstractmethod
    async def close(self, *, abruptly: bool = False) -> None:
        """End all its processes and let go; `abruptly` waits for nobody (the other side no longer answers)."""


async def connect(target: Target) -> Connection:
    """Open a connection to the machine of `target`. Raises: ConsoleError with Exit.LINK."""
    if target.host == "local":
        return LocalConnection()
    from console.link.ssh import connect_ssh

    return await connect_ssh(target)


class LocalProcess(Process):
    def __init__(self, child: subprocess.Process, transport: asyncio.SubprocessTransport) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        self._transport = transport
        self._child, self._stdin, self._stdout, self._stderr = child, child.stdin, child.stdout, child.stderr

    @property
    def pid(self) -> int:
        return self._child.pid

    def write(self, data: bytes) -> None:
        if not self._stdin.is_closing():
            self._stdin.write(data)

    @property
    def unsent_bytes(self) -> int:
        return self._stdin.transport.get_write_buffer_size()

    async def drain(self) -> None:
        try:
            await self._stdin.drain()
        except OSError:
            pass  # its end is told by stdout and the exit status

    async def read(self) -> bytes:
        return await self._stdout.read(READ_BYTES)

    async def read_stderr(self) -> bytes:
        return await self._stderr.read(READ_BYTES)

    async def wait(self) -> Ended:
        code = await self._child.wait()
        return Ended(code=code) if code >= 0 else Ended(signal=str(-code))

    async def close(self) -> None:
        self._stdin.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._child.wait()
        except TimeoutError:
            pass
        finally:
            self.kill()
            await to_its_end(reaped(self._child))

    def kill(self) -> None:
        """Kill the child if it still lives, and close our ends: `wait` never returns while a pipe that nobody reads is
        full, or while a grandchild holds one open."""
        self._transport.close()


class LocalConnection(Connection):
    """Programs on this machine, as our own children."""

    def __init__(self) -> None:
        self.label = "local"
        self._processes: list[LocalProcess] = []

    async def open(self, words: Sequence[str], *, narrow: bool = False) -> LocalProcess:
        try:
            # A session of its own: Ctrl-C in the console's terminal is not meant for the agent.
            child, transport = await start_child(*words)
        except FileNotFoundError as exc:
            detail = f"{words[0]}: No such file or directory"
            raise ConsoleError(
                Reason.BOOTSTRAP_FAILED, detail, Exit.ENTRY, tail=(detail,), data={"missing": words[0]}
            ) from exc
        except OSError as exc:
            detail = f"{words[0]} can't be started: {exc.strerror or exc}"
            raise ConsoleError(Reason.BOOTSTRAP_FAILED, detail, Exit.ENTRY) from exc
        process = LocalProcess(child, transport)
        self._processes.append(process)
        return process

    async def close(self, *, abruptly: bool = False) -> None:
        while self._processes:
            process = self._processes.pop()
            if abruptly:
                process.kill()
            await process.close()
