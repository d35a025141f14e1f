"""A TaskGroup whose failure is one exception, not a group: what the code around it can act on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Any, TypeVar

from console.reasons import ConsoleError

T = TypeVar("T")


class _Group(asyncio.TaskGroup):
    """Before Python 3.13 a group leaves its owner marked as being cancelled when a task fails after the block's own
    code: that looks like a cancellation from outside. So that code goes on for as long as there are tasks."""

    def __init__(self) -> None:
        super().__init__()
        self._alive: set[asyncio.Task[Any]] = set()

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        task = super().create_task(coro, name=name, context=context)
        self._alive.add(task)
        task.add_done_callback(self._alive.discard)  # behind the group's own, which cancels the block
        return task

    async def ended(self) -> None:
        while self._alive:
            await asyncio.wait(set(self._alive))


@asynccontextmanager
async def owned_tasks() -> AsyncIterator[asyncio.TaskGroup]:
    """Run tasks that end with the block. Raises the first unexpected exception of any, else the first ConsoleError."""
    try:
        async with _Group() as tasks:
            yield tasks
            await tasks.ended()
    except BaseExceptionGroup as group:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            # A TaskGroup drops the cancellation of its owner when a child fails while it is being carried out.
            raise asyncio.CancelledError from None
        leaves = list(_leaves(group))
        raise next((leaf for leaf in leaves if not isinstance(leaf, ConsoleError)), leaves[0]) from None


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Do what must be done to its end, however often we are cancelled meanwhile: the cancellation comes then."""
    task = asyncio.get_running_loop().create_task(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled and not task.cancelled() and task.exception() is not None:
        raise asyncio.CancelledError from task.exception()
    if cancelled:
        raise asyncio.CancelledError
    return task.result()


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
