"""The five stages as a rail: three rows with evidence while that is the question, else one row. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from console.model import OUT_OF_REACH, Severity, Snapshot, Stage, StageState, StageStatus, Verdict
from console.ui.present import words
from console.ui.present.facts import elapsed_s, known_at, launch_began
from console.ui.present.look import Glyphs, Look, stage_glyph
from console.ui.present.spans import Line, Role, Span, View, cells, clip, faint, pad, whole_facts, whole_spans, width_of

_MARGIN = 2
_TIMELESS = (StageState.PENDING, StageState.NOT_REACHED, StageState.SKIPPED, StageState.UNKNOWN)
# A progress bar in the rail needs this much.
_BAR_CELL = 28
_SHORT = {
    Stage.KILLING: "kill",
    Stage.CACHE: "cache",
    Stage.SPAWNED: "spawn",
    Stage.CUDA: "CUDA",
    Stage.STEPPING: "steps",
}


def rail_role(state: StageState) -> Role:
    match state:
        case StageState.ACTIVE:
            return Role.BUSY
        case StageState.LATE | StageState.UNKNOWN:
            return Role.WARN
        case StageState.DONE:
            return Role.OK
        case StageState.FAILED:
            return Role.ERROR
        case StageState.PENDING | StageState.SKIPPED | StageState.NOT_REACHED:
            return Role.FAINT


def _name_span(text: str, state: StageState) -> Span:
    match state:
        case StageState.ACTIVE | StageState.LATE | StageState.FAILED | StageState.UNKNOWN:
            return Span(text, rail_role(state), True)
        case StageState.DONE:
            return Span(text, Role.TEXT)
        case StageState.PENDING | StageState.SKIPPED | StageState.NOT_REACHED:
            return Span(text, Role.FAINT)


def _troubled(snapshot: Snapshot) -> StageStatus | None:
    """The stage that the run is in, where something is the matter with a run that lives."""
    reason = snapshot.reason
    if reason is None or not reason.brief:
        return None
    if snapshot.active_stage is not None:
        return next(s for s in snapshot.stages if s.stage is snapshot.active_stage)
    last = snapshot.stages[-1]
    return last if last.state is StageState.DONE else None


def _marked(stage: StageStatus, snapshot: Snapshot) -> StageStatus:
    """A stage as the rail shows it: what is the matter with the run stands in place of its evidence."""
    reason = snapshot.reason
    if reason is None or stage is not _troubled(snapshot) or reason.severity is Severity.INFO:
        return stage
    state = StageState.FAILED if reason.severity is Severity.ERROR else StageState.LATE
    return replace(stage, state=state, evidence=reason.brief, missing=(), missing_parts=())


def draw_rail(snapshot: Snapshot, width: int, look: Look, *, rows: int, durations: bool = True) -> View:
    if rows >= 3:
        return _three_rows(snapshot, width, look)
    return (_one_row(snapshot, width, look, durations),)


def _three_rows(snapshot: Snapshot, width: int, look: Look) -> View:
    cell = (width - 2 * _MARGIN) // 5
    tops: list[Span] = [Span(" " * _MARGIN)]
    middles: list[Span] = [Span(" " * _MARGIN)]
    bottoms: list[Span] = [Span(" " * _MARGIN)]
    for index, plain in enumerate(snapshot.stages):
        stage = _marked(plain, snapshot)
        glyph = stage_glyph(stage.state, look.glyphs)
        indent = cells(glyph) + 1
        last = index == len(snapshot.stages) - 1
        head: Line = (Span(f"{glyph} ", rail_role(stage.state)), _name_span(_title(stage, cell - indent), stage.state))
        if not last:
            done = stage.state is StageState.DONE
            line = (look.glyphs.used if done else look.glyphs.free) * max(0, cell - width_of(head) - 2)
            head = (*head, Span(f" {line} ", Role.RULE))
        tops.extend(pad(head, cell))
        middles.extend(pad((Span(" " * indent), *_second_row(plain, snapshot, look, cell - indent - 1)), cell))
        bottoms.extend(pad((Span(" " * indent), _third_row(stage, cell - indent - 1)), cell))
    return tuple(tops), tuple(middles), tuple(bottoms)


def _title(stage: StageStatus, room: int) -> str:
    title = stage.stage.label
    return title if cells(title) <= room else _SHORT[stage.stage]


def _second_row(stage: StageStatus, snapshot: Snapshot, look: Look, room: int) -> Line:
    spent = elapsed_s(stage, snapshot.at)
    match stage.state:
        case StageState.DONE | StageState.FAILED:
            return (Span(words.duration(spent), Role.DIM),) if spent is not None else ()
        case StageState.SKIPPED:
            return (Span("skipped", Role.DIM),)
        case StageState.ACTIVE | StageState.LATE:
            return _running_row(stage, spent, look, room)
        case StageState.UNKNOWN:
            age = snapshot.ages.link
            lost = snapshot.link.last_word_at is not None and snapshot.verdict in OUT_OF_REACH
            text = words.age(age) if lost and age is not None else "not watched"
            return (Span(text, Role.DIM),)
        case StageState.PENDING | StageState.NOT_REACHED:
            return ()


def _running_row(stage: StageStatus, spent: float | None, look: Look, room: int) -> Line:
    if spent is None:
        return ()
    taken = words.whole_duration(spent) if spent >= 1 else words.duration(spent)
    role = Role.WARN if stage.state is StageState.LATE else Role.STRONG
    if stage.usual_s is None:
        return (Span(taken, role, True),)
    text = f"{taken} / ~{words.short_duration(stage.usual_s)}"
    if cells(text) > room:
        return (Span(taken, role, True),)
    bar = room + 1 - cells(text) - 2
    if room + 3 < _BAR_CELL or bar < 6:
        return (Span(text, role, True),)
    bar = min(bar, 10)
    full = min(bar, round(bar * spent / max(stage.usual_s, 0.001)))
    return (
        Span(look.glyphs.used * full, Role.BUSY),
        Span(look.glyphs.free * (bar - full) + " ", Role.RULE),
        Span(text, role, True),
    )


def _third_row(stage: StageStatus, room: int) -> Span:
    evidence = _evidence(stage, room)
    match stage.state:
        case StageState.ACTIVE | StageState.LATE | StageState.FAILED:
            return Span(evidence or clip(words.one_line(stage.why), room), Role.STRONG, True)
        case StageState.DONE:
            return faint(evidence)
        case StageState.SKIPPED | StageState.PENDING:
            return faint(clip(words.one_line(stage.why), room) or evidence)
        case StageState.NOT_REACHED:
            return faint("not reached")
        case StageState.UNKNOWN:
            return Span(evidence or clip(words.one_line(stage.why), room), Role.STRONG, True)


def _evidence(stage: StageStatus, room: int) -> str:
    """The evidence as far as whole parts of it fit: a list of GPUs or a size is never cut in the middle."""
    text = words.one_line(stage.evidence)
    absent = ", ".join(stage.missing_parts) or words.ranges(stage.missing)
    if absent and stage.want and stage.state in (StageState.ACTIVE, StageState.LATE, StageState.UNKNOWN):
        counted = f"{stage.have or 0}/{stage.want}"
        text = f"{counted}, not yet: {absent}"
        return text if cells(text) <= room else counted
    parts = text.split(", ")
    if stage.stage is Stage.KILLING and stage.state in (StageState.ACTIVE, StageState.LATE):
        # What is left to wait stands at the end, and is what is asked.
        while len(parts) > 1 and cells(", ".join(parts)) > room:
            parts.pop(0)
    return clip(whole_facts(parts, room, ", "), room)


def _one_row(snapshot: Snapshot, width: int, look: Look, durations: bool) -> Line:
    joints = (
        ((True, f" {look.glyphs.rule} "), (True, " "), (False, "  "), (False, " "))
        if durations
        else ((False, "  "), (False, " "))
    )
    for with_times, joint in joints:
        groups = [
            _short_stage(_marked(s, snapshot), known_at(snapshot), look.glyphs, with_times) for s in snapshot.stages
        ]
        line: list[Span] = []
        for index, group in enumerate(groups):
            line.extend((Span(joint, Role.RULE),) if index else ())
            line.extend(group)
        if width_of(line) + 2 <= width:
            break
    lead = _launched(snapshot, look) if durations else ()
    if lead and width_of(lead) + width_of(line) + 6 <= width:
        return (Span("  "), *lead, Span("   "), *line)
    return (Span(" "), *whole_spans([line], width - 1))


def _short_stage(stage: StageStatus, now: float, glyphs: Glyphs, times: bool) -> Line:
    spent = elapsed_s(stage, now)
    name = _SHORT[stage.stage] if times else _SHORT[stage.stage].removesuffix("s")
    out = [Span(f"{stage_glyph(stage.state, glyphs)} ", rail_role(stage.state)), _name_span(name, stage.state)]
    if stage.state in (StageState.ACTIVE, StageState.FAILED, StageState.LATE):
        out[1] = Span(name, Role.STRONG if stage.state is not StageState.LATE else Role.WARN, True)
    if times and spent is not None and stage.state not in _TIMELESS:
        out.append(Span(f" {words.short_duration(spent)}", Role.FAINT if stage.state is StageState.DONE else Role.TEXT))
    return tuple(out)


def _launched(snapshot: Snapshot, look: Look) -> Line:
    """`launched 12:18 in 3m 41s`, once it steps."""
    run = snapshot.run
    began = launch_began(snapshot)
    if run is None or run.launch_s is None or began is None or snapshot.verdict is Verdict.IDLE:
        return ()
    at = words.clock(began, look.zone, seconds=False)
    return (faint(f"launched {at} in {words.short_duration(run.launch_s)}"),)
