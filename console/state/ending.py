"""Whether and how a run of ours is over, from its record. Pure; why it ended is `diagnose`."""

from __future__ import annotations

from console.protocol import ExitRecord, RunRecord
from console.state.consequences import End, RunOver
from console.state.subject import TRANSACTION, stop_of
from console.state.target import TargetState, is_this_boot

UNREADABLE_LINES = 200
"""A log of so many lines without one known step line, of a run that lived so long, is of a format that isn't known."""
UNREADABLE_S = 120.0


def how_it_ended(state: TargetState, record: RunRecord) -> RunOver | None:
    """Return the end of the run, or None while it goes on or is under way."""
    if record.exit is not None:
        return None if _is_still_stopping(record, record.exit) else _exited(state, record, record.exit)
    if not is_this_boot(state, record):
        return RunOver(end=End.VANISHED, why="the host restarted")
    match record.state:
        case "stopped":
            return RunOver(end=End.STOPPED, why=f"stopped by {record.operator}" if record.operator else "stopped")
        case "failed":
            return RunOver(end=End.EXITED, why=record.detail or record.reason or "the keeper states no reason")
        case "interrupted":
            return RunOver(end=End.KEEPER_LOST, why="its keeper was lost here")
        case "ended":
            return gone(state)
        case "running" if record.alive is False:
            return gone(state)
        case under_way if under_way in TRANSACTION and record.keeper_alive is False:
            return RunOver(end=End.KEEPER_LOST, why="its keeper was lost here")
        case _:
            return None


def _is_still_stopping(record: RunRecord, end: ExitRecord) -> bool:
    """The main process of a stopped run has ended, and its keeper is still after the others: not stopped yet."""
    return bool(end.by) and not end.all_gone and bool(record.keeper_alive) and bool(record.alive)


def gone(state: TargetState) -> RunOver | None:
    """A run that is gone without an exit record: stopped, where a stop says so, else nobody knows.

    None while a stop is under way: its keeper has the last word.
    """
    stop = stop_of(state.subject, state.host.runs, state.host.boot) if state.subject is not None else None
    if stop is not None and stop.state in TRANSACTION and stop.keeper_alive is not False:
        return None
    if stop is None or stop.state != "stopped":
        bt = state.subject.gone_bt if state.subject is not None else None
        return RunOver(end=End.UNWITNESSED, why="status unknown", bt=bt)
    killing = stop.stages.get("killing")
    by = f"stopped by {stop.operator}" if stop.operator else "stopped"
    return RunOver(end=End.STOPPED, why=by, bt=killing.ended_bt if killing is not None else None)


def _exited(state: TargetState, record: RunRecord, end: ExitRecord) -> RunOver:
    if end.by or record.state == "stopped":
        by = f"stopped by {end.by}" if end.by else "stopped"
        return RunOver(end=End.STOPPED, why=by, bt=end.ended_bt, all_gone=end.all_gone)
    pid = f", pid {record.main.pid}" if record.main is not None else ""
    unread = end.code == 0 and _is_unreadable(state, end)
    kind = End.UNREADABLE if unread else End.UNWITNESSED if is_unknown(end) else End.EXITED
    why = "format unknown" if unread else f"{short_status(end)}{pid}"
    return RunOver(end=kind, why=why, bt=end.ended_bt, all_gone=end.all_gone)


def is_unknown(end: ExitRecord) -> bool:
    return end.code is None and end.signal is None


def short_status(end: ExitRecord) -> str:
    """`exit 126`, `signal 9`."""
    if end.signal is not None:
        return f"signal {end.signal}"
    return f"exit {end.code}" if end.code is not None else "status unknown"


def _is_unreadable(state: TargetState, end: ExitRecord) -> bool:
    steps = state.training
    lived = end.lived_s is not None and end.lived_s >= UNREADABLE_S
    return lived and steps.step is None and steps.lines_seen >= UNREADABLE_LINES
