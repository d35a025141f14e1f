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
from console.state.causes import Cause, Trust, bare, first_cause, says_finished, telling_line
from console.state.ending import is_unknown
from console.state.events import LogLine
from console.state.training import Training

_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL"}
_SIGNALS |= {11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ"}
_SIGNAL_REASONS = {
    1: Reason.SIGHUP,
    9: Reason.SIGKILL_UNKNOWN,
    11: Reason.SEGFAULT,
    15: Reason.SIGTERM_EXTERNAL,
}
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
    cause = first_cause(unhandled)
    reason, detail, good = _reason(record, end, cause, unhandled, steps)
    facts = (*_cause_facts(cause, unhandled, reason), *_exit_facts(record, end))
    return Diagnosis(reason=reason, detail=detail, facts=facts, cause=cause, is_good=good)


def _reason(
    record: RunRecord | None, end: ExitRecord | None, cause: Cause | None, lines: Sequence[LogLine], steps: Training
) -> tuple[Reason, str, bool]:
    if record is not None and (record.state == "stopped" or (end is not None and end.by)):
        by = (end.by if end is not None else None) or record.operator
        return Reason.STOPPED_BY_OPERATOR, f"by {by}" if by else "", True
    if record is not None and record.reason and reason_of(record.reason) is not Reason.UNKNOWN:
        return reason_of(record.reason), record.detail or _text(cause), False
    if end is None:
        return _from_log_alone(cause, lines, steps)
    if (memory := _out_of_memory(end, cause)) is not None:
        return *memory, False
    if _is_finished(end, lines, steps):
        return Reason.COMPLETED, _steps_words(steps), True
    if cause is not None and cause.trust is not Trust.SIGNAL:
        return cause.reason, _text(cause), False
    if (signal := signal_of(end)) is not None:
        return _signal_reason(signal), _signal_detail(signal, end), False
    if cause is not None:
        return cause.reason, _text(cause), False
    return *_by_status(end, lines, steps), False


def _from_log_alone(cause: Cause | None, lines: Sequence[LogLine], steps: Training) -> tuple[Reason, str, bool]:
    if steps.total_steps is not None and steps.step is not None and steps.step >= steps.total_steps:
        return Reason.COMPLETED, _steps_words(steps), True
    if cause is not None:
        return cause.reason, _text(cause), False
    if steps.step is not None and says_finished(lines):
        return Reason.COMPLETED, bare(lines[-1].text), True
    return Reason.UNKNOWN, "no exit status was recorded", False


def _out_of_memory(end: ExitRecord, cause: Cause | None) -> tuple[Reason, str] | None:
    """Memory is named only with evidence: the kernel's own line, or the count of kills that the keeper compared."""
    if cause is not None and cause.trust is Trust.KERNEL:
        return cause.reason, _text(cause)
    killed = signal_of(end) == 9 or (cause is not None and cause.reason is Reason.SIGKILL_UNKNOWN)
    if not killed or end.oom not in ("proven", "likely"):
        return None
    # Proven: the count of the run's own group. Likely: the host's count rose about then.
    reason = Reason.CGROUP_OOM if end.oom == "proven" else Reason.HOST_OOM
    return reason, f"{end.oom}: {end.oom_detail or 'the kernel counted a kill for want of memory'}"


def _is_finished(end: ExitRecord, lines: Sequence[LogLine], steps: Training) -> bool:
    if end.code != 0 or end.signal is not None or steps.step is None:
        return False
    if steps.total_steps is not None:
        # A run that did its last step is finished, whatever the teardown prints.
        return steps.step >= steps.total_steps or (steps.step >= steps.total_steps - 1 and says_finished(lines))
    return says_finished(lines) and first_cause(lines) is None


def _by_status(end: ExitRecord, lines: Sequence[LogLine], steps: Training) -> tuple[Reason, str]:
    last = telling_line(lines)
    if end.code == 0 and steps.step is None:
        return Reason.EXIT_WITHOUT_STEP, "exit status 0, no step was seen in the log"
    if end.code == 0:
        return Reason.EXIT_STATUS, f"exit status 0 at {_steps_words(steps)}, and the log does not say that it is done"
    if end.code == 126:
        return Reason.EXEC_NOT_PERMITTED, last or "exit status 126: found, but may not be executed"
    if end.code == 127:
        return Reason.COMMAND_NOT_FOUND, last or "exit status 127: not found"
    if is_unknown(end):
        return Reason.UNKNOWN, "no exit status was recorded"
    return Reason.EXIT_STATUS, last or f"exit status {end.code}, and the log says nothing"


def signal_of(end: ExitRecord) -> int | None:
    """The signal that ended it: its own, or the child's that a shell tells as 128 + n."""
    if end.signal is not None:
        return end.signal
    if end.code is not None and 128 < end.code < 128 + 32:
        return end.code - 128
    return None


def _signal_reason(signal: int) -> Reason:
    return _SIGNAL_REASONS.get(signal, Reason.SIGNALLED)


def _signal_detail(signal: int, end: ExitRecord) -> str:
    if signal != 9:
        return f"{signal_name(signal)}, sender unknown"
    memory = {"no": "kernel OOM count unchanged", "unknown": "whether memory ran out can't be seen here"}
    return "checked: " + ", ".join([memory.get(end.oom, f"memory {end.oom}"), "no stop by an operator"])


def signal_name(signal: int) -> str:
    return f"signal {signal} ({_SIGNALS[signal]})" if signal in _SIGNALS else f"signal {signal}"


def _steps_words(steps: Training) -> str:
    if steps.step is None:
        return "no step"
    if steps.total_steps is None:
        return f"step {texts.count(steps.step)}"
    return f"{texts.count(steps.step)} of {texts.count(steps.total_steps)} steps"


def _text(cause: Cause | None) -> str:
    return bare(cause.line.text) if cause is not None else ""


# -- facts ------------------------------------------------------------------------------------------------------------


def _cause_facts(cause: Cause | None, lines: Sequence[LogLine], reason: Reason) -> tuple[Fact, ...]:
    last = next((line for line in reversed(lines) if line.text.strip()), None)
    if cause is None:
        return (Fact(label="log, last line", text=bare(last.text)),) if last is not None else ()
    is_last = last is not None and last.offset == cause.line.offset
    severity = Severity.ERROR if cause.reason is reason else Severity.WARNING
    first = Fact(label="log, last line" if is_last else "log, first cause", text=_text(cause), severity=severity)
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
