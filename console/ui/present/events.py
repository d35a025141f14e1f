"""The events screen: one line each of what happened, the newest last, and what came while one was away. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from console.history import words as history
from console.history.entry import Entry
from console.history.words import Sign
from console.model import Severity, Snapshot, StageState
from console.state.happenings import Happening, Kind, happenings
from console.ui.present import words
from console.ui.present.band import band_row
from console.ui.present.frame import header, title
from console.ui.present.look import Look
from console.ui.present.spans import Line, Role, Span, View, cells, dim, faint, wrap
from console.ui.present.verdict import verdict_facts

_HEADER_FROM = 22
_MOST_ROWS = 4


class EventsPage(NamedTuple):
    """The rows between header and footer."""

    header: View
    band: Line
    fill: str | None
    body: View
    back: int
    """How many rows lie below what is shown."""


def events_page(
    snapshot: Snapshot,
    events: Sequence[Happening],
    left_at: float | None,
    back: int,
    width: int,
    height: int,
    look: Look,
) -> EventsPage:
    """Return the page in `height` rows, `back` rows up from its end."""
    head: View = (header(snapshot, width, look),) if height >= _HEADER_FROM else ()
    facts = verdict_facts(snapshot, look)
    room = max(1, height - len(head) - 2)
    lines = event_lines(events, left_at, snapshot.at, width, look)
    back = max(0, min(back, len(lines) - room))
    end = len(lines) - back
    below = faint(f"{look.glyphs.more} {words.plural(back, 'row')} below") if back else faint("newest last")
    top = title("events", [(dim(words.plural(len(events), "event")),)], below, width, look)
    shown = lines[max(0, end - room) : end]
    if not lines:
        shown = [(Span("  "), faint("nothing has happened yet"))]
    return EventsPage(head, band_row(facts, width), facts.fill, (top, *shown), back)


def event_lines(events: Sequence[Happening], left_at: float | None, now: float, width: int, look: Look) -> list[Line]:
    """Return the events in the order of time, days named where they change, and the line where the operator left."""
    lines: list[Line] = []
    day = None
    told = left_at is None
    for event in sorted(events, key=lambda each: each.at):
        if not told and left_at is not None and event.at > left_at:
            told = True
            text = f"since you left {words.clock(left_at, look.zone, seconds=False)}"
            lines.append(_rule(text, width, look))
        if (date := _date(event.at, look)) != day:
            if day is not None or date != _date(now, look):
                lines.append((faint(f"  {words.day(event.at, look.zone)}"),))
            day = date
        lines += _event(event, width, look)
    return lines


def _date(at: float, look: Look) -> object:
    try:
        return datetime.fromtimestamp(at, look.zone).date()
    except (OverflowError, OSError, ValueError):
        return None


def _rule(text: str, width: int, look: Look) -> Line:
    rule = look.glyphs.rule
    fill = max(0, width - cells(text) - 7)
    return (Span(f" {rule * 3} ", Role.WARN), Span(text, Role.WARN, True), Span(f" {rule * fill}", Role.WARN))


_GLYPHS = {Kind.CHECKPOINT: "checkpoint", Kind.OPERATOR: "mark", Kind.STAGE: "ok", Kind.LINK: "live"}


def _event(event: Happening, width: int, look: Look) -> list[Line]:
    glyphs = look.glyphs
    match event.severity:
        case Severity.ERROR:
            glyph, role = glyphs.fail, Role.ERROR
        case Severity.WARNING:
            glyph, role = glyphs.warn, Role.WARN
        case _ if event.fields.get("state") == StageState.ACTIVE:
            glyph, role = glyphs.active, Role.DIM  # under way, so never with the sign of what is proven
        case _ if event.fields.get("state") == StageState.SKIPPED:
            glyph, role = glyphs.skip, Role.DIM
        case _:
            glyph, role = getattr(glyphs, _GLYPHS.get(event.kind, "none")), Role.DIM
    clock = words.clock(event.at, look.zone)
    lead = f"  {clock}  "
    indent = cells(lead) + cells(glyph) + 1
    rows = wrap(words.one_line(event.text), max(10, width - indent - 1))[:_MOST_ROWS]
    bold = event.severity is Severity.ERROR
    text_role = role if event.severity is not Severity.INFO else Role.TEXT
    first: Line = (faint(lead), Span(f"{glyph} ", role, bold), Span(rows[0], text_role, bold))
    return [first, *((Span(" " * indent), Span(row, text_role)) for row in rows[1:])]


def of_past_runs(rows: Iterable[Entry], *, but: str | None, me: str, told: Iterable[Happening] = ()) -> list[Happening]:
    """Return when runs of before were started and how they ended, from the ledger; not of the run that is watched.

    `told`: what was seen; the start of a run that was watched then is in it.
    """
    found = []
    begun = {each.fields.get("id") for each in told if each.fields.get("action") == "restart"}
    for row in rows:
        if row.id == but or row.is_log_only or not row.accepted_wall:
            continue
        name = row.name or row.id
        instead = f" in place of {row.replaced_name}" if row.replaced_name else ""
        text = f"{row.operator or 'somebody'} started {name}{instead}"
        if row.id not in begun:
            found.append(Happening(at=row.accepted_wall, kind=Kind.OPERATOR, text=text))
        if row.is_over and row.ended_wall is not None:
            end = history.ending(row, me=me)
            severity = Severity.ERROR if end.sign is Sign.BAD else Severity.INFO
            found.append(Happening(at=row.ended_wall, kind=Kind.HEALTH, text=f"{name}: {end.text}", severity=severity))
    return found


def of_past_run(row: Entry, snapshot: Snapshot) -> list[Happening]:
    """Return what is known of one run of before: who started it, its stages, its last checkpoint, how it ended."""
    undated = {str(each.stage) for each in snapshot.stages if each.state is StageState.DONE and each.ended_at is None}
    seen = [
        replace(each, text=f"the last {each.text}") if each.kind is Kind.CHECKPOINT else each
        for each in happenings(None, snapshot)
        if each.kind is Kind.CHECKPOINT or (each.kind is Kind.STAGE and each.fields["stage"] not in undated)
    ]
    return [*of_past_runs([row], but=None, me=snapshot.operator), *seen]


def as_report(events: Sequence[Happening], look: Look) -> str:
    """Return all events as plain text, a line each."""
    ordered = sorted(events, key=lambda each: each.at)
    return "\n".join(
        f"{words.day(each.at, look.zone)} {words.clock(each.at, look.zone)}  {words.one_line(each.text)}"
        for each in ordered
    )
