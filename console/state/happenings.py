"""What has happened between two snapshots of a target, one line each: for the events screen and for `watch`. Pure.

Each is told once, at the time of the fact where that is known, else when it was seen; evidence comes along. Between two
snapshots that lie far apart only what left traces is told: a stage, a verdict, the last checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from msgspec import Struct

from console.model import OUT_OF_REACH, LinkState, Run, Severity, Snapshot, Stage, StageState, StageStatus, Verdict
from console.state import texts


class Kind(StrEnum):
    """The types of `watch`'s events that this module tells."""

    STAGE = "stage"
    HEALTH = "health"
    WARNING = "warning"
    CHECKPOINT = "checkpoint"
    OPERATOR = "operator"
    LINK = "link"
    LOG = "log_error"


class Happening(Struct, frozen=True, kw_only=True):
    at: float
    kind: Kind
    text: str
    """For people."""
    severity: Severity = Severity.INFO
    fields: dict[str, Any] = {}
    """For scripts."""


_TOLD = frozenset({StageState.DONE, StageState.SKIPPED, StageState.FAILED, StageState.LATE})
_ILL = frozenset({Verdict.SLOW, Verdict.STALLED, Verdict.NAN, Verdict.SPIKE, Verdict.SUSPENDED, Verdict.NOT_EXITED})
_BAD = frozenset({Verdict.FAILED, Verdict.ENDED, Verdict.INTERRUPTED, Verdict.HOST_RESTARTED, Verdict.NAN})
_BLIND = OUT_OF_REACH | {Verdict.NO_WORD}


def happenings(before: Snapshot | None, now: Snapshot) -> list[Happening]:
    """Return what is new, in the order of time; with nothing before it, what the run's stages say of the past."""
    if before is None and now.verdict is Verdict.NO_WORD:
        return []
    found = [*_link(before, now), *_operators(before, now), *_stages(before, now), *_health(before, now)]
    found += [*_checkpoints(before, now), *_warnings(before, now)]
    return sorted(found, key=lambda each: each.at)


# -- the link ---------------------------------------------------------------------------------------------------------


def _link(before: Snapshot | None, now: Snapshot) -> Iterator[Happening]:
    if before is None or before.link.state is now.link.state:
        return
    was, is_ = before.link.state, now.link.state
    lost = (LinkState.LOST, LinkState.REFUSED)
    if is_ in lost and was not in lost:
        why = now.link.detail or now.link.reason or "no word from the host"
        fields = {"state": str(is_), "reason": now.link.reason, "detail": now.link.detail}
        yield Happening(at=now.at, kind=Kind.LINK, text=f"link lost: {why}", severity=Severity.WARNING, fields=fields)
    elif is_ is LinkState.UP and was in lost:
        heard = before.link.last_word_at
        after = f" after {texts.span(now.at - heard)}" if heard is not None else ""
        yield Happening(at=now.at, kind=Kind.LINK, text=f"link back{after}", fields={"state": str(is_)})


# -- who did what -----------------------------------------------------------------------------------------------------


def _key(run: Run | None) -> object:
    return (run.id, run.name) if run is not None else None


def _operators(before: Snapshot | None, now: Snapshot) -> Iterator[Happening]:
    run, old = now.run, before.run if before is not None else None
    if run is None:
        return
    who = run.operator or ("somebody by hand" if run.by_hand else "somebody")
    fields = {"run": run.name, "id": run.id, "operator": run.operator or None}
    if _key(run) != _key(old):
        instead = f" in place of {run.replaced}" if run.replaced else ""
        at = run.accepted_at if run.accepted_at is not None else run.spawned_at
        yield Happening(
            at=at if at is not None else now.at, kind=Kind.OPERATOR, text=f"{who} started {run.name}{instead}",
            fields={"action": "restart", "replaced": run.replaced, **fields},
        )  # fmt: skip
        old = None
    by = _stopped_by(run)
    if by is None or by == (_stopped_by(old) if old is not None else None) or (before is None and run.exit is not None):
        return
    end = run.exit.at if run.exit is not None and run.exit.at is not None else now.at
    yield Happening(
        at=min(end, now.at), kind=Kind.OPERATOR, text=f"{by} stops {run.name}",
        fields={"action": "stop", **fields, "operator": by},
    )  # fmt: skip


def _stopped_by(run: Run) -> str | None:
    """Who stops it, or has: a quick stop is over before anybody sees it under way."""
    return (run.exit.by if run.exit is not None else None) or run.stopping_by


# -- stages -----------------------------------------------------------------------------------------------------------


def _stages(before: Snapshot | None, now: Snapshot) -> Iterator[Happening]:
    if now.run is None or now.verdict in _BLIND:
        return
    same = before is not None and _key(before.run) == _key(now.run) and before.verdict not in _BLIND
    for index, status in enumerate(now.stages):
        then = before.stages[index] if same and before is not None else None
        if then is not None and before is not None and _stage_key(before, then) == _stage_key(now, status):
            continue
        if status.stage is Stage.STEPPING and then is not None and before is not None and _is_ill(before, now):
            continue  # a run that stalls is late with its next step: its health says it
        if _is_undated(now, status):
            continue  # told once its time is known: a console that is opened late would have it happen now
        if status.state in _TOLD or (status.state is StageState.ACTIVE and status.have is not None):
            yield _stage(now, status)


