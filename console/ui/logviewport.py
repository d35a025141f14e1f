"""Rows under a pane of some height and width: which of them are on it, and how its top moves line by line.

Long rows may wrap into several lines. Where rows come from is not known here, nor what is missing above or below them.
"""

from __future__ import annotations

from typing import NamedTuple

from console.state.logbuffer import Entry
from console.ui.logrows import Row
from console.ui.present.wrapping import line_count


class Shown(NamedTuple):
    """One line of the pane."""

    row: Row
    number: int
    line: int
    """Which of the row's lines, where a long one is wrapped."""


class Viewport:
    def __init__(self) -> None:
        self.height, self.room = 1, 80
        """Lines of the pane, and cells of a line."""
        self.wraps = False
        self.rows: list[Row] = []
        self.top, self._sub = 0, 0
        """The first row on the pane, and which of its lines is the first."""
        self._shift = 1 << 20
        """Makes a row's number: it stays the same when rows come or go above it."""

    @property
    def from_top(self) -> list[Row]:
        return self.rows[self.top :]

    def lines(self) -> list[Shown]:
        """Return what fills the pane from the top, line by line; rows are known by numbers that move with them."""
        found: list[Shown] = []
        at, sub = self.top, self._sub
        while len(found) < self.height and at < len(self.rows):
            row = self.rows[at]
            found += [Shown(row, at + self._shift, line) for line in range(sub, self._lines_of(row))]
            at, sub = at + 1, 0
        return found[: self.height]

    def numbered(self, first: int, last: int) -> list[tuple[int, str]]:
        """Return the rows with these numbers, as far as they are here."""
        start, stop = max(0, first - self._shift), max(0, last + 1 - self._shift)
        return [(place + self._shift, row.text) for place, row in enumerate(self.rows[start:stop], start)]

    def _lines_of(self, row: Row) -> int:
        return line_count(row.text, self.room) if self.wraps else 1

    # -- other rows ---------------------------------------------------------------------------------------------------

    def put(self, rows: list[Row]) -> None:
        """Stand at the first of other rows."""
        self.rows, self.top, self._sub = rows, 0, 0

    def put_around_top(self, rows: list[Row]) -> None:
        """Take other rows; keep in place what is at the top, or what stands nearest to it where that is hidden now."""
        anchor = self.rows[self.top].entry if self.top < len(self.rows) else None
        self.rows = rows
        if anchor is None:
            self.top = min(self.top, max(0, len(rows) - 1))
            return
        for index, row in enumerate(rows):
            if row.entry is anchor:
                self._shift += self.top - index
                self.top = index
                return
        offset = anchor.offset or 0
        later = (i for i, row in enumerate(rows) if row.entry.offset is not None and row.entry.offset >= offset)
        self.top, self._sub = next(later, max(0, len(rows) - 1)), 0

    # -- moving -------------------------------------------------------------------------------------------------------

    def go_first(self) -> None:
        self.top = self._sub = 0

    def go_last(self, kept_free: int = 0) -> None:
        """Let the last row stand at the bottom, above lines that are kept free."""
        self.top, self._sub = self._lowest(kept_free)

    def up(self, lines: int) -> int:
        """Go up by lines; return how many there weren't."""
        while lines > 0:
            if self._sub >= lines:
                self._sub -= lines
                return 0
            lines -= self._sub
            self._sub = 0
            if self.top == 0:
                return lines
            self.top -= 1
            self._sub = self._lines_of(self.rows[self.top])
        return 0

    def down(self, lines: int) -> bool:
        """Go down by lines; return whether the last row is on the pane."""
        lowest = self._lowest()
        while lines > 0 and (self.top, self._sub) < lowest:
            lines -= 1
            self._sub += 1
            if self._sub >= self._lines_of(self.rows[self.top]):
                self.top, self._sub = self.top + 1, 0
        if (self.top, self._sub) > lowest:
            self.top, self._sub = lowest
        return (self.top, self._sub) == lowest

    def place(self, entry: Entry, *, at_top: bool = False) -> None:
        """Show an entry a third down the pane, or at its top."""
        index = next((i for i, row in enumerate(self.rows) if row.entry is entry), None)
        if index is None:
            return
        self.top, self._sub = index, 0
        if not at_top:
            self.up(self.height // 3)
        if (self.top, self._sub) > (lowest := self._lowest()):
            self.top, self._sub = lowest

    def _lowest(self, kept_free: int = 0) -> tuple[int, int]:
        """Return the top with which the last row stands at the bottom."""
        left = max(1, self.height - kept_free)
        at = len(self.rows)
        while at > 0 and left > 0:
            at -= 1
            lines = self._lines_of(self.rows[at])
            if lines >= left:
                return at, lines - left
            left -= lines
        return at, 0
