"""The middle of the screen while a launch is under way: where the time goes; and after a failure: why. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from console.model import OUT_OF_REACH, Severity, Snapshot, Stage, StageState, StageStatus
from console.ui.present import words
from console.ui.present.changed import changed_rows
from console.ui.present.facts import elapsed_s, known_at, launch_began
from console.ui.present.frame import age_span, title
from console.ui.present.look import Look
from console.ui.present.rail import rail_role
from console.ui.present.spans import BLANK, Line, Role, Span, View, cells, clip, dim, faint, keep_end, whole_facts, wrap

_PERIOD_S = 2.0
_TIMES = 18  # "11.8 s /    12 s" and the blank before it
_TABLE_NAMES = {
    Stage.KILLING: "killing",
    Stage.CACHE: "cache",
    Stage.SPAWNED: "spawned",
    Stage.CUDA: "CUDA",
    Stage.STEPPING: "stepping",
}


def launch_panel(snapshot: Snapshot, width: int, rows: int, look: Look, *, narrow: bool) -> View:
    """A bar a stage on one time axis, spent against usual; then what the run itself says it does."""
    margin = (0, 0) if narrow else (1, 1)
    began = launch_began(snapshot)
    spent = max(0.0, known_at(snapshot) - began) if began is not None else None
    facts: list[Sequence[Span]] = []
    usual_total = _usual_total(snapshot)
    if spent is not None:
        of = dim(f" of ~{words.short_duration(usual_total)}") if usual_total is not None else Span("")
        facts.append((dim(words.whole_duration(spent)), of))
    if width >= 70:
        legend = f" now   {look.glyphs.usual}{look.glyphs.usual} usual" if usual_total is not None else " now"
        facts.append((Span(look.glyphs.used, Role.TEXT), faint(legend)))
    lost = snapshot.verdict in OUT_OF_REACH
    age = age_span(snapshot.ages.link if lost else snapshot.ages.process, _PERIOD_S, stale=lost)
    view: list[Line] = [title("launch", facts, age, width, look, margin=margin)]
    view.extend(_stage_rows(snapshot, width, look, narrow, spent or 0.0))
    now = _now_rows(snapshot, width, " " if narrow else "  ")
    if now and len(view) + 1 + len(now) <= rows:
        view.append(BLANK)
    view.extend(now)
    return tuple(view[:rows])


def _usual_total(snapshot: Snapshot) -> float | None:
    """How long launches like this one take: what is skipped or can't be observed takes no time of its own."""
    ahead = [s for s in snapshot.stages if s.state not in (StageState.SKIPPED, StageState.UNKNOWN)]
    usual = [s.took_s if s.usual_s is None and s.state is StageState.DONE else s.usual_s for s in ahead]
    known = [value for value in usual if value is not None]
    return sum(known) if known and len(known) == len(usual) and snapshot.usual_launches else None


def _stage_rows(snapshot: Snapshot, width: int, look: Look, narrow: bool, spent: float) -> list[Line]:
    indent = 1 if narrow else 2
    short = width < 54
    names = {s.stage: _TABLE_NAMES[s.stage] if short else s.stage.label for s in snapshot.stages}
    name_width = max(cells(name) for name in names.values()) + 1
    bar = width - indent - name_width - _TIMES - (0 if narrow else 2)
    scale = max(spent, _usual_total(snapshot) or 0.0, _span_of(snapshot), 1.0)
    rows = []
    at = 0.0
    for stage in snapshot.stages:
        took = elapsed_s(stage, known_at(snapshot))
        cells_of_bar = _bar(stage, at, took, scale, max(0, bar), look)
        done = stage.state in (StageState.DONE, StageState.FAILED, StageState.SKIPPED)
        at += took if took is not None and (done or stage.usual_s is None) else max(took or 0.0, stage.usual_s or 0.0)
        rows.append(
            (Span(" " * indent), _name(names[stage.stage], stage, name_width), *cells_of_bar, *_times(stage, took))
        )
    return rows


def _span_of(snapshot: Snapshot) -> float:
    return sum(max(elapsed_s(s, known_at(snapshot)) or 0.0, s.usual_s or 0.0) for s in snapshot.stages)


def _name(text: str, stage: StageStatus, width: int) -> Span:
    match stage.state:
        case StageState.ACTIVE | StageState.LATE | StageState.FAILED:
            return Span(text.ljust(width), rail_role(stage.state), True)
        case StageState.DONE:
            return Span(text.ljust(width), Role.TEXT)
        case _:
            return Span(text.ljust(width), Role.FAINT)


def _bar(stage: StageStatus, at: float, took: float | None, scale: float, width: int, look: Look) -> Line:
    start = min(width, int(width * at / scale))
    solid = min(width - start, max(1, round(width * took / scale))) if took is not None else 0
    ahead = 0
    if stage.usual_s is not None and stage.state in (StageState.PENDING, StageState.ACTIVE):
        ahead = min(width - start - solid, max(0, round(width * (stage.usual_s - (took or 0.0)) / scale)))
    role = rail_role(stage.state) if stage.state is not StageState.SKIPPED else Role.FAINT
    rest = width - start - solid - ahead
    return (
        Span(" " * start),
        Span(look.glyphs.used * solid, role),
        Span(look.glyphs.usual * ahead, Role.FAINT),
        Span(" " * rest),
    )


