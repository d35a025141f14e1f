"""The table of runs: how each ended, how fast it was, what was changed for it. Pure.

Columns go in the order of their worth when it gets narrow; what was changed and the note take what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo

from msgspec import Struct

from console.history import words as history
from console.history.entry import Entry
from console.history.words import Sign
from console.state.formatrules import Scope
from console.state.series import WARM_UP_STEPS
from console.ui.present import words
from console.ui.present.frame import title
from console.ui.present.look import Glyphs, Look
from console.ui.present.spans import Line, Role, Span, View, cells, clip, dim, faint, strong

_GIB = 1024.0**3
_MARK_CELLS = 5
_LEAST_FREE = 14
_LONGEST_NAME, _LONGEST_END = 22, 26
_LONGEST_UNREAD = 44


class RunList(Struct, frozen=True, kw_only=True):
    """What the table shows and what is marked in it."""

    rows: tuple[Entry, ...] = ()
    cursor: int = 0
    a: str | None = None
    """Id of the run that is marked A."""
    b: str | None = None
    live: str | None = None
    """Id of the run that is watched, with the verdict on it."""
    verdict: str = ""
    me: str = ""
    target: str = ""
    read: bool = False
    """The ledger has answered."""
    logs_read: bool = True
    """False: there may be logs of earlier runs that nobody has looked at yet."""
    has_older: bool = False
    """There are more runs than are listed."""
    complaint: str = ""
    unread: frozenset[str] = frozenset()
    """Ids of runs that are over and whose logs are still to be read."""

    @property
    def at_cursor(self) -> Entry | None:
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None

    def find(self, run: str | None) -> Entry | None:
        return next((row for row in self.rows if row.id == run), None)


class _Column(Struct, frozen=True, kw_only=True):
    head: str
    cells: tuple[Span, ...]
    right: bool = False
    worth: int
    """The lowest goes first."""
    width: int


def _column(head: str, spans: tuple[Span, ...], *, worth: int, right: bool = False) -> _Column:
    width = max([cells(head), *(cells(span.text) for span in spans)])
    return _Column(head=head, cells=spans, right=right, worth=worth, width=width)


def _nothing(runs: RunList) -> str:
    if not runs.read:
        return "reading the ledger …"
    if not runs.logs_read:
        return "no run is known yet · logs of earlier runs are being looked for …"
    return "no run is known yet · r starts the first one"


def run_table(runs: RunList, width: int, rows: int, now: float, look: Look) -> View:
    """Return title, head and as many runs as fit into `rows` rows, those around the cursor."""
    head = _title(runs, width, look)
    if not runs.rows:
        return (head, (Span("     "), faint(clip(runs.complaint or _nothing(runs), width - 6))))
    room = max(1, rows - 2 - bool(runs.complaint))
    first = min(max(0, runs.cursor - room // 2), max(0, len(runs.rows) - room))
    shown = range(first, min(len(runs.rows), first + room))
    columns = _fitting(_columns(runs, now, look), width - _MARK_CELLS - 1)
    used = _MARK_CELLS + sum(column.width for column in columns) + 2 * (len(columns) - 1)
    free = width - used - 3
    complaint: list[Line] = []
    if runs.complaint:
        complaint.append((Span("     "), Span(clip(runs.complaint, width - 6), Role.WARN)))
    lines: list[Line] = [head, *complaint, _heads(columns, free)]
    for index in shown:
        row = [_mark(runs, index, look)]
        row += _padded(columns, index)
        if free >= _LEAST_FREE:
            row.append(Span(f"  {clip(_remarks(runs, index), free)}", Role.DIM))
        lines.append(tuple(row))
    return tuple(lines)


def _title(runs: RunList, width: int, look: Look) -> Line:
    facts: list[tuple[Span, ...]] = [(dim(_how_many(runs)),)] if runs.rows else []
    for letter, run, role in (("A", runs.find(runs.a), Role.TARGET), ("B", runs.find(runs.b), Role.DRAFTER)):
        if run is not None:
            facts.append((Span(f"{letter} ", role, True), strong(name_of(run))))
    if left := [words.one_line(row.name or row.id) for row in runs.rows if row.id in runs.unread]:
        facts.insert(0, (Span(clip(history.not_read(left), min(_LONGEST_UNREAD, max(20, width - 44))), Role.WARN),))
    hint = faint("space marks A, B") if runs.rows and not (runs.a and runs.b) else faint("space unmarks")
    return title(f"runs on {runs.target}", facts, hint if runs.rows else None, width, look)


def _how_many(runs: RunList) -> str:
    if runs.has_older:
        return f"the {len(runs.rows)} newest, older ones: history -n"
    return f"{len(runs.rows)}, newest first"


def name_of(run: Entry) -> str:
    return words.one_line(run.name) or words.NOT_APPLICABLE


# -- columns ----------------------------------------------------------------------------------------------------------


def _columns(runs: RunList, now: float, look: Look) -> list[_Column]:
    rows = runs.rows
    has_gpus = any(row.peaks for row in rows)
    ends = [history.ending(row, runs.verdict if row.id == runs.live else "", runs.me) for row in rows]
    return [
        _column(head="run", spans=tuple(strong(clip(name_of(row), _LONGEST_NAME)) for row in rows), worth=99),
        _column(head="started", spans=tuple(dim(started(row, now, look.zone)) for row in rows), worth=4),
        _column(
            head="launch",
            spans=tuple(dim(words.duration(row.launch_s) if row.launch_s is not None else _lack(row)) for row in rows),
            right=True,
            worth=2,
        ),
        _column(head="end", spans=tuple(_end(each, look.glyphs) for each in ends), worth=90),
        _column(head="steps", spans=tuple(dim(_steps(row)) for row in rows), right=True, worth=5),
        _column(head="tok/s", spans=tuple(Span(_rate(row)) for row in rows), right=True, worth=80),
        _column(head="±", spans=tuple(dim(_spread(row)) for row in rows), right=True, worth=1),
        _column(head="peak", spans=tuple(dim(_peak(row, has_gpus=has_gpus)) for row in rows), right=True, worth=3),
        _column(head="loss", spans=tuple(_loss(row) for row in rows), right=True, worth=6),
    ]


def _fitting(columns: list[_Column], width: int) -> list[_Column]:
    kept = list(columns)
    while len(kept) > 1 and sum(column.width for column in kept) + 2 * (len(kept) - 1) > width:
        kept.remove(min(kept, key=lambda column: column.worth))
    return kept


def _heads(columns: Sequence[_Column], free: int) -> Line:
    texts = [c.head.rjust(c.width) if c.right else c.head.ljust(c.width) for c in columns]
    more = "  changed, note" if free >= _LEAST_FREE else ""
    return (Span(" " * _MARK_CELLS), faint("  ".join(texts) + more))


def _padded(columns: Sequence[_Column], index: int) -> list[Span]:
    found: list[Span] = []
    for number, column in enumerate(columns):
        span = column.cells[index]
        blank = " " * (column.width - cells(span.text))
        joint = "  " if number else ""
        if column.right:
            found += [Span(joint + blank), span]
        else:
            found += [Span(joint), span, Span(blank)]
    return found


def _mark(runs: RunList, index: int, look: Look) -> Span:
    row = runs.rows[index]
    letter = "A" if row.id == runs.a else "B" if row.id == runs.b else " "
    role = Role.TARGET if letter == "A" else Role.DRAFTER if letter == "B" else Role.BUSY
    here = look.glyphs.mark if index == runs.cursor else " "
    return Span(f" {here}{letter.rjust(2)} ", Role.BUSY if letter == " " else role, True)


_SIGN_ROLES = {
    Sign.LIVE: Role.OK,
    Sign.BUSY: Role.BUSY,
    Sign.WARN: Role.WARN,
    Sign.DONE: Role.DIM,
    Sign.BAD: Role.ERROR,
    Sign.UNKNOWN: Role.DIM,
}


def _end(end: history.Ending, glyphs: Glyphs) -> Span:
    glyph = {
        Sign.LIVE: glyphs.live,
        Sign.BUSY: glyphs.active,
        Sign.WARN: glyphs.warn,
        Sign.DONE: glyphs.idle,
        Sign.BAD: glyphs.fail,
        Sign.UNKNOWN: glyphs.unknown,
    }[end.sign]
    text = clip(f"{glyph} {words.one_line(end.text)}", _LONGEST_END)
    return Span(text, _SIGN_ROLES[end.sign], end.sign is Sign.BAD)


def started(row: Entry, now: float, zone: tzinfo | None) -> str:
    """`today 12:18`, `12 Aug 09:02`; of a log alone, when it was written last: `until yesterday 18:40`."""
    wall = row.ended_wall if row.is_log_only and row.lived_s is None else row.accepted_wall
    if not wall:
        return words.UNKNOWN
    try:
        moment, today = datetime.fromtimestamp(wall, zone), datetime.fromtimestamp(now, zone).date()
    except (OverflowError, OSError, ValueError):
        return words.UNKNOWN
    near = {today: "today", today - timedelta(days=1): "yesterday"}
    day = near.get(moment.date()) or f"{moment.day} {moment.strftime('%b')}"
    text = f"{day} {moment.strftime('%H:%M')}"
    return f"until {text}" if row.is_log_only and row.lived_s is None else text


def _steps(row: Entry) -> str:
    if row.last_step is not None:
        return words.count(row.last_step)
    return "0" if row.made_no_step else words.UNKNOWN


def _lack(row: Entry) -> str:
    """What stands for a number that is missing: it has one and nobody knows it, or it has none."""
    return words.UNKNOWN if row.stepped or row.is_log_only else words.NOT_APPLICABLE


def _rate(row: Entry) -> str:
    return (
        _lack_of_rate(row) if row.steady_tok_s is None else f"{_figure(row.steady_tok_s)}{_OF.get(row.scope or '', '')}"
    )


def _spread(row: Entry) -> str:
    return _lack_of_rate(row) if row.steady_mad is None else _figure(row.steady_mad)


def _lack_of_rate(row: Entry) -> str:
    made = row.last_step - (row.first_step or 0) if row.last_step is not None else None
    return words.NOT_APPLICABLE if made is not None and made < WARM_UP_STEPS else _lack(row)


def _figure(value: float) -> str:
    return words.count(value) if not 0 < value < 10 else f"{value:.2g}"


_OF: dict[str, str] = {Scope.PER_DEVICE: "/GPU", Scope.RANK: "/rank"}
"""Whose tokens a rate counts, where that isn't those of all GPUs."""


def _peak(row: Entry, *, has_gpus: bool) -> str:
    peak = max(row.peaks.values(), default=None)
    if peak is None:
        return _lack(row) if has_gpus else words.NOT_APPLICABLE
    return words.gib(peak)


def _loss(row: Entry) -> Span:
    if row.loss_state in ("nan", "inf"):
        return Span("NaN" if row.loss_state == "nan" else "inf", Role.ERROR, True)
    return dim(_lack(row) if row.last_loss is None else words.loss(row.last_loss))


def _remarks(runs: RunList, index: int) -> str:
    row = runs.rows[index]
    changed = history.changed(row, history.before(row, runs.rows[index + 1 :]))
    note = f"“{row.remark}”" if row.remark else ""
    return words.one_line(" · ".join(filter(None, [note, "; ".join(changed)])))
