"""When a byte of the log was written, from the sizes that the keeper noted while nobody watched."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from console.protocol import Growth

_NOTED_S = 5.0
"""A keeper notes a log that grows each second; what is on its way to the disk takes a moment more."""
_SAMPLED_S = 20.0
"""A keeper notes what its run's processes use every 10 s at least: twice that."""


class GrowthIndex:
    """Answers `when was the byte before this offset there?` from (size, time) notes of one log."""

    def __init__(self, records: Iterable[Growth] = (), *, asked_bt: float | None = None) -> None:
        """`asked_bt`: the host's boot time at which the keeper's notes were read."""
        self._asked_bt = asked_bt
        self._first_bt: float | None = None
        self._newest_bt = float("-inf")
        self._sizes: list[int] = []
        self._times_bt: list[float] = []
        self.was_truncated = False
        """What is at the log's beginning now is not how the run began."""
        for record in records:
            self.add(record)

    def add(self, record: Growth) -> None:
        """Take a note; of one that isn't about the log, or that says nothing new, only when it was made."""
        self._first_bt = record.bt if self._first_bt is None else self._first_bt
        self._newest_bt = max(self._newest_bt, record.bt)
        if record.k != "log" or record.size is None:
            return
        if self._sizes and record.size < self._sizes[-1]:  # truncated: the old offsets mean nothing any more
            self.was_truncated = True
            self._sizes.clear()
            self._times_bt.clear()
        if not self._sizes or record.size > self._sizes[-1]:
            self._sizes.append(record.size)
            self._times_bt.append(record.bt)

    def __bool__(self) -> bool:
        return bool(self._sizes)

    @property
    def last_size_bytes(self) -> int:
        """Size that was noted last; 0 where none was."""
        return self._sizes[-1] if self._sizes else 0

    @property
    def last_bt(self) -> float | None:
        """Host boot time at which the log last grew, or None where nobody noted it."""
        return self._times_bt[-1] if self._times_bt else None

    @property
    def goes_on(self) -> bool:
        """Whether the keeper went on noting when its notes were read: what stands behind them was written since."""
        asked_bt = self._asked_bt
        if asked_bt is None or self._first_bt is None or asked_bt - self._newest_bt >= _SAMPLED_S:
            return False
        return bool(self._sizes) or asked_bt - self._first_bt < _SAMPLED_S

    def reaches(self, bt: float, size_bytes: int, now_bt: float) -> bool:
        """Whether the notes tell what was there at a moment, of a log that has this size now.

        What was written after the last note, long ago, may be of before that moment or not.
        """
        if self.last_bt is None:
            return False
        return bt <= self.last_bt or size_bytes <= self.last_size_bytes or now_bt - self.last_bt < _NOTED_S

    def size_at(self, bt: float) -> int | None:
        """Return how large the log was at a moment at the latest: what was written later stands behind that."""
        if not self._sizes:
            return None
        index = bisect_right(self._times_bt, bt)
        return self._sizes[index - 1] if index else 0

    def written_bt(self, end_offset: int) -> float | None:
        """Return the host's boot time by which the bytes up to `end_offset` were written, or None where unknown."""
        index = bisect_left(self._sizes, end_offset)
        return self._times_bt[index] if index < len(self._sizes) else None
