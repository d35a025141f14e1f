"""The row that says that a run of before is shown, which one, and what the live one does meanwhile. Pure."""

from __future__ import annotations

from console.model import Snapshot
from console.ui.present import words
from console.ui.present.look import VERDICT_WORDS, Look
from console.ui.present.spans import Line, Role, Span, spread, whole_spans, width_of


def past_bar(past: Snapshot, live: Snapshot, place: str, width: int, look: Look) -> Line:
    """` viewing slammed4 (ended)  14:06  2 of 6 past runs     live: slammed5 STEPPING  esc goes back`."""

    def text(said: str, *, bold: bool = False) -> Span:
        return Span(said, Role.ON_FILL, bold)

    name = words.one_line(past.run.name) if past.run is not None else ""
    ending = VERDICT_WORDS[past.verdict].lower()
    started = past.run.accepted_at if past.run is not None else None
    head = (text(f" viewing {name} ({ending})", bold=True),)
    facts = [(text(place),)]
    if started is not None:
        facts.append((text(f"started {words.day_and_clock(started, look.zone)}"),))
    running = words.one_line(live.run.name) if live.run is not None else live.target
    ways = (
        f"live: {running} {VERDICT_WORDS[live.verdict]} · esc goes back ",
        f"live: {VERDICT_WORDS[live.verdict]} · esc ",
        "esc ",
    )
    for way in ways:
        right = (text(way, bold=True),)
        if width_of(head) + width_of(right) + 2 <= width:
            left = whole_spans([head, *facts], width - width_of(right) - 2, (text("  "),))
            return spread(left, right, width, gap=2)
    return head
