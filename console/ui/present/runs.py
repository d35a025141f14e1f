"""The runs screen: verdict in a row, the table, and below it the two marked runs or all about the chosen one. Pure."""

from __future__ import annotations

from typing import NamedTuple

from console.history import words as history
from console.history.entry import Entry
from console.model import Snapshot
from console.ui import plot
from console.ui.present import words
from console.ui.present.band import band_row
from console.ui.present.frame import header, title
from console.ui.present.look import Look
from console.ui.present.runcompare import compare_view
from console.ui.present.runplot import Beside
from console.ui.present.runtable import RunList, name_of, run_table
from console.ui.present.spans import BLANK, Line, Role, Span, View, as_text, dim, wrap
from console.ui.present.verdict import verdict_facts

_HEADER_FROM = 22
_HEADS = 2
_LEAST_TABLE = 4
_COMPARISON = 20
"""Rows that figures, differences and a small plot want."""
_REPORT_WIDTH, _REPORT_ROWS = 120, 80


class RunsPage(NamedTuple):
    """The rows between header and footer."""

    header: View
    band: Line
    fill: str | None
    body: View


class RunsPainter:
    """Paints the screen; two runs side by side are drawn anew only when they were read anew or the size has changed."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._drawn: tuple[object, View] = (None, ())

    def paint(self, snapshot: Snapshot, runs: RunList, beside: Beside | None, width: int, height: int) -> RunsPage:
        """Return the page in `height` rows, the footer not among them."""
        look = self._look
        head: View = (header(snapshot, width, look),) if height >= _HEADER_FROM else ()
        facts = verdict_facts(snapshot, look)
        body = self._body(snapshot, runs, beside, width, height - len(head) - 1)
        return RunsPage(head, band_row(facts, width), facts.fill, body)

    def _body(self, snapshot: Snapshot, runs: RunList, beside: Beside | None, width: int, rows: int) -> View:
        wanted, look = len(runs.rows) + _HEADS, self._look
        if beside is not None:
            table = run_table(runs, width, max(_LEAST_TABLE, min(wanted, rows - _COMPARISON)), snapshot.at, look)
            space: View = (BLANK,) if rows - len(table) > _COMPARISON + 2 else ()
            return (*table, *space, *self._compared(beside, width, rows - len(table) - len(space)))
        detail = _detail(runs, width, look)
        table = run_table(runs, width, max(_LEAST_TABLE, min(wanted, rows - len(detail) - 1)), snapshot.at, look)
        space = (BLANK,) if rows - len(table) > len(detail) else ()
        return (*table, *space, *detail)[:rows]

    def _compared(self, beside: Beside, width: int, rows: int) -> View:
        key = (beside.version, beside.curve, beside.by_step, width, rows, plot.loaded())
        if self._drawn[0] != key:
            self._drawn = key, compare_view(beside, width, rows, self._look)
        return self._drawn[1]


def _detail(runs: RunList, width: int, look: Look) -> View:
    """All that is known of the chosen run and has no column."""
    row = runs.at_cursor
    if row is None:
        return ()
    lines: list[Line] = [title(name_of(row), [(dim(row.id),)], None, width, look)]
    for label, text, role in _facts(runs, row):
        rows = wrap(words.one_line(text), max(10, width - 14))
        lines.append((dim(f"  {label.ljust(9)} "), Span(rows[0], role)))
        lines += [(Span(" " * 12), Span(more, role)) for more in rows[1:]]
    return tuple(lines)


def _facts(runs: RunList, row: Entry) -> list[tuple[str, str, Role]]:
    older = runs.rows[runs.cursor + 1 :]
    then = history.before(row, older)
    end = history.ending(row, runs.verdict if row.id == runs.live else "", runs.me)
    facts = [("end", " · ".join(filter(None, [end.text, row.detail])), Role.TEXT)]
    if row.remark:
        facts.append(("note", row.remark, Role.TEXT))
    if then is not None and not row.is_log_only:
        changed = history.changed(row, then) or ["nothing in environment, arguments and scripts"]
        facts += [("changed" if n == 0 else "", text, Role.TEXT) for n, text in enumerate(changed)]
        facts.append(("since", f"{then.name or then.id}, which reached stepping", Role.DIM))
    if row.checkpoint_step is not None:
        facts.append(("saved", f"checkpoint {words.count(row.checkpoint_step)}", Role.DIM))
    who = f"{row.operator} from {row.origin}" if row.origin else row.operator
    if who:
        facts.append(("by", who, Role.DIM))
    if row.log_path:
        facts.append(("log", row.log_path, Role.DIM))
    if row.id in runs.unread:
        facts.append(("", f"not read yet: the run {history.MAY_BE_MORE}", Role.WARN))
    return facts


def report(runs: RunList, beside: Beside | None, snapshot: Snapshot, look: Look) -> str:
    """Return what is shown as plain text, whole."""
    view: list[Line] = list(run_table(runs, _REPORT_WIDTH, len(runs.rows) + _HEADS, snapshot.at, look))
    if beside is not None:
        view += [BLANK, *compare_view(beside, _REPORT_WIDTH, _REPORT_ROWS, look)]
    return as_text(view)