def _times(stage: StageStatus, took: float | None) -> Line:
    if stage.state is StageState.SKIPPED:
        text, role = "skipped", Role.FAINT
    elif took is None:
        text, role = words.NOT_APPLICABLE, Role.FAINT
    elif stage.state in (StageState.ACTIVE, StageState.LATE):
        text, role = words.whole_duration(took) if took >= 1 else words.duration(took), Role.STRONG
    else:
        text, role = words.duration(took), Role.DIM
    if stage.usual_s is None:
        return (Span(f"{text:>{_TIMES}}", role, role is Role.STRONG),)
    usual = words.duration(stage.usual_s) if stage.usual_s < 1 else words.short_duration(stage.usual_s)
    return (Span(f"{text:>{_TIMES - 10}}", role, role is Role.STRONG), faint(f" / {usual:>7}"))


def _now_rows(snapshot: Snapshot, width: int, indent: str) -> list[Line]:
    rows: list[Line] = []
    room = width - len(indent) - 6
    phase = words.one_line(snapshot.progress.phase)
    if phase:
        rows.append((faint(f"{indent}now  "), Span(keep_end(phase, room))))
    facts = []
    cpu = [p.cpu_pct for p in snapshot.processes if p.cpu_pct is not None]
    if cpu:
        facts.append(f"CPU {sum(cpu) / 100:.1f} cores")
    rss = [p.rss_bytes for p in snapshot.processes if p.rss_bytes is not None]
    if rss:
        facts.append(f"{words.size(sum(rss))} resident")
    silent_s = known_at(snapshot) - snapshot.log.grew_at if snapshot.log.grew_at is not None else 0.0
    if silent_s > 10:
        facts.append(f"log silent {words.whole_duration(silent_s)}")
    if facts:
        rows.append((faint(f"{indent}host "), dim(whole_facts(facts, room))))
    return rows


_LABEL = 16


def why_panel(snapshot: Snapshot, width: int, look: Look, *, narrow: bool) -> View:
    """The evidence, first cause first; texts wrap and are never cut."""
    margin = (0, 0) if narrow else (1, 1)
    view: list[Line] = [
        title("why", [(faint("evidence, first cause first"),)], faint("y copies"), width, look, margin=margin)
    ]
    reason = snapshot.reason
    if reason is None:
        nothing = "nothing was recorded: how it ended is unknown"
        return (*view, *((Span("  "), dim(text)) for text in wrap(nothing, width - 4)))
    indent = 1 if narrow else 2
    for index, fact in enumerate(reason.facts):
        mark, role = _mark(fact.severity, look)
        label = clip(words.one_line(fact.label), _LABEL - 1)
        bold = index == 0 and fact.severity is Severity.ERROR
        for row, text in enumerate(wrap(words.one_line(fact.text), width - indent - 2 - _LABEL - 1)):
            head = (Span(" " * indent + f"{mark} ", role), dim(label.ljust(_LABEL)))
            if row:
                head = (Span(" " * (indent + cells(mark) + 1)), Span(" " * _LABEL))
            view.append((*head, Span(text, Role.STRONG if bold else Role.TEXT, bold)))
    if not reason.facts:
        view.extend((Span(" " * indent), dim(text)) for text in wrap(words.one_line(reason.title), width - 2 * indent))
    return (*view, *changed_rows(snapshot, width, look, narrow=narrow))


def _mark(severity: Severity, look: Look) -> tuple[str, Role]:
    match severity:
        case Severity.ERROR:
            return look.glyphs.fail, Role.ERROR
        case Severity.WARNING:
            return look.glyphs.warn, Role.WARN
        case Severity.OK:
            return look.glyphs.ok, Role.OK
        case Severity.INFO:
            return look.glyphs.none, Role.FAINT


def why_line(snapshot: Snapshot, width: int) -> Line:
    """The evidence in one row, for a pane of 60 columns."""
    if snapshot.reason is None:
        return (Span(" "), faint("why "), dim("nothing was recorded"))
    facts = [words.one_line(fact.text) for fact in snapshot.reason.facts if fact.severity is not Severity.ERROR]
    text = whole_facts(facts or [words.one_line(snapshot.reason.title)], width - 6)
    return (Span(" "), faint("why "), Span(clip(text, width - 6), Role.STRONG, True))


def process_panel(snapshot: Snapshot, width: int, rows: int, look: Look) -> View:
    """The processes of the run with what they take, the busiest first."""
    lost = snapshot.verdict in OUT_OF_REACH
    age = age_span(snapshot.ages.link if lost else snapshot.ages.process, _PERIOD_S, stale=lost)
    found = sorted(snapshot.processes, key=lambda p: -(p.cpu_pct or 0.0))
    facts = [(dim(words.plural(len(found), "process")),)]
    view: list[Line] = [title("processes", facts, age, width, look)]
    view.append((faint(f"  {'pid':>7}  {'CPU':>8}  {'resident':>9}  {'GPU':>8}  command"),))
    room = rows - len(view)
    shown = found if len(found) <= room else found[: max(0, room - 1)]
    for process in shown:
        cpu = f"{process.cpu_pct / 100:.1f}" if process.cpu_pct is not None else words.UNKNOWN
        memory = words.size(process.rss_bytes)
        gpu = f"{words.whole_gib(process.gpu_bytes)} GiB" if process.gpu_bytes is not None else words.NOT_APPLICABLE
        command = words.one_line(" ".join(process.argv)) or f"[{process.state or words.UNKNOWN}]"
        head = f"  {process.pid:>7}  {cpu:>8}  {memory:>9}  {gpu:>8}  "
        view.append((Span(head), dim(clip(command, width - cells(head) - 2))))
    if len(shown) < len(found):
        view.append((dim(f"  and {len(found) - len(shown):,} more"),))
    return tuple(view[:rows])
