"""What is read of a long log beside its end: how it began, and what stands at evenly spaced places of the rest.

Asked for at once, and handed out in parts that take a few milliseconds each to understand.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from console import protocol
from console.engine.logflow import HEAD_BYTES, PIECE_BYTES, PIECES, WHOLE_BYTES
from console.engine.replay import Replay
from console.link.link import Link
from console.link.tasks import owned_tasks

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
        began = tasks.create_task(link.bulk_request(head, timeout_s=timeout_s), name="head")
        drawn = tasks.create_task(link.bulk_request(between, timeout_s=timeout_s), name="between")
    reply, data = began.result()
    if not reply.ok or int(reply.data.get("size", len(data))) <= WHOLE_BYTES:
        return None
    return deque([*head_parts(data), *_pieces(*drawn.result())])


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


def _pieces(reply: protocol.Reply, data: bytes) -> list[Part]:
    """Return the places of a LogSample's answer with what stands there; none where it was refused."""
    if not reply.ok:
        _log.warning("the middle of the log is not drawn: %s", reply.error)
        return []
    place, pieces = 0, []
    for offset, length in zip(reply.data["offsets"], reply.data["sizes"], strict=True):
        pieces.append(Part(int(offset), data[place : place + int(length)], is_head=False))
        place += int(length)
    return pieces
