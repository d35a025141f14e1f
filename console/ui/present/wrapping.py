"""A long text on several lines: how many it takes, and what stands on each. Lines are cut at any letter. Pure."""

from __future__ import annotations

from functools import lru_cache

from console.ui.present.spans import cells


def line_count(text: str, room: int) -> int:
    """Return how many lines of so many cells a text takes, at least one."""
    return max(1, -(-len(text) // room)) if text.isascii() else len(_bounds(text, room)) - 1


def line_at(text: str, line: int, room: int) -> str:
    """Return what of a text stands on one of its lines; nothing stands below the last."""
    if text.isascii():
        return text[line * room : (line + 1) * room]
    bounds = _bounds(text, room)
    return text[bounds[line] : bounds[line + 1]] if line + 1 < len(bounds) else ""


@lru_cache(maxsize=512)
def _bounds(text: str, room: int) -> tuple[int, ...]:
    """Return where each line begins, and the text's end: a letter of two cells that doesn't fit goes on below."""
    bounds, used = [0], 0
    for index, letter in enumerate(text):
        width = cells(letter)
        if used + width > room:
            bounds.append(index)
            used = 0
        used += width
    return (*bounds, len(text))
