"""Our own children: one whose start is given up leaves no process, no pipe, and nobody waiting."""

import asyncio
import os
from pathlib import Path

import pytest

from console.link.children import start_child
from console.link.transport import LocalConnection


def _open_files() -> set[str]:
    names = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            names.add(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            continue  # the listing's own
    return {name for name in names if name.startswith("pipe:")}


async def test_child_reads_and_writes_by_its_three_streams() -> None:
    child, transport = await start_child("/bin/sh", "-c", "cat; echo then >&2; exit 3")
    stdout, stderr = await child.communicate(b"first")

    assert (stdout, stderr, child.returncode) == (b"first", b"then\n", 3)
    transport.close()


@pytest.mark.parametrize("turns", range(6))
async def test_start_that_is_cancelled_at_any_moment_leaves_nothing(turns: int, tmp_path: Path) -> None:
    """In its first turns asyncio's own clean-up would wait forever, for pipes that it has not connected yet."""
    before = _open_files()
    starting = asyncio.create_task(start_child("/bin/sh", "-c", "exec sleep 600"))
    for _ in range(turns):
        await asyncio.sleep(0)
    assert not starting.done()

    starting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(starting, 20)
    await asyncio.sleep(0)  # what was closed lets go of its descriptor one turn later
    assert _open_files() <= before


def _children() -> set[int]:
    return {int(pid) for pid in Path("/proc/self/task", str(os.getpid()), "children").read_text().split()}


@pytest.mark.parametrize("again", range(1, 5))
@pytest.mark.parametrize("turns", range(1, 6))
async def test_start_that_is_cancelled_twice_is_over_when_its_child_is(turns: int, again: int) -> None:
    """A group of tasks that ends cancels them, and so may who runs the group: amid the clean-up of the first time."""
    before = _children()
    starting = asyncio.create_task(start_child("/bin/sh", "-c", "exec sleep 600"))
    for wait in (turns, again):
        for _ in range(wait):
            await asyncio.sleep(0)
        starting.cancel()

    await asyncio.wait([starting], timeout=20)

    assert starting.cancelled()
    assert _children() <= before


@pytest.mark.parametrize("again", range(1, 5))
async def test_local_process_is_gone_when_its_closing_was_cancelled_twice(again: int) -> None:
    before = _children()
    process = await LocalConnection().open(("/bin/sh", "-c", "exec sleep 600"))
    closing = asyncio.create_task(process.close())
    for wait in (2, again):
        for _ in range(wait):
            await asyncio.sleep(0)
        closing.cancel()

    await asyncio.wait([closing], timeout=20)

    assert closing.cancelled()
    assert _children() <= before
