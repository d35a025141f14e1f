"""Does the way into the container bring exit statuses back? A shell in there kills itself; its wrapper must say so.

Some wrappers answer 0 whatever happened inside. One attempt only: against a frozen container each one leaves a process
behind that can't even be killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from console.link.streams import Tail
from console.link.tasks import owned_tasks
from console.link.transport import Connection, Ended
from console.reasons import ConsoleError, Exit, Reason

ANSWER_S = 8.0
HOST_ANSWER_S = 5.0
_KILLED = 128 + 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    ended: Ended
    printed: tuple[str, ...]

    @property
    def is_told(self) -> bool:
        """Whether it came back that the shell was killed: as 137 or as a signal."""
        return self.ended.code == _KILLED or self.ended.signal in ("KILL", "9")


async def try_kill(connection: Connection, prefix: Sequence[str]) -> Tried:
    """Run a shell that kills itself behind `prefix`.

    Raises: ConsoleError: container_frozen where the host answers but the way in does not; else the link's own.
    """
    try:
        process = await connection.open([*prefix, "sh", "-c", "kill -9 $$"])
    except ConsoleError as error:
        if "missing" in error.data:  # there is no shell between us and a local program to say so
            return Tried(ended=Ended(code=127), printed=error.tail)
        raise
    try:
        async with owned_tasks() as tasks:
            tail = Tail(process)
            tasks.create_task(tail.drain())
            async with asyncio.timeout(ANSWER_S):
                printed = b""
                while part := await process.read():
                    printed = (printed + part)[-4096:]
                ended = await process.wait()
            lines = [line.strip() for line in printed.decode("utf-8", "replace").splitlines() if line.strip()]
            return Tried(ended=ended, printed=(*lines, *await tail.whole()))
    except TimeoutError as exc:
        raise await _silent(connection, prefix) from exc
    finally:
        await process.close()


async def _silent(connection: Connection, prefix: Sequence[str]) -> ConsoleError:
    if not prefix or not await host_answers(connection):
        return ConsoleError(Reason.LINK_TIMEOUT, f"no shell answered within {ANSWER_S:g} s", Exit.LINK)
    detail = f"{' '.join(prefix)} hangs for {ANSWER_S:g} s while the host itself answers"
    return ConsoleError(Reason.CONTAINER_FROZEN, detail, Exit.ENTRY)


async def host_answers(connection: Connection) -> bool:
    """Whether the host itself, outside of any container, still runs programs for us."""
    try:
        async with asyncio.timeout(HOST_ANSWER_S):
            process = await connection.open(("true",))
            try:
                return (await process.wait()).code == 0
            finally:
                await process.close()
    except TimeoutError:
        return False
    except ConsoleError as error:
        return bool(error.data.get("channel_refused"))  # a refusal is an answer too
