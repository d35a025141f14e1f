"""The GPU panel: a table of rows with a bar each, the sentences under it, or one line. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from console.model import OUT_OF_REACH, Gpu, GpuPanel, Snapshot, StageState, Verdict
from console.ui.present import words
from console.ui.present.frame import age_span, title
from console.ui.present.gpucharts import role_of
from console.ui.present.look import Look
from console.ui.present.spans import BLANK, Line, Role, Span, View, cells, clip, dim, faint, pad, whole_spans, wrap

# The agent samples once a second; the link and the loop take a share of the next.
PERIOD_S = 2.0


def gpu_panel(snapshot: Snapshot, width: int, rows: int, look: Look, *, narrow: bool, wide: bool) -> View:
    """Return the panel with its title: rows of it, at most `rows`."""
    panel = snapshot.gpus
    margin = (0, 0) if narrow else (1, 1)
    age = gpu_age(snapshot)
    if not panel.gpus:
        return without_gpus(snapshot, width, look, margin, age)
    view: list[Line] = [title("GPUs", _title_facts(snapshot), age, width, look, margin=margin)]
    body = rows - 1
    table = _Table(snapshot, width, look, narrow=narrow, wide=wide)
    notes = _notes(snapshot)
    indent = "" if narrow else " "
    show_head = not narrow and body > len(panel.gpus)
    if show_head:
        view.append(table.head())
    room = rows - len(view)
    shown = panel.gpus if len(panel.gpus) <= room else _worst_first(panel.gpus, room - 1, marked(panel))
    view.extend(table.row(gpu) for gpu in shown)
    if len(shown) < len(panel.gpus):
        view.append((Span("   "), dim(f"and {words.plural(len(panel.gpus) - len(shown), 'more GPU')}")))
    for note in notes:
        for index, text in enumerate(wrap(note.text, width - 5)):
            glyph = look.glyphs.awaited if note.role is Role.DIM else "!"
            head = Span(f"{indent} {glyph} " if index == 0 else f"{indent}   ", Role.WARN, True)
            view.append((head, Span(text, Role.DIM)))
    means = _means(panel.gpus, width, indent, grey=_stale(snapshot))
    if means and len(view) < rows:
        view.append(means)
    return tuple(view[:rows])


def gpu_age(snapshot: Snapshot) -> Span:
    """How old the sample is; of a run of before it is of its end, however long that is ago."""
    return faint("ended") if snapshot.gpus.is_kept else age_span(snapshot.ages.gpu, PERIOD_S, stale=_stale(snapshot))


def hold_words(snapshot: Snapshot) -> str:
    """`6/8 hold a context`; `?/8` where nobody can tell."""
    panel, cuda = snapshot.gpus, snapshot.stages[3]
    if cuda.have is None and panel.gpus and all(gpu.context is None for gpu in panel.gpus):
        have = words.UNKNOWN
    else:
        have = str(cuda.have if cuda.have is not None else len(panel.contexts))
    return f"{have}/{cuda.want or panel.expected or len(panel.gpus)} hold a context"


def _stale(snapshot: Snapshot) -> bool:
    return snapshot.verdict in OUT_OF_REACH


def without_gpus(snapshot: Snapshot, width: int, look: Look, margin: tuple[int, int], age: Span) -> View:
    panel = snapshot.gpus
    if panel.source == "none":
        text = words.one_line(panel.why) or "no source answered"
        head = title("GPUs", [(dim("none"),)], None, width, look, margin=margin)
        return (head, *((Span("  "), dim(part)) for part in wrap(text, width - 4)))
    head = title("GPUs", [(dim("?"),)], age if panel.at is not None else None, width, look, margin=margin)
    why = words.one_line(panel.why)  # of a driver that does not answer, for one
    if why:
        # That nobody knows is new each second; what the title tells is the age of what is known.
        head = title("GPUs", [(dim("?"),)], Span("no answer", Role.WARN, True), width, look, margin=margin)
        return (head, *((Span("  "), Span(part, Role.WARN)) for part in wrap(why, width - 4)))
    return (head, (Span("  "), faint("no sample yet")))


def _title_facts(snapshot: Snapshot) -> list[Sequence[Span]]:
    panel = snapshot.gpus
    n = panel.expected or len(panel.gpus)
    cuda = snapshot.stages[3]
    if cuda.state in (StageState.ACTIVE, StageState.LATE):
        return [(Span(hold_words(snapshot), Role.WARN, True),)]
    owned = sum(gpu.owner == "run" for gpu in panel.gpus)
    if any(gpu.owner == "unknown" for gpu in panel.gpus):
        return [(dim(f"{len(panel.gpus)} seen"),)]
    if owned:
        return [(dim(f"{owned}/{n} this run"),)]
    free = sum(gpu.owner == "free" for gpu in panel.gpus)
    return [(dim(f"{free}/{len(panel.gpus)} free"),)]


def _worst_first(gpus: Sequence[Gpu], room: int, marked: frozenset[int]) -> list[Gpu]:
    """Keep the GPUs with something to say, then the first ones, in their order."""
    ranked = sorted(gpus, key=lambda gpu: (gpu.index not in marked, gpu.index))[: max(0, room)]
    return sorted(ranked, key=lambda gpu: gpu.index)


def marked(panel: GpuPanel) -> frozenset[int]:
    """The GPUs that a sentence is about."""
    return frozenset(index for note in panel.notes for index in note.gpus)


class _Table:
    """Column widths of one drawing: every row is aligned by them."""

    def __init__(self, snapshot: Snapshot, width: int, look: Look, *, narrow: bool, wide: bool) -> None:
        self._look = look
        self._grey = _stale(snapshot)
        self._awaited = set(snapshot.stages[3].missing) if snapshot.stages[3].state in _WAITING else set()
        self._marked = marked(snapshot.gpus)
        self._low_power = snapshot.verdict in (Verdict.STALLED, Verdict.SUSPENDED)
        self._narrow = narrow
        roles = {gpu.role or "" for gpu in snapshot.gpus.gpus}
        self._role_width = 0 if roles == {""} else max(map(cells, roles)) if wide else 1
        self._wide = wide
        self._power = not narrow and width >= 46
        self._heat = not narrow and width >= 52
        tail = 6 + 7 + (8 if self._power else 0) + (4 if self._heat else 0)
        self._indent = 0 if narrow else 1
        lead = self._indent + 4 + (self._role_width + 1 if self._role_width else 0)
        self._bar = max(6, width - lead - tail - (1 if narrow else 2))

    def head(self) -> Line:
        role = "role".ljust(self._role_width) + " " if self._wide and self._role_width else " " * (self._role_width + 1)
        if not self._role_width:
            role = ""
        text = f"{' ' * (self._indent + 4)}{role}{'memory'.ljust(self._bar)}{'GiB':>6}{'busy':>7}"
        return (faint(text + ("   power" if self._power else "") + ("  °C" if self._heat else "")),)

    def row(self, gpu: Gpu) -> Line:
        look = self._look
        mark, warn = " ", gpu.index in self._marked or (self._low_power and (gpu.util_pct or 0) > 50)
        if gpu.index in self._awaited:
            mark = look.glyphs.awaited
        elif warn:
            mark = "!"
        index = str(gpu.index)
        out = [Span(" " * (self._indent + 2 - len(index))), Span(mark, Role.WARN, True), Span(index, Role.STRONG, True)]
        out.append(Span(" "))
        if self._role_width:
            text = (gpu.role or "") if self._wide else (gpu.role or " ")[0].upper()
            out.append(Span(text.ljust(self._role_width) + " ", Role.DIM if self._grey else role_of(gpu.role)))
        out.extend(memory_bar(gpu, self._bar, look, grey=self._grey))
        lost = bool(gpu.lost)
        value = Role.DIM if self._grey else Role.TEXT
        busy = words.UNKNOWN if gpu.util_pct is None or lost else str(gpu.util_pct)
        quiet = Role.FAINT if gpu.util_pct == 0 else value
        out.append(Span(f"{words.UNKNOWN if lost else words.gib(gpu.used_bytes):>6}", value))
        out.append(Span(f"{busy + ' %':>7}", quiet))
        if self._power:
            watts = words.UNKNOWN if gpu.power_w is None or lost else f"{gpu.power_w:.0f}"
            low = self._low_power and not self._grey
            watts = watts if cells(watts) < 6 else words.UNKNOWN  # a number that has no room is no GPU's
            out.append(Span(f"{watts + ' W':>8}", Role.WARN if low else quiet, low))
        if self._heat:
            heat = words.UNKNOWN if gpu.temperature_c is None or lost else str(gpu.temperature_c)
            out.append(Span(f"{heat:>4}", Role.DIM))
        return tuple(out)


def memory_bar(gpu: Gpu, width: int, look: Look, *, grey: bool) -> Line:
    """`━━━━━─╎──`: used, free, and the peak of this run as a tick that survives it."""
    glyphs, total, used = look.glyphs, gpu.total_bytes, gpu.used_bytes
    if not total or used is None:
        return (Span(words.UNKNOWN.ljust(width), Role.FAINT),)
    full = min(width, int(width * used / total))
    cells_of_bar = [glyphs.used] * full + [glyphs.free] * (width - full)
    peak_at = -1
    # A peak within half a cell of the use says nothing.
    if gpu.peak_bytes is not None and gpu.peak_bytes > used:
        at = min(width - 1, int(width * gpu.peak_bytes / total))
        if at > full:
            peak_at = at
    spans = [Span("".join(cells_of_bar[:full]), Role.DIM if grey else role_of(gpu.role))]
    if peak_at < 0:
        return (*spans, Span("".join(cells_of_bar[full:]), Role.RULE))
    before, after = "".join(cells_of_bar[full:peak_at]), "".join(cells_of_bar[peak_at + 1 :])
    return (*spans, Span(before, Role.RULE), Span(glyphs.peak, Role.FAINT), Span(after, Role.RULE))


_WAITING = (StageState.ACTIVE, StageState.LATE)


def _notes(snapshot: Snapshot) -> list[Span]:
    cuda = snapshot.stages[3]
    notes = []
    if cuda.state in _WAITING and cuda.missing_parts:
        notes.append(Span(f"{words.parts(cuda.missing_parts)}: no context yet", Role.DIM))
    elif cuda.state in _WAITING and cuda.missing:
        notes.append(Span(f"{words.ranges(cuda.missing)}: no context yet", Role.DIM))
    return notes + [Span(words.one_line(note.text), Role.WARN) for note in snapshot.gpus.notes]


def _means(gpus: Sequence[Gpu], width: int, indent: str, *, grey: bool) -> Line:
    if all(gpu.owner == "free" for gpu in gpus):
        return BLANK
    groups: list[Sequence[Span]] = []
    for role in dict.fromkeys(gpu.role for gpu in gpus if gpu.role):
        mine = [gpu for gpu in gpus if gpu.role == role]
        busy = [gpu.util_pct for gpu in mine if gpu.util_pct is not None]
        watts = [gpu.power_w for gpu in mine if gpu.power_w is not None]
        if not busy:
            continue
        power = f" {mean(watts):.0f} W" if watts else ""
        groups.append((Span(f"{role}s", Role.DIM if grey else role_of(role)), dim(f" {mean(busy):.0f} %{power}")))
    if not groups:
        return BLANK
    return (Span(f"{indent}   "), *whole_spans(groups, width - 5, (Span("   "),)))


def gpu_line(snapshot: Snapshot, width: int, look: Look) -> Line:
    """`GPU GiB T 71 71 D 118 119! /140`: all that a pane of 60 columns has room for."""
    gpus = snapshot.gpus.gpus
    if not gpus:
        why = words.one_line(snapshot.gpus.why) if snapshot.gpus.source == "none" else "no sample yet"
        return pad((Span(" "), faint("GPU "), dim(clip(why, width - 6))), width)
    grey = _stale(snapshot)
    out: list[Span] = [Span(" "), faint("GPU GiB")]
    role: str | None = None
    odd = marked(snapshot.gpus)
    for gpu in gpus:
        if gpu.role and gpu.role != role:
            out.append(Span(f" {gpu.role[0].upper()}", Role.DIM if grey else role_of(gpu.role), True))
        role = gpu.role
        out.append(Span(f"{words.whole_gib(gpu.used_bytes):>4}", Role.DIM if grey else Role.TEXT))
        if gpu.index in odd:
            out.append(Span("!", Role.WARN, True))
    total = next((gpu.total_bytes for gpu in gpus if gpu.total_bytes), None)
    tail = [Span(f" /{words.whole_gib(total)}", Role.FAINT)] if total else []
    line = (*out, *tail)
    if sum(cells(s.text) for s in line) <= width:
        return line
    known = [gpu.used_bytes for gpu in gpus if gpu.used_bytes is not None]
    low, high = (words.whole_gib(min(known)), words.whole_gib(max(known))) if known else ("?", "?")
    text = f"{len(gpus)} GPUs, {low}–{high} GiB" + (f" · ! {words.ranges(odd)}" if odd else "")
    return (Span(" "), dim(text))
