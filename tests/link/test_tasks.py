"""Tasks that end with their block: one exception comes out, and a cancellation is never lost."""

import asyncio

import pytest

from console.link.tasks import owned_tasks
from console.reasons import ConsoleError, Reason


async def fail(error: Exception) -> None:
    raise error


async def fail_when_cancelled(error: Exception) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        raise error


async def test_failure_of_a_task_comes_out_bare() -> None:
    async def work() -> None:
        async with owned_tasks() as tasks:
            tasks.create_task(fail(ConsoleError(Reason.LINK_LOST)))
            await asyncio.Event().wait()

    with pytest.raises(ConsoleError) as caught:
        await work()

    assert caught.value.reason is Reason.LINK_LOST


async def test_bug_goes_before_what_followed_from_it() -> None:
    async def work() -> None:
        async with owned_tasks() as tasks:
            tasks.create_task(fail_when_cancelled(ConsoleError(Reason.LINK_LOST)))
            await asyncio.sleep(0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()


@pytest.mark.parametrize("waits", [True, False], ids=["in the block's own code", "behind it"])
async def test_cancellation_survives_a_task_that_fails_meanwhile(waits: bool) -> None:
    began = asyncio.Event()

    async def work() -> None:
        async with owned_tasks() as tasks:
            tasks.create_task(fail_when_cancelled(ConsoleError(Reason.AGENT_ENDED)))
            began.set()
            if waits:
                await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await began.wait()
    await asyncio.sleep(0)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_failure_behind_the_blocks_own_code_is_no_cancellation() -> None:
    async def begin() -> None:
        async with owned_tasks() as tasks:
            tasks.create_task(fail(ConsoleError(Reason.FILE_MISSING)))
            tasks.create_task(asyncio.Event().wait())

    async def work() -> int:
        with pytest.raises(ConsoleError) as caught:
            await begin()
        assert caught.value.reason is Reason.FILE_MISSING
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    assert await asyncio.create_task(work()) == 0


async def test_tasks_that_tasks_begin_are_waited_for() -> None:
    done = []

    async def work(tasks: asyncio.TaskGroup, depth: int) -> None:
        await asyncio.sleep(0)
        if depth:
            tasks.create_task(work(tasks, depth - 1))
        done.append(depth)

    async with owned_tasks() as tasks:
        tasks.create_task(work(tasks, 3))

    assert sorted(done) == [0, 1, 2, 3]
