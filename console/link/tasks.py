"""A TaskGroup whose failure is one exception, not a group: what the code around it can act on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

from console.reasons import ConsoleError


@asynccontextmanager
async def owned_tasks() -> AsyncIterator[asyncio.TaskGroup]:
    """Run tasks that end with the block. Raises the first unexpected exception of any, else the first ConsoleError."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            # A TaskGroup drops the cancellation of its owner when a child fails while it is being carried out.
            raise asyncio.CancelledError from None
        leaves = list(_leaves(group))
        raise next((leaf for leaf in leaves if not isinstance(leaf, ConsoleError)), leaves[0]) from None


def started(tasks: asyncio.TaskGroup | None, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None] | None:
    """Start a task that belongs to the group; None where the group is ending or not there, and nothing is started."""
    if tasks is not None:
        try:
            return tasks.create_task(work, name=name)
        except RuntimeError:
            pass  # it is shutting down: the last events of a link come while the console is being closed
    work.close()
    return None


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for exc in group.exceptions:
        if isinstance(exc, BaseExceptionGroup):
            yield from _leaves(exc)
        else:
            yield exc
