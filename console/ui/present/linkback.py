"""What is said when a lost link is back: how long it was away, and what of the log was lost meanwhile. Pure.

Nothing is claimed before it can be known: the log has to be looked at anew, up to its end.
"""

from __future__ import annotations

from msgspec import Struct

from console.model import LinkState, LogState, Snapshot
from console.state.logbuffer import EntryKind, LogBuffer
from console.ui.present import words

# Catching up over a slow link; whoever waits longer than this is told without the log's part.
_PATIENCE_S = 6.0


class _Loss(Struct, frozen=True, kw_only=True):
    since: float
    run_id: str | None
    log_end: int
    """Number that the first log entry after the loss gets."""
    back_at: float | None = None


class LinkWatch:
    """Fed with every snapshot; says its sentence once, when the link is back and the log has caught up."""

    def __init__(self) -> None:
        self._loss: _Loss | None = None

    def see(self, snapshot: Snapshot, log: LogBuffer) -> str | None:
        """Return what to say now, if anything."""
        link = snapshot.link
        if link.state is not LinkState.UP:
            if link.last_word_at is not None and (self._loss is None or self._loss.back_at is not None):
                since = link.last_word_at if self._loss is None else self._loss.since
                run_id = snapshot.run.id if snapshot.run is not None else None
                self._loss = _Loss(since=since, run_id=run_id, log_end=log.end)
            return None
        loss = self._loss
        if loss is None:
            return None
        if loss.back_at is None:
            loss = self._loss = _Loss(since=loss.since, run_id=loss.run_id, log_end=loss.log_end, back_at=snapshot.at)
        back_at = loss.back_at or snapshot.at
        if _is_read_anew(snapshot, back_at) or snapshot.at - back_at > _PATIENCE_S:
            self._loss = None
            away = f"link back after {words.whole_duration(back_at - loss.since)}"
            return ", ".join(part for part in (away, _lost(snapshot, log, loss, back_at)) if part)
        return None


def _is_read_anew(snapshot: Snapshot, back_at: float) -> bool:
    log = snapshot.log
    if log.state in (LogState.NONE, LogState.UNKNOWN):
        return snapshot.run is None
    return log.caught_up and log.at is not None and log.at > back_at


def _lost(snapshot: Snapshot, log: LogBuffer, loss: _Loss, back_at: float) -> str:
    """`0 lines lost`, `3.1 MiB of the log skipped`; empty where that isn't known or it is another run's log."""
    run_id = snapshot.run.id if snapshot.run is not None else None
    if snapshot.run is None or run_id != loss.run_id or not _is_read_anew(snapshot, back_at):
        return ""
    entries = log.lines(loss.log_end, log.end)
    gaps = [entry.text for entry in entries if entry.kind is EntryKind.GAP]
    if not gaps:
        return "0 lines lost"
    skipped = gaps[0].removeprefix("… ").removesuffix(" skipped")
    return f"{skipped} of the log skipped" if len(gaps) == 1 else f"the log has {len(gaps)} gaps"
