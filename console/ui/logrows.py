"""Which of a log's entries become rows: lines that a filter lets through, step lines or not, equal tracebacks as one.

Knows neither what is on the screen nor where in the file an entry stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from console.state.folding import folds
from console.state.linekind import LineKind, classify
from console.state.logbuffer import Entry, EntryKind
from console.state.logquery import Query
from console.state.logwindow import LOADED
from console.ui.logpatterns import Patterns
from console.ui.present.words import one_line

_KINDS_KEPT = 20_000


class Row(NamedTuple):
    """One line as it is shown."""

    entry: Entry
    text: str
    at: int
    """Place of the entry among those that were given."""
    folded: bool = False
    """It stands for equal tracebacks of several ranks."""


class Sieve:
    """What of a log is to be seen, as the operator chose it."""

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        self._only: Query | None = None
        self.hides_steps = self.unfolds = False
        self._kinds: dict[tuple[int, int | None, str], LineKind] = {}

    @property
    def only(self) -> Query | None:
        """The filter: lines that match are shown, no others; None: all are."""
        return self._patterns.taken(self._only) if self._only is not None else None

    @only.setter
    def only(self, query: Query | None) -> None:
        self._only = query

    @property
    def leaves_out(self) -> bool:
        """Whether lines are missing between those that are shown."""
        return self._only is not None or self.hides_steps

    @property
    def choice(self) -> tuple[Query | None, bool, bool]:
        """What rows depend on besides the entries."""
        return self.only, self.hides_steps, self.unfolds

    def rows(self, entries: Sequence[Entry], cursor: Entry | None) -> tuple[list[Row], int]:
        """Return the rows, and how many step lines are hidden between them; the cursor's entry never folds away.

        Raises: SlowQuery.
        """
        told = {} if self.unfolds else _folded(entries, cursor)
        query = self.only
        passes = self._patterns.finder(query) if query is not None else None
        rows: list[Row] = []
        hidden_steps = 0
        for number, entry in enumerate(entries):
            text = told.get(number)
            if text == "":
                continue
            if passes is not None and (entry.kind is not EntryKind.LINE or not passes(entry.text)):
                continue
            if self.hides_steps and self.kind(entry) is LineKind.STEP:
                hidden_steps += 1
                continue
            rows.append(Row(entry, one_line(text or entry.text), number, folded=bool(text)))
        return rows, hidden_steps

    def kind(self, entry: Entry) -> LineKind:
        if entry.kind is not EntryKind.LINE:
            return LineKind.PLAIN
        key = (entry.number, entry.offset, entry.text if entry.number == LOADED else "")
        known = self._kinds.get(key)
        if known is None:
            if len(self._kinds) > _KINDS_KEPT:
                self._kinds.clear()
            known = self._kinds[key] = classify(entry.text)
        return known


def _folded(entries: Sequence[Entry], cursor: Entry | None) -> dict[int, str]:
    """Return for each folded entry its text: that of the whole at the first one, nothing at the others."""
    if not any("Traceback (most" in entry.text for entry in entries):
        return {}
    told: dict[int, str] = {}
    for fold in folds([entry.text if entry.kind is EntryKind.LINE else "" for entry in entries]):
        if cursor is not None and any(entries[index] is cursor for index in fold.members):
            continue  # what was searched for must be seen
        told |= dict.fromkeys(fold.members, "")
        told[fold.first] = fold.text
    return told
