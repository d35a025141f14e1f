"""What has happened since the console was opened, and since its operator last pressed a key. No I/O."""

from __future__ import annotations

from collections import deque

from console.model import Snapshot
from console.state.happenings import Happening, happenings

_MOST = 2000
AWAY_S = 60.0
"""Without a key for so long, the operator has left."""


class Chronicle:
    """Grows with each snapshot that the screens are shown."""

    def __init__(self) -> None:
        self.events: deque[Happening] = deque(maxlen=_MOST)
        self._before: Snapshot | None = None
        self._key_at: float | None = None
        self._left_at: float | None = None

    def see(self, now: Snapshot) -> None:
        found = happenings(self._before, now)
        if self._before is not None or found:
            self._before = now
        self.events.extend(found)

    def key(self, at: float) -> None:
        """A key was pressed: who was away is back, and what happened meanwhile stays marked."""
        if self._key_at is not None and at - self._key_at >= AWAY_S:
            self._left_at = self._key_at
        self._key_at = at

    def left_at(self, now: float) -> float | None:
        """Return when the operator left last; None where they have been here all the time."""
        if self._key_at is not None and now - self._key_at >= AWAY_S:
            return self._key_at
        return self._left_at