def _is_ill(before: Snapshot, now: Snapshot) -> bool:
    return before.verdict in _ILL or now.verdict in _ILL


def _is_undated(snapshot: Snapshot, status: StageStatus) -> bool:
    return snapshot.log.unread and status.state is StageState.DONE and status.ended_at is None


def _stage_key(snapshot: Snapshot, status: StageStatus) -> object:
    return status.state, status.have if status.state is StageState.ACTIVE else None, _is_undated(snapshot, status)


def _stage(now: Snapshot, status: StageStatus) -> Happening:
    evidence = status.detail or status.evidence or status.why
    word = {StageState.DONE: "", StageState.SKIPPED: "skipped: ", StageState.FAILED: "failed: "}.get(status.state, "")
    word = "late: " if status.state is StageState.LATE else word
    took = (
        f" in {texts.duration(status.took_s)}" if status.took_s is not None and status.state is StageState.DONE else ""
    )
    known_at = status.ended_at if status.state is not StageState.ACTIVE else None
    if known_at is None and status.state is StageState.SKIPPED:
        known_at = _end_before(now, status)  # whenever that is noticed: a console may be opened hours later
    severity = {StageState.FAILED: Severity.ERROR, StageState.LATE: Severity.WARNING}.get(status.state, Severity.INFO)
    fields: dict[str, Any] = {"stage": str(status.stage), "state": str(status.state), "evidence": evidence}
    if status.want is not None:
        fields |= {"k": status.have, "n": status.want, "missing": list(status.missing)}
        fields |= {"missing_parts": list(status.missing_parts)} if status.missing_parts else {}
    return Happening(
        at=min(now.at, known_at) if known_at is not None else now.at, kind=Kind.STAGE, severity=severity, fields=fields,
        text=f"{status.stage.label}{took}: {word}{evidence}".rstrip(": "),
    )  # fmt: skip


def _end_before(now: Snapshot, status: StageStatus) -> float | None:
    """When the last of the stages before one ended, as far as that is known."""
    earlier = now.stages[: now.stages.index(status)]
    return max((each.ended_at for each in earlier if each.ended_at is not None), default=None)


# -- health -----------------------------------------------------------------------------------------------------------


def _health(before: Snapshot | None, now: Snapshot) -> Iterator[Happening]:
    """A verdict that is another than before; what comes and goes with the link is the link's."""
    was = None if before is None else before.last_known if before.verdict in OUT_OF_REACH else before.verdict
    if now.verdict in _BLIND or now.verdict in (was, Verdict.LAUNCHING) or now.run is None:
        return
    if before is None and now.verdict not in _ILL | _BAD:
        return
    if now.verdict is Verdict.RUNNING and now.reason is None and not now.log.caught_up:
        return  # its log is being read
    if now.verdict is Verdict.STEPPING and was not in _ILL:
        return  # the stage says it
    reason = now.reason
    word = str(now.verdict).replace("_", " ").upper()
    if now.verdict is Verdict.STEPPING:
        text = f"{word} again, it was {str(was).replace('_', ' ')}"
    else:
        said = [reason.detail or reason.title] if reason is not None else []
        said += [f"{fact.label} {fact.text}" for fact in reason.facts[:2]] if reason is not None else []
        text = f"{word}: {' · '.join(said)}" if said else word
    severity = Severity.ERROR if now.verdict in _BAD else Severity.WARNING if now.verdict in _ILL else Severity.INFO
    end = now.run.exit
    at = end.at if end is not None and end.at is not None and now.verdict not in _ILL else now.at
    yield Happening(
        at=min(at, now.at), kind=Kind.HEALTH, text=text, severity=severity,
        fields={
            "verdict": str(now.verdict), "was": str(was) if was is not None else None,
            "reason": reason.slug if reason is not None else None, "step": now.progress.step,
        },
    )  # fmt: skip


# -- checkpoints, warnings --------------------------------------------------------------------------------------------


def _checkpoints(before: Snapshot | None, now: Snapshot) -> Iterator[Happening]:
    step, at = now.progress.checkpoint_step, now.progress.checkpoint_at
    if step is None or now.log.unread:
        return  # of a log that is being read only the last one is told
    same = before is not None and _key(before.run) == _key(now.run) and not before.log.unread
    if same and before is not None and before.progress.checkpoint_step == step:
        return
    yield Happening(
        at=min(at, now.at) if at is not None else now.at, kind=Kind.CHECKPOINT,
        text=f"checkpoint {texts.count(step)}", fields={"step": step},
    )  # fmt: skip


def _warnings(before: Snapshot | None, now: Snapshot) -> Iterator[Happening]:
    known = {each.slug for each in before.warnings} if before is not None else set()
    for each in now.warnings:
        if each.slug not in known:
            yield Happening(
                at=now.at, kind=Kind.WARNING, text=": ".join(filter(None, (each.title, each.detail))),
                severity=Severity.WARNING,
                fields={"reason": each.slug, "detail": each.detail or each.title},
            )  # fmt: skip
