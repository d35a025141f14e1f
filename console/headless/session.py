"""One engine for the length of one command, and waiting on its snapshots with a deadline."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from console.config import Target
from console.engine import Engine
from console.headless import interruption
from console.model import LinkState, LogState, Snapshot, StageState
from console.reasons import ConsoleError, Exit, Reason, link_exit_code, reason_of


def operator() -> str:
    """Return who is at the keyboard, as the lock and the records name them."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def origin() -> str:
    """Return where they sit: `jump (pts/3)`."""
    try:
        terminal = os.ttyname(0).removeprefix("/dev/")
    except OSError:
        terminal = "no tty"
    return f"{socket.gethostname()} ({terminal})"


@asynccontextmanager
async def opened(name: str, target: Target, *, ledger: Path | None = None) -> AsyncIterator[Engine]:
    """Run an engine on a target for the length of the block; `ledger`: where runs are noted, if not in the user's own.

    Raises: whatever ended the engine, should it end by itself.
    """
    async with ran(Engine(name, target, operator=operator(), origin=origin(), ledger=ledger)) as engine:
        interruption.standing().engine = engine
        yield engine


@asynccontextmanager
async def ran(engine: Engine) -> AsyncIterator[Engine]:
    """Run this engine for the length of the block. Raises: whatever ended it, should it end by itself."""
    task = asyncio.create_task(engine.run())
    try:
        yield engine
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (failure := task.exception()) is not None:
            raise failure


async def first_word(engine: Engine, deadline: float | None) -> Snapshot:
    """Wait for the host's first full state.

    Raises: ConsoleError of the link when it is refused or fails the first time; TIMEOUT past the deadline.
    """

    def answered(snapshot: Snapshot) -> Snapshot | None:
        link = snapshot.link
        if link.state in (LinkState.REFUSED, LinkState.LOST):
            raise link_error(snapshot)
        return snapshot if engine.has_word else None

    found = await engine.until(answered, deadline)
    if found is None:
        raise ConsoleError(Reason.LINK_TIMEOUT, "the host gave no word in time", Exit.TIMEOUT)
    return found


_PATIENCE_S = 8.0


async def settled(engine: Engine, deadline: float | None) -> Snapshot:
    """Wait until host, processes, GPUs and the log's end have each spoken once, as far as they do within 8 s.

    Raises: as `first_word`.
    """
    await first_word(engine, deadline)
    patience = deadline_after(_PATIENCE_S)
    if deadline is not None and patience is not None:
        patience = min(patience, deadline)
    await engine.until(lambda snapshot: snapshot if _all_have_spoken(snapshot) else None, patience)
    return engine.snapshot


async def can_look(engine: Engine, deadline: float | None) -> None:
    """Wait for the connection through which logs are read, 8 s at most: it comes a moment after the host's first word.

    Where it doesn't come, what is known without it is still true.
    """
    patience = deadline_after(_PATIENCE_S)
    if deadline is not None and patience is not None:
        patience = min(patience, deadline)

    def decided(snapshot: Snapshot) -> bool | None:
        return True if engine.can_look or snapshot.link.state is not LinkState.UP else None

    await engine.until(decided, patience)


def _all_have_spoken(snapshot: Snapshot) -> bool:
    if snapshot.gpus.source == "unknown" or snapshot.ages.process is None or _is_overdue(snapshot):
        return False
    if snapshot.run is None or snapshot.log.state in (LogState.NONE, LogState.MISSING, LogState.EMPTY):
        return True
    return snapshot.log.caught_up


def _is_overdue(snapshot: Snapshot) -> bool:
    """Whether a stage's deadline had passed before we came, and is still to be judged: till then it isn't on track."""
    return any(
        status.state is StageState.ACTIVE
        and status.began_at is not None
        and status.deadline_s is not None
        and snapshot.at - status.began_at > status.deadline_s
        for status in snapshot.stages
    )


def link_error(snapshot: Snapshot) -> ConsoleError:
    """Return the link's failure as an error with its exit code."""
    reason = reason_of(snapshot.link.reason or Reason.LINK_LOST)
    return ConsoleError(reason, snapshot.link.detail, link_exit_code(reason))


def on_terminal() -> bool:
    """Whether a person can be asked: both ends are a terminal. A closed stdin is none."""
    return bool(sys.stdin and sys.stdout and sys.stdin.isatty() and sys.stdout.isatty())


async def typed_line() -> str:
    """Return the next line from the terminal while the link goes on being served.

    No thread: control-c must not have to wait for one that reads.
    """
    readable = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin.fileno(), readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline()


def deadline_after(timeout_s: float | None) -> float | None:
    """Return the loop time at which `timeout_s` from now has passed."""
    return None if timeout_s is None else asyncio.get_running_loop().time() + timeout_s
