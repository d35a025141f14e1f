"""Which run the console speaks of, out of all that the host lists. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from console.protocol import HandRun, RunRecord, StateEvent
from console.state.target import Subject

TRANSACTION = frozenset({"accepted", "killing", "cache", "spawned"})
"""States of a record in which its keeper is at work."""


def choose(said: StateEvent, before: Subject | None, boot: str) -> Subject | None:
    """Return the run to speak of: what is live or under way first, then what was there last.

    A hand-started run leaves no record: when it is gone it is still spoken of until a newer run is there, since nobody
    else remembers it.
    """
    record = _shown(said)
    if record is not None and is_live(record, boot):
        return Subject(key=record.id, record=record)
    if said.hand:
        return _hand(said.hand[0], said.bt, before)
    if before is not None and before.hand is not None and not _is_newer(record, before):
        gone_bt = before.gone_bt if before.is_gone else said.bt
        return Subject(
            key=before.key, hand=before.hand, hand_start_bt=before.hand_start_bt, is_gone=True, gone_bt=gone_bt
        )
    return Subject(key=record.id, record=record) if record is not None else None


def _shown(said: StateEvent) -> RunRecord | None:
    """The newest restart that did something; a refused one touched nothing, and a stop is no run.

    One that was lost before it had killed what it was to replace isn't what runs: that one still is.
    """
    candidates = [said.run] if said.run is not None else []
    known = [each for each in (*candidates, *said.last) if each.action == "restart" and each.state != "refused"]
    newest = next(iter(known), None)
    if newest is not None and is_interrupted(newest) and newest.alive is not True:
        return next((record for record in known if record.alive is True), newest)
    return newest


def is_interrupted(record: RunRecord) -> bool:
    """Whether the keeper of this restart was lost while it was at it."""
    return record.state == "interrupted" or (record.state in TRANSACTION and record.keeper_alive is False)


def stop_of(subject: Subject, records: Sequence[RunRecord], boot: str) -> RunRecord | None:
    """Return the newest stop that was asked for this run and has a record of its own.

    A run with a living keeper has none: its keeper is asked, and writes down who asked.
    """
    for record in records:
        if record.action != "stop" or record.state == "refused" or (record.boot and boot and record.boot != boot):
            continue
        if subject.record is not None and record.replaced_id == subject.record.id:
            return record
        since = subject.hand_start_bt
        if subject.hand is not None and not record.replaced_id and (since is None or record.accepted_bt > since):
            return record
    return None


def is_live(record: RunRecord, boot: str) -> bool:
    if record.exit is not None or (record.boot and boot and record.boot != boot):
        return False
    if record.state in TRANSACTION:
        return record.keeper_alive is not False
    return record.state == "running" and record.alive is not False


def _hand(hand: HandRun, bt: float, before: Subject | None) -> Subject:
    key = f"hand:{hand.main.pid}/{hand.main.start}"
    start = before.hand_start_bt if before is not None and before.key == key else None
    if start is None and hand.age_s is not None:
        start = bt - hand.age_s
    return Subject(key=key, hand=hand, hand_start_bt=start)


def _is_newer(record: RunRecord | None, before: Subject) -> bool:
    return record is not None and (before.hand_start_bt is None or record.accepted_bt > before.hand_start_bt)
