"""Lays the verdict out: letters three rows high where there is room, else one bold row. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from console.ui.bigtext import big, big_width, can_draw
from console.ui.present.facts import VerdictFacts
from console.ui.present.spans import BLANK, Line, Role, Span, View, cells, clip, cut, spread, whole_facts, wrap

_MARGIN = 2
_RIGHT = 4
_GAP = 3


def draw_band(facts: VerdictFacts, width: int, *, big_letters: bool, airy: bool = False) -> View:
    """Return the rows of the verdict at a width. `airy` adds a blank row below, as the tall screens have."""
    if big_letters and _fits_big(facts, width):
        return _big(facts, width, airy)
    return _plain(facts, width)


def band_row(facts: VerdictFacts, width: int) -> Line:
    """Return the verdict in one row, for the screens that are about something else: word, run, facts, number."""
    name_role, fact_role, caption_role = _roles(facts)
    word_role = Role.ON_FILL if facts.fill else facts.role
    bold = facts.fill is not None
    number = Span(facts.number, Role.ON_FILL if facts.fill else Role.STRONG, True)
    caption = facts.short_caption.split("  ")[0]
    rights: list[Line] = []
    if facts.number:
        rights = [(number, Span(f" {caption} ", caption_role)), (number, Span(" ", caption_role))]
    head = (Span(f" {facts.glyph} {facts.word}", word_role, bold), Span(f"  {facts.name}", name_role, True))
    for right in (*rights, ()):
        room = width - sum(cells(span.text) for span in (*head, *right)) - 4
        more = whole_facts(facts.first, room) or (clip(facts.cause, room) if facts.cause and not facts.first else "")
        left = (*head, Span(f"  {more}", fact_role, bold)) if more and room > 8 else head
        line = spread(left, right, width) if right else left
        if len(line) > len(left):
            return line
    return cut(left, width)


def _fits_big(facts: VerdictFacts, width: int) -> bool:
    # Under 36 cells of text the letters would crowd out what they announce.
    number = big_width(facts.number) if facts.number else 0
    room = width - _MARGIN - big_width(facts.word) - _GAP - number - _RIGHT - 2
    return can_draw(facts.word) and can_draw(facts.number) and room >= 36


def _roles(facts: VerdictFacts) -> tuple[Role, Role, Role]:
    """Return the roles of the name, of the facts and of captions."""
    if facts.fill:
        return Role.ON_FILL, Role.ON_FILL, Role.ON_FILL
    return Role.STRONG, Role.TEXT, Role.DIM


def _big(facts: VerdictFacts, width: int, airy: bool) -> View:
    name_role, fact_role, caption_role = _roles(facts)
    word_role = Role.ON_FILL if facts.fill else facts.role
    number_role = Role.ON_FILL if facts.fill else Role.STRONG
    letters = big(facts.word)
    digits = big(facts.number) if facts.number else ("", "", "")
    text_at = _MARGIN + len(letters[0]) + _GAP
    number_at = width - _RIGHT - len(digits[0])
    room = (number_at - 3 if facts.number else width - 2) - text_at
    bold = facts.fill is not None
    rows: list[Line] = [BLANK]
    texts: list[Sequence[Span]] = [_name_row(facts, room, name_role, caption_role)]
    texts += [(Span(text, fact_role, bold),) for text in _fact_rows(facts, room, width - 2 - text_at)]
    for index, text in enumerate(texts):
        row: list[Span] = [Span(" " * _MARGIN, fact_role)]
        row.append(Span((letters[index] if index < 3 else "").ljust(len(letters[0])), word_role))
        row.append(Span(" " * _GAP, fact_role))
        row.extend(text)
        if index < 3 and facts.number:
            used = text_at + sum(cells(span.text) for span in text)
            row.append(Span(" " * max(0, number_at - used), fact_role))
            row.append(Span(digits[index], number_role))
        rows.append(tuple(row))
    rows.extend(_advice(facts, text_at, width, ("safe", "next")))
    if airy:
        rows.append(BLANK)
    return tuple(rows)


def _name_row(facts: VerdictFacts, room: int, name_role: Role, caption_role: Role) -> Line:
    left: list[Span] = [Span(facts.name, name_role, True)]
    for chip in facts.chips:
        role = Role.ON_FILL if facts.fill else Role.WARN if chip.startswith("!") else Role.DIM
        short = chip.split(": ")[0]
        for text in (chip, short):
            if sum(cells(s.text) for s in left) + 2 + cells(text) + 2 + cells(facts.caption) <= room:
                left.append(Span(f"  {text}", role))
                break
    for caption in (facts.caption, facts.short_caption):
        line = spread(left, (Span(caption, caption_role),), room) if caption else tuple(left)
        if len(line) > len(left):
            return line
    return tuple(left)


def _fact_rows(facts: VerdictFacts, room: int, full: int) -> list[str]:
    """Return the rows below the name; at least two so that the letters have their height. A cause wraps."""
    first = whole_facts(facts.first, room)
    rows = wrap(first, room)
    if facts.cause:
        # Beside the number only the first row of the cause is narrow; from the letters' feet on the row is wide.
        rows += _wrap_around(facts.cause, room, full, narrow_rows=max(0, 2 - len(rows)))
    else:
        rows += wrap(whole_facts(facts.second, room), room)
    return rows if len(rows) >= 2 else [*rows, ""]


def _wrap_around(text: str, room: int, full: int, narrow_rows: int) -> list[str]:
    if cells(text) <= room or narrow_rows == 0:
        return wrap(text, room if narrow_rows else full)
    head = wrap(text, room)[:narrow_rows]
    rest = text[len(" ".join(head)) :].lstrip(" ")
    return [*head, *wrap(rest, full)] if rest else head


def _advice(facts: VerdictFacts, text_at: int, width: int, labels: tuple[str, str]) -> list[Line]:
    rows: list[Line] = []
    for label, text in zip(labels, (facts.safe, _next_text(facts, width - 2 - text_at)), strict=True):
        if not text:
            continue
        for index, part in enumerate(wrap(text, width - 2 - text_at)):
            head = (" " * _MARGIN + (label if index == 0 else "")).ljust(text_at)
            _, fact_role, label_role = _roles(facts)
            rows.append((Span(head, label_role), Span(part, fact_role, facts.fill is not None)))
    return rows


def _next_text(facts: VerdictFacts, room: int) -> str:
    return whole_facts(facts.next, room, "   ")


def _plain(facts: VerdictFacts, width: int) -> View:
    name_role, fact_role, caption_role = _roles(facts)
    word_role = Role.ON_FILL if facts.fill else facts.role
    bold = facts.fill is not None
    room = width - 2
    left = [Span(f" {facts.glyph} {facts.word}", word_role, bold), Span(f"  {facts.name}", name_role, True)]
    number = Span(facts.number, Role.ON_FILL if facts.fill else Role.STRONG, True)
    rights = [
        (number, Span(f" {c} ", caption_role)) for c in (facts.short_caption,) if c and facts.number and width >= 72
    ]
    if facts.number:
        rights.append((number, Span(" ", caption_role)))
    head: Line = tuple(left)
    for right in rights:
        head = spread(left, right, width)
        if len(head) > len(left):
            break
    for chip in facts.chips:
        used = sum(cells(s.text) for s in (*left, number)) + cells(facts.short_caption) + 4
        if used + cells(chip) < width and len(head) > 2 and len(head) == len(left) + 3:
            gap = head[2]
            text = f"  {chip}"
            head = (
                *head[:2],
                Span(text, Role.ON_FILL if facts.fill else Role.WARN),
                Span(gap.text[cells(text) :]),
                *head[3:],
            )
            break
    rows: list[Line] = [head]
    texts = wrap(whole_facts(facts.first, room), room)
    texts += wrap(facts.cause, room) if facts.cause else wrap(whole_facts(facts.second, room), room)
    if facts.safe:
        texts += wrap(f"safe: {facts.safe}", room)
    if facts.next:
        texts += wrap(f"next: {_next_text(facts, room - 6)}", room)
    rows += [(Span(f" {text}", fact_role, bold),) for text in texts]
    return tuple(rows)
