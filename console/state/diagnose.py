"""Why a run ended: its exit record and the last lines of its log into one reason of the catalogue, first cause first.

Order of trust: what an operator did, what the keeper saw fail, the kernel's word on memory, the log's first cause, the
signal, the status. A bare "Killed" is never called a lack of memory, a status of 0 is not taken for completion, and
unknown is a reason of its own. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from console.model import Fact, Severity
from console.protocol import ExitRecord, RunRecord
from console.reasons import Reason, reason_of
from console.state import texts
from console.state.causes import Cause, bare
from console.state.events import LogLine
from console.state.judging import Ended, Judged, Told, judge, signal_name, steps_words
from console.state.training import Training

_STATUS_WORDS = {126: "found, but may not be executed", 127: "not found"}


class Diagnosis(Struct, frozen=True, kw_only=True):
    reason: Reason
    detail: str = ""
    """The first-cause line, or the one fact that speaks most."""
    facts: tuple[Fact, ...] = ()
    cause: Cause | None = None
    is_good: bool = False
    """It ended as it should: finished."""


def diagnose(record: RunRecord | None, lines: Sequence[LogLine], steps: Training) -> Diagnosis:
    """Return why a run that is over has ended. `record` is None for one that was started by hand."""
    end = record.exit if record is not None else None
    unhandled = [line for line in lines if steps.last_step_offset is None or line.offset >= steps.last_step_offset]
    found = judge(_ended(end), _told(unhandled, steps))
    reason, detail, good = _reason(record, end, found, steps)
    facts = (*_cause_facts(found.cause, unhandled, reason), *_exit_facts(record, end))
    return Diagnosis(reason=reason, detail=detail, facts=facts, cause=found.cause, is_good=good)


def _ended(end: ExitRecord | None) -> Ended:
    if end is None:
        return Ended()
    return Ended(code=end.code, signal=end.signal, oom=end.oom, oom_detail=end.oom_detail)


def _told(lines: Sequence[LogLine], steps: Training) -> Told:
    """The lines since the last step, that step among them."""
    at = [index for index, line in enumerate(lines) if line.offset == steps.last_step_offset]
    return Told(lines=lines, steps_at=at, step=steps.step, total_steps=steps.total_steps)


def _reason(
    record: RunRecord | None, end: ExitRecord | None, found: Judged, steps: Training
) -> tuple[Reason, str, bool]:
    if record is not None and (record.state == "stopped" or (end is not None and end.by)):
        by = (end.by if end is not None else None) or record.operator
        return Reason.STOPPED_BY_OPERATOR, f"by {by}" if by else "", True
    if record is not None and record.reason and reason_of(record.reason) is not Reason.UNKNOWN:
        return reason_of(record.reason), record.detail or (bare(found.cause.line.text) if found.cause else ""), False
    if end is None and steps.step is not None and steps.total_steps is not None and steps.step >= steps.total_steps:
        return Reason.COMPLETED, steps_words(steps.step, steps.total_steps), True
    if found.reason is Reason.COMPLETED and steps.step is None:
        return Reason.EXIT_WITHOUT_STEP, "exit status 0, no step was seen in the log", False
    if found.is_good:
        return Reason.COMPLETED, steps_words(steps.step, steps.total_steps), True
    return found.reason or Reason.UNKNOWN, found.detail, False


def signal_of(end: ExitRecord) -> int | None:
    """The signal that ended it: its own, or the child's that a shell tells as 128 + n."""
    return _ended(end).by_signal


# -- facts ------------------------------------------------------------------------------------------------------------


def _cause_facts(cause: Cause | None, lines: Sequence[LogLine], reason: Reason) -> tuple[Fact, ...]:
    last = next((line for line in reversed(lines) if line.text.strip()), None)
    if cause is None:
        return (Fact(label="log, last line", text=bare(last.text)),) if last is not None else ()
    is_last = last is not None and last.offset == cause.line.offset
    severity = Severity.ERROR if cause.reason is reason else Severity.WARNING
    first = Fact(
        label="log, last line" if is_last else "log, first cause", text=bare(cause.line.text), severity=severity
    )
    if is_last or last is None:
        return (first,)
    return (first, Fact(label="log, last line", text=bare(last.text)))


def _exit_facts(record: RunRecord | None, end: ExitRecord | None) -> tuple[Fact, ...]:
    if end is None:
        text = "none: no keeper started it" if record is None else "none was written"
        return (Fact(label="exit record", text=text, severity=Severity.WARNING),)
    facts = [Fact(label="exit record", text=_status_words(end))]
    if end.lived_s is not None:
        facts.append(Fact(label="lived", text=f"{texts.duration(end.lived_s)} after exec"))
    if signal_of(end) == 9 or end.oom in ("proven", "likely"):
        known = {"no": "no kill for want of memory was counted", "unknown": "can't be told on this host"}
        text = known.get(end.oom, f"{end.oom}: {end.oom_detail}" if end.oom_detail else end.oom)
        facts.append(Fact(label="memory", text=text))
    if end.stragglers:
        names = ", ".join(end.stragglers[:4])
        facts.append(Fact(label="left behind", text=f"{texts.plural(len(end.stragglers), 'straggler')}: {names}"))
    return tuple(facts)


def _status_words(end: ExitRecord) -> str:
    if end.signal is not None:
        return f"{signal_name(end.signal)}, {f'sent by {end.by}' if end.by else 'sender unknown'}"
    if end.code is None:
        return "status unknown"
    if (signal := signal_of(end)) is not None:
        return f"status {end.code} (a child was ended by {signal_name(signal)})"
    known = f" ({_STATUS_WORDS[end.code]})" if end.code in _STATUS_WORDS else ""
    return f"status {end.code}{known}, no signal"
