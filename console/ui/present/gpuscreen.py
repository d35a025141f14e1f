"""The GPU screen: a row for each GPU with all that is known of it, what is wrong in sentences, and a history. Pure.

Many GPUs stand in two columns. In place of the history stand the processes of one GPU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from msgspec import Struct

from console.model import OUT_OF_REACH, Gpu, GpuNote, Snapshot, StageState
from console.state.series import Series
from console.ui.present import words
from console.ui.present.band import band_row
from console.ui.present.facts import pace
from console.ui.present.frame import header, title
from console.ui.present.gpucharts import GpuMetric, GpuScene, Plots, role_of
from console.ui.present.gpudetail import detail_panel
from console.ui.present.gpus import gpu_age, hold_words, without_gpus
from console.ui.present.gputable import gpu_table
from console.ui.present.look import Look
from console.ui.present.spans import (
    Line,
    Role,
    Span,
    View,
    cells,
    clip,
    dim,
    faint,
    text_of,
    whole_spans,
    width_of,
    wrap,
)
from console.ui.present.verdict import verdict_facts

_HEADER_FROM = 22
_LEAST_PLOT = 6
_MAX_ROLE = 13
_DETAIL_ROWS = 16
_NOTE_SHARE = 4
"""One row of so many that stand below the table may be a sentence."""


GpuSeries = Mapping[str, Series]


class GpuChoice(Struct, frozen=True, kw_only=True):
    """What the operator has chosen to see."""

    metric: GpuMetric = GpuMetric.MEMORY
    whole: bool = True
    chosen: int | None = None
    detail: bool = False


class GpuPage(NamedTuple):
    """The rows between header and footer."""

    header: View
    band: Line
    fill: str | None
    body: View


class GpuPainter:
    """Paints the GPU screen; remembers plots until a column of them may have changed."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._plots = Plots()

    def paint(self, snapshot: Snapshot, series: GpuSeries, width: int, height: int, choice: GpuChoice) -> GpuPage:
        """Return the page in `height` rows, the footer not among them."""
        look = self._look
        head: View = (header(snapshot, width, look),) if height >= _HEADER_FROM else ()
        facts = verdict_facts(snapshot, look)
        band = band_row(facts, width)
        body = self._body(snapshot, series, width, height - len(head) - 1, choice)
        return GpuPage(head, band, facts.fill, body)

    def _body(self, snapshot: Snapshot, series: GpuSeries, width: int, rows: int, choice: GpuChoice) -> View:
        panel, look = snapshot.gpus, self._look
        age = gpu_age(snapshot)
        if not panel.gpus:
            return without_gpus(snapshot, width, look, (1, 1), age)[:rows]
        gpus = by_role(panel.gpus)
        view: list[Line] = [title("GPUs", _title_facts(snapshot), age, width, look)]
        if choice.detail and rows < len(gpus) + _DETAIL_ROWS:  # then the others have to wait
            gpus = [gpu for gpu in gpus if gpu.index == choice.chosen] or gpus[:1]
        columns = 2 if len(gpus) > max(8, rows - 6) else 1
        lines = math.ceil(len(gpus) / columns)
        room = rows - 1
        show_head = room > lines + 1
        shown = min(lines, room - show_head - (1 if panel.notes and room - show_head <= lines else 0))
        view += gpu_table(snapshot, gpus, columns, shown, width, look, choice.chosen, show_head=show_head)
        view += self._below(snapshot, gpus, series, width, rows - len(view), choice)
        return tuple(view[:rows])

    def _below(
        self, snapshot: Snapshot, gpus: Sequence[Gpu], series: GpuSeries, width: int, rows: int, choice: GpuChoice
    ) -> list[Line]:
        look, view = self._look, []
        if rows <= 0:
            return []
        sentences = _sentences(snapshot.gpus.notes, width, look, choice.chosen, most=max(1, rows // _NOTE_SHARE))
        about = _roles(snapshot, gpus, width)
        if rows - len(about) - len(sentences) < (_LEAST_PLOT if rows >= 12 else 0):
            about = about[: max(0, rows - len(sentences))]
        view += [*about, *sentences]
        left = rows - len(view)
        if left < _LEAST_PLOT:
            return view
        if choice.detail:
            of = next((gpu for gpu in gpus if gpu.index == choice.chosen), gpus[0])
            return [*view, *detail_panel(snapshot, of, width, left, look)]
        scene = GpuScene(snapshot, gpus, series, look, choice.metric, choice.whole, choice.chosen)
        return [*view, *self._plots.draw(scene, width, left)]


def by_role(gpus: Sequence[Gpu]) -> list[Gpu]:
    """Return the GPUs grouped by role, the roles in the order in which the first of each stands."""
    order = {role: place for place, role in enumerate(dict.fromkeys(gpu.role for gpu in gpus))}
    return sorted(gpus, key=lambda gpu: (gpu.role is None, order[gpu.role], gpu.index))


def _title_facts(snapshot: Snapshot) -> list[Sequence[Span]]:
    """`8 × H200 139.8 GiB · NVML 550.90`, the rung of the ladder among them."""
    panel = snapshot.gpus
    kinds: dict[str, int] = {}
    for gpu in panel.gpus:
        name = words.one_line(gpu.name).removeprefix("NVIDIA ") or "GPU"
        size = f" {words.gib(gpu.total_bytes)} GiB" if gpu.total_bytes else ""
        kinds[f"{clip(name, 24)}{size}"] = kinds.get(f"{clip(name, 24)}{size}", 0) + 1
    what = ", ".join(f"{count} × {kind}" for kind, count in kinds.items()) if len(kinds) < 3 else f"{len(panel.gpus)}"
    source = {"nvml": "NVML", "simulated": "simulated"}.get(panel.source, panel.source)
    facts: list[Sequence[Span]] = [(dim(f"{what} · {source} {panel.driver}".rstrip()),)]
    parts = [f"GPU {gpu.index} in {len(gpu.parts)} MIG parts" for gpu in panel.gpus if gpu.parts is not None]
    facts += [(dim(each),) for each in parts[:2]]
    if panel.source != "nvml" and panel.why:
        facts.append((Span(words.one_line(panel.why), Role.WARN),))
    cuda = snapshot.stages[3]
    if cuda.state in (StageState.ACTIVE, StageState.LATE):
        facts.append((Span(hold_words(snapshot), Role.WARN, True),))
    return facts


# -- below the table --------------------------------------------------------------------------------------------------


def _roles(snapshot: Snapshot, gpus: Sequence[Gpu], width: int) -> list[Line]:
    grey = snapshot.verdict in OUT_OF_REACH
    names = list(dict.fromkeys(gpu.role for gpu in gpus if gpu.role))
    widest = max([5, *(min(_MAX_ROLE, cells(name) + 1) for name in names)])
    lines: list[Line] = []
    for name in names:
        mine = [gpu for gpu in gpus if gpu.role == name]
        groups = [(Span(fact),) for fact in _role_facts(mine)]
        label = Span(f"{clip(name + 's', widest):<{widest}} ", Role.DIM if grey else role_of(name))
        lines.append((Span("     "), label, *whole_spans(groups, width - widest - 7, (faint(" · "),))))
    if snapshot.verdict not in OUT_OF_REACH and (facts := pace(snapshot)):
        text = [(Span(fact),) for fact in facts]
        joined = whole_spans(text, width - widest - 7, (faint(" · "),))
        lines.append((Span("     "), faint(f"{'pace':<{widest}} "), *joined))
    return lines


def _role_facts(gpus: Sequence[Gpu]) -> list[str]:
    busy = {gpu.index: gpu.util_pct for gpu in gpus if gpu.util_pct is not None}
    watts = [gpu.power_w for gpu in gpus if gpu.power_w is not None]
    used = [gpu.used_bytes for gpu in gpus if gpu.used_bytes is not None]
    facts = []
    if busy:
        facts.append(f"{mean(busy.values()):.0f} % busy")
    if watts:
        facts.append(f"{mean(watts):.0f} W")
    if len(busy) > 1 and max(busy.values()) - min(busy.values()) > 1:
        facts.append(f"least busy GPU {min(busy, key=lambda index: busy[index])}")
    if used:
        facts.append(f"{sum(used) / 1024.0**3:.0f} GiB")
    return facts


def _sentences(notes: Sequence[GpuNote], width: int, look: Look, chosen: int | None, *, most: int) -> list[Line]:
    """Return what is wrong in at most `most` rows; what is about the chosen GPU first, the rest counted."""
    ranked = sorted(notes, key=lambda note: chosen not in note.gpus)
    view: list[Line] = []
    for place, note in enumerate(ranked):
        rows = wrap(words.one_line(note.text), width - 7)
        if view and len(view) + len(rows) > most:
            left = len(ranked) - place
            tail = (faint(f" · {left} more"),) if width_of(view[-1]) + 12 <= width else ()
            view[-1] = (*view[-1], *tail)
            break
        for number, row in enumerate(rows):
            view.append((Span("   ! " if number == 0 else "     ", Role.WARN, True), Span(row)))
    return view


def as_report(snapshot: Snapshot, look: Look) -> str:
    """Return the table and every sentence as plain text, for the clipboard."""
    panel = snapshot.gpus
    if not panel.gpus:
        return f"{snapshot.target}: no GPU is known{f': {panel.why}' if panel.why else ''}"
    gpus = by_role(panel.gpus)
    head = text_of(title("GPUs", _title_facts(snapshot), None, 120, look, margin=(0, 0)))
    table = gpu_table(snapshot, gpus, 1, len(gpus), 120, look, None, show_head=True)
    rows = [head.rstrip(" ─-"), *(text_of(line).rstrip() for line in (*table, *_roles(snapshot, gpus, 120)))]
    at = words.clock(panel.at, look.zone)
    run = snapshot.run.name if snapshot.run is not None else "no run"
    return "\n".join([f"{snapshot.target} · {words.one_line(run)} · {at}", *rows, *(note.text for note in panel.notes)])
