"""Who has the memory when an allocation on a GPU fails: this run, or somebody else. Reads PyTorch's sentence. Pure."""

from __future__ import annotations

import re
from typing import Final

from console.state.lazy import lazy

_UNITS: Final = {"bytes": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "KB": 1e3, "MB": 1e6, "GB": 1e9}
_SIZE: Final = r"([\d.]+) (bytes|[KMG]i?B)"
_CAPACITY: Final = lazy(rf"total capaci?ty of {_SIZE}|; {_SIZE} total capacity")
_FREE: Final = lazy(rf"of which {_SIZE} is free|; {_SIZE} free")
_OURS: Final = lazy(rf"this process has {_SIZE} memory in use")
_OTHERS: Final = lazy(rf"(?<!\w)Process \d+ has {_SIZE} memory in use")
_ALLOCATED: Final = lazy(rf"memory {_SIZE} is allocated by PyTorch|; {_SIZE} already allocated")
_CACHED: Final = lazy(rf"and {_SIZE} is reserved by PyTorch but unallocated")
_RESERVED: Final = lazy(rf"{_SIZE} reserved in total by PyTorch")
_ELSEWHERE_SHARE: Final = 0.5
"""Others are blamed when they hold more than half of what is in use."""


def is_held_by_others(text: str) -> bool:
    """Whether most of the memory that is in use belongs to other processes; False where the line has no figures."""
    capacity, free = _first(_CAPACITY, text), _first(_FREE, text)
    if capacity is None or free is None:
        return False
    used = capacity - free
    ours = _first(_RESERVED, text)
    allocated = _first(_ALLOCATED, text)
    if ours is None and allocated is not None:
        ours = allocated + (_first(_CACHED, text) or 0.0)
    if ours is None:
        ours = _first(_OURS, text)
    listed = [_bytes(match) for match in _OTHERS.finditer(text)]
    others = sum(listed)
    if ours is None and len(listed) == 1:
        return False  # PyTorch lists itself, too: where it can't tell which one it is, the only one is it
    if ours is None:
        return used > 0 and others > _ELSEWHERE_SHARE * used
    return used > 0 and used - ours > _ELSEWHERE_SHARE * used


def _first(pattern: re.Pattern[str], text: str) -> float | None:
    match = pattern.search(text)
    return _bytes(match) if match is not None else None


def _bytes(match: re.Match[str]) -> float:
    number, unit = [group for group in match.groups() if group is not None]
    return float(number) * _UNITS[unit]
