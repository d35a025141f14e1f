"""What frames the panels: the title line, the header and the footer. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from console.model import LinkState, Snapshot
from console.ui.present import words
from console.ui.present.look import Look
from console.ui.present.spans import Line, Role, Span, cells, dim, faint, spread, strong, whole_spans, width_of

# A panel is live while it is younger than 2 sampling periods and amber from 3 on.
_LIVE_PERIODS, _OLD_PERIODS = 2.0, 3.0
# The clock of the host is mentioned from here on.
_CLOCK_OFFSET_S = 2.0
_BEFORE_SCREENS = 2


def age_span(age_s: float | None, period_s: float, *, stale: bool = False) -> Span:
    """`live`, `12 s old`, `4 min old`; amber when it is old or the link is lost."""
    if age_s is None:
        return Span("never seen", Role.WARN if stale else Role.FAINT)
    if not stale and age_s < _LIVE_PERIODS * period_s:
        return faint("live")
    old = stale or age_s >= _OLD_PERIODS * period_s
    return Span(words.age(age_s), Role.WARN if old else Role.DIM, old)


def title(
    name: str,
    facts: Sequence[Sequence[Span]],
    right: Span | None,
    width: int,
    look: Look,
    *,
    margin: tuple[int, int] = (1, 1),
) -> Line:
    """`── tok/s  now 21.5K ───── live ──`: facts go from the end when they don't fit, the age never."""
    rule = look.glyphs.rule
    left_margin, right_margin = margin
    tail: list[Span] = []
    if right is not None:
        tail = [Span(" "), right, Span(f" {rule * 2}", Role.RULE)]
    room = width - left_margin - right_margin - width_of(tail) - 2
    head: list[Span] = [Span(" " * left_margin), Span(f"{rule * 2} ", Role.RULE), strong(name)]
    kept = [list(group) for group in facts if group]
    while kept and width_of(head) + sum(width_of(group) + 2 for group in kept) > room + left_margin:
        kept.pop()
    for group in kept:
        head.append(Span("  "))
        head.extend(group)
    head.append(Span(" "))
    fill = width - right_margin - width_of(head) - width_of(tail)
    return (*head, Span(rule * max(0, fill), Role.RULE), *tail, Span(" " * right_margin))


def header(snapshot: Snapshot, width: int, look: Look) -> Line:
    """The top row: the target, where it is, the link, the clock. Details go first when it gets narrow."""
    narrow = width < 110
    lead: list[Sequence[Span]] = []
    if not narrow:
        lead.append((faint("dflash-console"),))
    lead.append((strong(snapshot.target),))
    chip = _chip(snapshot)
    if chip:
        lead.append((chip,))
    label = words.one_line(snapshot.link.label)
    margin = 1
    right = _right(snapshot, look, narrow)
    joint = (Span(" " if narrow else "  "),)
    for place in _shorter(label) if narrow else (label, *_shorter(label), ""):
        groups = [*lead, (dim(place),)] if place else lead
        left = (Span(" " * margin), *whole_spans(groups, width, joint))
        if width_of(left) + 2 + width_of(right) + margin <= width:
            return spread(left, (*right, Span(" " * margin)), width, gap=1)
    left = (Span(" " * margin), *whole_spans(lead[-1 - bool(chip) :], width - 2, joint))
    return spread(left, (*_right(snapshot, look, narrow, clock=False), Span(" ")), width, gap=1)


def _shorter(label: str) -> tuple[str, ...]:
    """`root@10.1.2.6 · via ops@jump · pct 200` -> `10.1.2.6 via jump`, `10.1.2.6`."""
    parts = label.split(" · ")
    host = parts[0].rpartition("@")[2]
    via = next((p.removeprefix("via ").rpartition("@")[2] for p in parts[1:] if p.startswith("via ")), "")
    return (f"{host} via {via}", host, "") if via else (host, "")


def _chip(snapshot: Snapshot) -> Span | None:
    return Span("READ-ONLY", Role.WARN, True) if snapshot.read_only else None


def _right(snapshot: Snapshot, look: Look, narrow: bool, *, clock: bool = True) -> Line:
    link = snapshot.link
    match link.state:
        case LinkState.UP:
            rtt = f" {link.rtt_s * 1000:.0f} ms" if link.rtt_s is not None else ""
            state = [Span(f"{look.glyphs.live} ", Role.OK), dim(f"link{rtt}")]
        case LinkState.CONNECTING:
            state = [Span(f"{look.glyphs.unknown} connecting", Role.DIM)]
        case LinkState.LOST | LinkState.REFUSED:
            age = f" {words.whole_duration(snapshot.at - link.last_word_at)}" if link.last_word_at is not None else ""
            word = "link lost" if link.last_word_at is not None else "no link"
            state = [Span(f"{look.glyphs.unknown} {word}{age}", Role.WARN, True)]
    if not clock:
        return tuple(state)
    joint = Span("  ") if narrow else Span("  ·  ", Role.FAINT)
    offset = link.clock_offset_s
    if offset is not None and abs(offset) > _CLOCK_OFFSET_S and not narrow:
        sign = "+" if offset > 0 else words.MINUS
        state += [joint, faint(f"host clock {sign}{abs(offset):.1f} s")]
    return (*state, joint, dim(words.clock(snapshot.at, look.zone, seconds=not narrow)))


def rows_beyond(first: int, room: int, rows: int) -> str:
    """`↑ 3 · ↓ 12 rows`: what a dialog holds above and below its rows on the screen; empty where it holds nothing."""
    above, below = max(0, min(first, rows - room)), max(0, rows - room - first)
    parts = [f"{arrow} {n}" for arrow, n in (("↑", above), ("↓", below)) if n]
    return f"{' · '.join(parts)} {'row' if above + below == 1 else 'rows'}" if parts else ""


def footer(
    keys: Sequence[tuple[str, str]],
    last: Sequence[tuple[str, str]],
    width: int,
    *,
    screens: tuple[str, str] | None = None,
) -> Line:
    """`r restart  s stop … 1-5 screens … ? help  q quit`: first those at the end of the first group go, the last never.

    `screens` stands behind the first group and goes only when no more than two of that are left: who doesn't know that
    there are other screens looks for nothing else.
    """
    right = _hints(last)
    while True:
        shown = [*keys, *([screens] if screens is not None else [])]
        left = _hints(shown)
        if width_of(left) + width_of(right) + 4 <= width or not shown:
            break
        if screens is not None and len(keys) <= _BEFORE_SCREENS:
            screens = None
        else:
            keys = keys[:-1]
    if not shown:
        shorter = _hints([(key, label.split(",")[0]) for key, label in last])
        return spread((Span(" "),), (*(right if width_of(right) + 2 <= width else shorter), Span(" ")), width, gap=0)
    return spread((Span(" "), *left), (*right, Span(" ")), width, gap=1)


def _hints(keys: Sequence[tuple[str, str]]) -> Line:
    out: list[Span] = []
    for index, (key, label) in enumerate(keys):
        out += [Span("  " if index else ""), strong(key), Span(" "), dim(label)]
    return tuple(span for span in out if cells(span.text))
