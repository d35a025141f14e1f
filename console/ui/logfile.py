"""The file on the host whose log is shown: which it is, how large, and looks into it that never fail unsaid.

Lines that are hidden are left out of what a look brings. Knows neither what of the file is here already nor how it is
shown: a view is told when this becomes another file, and when the host finds an expression too slow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from console.model import LinkState, LogState, Snapshot
from console.reasons import ConsoleError, Reason
from console.state.linekind import LineKind, classify
from console.state.logquery import Counted, Place, Query
from console.state.stretch import Stretch
from console.ui.logpatterns import SlowQuery
from console.ui.logrows import Sieve
from console.ui.present.words import one_line
from console.ui.source import LogSource

T = TypeVar("T")

RANGE_BYTES = 128 << 10
"""One look: about a thousand lines, a tenth of a second over a slow link."""
FILTERED_LINES = 200
_SIEVED_BYTES = 512 << 10
"""One look while step lines are hidden: most of a log is nothing else."""
_NO_LINK = "no link: not all is here"


class ShownFile:
    def __init__(
        self,
        logs: LogSource,
        sieve: Sieve,
        *,
        on_another: Callable[[], None],
        on_slow: Callable[[Query], None],
    ) -> None:
        self.logs, self._sieve = logs, sieve
        self._on_another, self._on_slow = on_another, on_slow
        self.place: Place | None = None
        """None while none is known."""
        self.is_other = False
        """It is not the one that is followed."""
        self.size_bytes = 0
        self.changes = 0
        """How often this became another file, or another content of it was met by a look."""
        self.trouble = ""
        """What the title says went wrong."""

    # -- which it is --------------------------------------------------------------------------------------------------

    def seen(self, snapshot: Snapshot) -> bool:
        """Take from a snapshot which log is followed; return whether another one is shown now than before."""
        log, run = snapshot.log, snapshot.run
        if self.trouble == _NO_LINK and snapshot.link.state is LinkState.UP and log.lost is None:
            self.trouble = ""
        if self.is_other:
            return False
        self.size_bytes = log.size_bytes or 0
        path = log.path if log.path and log.state is not LogState.MISSING else None
        if path is None:
            self.place = None
        elif self.place is None or self.place.path != path:
            self.place = Place(path=path, pid=run.pid if run is not None else None)
            self._became_another()
            return True
        return False

    def become(self, place: Place | None, *, is_other: bool) -> None:
        """Show another file from now on; None: the followed one, as soon as a snapshot names it."""
        self.place, self.is_other, self.size_bytes = place, is_other, 0
        self._became_another()

    def forget_identity(self) -> None:
        """Whichever file has the name now is meant."""
        if self.place is not None:
            self.place = msgspec.structs.replace(self.place, identity=None)

    def pin(self, place: Place, found: Stretch) -> None:
        """Take from a look which file it was, and how large; the next ones are to meet the same."""
        self.size_bytes = max(found.size_bytes, self.size_bytes) if not self.is_other else found.size_bytes
        if place.identity is None and self.place is place:
            self.place = msgspec.structs.replace(place, identity=found.identity)

    def percent_of(self, offset: int) -> str:
        """Return how far into the file an offset is."""
        return f"{100 * offset // max(1, self.size_bytes)} %"

    def _became_another(self) -> None:
        """Nothing that was found holds any more."""
        self.changes += 1
        self.trouble = ""
        self._on_another()

    # -- looks that raise ---------------------------------------------------------------------------------------------

    async def next_to(self, place: Place, offset: int, *, back: bool) -> Stretch:
        """Ask for what stands next to what is here, as far as the filter lets it through."""
        if self._sieve.only is not None:
            return await self.matching(place, self._sieve.only, offset, back=back)
        return await self.lines(place, offset, RANGE_BYTES, back=back)

    async def lines(
        self, place: Place, offset: int, length: int, *, back: bool = False, align: bool = False
    ) -> Stretch:
        """Ask for lines; those that are hidden are left out at once, or they would push out what is seen."""
        length = max(length, _SIEVED_BYTES) if self._sieve.hides_steps else length
        found = await self.logs.lines(place, offset, length, back=back, align=align)
        if not self._sieve.hides_steps:
            return found
        kept = [i for i, line in enumerate(found.lines) if classify(line.text) is not LineKind.STEP]
        return msgspec.structs.replace(
            found, lines=tuple(found.lines[i] for i in kept), breaks=tuple(found.breaks[i] for i in kept),
            left_out=len(found.lines) - len(kept),
        )  # fmt: skip

    async def matching(
        self, place: Place, query: Query, offset: int, *, back: bool = False, limit: int = FILTERED_LINES
    ) -> Stretch:
        """Ask for lines that match. Raises: SlowQuery, ConsoleError."""
        try:
            return await self.logs.matching(place, query, offset, back=back, limit=limit)
        except ConsoleError as error:
            if error.reason is Reason.PATTERN_SLOW and not query.literal:
                raise SlowQuery(query) from error
            raise

    # -- looks that say what went wrong -------------------------------------------------------------------------------

    async def guarded(self, work: Awaitable[T]) -> T | None:
        """Do it; say in the title what went wrong, and forget a file that was replaced. None: it did not work."""
        try:
            done = await work
        except SlowQuery as slow:
            self._on_slow(slow.query)
            return None
        except ConsoleError as error:
            if error.reason is Reason.LOG_REPLACED:
                self.forget_identity()
                self._became_another()
                self.trouble = "the log was replaced while it was read"
            elif error.reason is Reason.NO_LINK:
                self.trouble = _NO_LINK
            else:
                self.trouble = one_line(error.detail or str(error.reason))
            return None
        self.trouble = ""
        return done

    async def look_for(self, query: Query, offset: int, *, back: bool, limit: int) -> Stretch | None:
        """Ask the host for lines that match from an offset on; None where it can't say: `trouble` tells why."""

        async def look(place: Place) -> Stretch:
            found = await self.matching(place, query, offset, back=back, limit=limit)
            self.pin(place, found)
            return found

        return await self.guarded(look(self.place)) if self.place is not None else None

    async def count(self, query: Query, offset: int) -> Counted | None:
        """Ask the host to count lines that match from an offset on, for a moment; None where it can't."""
        return await self.guarded(self.logs.count(self.place, query, offset)) if self.place is not None else None
