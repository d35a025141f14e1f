"""What is read of a log that is over: all of a short one; of a long one its head, places between, and its end.

It costs the same whatever the log's size, and one way to the host and back: everything is asked for at once.
"""

from __future__ import annotations

import itertools

from console.engine.logreader import LogReader
from console.link.tasks import owned_tasks
from console.state.logquery import Place

HEAD_BYTES = 128 * 1024
TAIL_BYTES = 512 * 1024
PLACES, PLACE_BYTES = 24, 16 * 1024
"""Between head and end: enough for a curve."""

Piece = tuple[int, bytes]
"""Where it begins in the file, and what stands there."""


def ranges(size_bytes: int) -> tuple[list[tuple[int, int]], tuple[int, int] | None]:
    """Return the ranges that are read whole, and that in which places are read; None where nothing is left for that."""
    if size_bytes <= HEAD_BYTES + TAIL_BYTES + PLACES * PLACE_BYTES:
        return list(itertools.pairwise([*range(0, size_bytes, TAIL_BYTES), size_bytes])), None
    first, last = HEAD_BYTES, size_bytes - TAIL_BYTES
    return [(0, first), (last, size_bytes)], (first, last)


async def read_pieces(reader: LogReader, place: Place, size_bytes: int, *, ends_alone: bool = False) -> list[Piece]:
    """Return what is read of the log, in its order. `ends_alone`: of a long one nothing between.

    Raises: ConsoleError.
    """
    whole, between = ranges(size_bytes)
    async with owned_tasks() as tasks:
        asked = [tasks.create_task(reader.raw(place, start, end - start)) for start, end in whole]
        drawn = None
        if between is not None and not ends_alone:
            drawn = tasks.create_task(reader.sample(place, *between, PLACES, PLACE_BYTES))
    pieces = [(start, one.result()) for (start, _), one in zip(whole, asked, strict=True)]
    return [*pieces[:1], *(drawn.result() if drawn is not None else ()), *pieces[1:]]
