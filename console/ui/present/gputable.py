"""The table of the GPU screen: which columns there is room for, and a row for each GPU. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from console.model import OUT_OF_REACH, Gpu, GpuTrouble, Snapshot, StageState
from console.ui.present import words
from console.ui.present.gpucharts import role_of
from console.ui.present.gpus import marked, memory_bar
from console.ui.present.look import Look
from console.ui.present.spans import Line, Role, Span, cells, clip, dim, faint, width_of
from console.ui.present.words import UNKNOWN

_MIN_BAR, _MAX_BAR = 8, 20
_MAX_ROLE = 12


_BY_WORTH = ("GiB", "busy", "left", "power", "peak", "°C", "pid", "owner", "clock")
_KEPT_BY_WORTH = tuple(name for name in _BY_WORTH if name not in ("pid", "clock"))
"""Of a run of before: there is nothing that would stand in the others."""


class _Cell(NamedTuple):
    text: str
    role: Role = Role.TEXT
    bold: bool = False


class _Column(NamedTuple):
    name: str
    width: int
    cell: Callable[[Gpu], _Cell]
    left: bool = False


def gpu_table(
    snapshot: Snapshot,
    gpus: Sequence[Gpu],
    columns: int,
    shown: int,
    width: int,
    look: Look,
    chosen: int | None,
    *,
    show_head: bool,
) -> list[Line]:
    """Return `shown` rows; where there are more GPUs than that the chosen one is among them."""
    share = width // columns
    rows_of = _Rows(snapshot, gpus, share, look, chosen)
    lines = math.ceil(len(gpus) / columns)
    at = next((place for place, gpu in enumerate(gpus) if gpu.index == chosen), 0) % lines
    first = max(0, min(at - shown // 2, lines - shown))
    view: list[Line] = []
    if show_head:
        head = rows_of.head()
        view.append(
            tuple(span for _ in range(columns) for span in (*head, Span(" " * (width // columns - width_of(head)))))
        )
    for line in range(first, first + shown):
        parts: list[Span] = []
        for column in range(columns):
            place = column * lines + line
            part = rows_of.row(gpus[place]) if place < len(gpus) else ()
            parts += _padded(part, share)
        view.append(tuple(parts))
    hidden = len(gpus) - sum(1 for place in range(len(gpus)) if first <= place % lines < first + shown)
    if hidden and view:
        view[-1] = (Span("     "), dim(f"and {words.plural(hidden, 'more GPU')} · ↑↓"))
    return view


def _padded(line: Line, width: int) -> Line:
    return (*line, Span(" " * max(0, width - width_of(line))))


class _Rows:
    """Which columns there are, how wide each is, and the rows made of them."""

    def __init__(self, snapshot: Snapshot, gpus: Sequence[Gpu], width: int, look: Look, chosen: int | None) -> None:
        self._look, self._chosen = look, chosen
        self._grey = snapshot.verdict in OUT_OF_REACH
        self._notes = {(note.kind, index) for note in snapshot.gpus.notes for index in note.gpus}
        self._marked = marked(snapshot.gpus)
        missing = snapshot.stages[3].missing if snapshot.stages[3].state in (StageState.ACTIVE, StageState.LATE) else ()
        self._awaited = frozenset(missing)
        longest = min(_MAX_ROLE, max((cells(gpu.role or "") for gpu in gpus), default=0))
        self._role_width = 0 if not longest else longest if width >= 72 else 1
        self._by_worth = _KEPT_BY_WORTH if snapshot.gpus.is_kept else _BY_WORTH
        self._columns = self._fitting(width, gpus)
        used = 5 + (self._role_width + 1 if self._role_width else 0) + sum(column.width for column in self._columns)
        self._bar = max(_MIN_BAR, min(_MAX_BAR if width >= 110 else 40, width - used - 1))

    def _fitting(self, width: int, gpus: Sequence[Gpu]) -> list[_Column]:
        """Take columns in the order of their worth until there is no room; show them in the order of the picture."""
        room = width - 6 - (self._role_width + 1 if self._role_width else 0) - _MIN_BAR
        owners = max((cells(self._owner(gpu).text) for gpu in gpus), default=0)
        every = {
            "GiB": _Column("GiB", 8, self._used),
            "peak": _Column("peak", 7, self._peak),
            "left": _Column("left", 7, self._left),
            "busy": _Column("busy", 7, self._busy),
            "power": _Column("power", 13 if width >= 100 else 8, self._power if width >= 100 else self._short_power),
            "°C": _Column("°C", 5, self._heat),
            "clock": _Column("clock", 11, self._clock),
            "pid": _Column("pid", 8, self._pid),
            "owner": _Column("  owner", max(7, min(26, owners + 2)), self._owner, left=True),
        }
        taken = set()
        for name in self._by_worth:
            if every[name].width > room:
                break
            room -= every[name].width
            taken.add(name)
        return [column for name, column in every.items() if name in taken]

    def head(self) -> Line:
        role = f"{'role' if self._role_width > 1 else '':<{self._role_width}} " if self._role_width else ""
        text = f"     {role}{'memory':<{self._bar}}"
        for column in self._columns:
            text += column.name.ljust(column.width) if column.left else column.name.rjust(column.width)
        return (faint(text.rstrip()),)

    def row(self, gpu: Gpu) -> Line:
        glyphs = self._look.glyphs
        is_chosen = gpu.index == self._chosen
        mark = glyphs.awaited if gpu.index in self._awaited else "!" if gpu.index in self._marked else " "
        index = str(gpu.index)
        out = [Span(glyphs.cursor if is_chosen else " ", Role.BUSY, True), Span(" " * max(0, 2 - len(index)))]
        out += [Span(mark, Role.WARN, True), Span(index, Role.STRONG, True), Span(" ")]
        if self._role_width:
            text = clip(gpu.role or "", self._role_width) if self._role_width > 1 else (gpu.role or " ")[0].upper()
            out.append(Span(f"{text:<{self._role_width}} ", Role.DIM if self._grey else role_of(gpu.role)))
        out += memory_bar(gpu, self._bar, self._look, grey=self._grey)
        for column in self._columns:
            cell = column.cell(gpu)
            # A number that has no room is no number of a GPU: drivers have said 4,294,967 W.
            fits = cells(cell.text) < column.width
            text = f"  {cell.text}" if column.left else (cell.text if fits else UNKNOWN).rjust(column.width)
            role = Role.DIM if self._grey and cell.role is not Role.WARN else cell.role
            out.append(Span(text, role, cell.bold))
        return tuple(out)

    def _warn(self, gpu: Gpu, *kinds: GpuTrouble) -> bool:
        return any((kind, gpu.index) in self._notes for kind in kinds)

    def _used(self, gpu: Gpu) -> _Cell:
        return _Cell(words.gib(gpu.used_bytes))

    def _peak(self, gpu: Gpu) -> _Cell:
        return _Cell(words.gib(gpu.peak_bytes) if gpu.peak_bytes is not None else words.NOT_APPLICABLE, Role.DIM)

    def _left(self, gpu: Gpu) -> _Cell:
        if gpu.left_bytes is None:
            return _Cell(words.NOT_APPLICABLE, Role.DIM)
        warn = self._warn(gpu, GpuTrouble.HEADROOM)
        return _Cell(words.gib(gpu.left_bytes), Role.WARN if warn else Role.DIM, warn)

    def _busy(self, gpu: Gpu) -> _Cell:
        text = f"{UNKNOWN if gpu.util_pct is None else gpu.util_pct} %"
        warn = self._warn(gpu, GpuTrouble.UNEVEN)
        return _Cell(text, Role.WARN if warn else Role.FAINT if gpu.util_pct == 0 else Role.TEXT, warn)

    def _power(self, gpu: Gpu) -> _Cell:
        limit = "" if gpu.power_limit_w is None else f"/{gpu.power_limit_w:.0f}"
        cell = self._short_power(gpu)
        return cell._replace(text=cell.text.replace(" W", f"{limit} W"))

    def _short_power(self, gpu: Gpu) -> _Cell:
        text = f"{UNKNOWN if gpu.power_w is None else f'{gpu.power_w:.0f}'} W"
        warn = self._warn(gpu, GpuTrouble.SPINNING)
        return _Cell(text, Role.WARN if warn else Role.FAINT if gpu.util_pct == 0 else Role.TEXT, warn)

    def _heat(self, gpu: Gpu) -> _Cell:
        warn = self._warn(gpu, GpuTrouble.HOT)
        text = UNKNOWN if gpu.temperature_c is None else str(gpu.temperature_c)
        return _Cell(text, Role.WARN if warn else Role.DIM, warn)

    def _clock(self, gpu: Gpu) -> _Cell:
        warn = self._warn(gpu, GpuTrouble.SLOWED)
        text = UNKNOWN if gpu.clock_mhz is None else f"{gpu.clock_mhz:,} MHz"
        return _Cell(text, Role.WARN if warn else Role.DIM, warn)

    def _pid(self, gpu: Gpu) -> _Cell:
        others = {holder.pid for holder in gpu.others}
        pids = [pid for pid in gpu.pids if pid not in others] or list(gpu.pids)
        none = UNKNOWN if gpu.held_bytes is None and gpu.owner != "free" else ""
        text = none if not pids else str(pids[0]) if len(pids) == 1 else f"{len(pids)} pids"
        return _Cell(text, Role.DIM)

    def _owner(self, gpu: Gpu) -> _Cell:
        if gpu.lost:
            return _Cell(clip(words.one_line(gpu.lost), 24), Role.WARN, True)
        share = sum(each.bytes or 0 for each in gpu.others)
        who = next((each.name or f"pid {each.pid}" for each in gpu.others), "")
        who = clip(words.one_line(who), 12)
        match gpu.owner:
            case "run" if gpu.others and self._warn(gpu, GpuTrouble.FOREIGN):
                return _Cell(f"this run +{words.gib(share)} {who}", Role.WARN, True)
            case "run":
                return _Cell("this run", Role.DIM)
            case "other":
                return _Cell(who or "others", Role.WARN, True)
            case "nobody":
                return _Cell("nobody visible", Role.WARN, True)
            case "free":
                return _Cell("free", Role.FAINT)
            case _:
                return _Cell(UNKNOWN, Role.DIM)
