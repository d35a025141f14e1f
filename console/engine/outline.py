"""What is read of a long log beside its end: how it began, and what stands at evenly spaced places of the rest.

Asked for at once, and handed out in parts that take a few milliseconds each to understand.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from console import protocol
from console.engine import requests
from console.engine.logflow import HEAD_BYTES, PIECE_BYTES, PIECES, WHOLE_BYTES
from console.engine.replay import Replay
from console.link.link import Link
from console.link.tasks import owned_tasks
from console.reasons import ConsoleError, Reason

_log = logging.getLogger(__name__)
PART_BYTES = 4096  # some fifty step lines
FIRST_STEPS = 100
"""Of so many the head is read line by line: they tell the first step, the format, and what warming up looks like."""


class Part(NamedTuple):
    offset: int
    data: bytes
    is_head: bool
    ends_head: bool = False


async def ask_outline(link: Link | Replay, path: str, tail_bytes: int, timeout_s: float) -> deque[Part] | None:
    """Return the parts in the order of the log; None where it is to be read whole: it is short, or isn't there."""
    head = protocol.LogRead(id=link.next_id(), path=path, offset=0, length=HEAD_BYTES)
    between = protocol.LogSample(
        id=link.next_id(), path=path, first=HEAD_BYTES, last=-tail_bytes, count=PIECES, length=PIECE_BYTES,
        larger_than=WHOLE_BYTES,
    )  # fmt: skip
    async with owned_tasks() as tasks:
        began = tasks.create_task(_asked(link, head, timeout_s), name="head")
        drawn = tasks.create_task(_asked(link, between, timeout_s), name="between")
    start = began.result()
    if start is None or int(start[0].data.get("size", len(start[1]))) <= WHOLE_BYTES:
        return None
    middle = drawn.result()
    places = requests.pieces(*middle) if middle is not None else []
    return deque([*head_parts(start[1]), *(Part(offset, data, is_head=False) for offset, data in places)])


async def _asked(
    link: Link | Replay, operation: protocol.LogRead | protocol.LogSample, timeout_s: float
) -> tuple[protocol.Reply, bytes] | None:
    """Return the host's answer; None where there is no such file, or it can't be read: who follows it will say so."""
    try:
        reply, data = await link.bulk_request(operation, timeout_s=timeout_s)
    except ConsoleError as error:
        if error.reason is not Reason.FILE_MISSING:
            raise
        _log.warning("a part of the log is not read: %s", error)
        return None
    return (reply, data) if reply.ok else None


def head_parts(data: bytes) -> list[Part]:
    """Cut the start of a log behind ends of lines."""
    parts: list[Part] = []
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + PART_BYTES) + 1 or len(data)
        parts.append(Part(start, data[start:end], is_head=True, ends_head=end == len(data)))
        start = end
    return parts


def thinned(parts: Iterable[Part]) -> deque[Part]:
    """Take what is left of the head, whose first steps are known, for places like those behind it: a fourth of it."""
    parts = list(parts)
    head = [part._replace(is_head=False, ends_head=False) for part in parts if part.is_head]
    return deque([*head[::4], *(part for part in parts if not part.is_head)])
