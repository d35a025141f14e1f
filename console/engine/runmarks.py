"""What the console marks in the log pane: where the run began and, behind its last line, how it ended; each once."""

from __future__ import annotations

from collections.abc import Callable

from console import protocol
from console.model import Stage
from console.state import texts
from console.state.logbuffer import LogBuffer


class RunMarks:
    """Marks one log after the other, as its run's record and the reading of it go on."""

    def __init__(self, buffer: LogBuffer, clock: Callable[[float | None], float]) -> None:
        """`clock` turns the host's boot time into the console's; None, a time that nobody knows, into now."""
        self._buffer, self._clock = buffer, clock
        self._record: protocol.RunRecord | None = None
        self._run: str | None = None
        self._marked: set[str] = set()
        self._is_at_end = False

    def begin(self, run: str) -> None:
        """The log of this run is read from here on."""
        self._run, self._marked, self._is_at_end = run, set(), False
        self._mark()

    def stop(self) -> None:
        """No log is read any more."""
        self._run = None

    def host_said(self, record: protocol.RunRecord | None) -> None:
        """Note the journal of the run that is spoken of: another's log stays unmarked."""
        self._record = record
        self._mark()

    def read(self, *, is_at_end: bool) -> None:
        """More of the log was read."""
        self._is_at_end = is_at_end
        self._mark()

    def _mark(self) -> None:
        record = self._record
        if record is None or record.id != self._run:
            return
        main, ended, spawned = record.main, record.exit, record.stages.get(Stage.SPAWNED)
        # The keeper writes down who is to be the run before it is executed; the evidence comes with the exec.
        if main is not None and spawned is not None and spawned.evidence and "started" not in self._marked:
            self._marked.add("started")
            inode = f", log opened (inode {record.log.inode})" if record.log and record.log.inode else ""
            self._buffer.mark(f"started  pid {main.pid}{inode}", self._clock(record.spawned_bt))
        if ended is not None and self._is_at_end and "exited" not in self._marked:
            self._marked.add("exited")
            self._buffer.mark(f"exited   {_how(ended)}", self._clock(ended.ended_bt))


def _how(ended: protocol.ExitRecord) -> str:
    """Return how a run ended in a few words: `status 126, 0.2 s after exec`."""
    facts = [f"signal {ended.signal}" if ended.signal is not None else f"status {ended.code}"]
    if ended.lived_s is not None:
        facts.append(f"{texts.duration(ended.lived_s)} after exec")
    if ended.by:
        facts.append(f"asked for by {ended.by}")
    return ", ".join(facts)
