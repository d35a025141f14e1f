"""What a failed run has different from the last one that was good, under the evidence. Pure."""

from __future__ import annotations

from console.model import Change, Snapshot
from console.ui.present import words
from console.ui.present.frame import title
from console.ui.present.look import Look
from console.ui.present.spans import BLANK, Line, Role, Span, View, cells, dim, faint, strong, whole_facts, wrap

_KIND_CELLS = 16  # as the labels of the evidence above
_SAME_CELLS = _KIND_CELLS + 2


def changed_rows(snapshot: Snapshot, width: int, look: Look, *, narrow: bool) -> View:
    """What differs from the last run that reached stepping: the likeliest culprits, the environment first."""
    changes = snapshot.changes
    if changes is None:
        return ()
    margin = (0, 0) if narrow else (1, 1)
    facts = [(faint("which reached stepping"),)]
    rows: list[Line] = [] if narrow else [BLANK]
    name = f"changed since {words.one_line(changes.since)}"
    number = faint(words.plural(len(changes.items), "difference"))
    fits = cells(name) + cells(number.text) + 10 + sum(margin) <= width
    rows.append(title(name, facts, number if fits else None, width, look, margin=margin))
    indent = 1 if narrow else 2
    room = width - indent - _SAME_CELLS - 1
    for change in changes.items:
        head: Line = (Span(" " * indent + "~ ", Role.WARN), dim(change.kind.ljust(_KIND_CELLS)))
        texts = wrap(_change_text(change, look), room)
        rows.append((*head, *_strong_values(change, texts)))
        rows += [(Span(" " * (indent + _SAME_CELLS)), strong(text)) for text in texts[1:]]
    if changes.same:
        mark = faint(" " * indent + "= ")
        text = whole_facts([words.one_line(each) for each in changes.same], room, ", ")
        rows.append((mark, faint("same".ljust(_KIND_CELLS)), dim(text)))
    return tuple(rows)


def _change_text(change: Change, look: Look) -> str:
    what = words.one_line(change.what)
    if change.edited_at is not None:
        return f"{what}  edited {words.clock(change.edited_at, look.zone, seconds=False)}"
    values = f"{_value(change.then)} → {_value(change.now)}"
    return f"{what}  {values}" if what else values


def _strong_values(change: Change, texts: list[str]) -> Line:
    """The first row, its name plain and what follows it strong."""
    name = words.one_line(change.what)
    first = texts[0] if texts else ""
    if not name or not first.startswith(name):
        return (strong(first),)
    return (Span(name), strong(first[len(name) :]))


def _value(value: str | None) -> str:
    return "unset" if value is None else words.one_line(value) or '""'
