"""Processes as rows: a tree in which what is alike is one row; command lines keep what tells them apart. Pure."""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence

from msgspec import Struct

from console.model import Process
from console.ui.present import words
from console.ui.present.spans import Line, Span, cells, clip, dim, faint, strong

_MOST_ROWS = 8
_NUMBER = re.compile(r"\d+")
_HEX = re.compile(r"\b(?:0x)?[0-9a-f]{8,}\b")


class Branch(Struct, frozen=True, kw_only=True):
    """Processes that differ in nothing but numbers: the ranks of one run, the workers of one loader."""

    processes: tuple[Process, ...]
    depth: int

    @property
    def first(self) -> Process:
        return self.processes[0]

    @property
    def gpu_bytes(self) -> int | None:
        known = [p.gpu_bytes for p in self.processes if p.gpu_bytes is not None]
        return sum(known) if known else None

    @property
    def times(self) -> str:
        """`×8 ranks`, `×32` where nothing says that they are ranks; nothing for a single process."""
        if len(self.processes) == 1:
            return ""
        is_rank = all(p.gpu_bytes for p in self.processes) or any(
            "rank" in arg for p in self.processes for arg in p.argv
        )
        return f"  ×{len(self.processes)}{' ranks' if is_rank else ''}"


def folded(processes: Sequence[Process]) -> list[Branch]:
    """Return the tree top down with those that are alike under one parent, or under parents that are alike, as one."""
    known = {p.pid: p for p in processes}
    children: dict[int | None, list[Process]] = {}
    for process in processes:
        parent = process.parent if process.parent in known and process.parent != process.pid else None
        children.setdefault(parent, []).append(process)
    branches: list[Branch] = []
    seen: set[int] = set()

    def grow(group: Sequence[Process], depth: int) -> None:
        alike: dict[tuple[str, ...], list[Process]] = {}
        for process in group:
            if process.pid not in seen:
                seen.add(process.pid)
                alike.setdefault(_shape(process), []).append(process)
        for same in alike.values():
            branches.append(Branch(processes=tuple(same), depth=depth))
            grow([child for process in same for child in children.get(process.pid, [])], depth + 1)

    grow(children.get(None, []), 0)
    grow([p for p in processes if p.pid not in seen], 0)  # a loop of parents hides nothing
    return branches


def _shape(process: Process) -> tuple[str, ...]:
    return tuple(_NUMBER.sub("0", _HEX.sub("0", arg)) for arg in process.argv) or (process.state,)


def process_rows(processes: Sequence[Process], width: int, *, memory: bool, label: Span) -> list[Line]:
    """The tree of what is killed; pids, ages, counts and memory are never cut, a command line may be."""
    branches = folded(processes)
    shown = branches if len(branches) <= _MOST_ROWS else branches[: _MOST_ROWS - 1]
    pid_width = max(len(str(branch.first.pid)) for branch in shown)
    ages = [words.short_duration(branch.first.age_s) for branch in shown]
    age_width = max(map(cells, ages))
    rows: list[Line] = []
    for branch, age in zip(shown, ages, strict=True):
        twig = "  " * (branch.depth - 1) + "└ " if branch.depth else ""
        held = f"   {words.whole_gib(branch.gpu_bytes)} GiB" if branch.gpu_bytes and memory else ""
        room = width - pid_width - age_width - 4 - cells(twig) - cells(branch.times) - cells(held)
        process = branch.first
        command = command_words(process.argv, max(8, room)) or f"[{process.state or 'no command line'}]"
        rows.append((label, strong(f"{process.pid:>{pid_width}}"), dim(f"  {age:<{age_width}}  "), faint(twig),
                     dim(command), Span(branch.times), Span(held)))  # fmt: skip
    if len(shown) < len(branches):
        left = sum(len(branch.processes) for branch in branches[len(shown) :])
        rows.append((label, dim(f"and {words.plural(left, 'more process')}")))
    return rows


def command_words(argv: Sequence[str], width: int) -> str:
    """Return a command line in a width: first folders go from its paths, then its end."""
    if not argv:
        return ""
    names = [os.path.basename(arg) or arg if arg.startswith("/") else arg for arg in argv]
    for shown in (argv, [names[0], *argv[1:]], names):
        text = words.one_line(" ".join(shown))
        if cells(text) <= width:
            return text
    return clip(text, width)
