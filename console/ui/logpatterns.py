"""Expressions of searches and filters: each within bounds, and one that takes too long is a text from then on.

Shared by what shows a log and what searches it: an expression that was too slow for one of them is so for both. Knows
neither of them.
"""

from __future__ import annotations

from collections.abc import Callable

from console.bounded import Bounded, TooSlow, bounded
from console.state.logquery import Query, has_signs, typed

_BOUNDS_KEPT = 8


class SlowQuery(Exception):
    """A query takes too long, here or on the host."""

    def __init__(self, query: Query) -> None:
        super().__init__(query.text)
        self.query = query


class Patterns:
    def __init__(self) -> None:
        self._bounds: dict[Query, Bounded] = {}
        self._texts: dict[Query, Query] = {}
        """What is taken as a text, since it takes too long as an expression, and as which."""

    def take_as_text(self, slow: Query) -> None:
        """Look for the expression's own letters from now on: their search always ends."""
        self._texts[slow] = typed(slow.text, literal=True)

    def taken(self, query: Query) -> Query:
        """Return as which a query is searched for."""
        return self._texts.get(query, query)

    def is_slow(self, query: Query) -> bool:
        """Whether it was found to take too long."""
        return query in self._texts

    def is_text_of_slow(self, query: Query) -> bool:
        """Whether it stands for an expression that was found to take too long."""
        return query in self._texts.values()

    def named(self, query: Query) -> str:
        """Return what the title calls a query."""
        if self.is_text_of_slow(query):
            return f"{query.text} (takes too long: as text)"
        return f"{query.text} (as text)" if query.literal and has_signs(query.text) else query.text

    def finder(self, query: Query) -> Callable[[str], bool]:
        """Return what tells whether a text holds a query. It raises: SlowQuery."""
        bound = self._bound(query)

        def holds(text: str) -> bool:
            try:
                return bound.search(text) is not None
            except TooSlow as exc:
                raise SlowQuery(query) from exc

        return holds

    def spans(self, query: Query, text: str) -> list[tuple[int, int]]:
        """Return where in a text a query is found. Raises: SlowQuery."""
        try:
            found = self._bound(query).findall(text)
        except TooSlow as exc:
            raise SlowQuery(query) from exc
        return [hit.span() for hit in found if hit.end() > hit.start()]

    def _bound(self, query: Query) -> Bounded:
        """Return one for all uses of a query: what it may take is counted over all of them."""
        if query not in self._bounds:
            if len(self._bounds) >= _BOUNDS_KEPT:
                self._bounds.pop(next(iter(self._bounds)))
            self._bounds[query] = bounded(query)
        return self._bounds[query]
