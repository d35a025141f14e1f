"""One verdict from all that is known of an end: the log's causes and symptoms, the kernel's count, signal, status.

The questions are asked in the order of trust (the table is in `sign`): did it finish; did the launching line kill
itself; what does the kernel say; what failed first; of what signal did it die; what does the log show where nobody says
that it ended. A bare "Killed" is never called a lack of memory, a status of 0 is no completion, and unknown is a reason
of its own. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from console.reasons import Reason
from console.state import texts
from console.state.causes import Cause, Trust, bare, best, find_causes, settled, telling_line
from console.state.events import LogLine
from console.state.finished import finished_at, still_waits
from console.state.lazy import lazy
from console.state.speech import hear
from console.state.symptoms import Symptom

_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL"}
_SIGNALS |= {11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ"}
SIGNAL_NUMBERS: Final = {name: number for number, name in _SIGNALS.items()}
_SIGNAL_REASONS = {
    1: Reason.SIGHUP,
    2: Reason.USER_INTERRUPT,
    7: Reason.SIGBUS,
    9: Reason.SIGKILL_UNKNOWN,
    11: Reason.SEGFAULT,
    15: Reason.SIGTERM_EXTERNAL,
}
_SIGABRT = 6
_EXITED_AS: Final = frozenset({6, 7, 9, 11, 15})
_SSH_LOST = 255
_PKILL: Final = lazy(r"(?:^|[+;&|$#'\"(]\s*|\bsudo )pkill\b(?=.*\s-\w*f\w*\b|\s-\w*f)")
_LINK_CLOSED: Final = lazy(r"(?:Shared )?[Cc]onnection to \S+ closed|logout$|exit$")
_OWN_END: Final = lazy(
    r"\btrain_runtime\b|\bTrainer\.fit`? stopped:|\bafter training is done\b|\bexiting program at iteration\b"
    r"|\bearly stop|\bmax_time\b",
    re.IGNORECASE,
)
_SHELL_ECHO: Final = lazy(r"^\++ ")
_OUR_NAMES: Final = lazy(
    r"(?i)\((?:python[\w.]*|pt_\w+|torchrun|ray\S*|deepspeed|accelerate|train\S*|run\.sh|cuda-\S+|java|tokio\S*"
    r"|wandb\S*)\)|task=(?:python|pt_|ray|train)"
)


class Ended(Struct, frozen=True, kw_only=True):
    """How a process ended, as far as anybody recorded it."""

    code: int | None = None
    signal: int | None = None
    oom: str = "unknown"
    oom_detail: str = ""
    may_live: bool = False
    """Whether it has ended is not known either."""

    @property
    def by_signal(self) -> int | None:
        """Its own signal, or the child's that a shell tells as 128 + n."""
        if self.signal is not None:
            return self.signal
        if self.code is not None and 128 < self.code < 128 + 32:
            return self.code - 128
        if self.code is not None and 256 - self.code in _EXITED_AS:
            return 256 - self.code  # a Python launcher that ends with its child's negative status
        return None

    @property
    def has_failed(self) -> bool:
        return self.signal is not None or self.code not in (None, 0)


class Told(Struct, frozen=True, kw_only=True):
    """What the log tells."""

    lines: Sequence[LogLine]
    steps_at: Sequence[int] = ()
    """Places of the lines that are steps of the training."""
    step: int | None = None
    total_steps: int | None = None
    symptoms: tuple[Symptom, ...] = ()


class Judged(Struct, frozen=True, kw_only=True):
    reason: Reason | None
    """None: nothing is wrong."""
    detail: str = ""
    cause: Cause | None = None
    is_good: bool = False
    evidence: tuple[LogLine, ...] = ()


def judge(ended: Ended, told: Told) -> Judged:
    """Return the verdict."""
    causes = find_causes(told.lines, told.steps_at)
    open_, lasting = settled(causes, told.lines, told.steps_at, has_failed=ended.has_failed)
    open_ = [cause for cause in open_ if _concerns_us(cause, ended)]
    cause = best(open_)
    if (finished := _finished(ended, told, open_)) is not None:
        return finished
    if (pkill := _own_pkill(ended, told)) is not None:
        return Judged(reason=Reason.PKILL_SELF_MATCH, detail=bare(pkill.text), evidence=(pkill,))
    if (memory := _out_of_memory(ended, cause)) is not None:
        return memory
    signal = ended.by_signal
    if cause is not None and (cause.trust < Trust.SIGNAL or (signal == _SIGABRT and cause.trust is Trust.GENERAL)):
        return _by_cause(cause)
    if signal is not None:
        return Judged(
            reason=_SIGNAL_REASONS.get(signal, Reason.SIGNALLED),
            detail=_signal_detail(signal, ended),
            cause=cause,
            evidence=(cause.line,) if cause is not None else (),
        )
    if cause is not None and (ended.has_failed or cause.trust is Trust.SIGNAL or not told.symptoms):
        return _by_cause(cause)
    if lasting and not ended.has_failed:
        return _by_cause(min(lasting, key=lambda each: (each.trust, -each.index)))
    return _by_symptom(ended, told) or _by_status(ended, told)


def _concerns_us(cause: Cause, ended: Ended) -> bool:
    """The kernel kills others, too: a victim of another name is ours only if ours was killed."""
    if cause.reason is not Reason.HOST_OOM or ended.by_signal == 9 or ended.has_failed:
        return True
    return (
        "(" not in cause.line.text
        or _OUR_NAMES.search(cause.line.text) is not None
        or "Task was killed" in cause.line.text
    )


def _by_cause(cause: Cause) -> Judged:
    return Judged(reason=cause.reason, detail=bare(cause.line.text), cause=cause, evidence=(cause.line,))


# -- finished ---------------------------------------------------------------------------------------------------------


def _finished(ended: Ended, told: Told, causes: Sequence[Cause]) -> Judged | None:
    if ended.has_failed:
        return None
    done = done_at(told)
    if done is None:
        return None
    after = [cause for cause in causes if cause.index > done and cause.trust <= Trust.TIMEOUT]
    if after and not (ended.code == 0 and _made_all_steps(told)):
        return None
    if (bad := next((each for each in told.symptoms if each.reason is Reason.NAN_LOSS), None)) is not None:
        return Judged(reason=bad.reason, detail=bad.detail, evidence=bad.lines)
    said = told.lines[done]
    waits = still_waits(told.lines, done) if ended.may_live else None
    if waits is not None:
        return Judged(reason=Reason.FINISHED_NOT_EXITED, detail=bare(waits.text), evidence=(said, waits))
    return Judged(reason=Reason.COMPLETED, detail=bare(said.text), is_good=True, evidence=(said,))


def _made_all_steps(told: Told) -> bool:
    return told.total_steps is not None and told.step is not None and told.step >= told.total_steps


def done_at(told: Told) -> int | None:
    """The line that says so, or the last step of all."""
    said = finished_at(told.lines)
    if told.total_steps is None or told.step is None:
        return said if said is None or not _steps_behind(told, said) else None
    if told.step >= told.total_steps:
        if said is not None or not told.steps_at:
            return said if said is not None else len(told.lines) - 1
        return told.steps_at[-1]
    if said is not None and not _steps_behind(told, said):
        # Fewer steps than were planned: only in the trainer's own words for its end, said of an early one too.
        own_words = _OWN_END.search(told.lines[said].text) is not None
        return said if own_words or told.step >= told.total_steps - 1 else None
    return None


def _steps_behind(told: Told, place: int) -> bool:
    """More than the last state of a bar follows: what was done was something else."""
    return sum(at > place for at in told.steps_at) > 1


# -- killed by the launching line, by the kernel -----------------------------------------------------------------------


def _own_pkill(ended: Ended, told: Told) -> LogLine | None:
    """The line with `pkill -f`, when nothing but the word of its death follows."""
    words = [(index, line) for index, line in enumerate(told.lines) if re.search(r"\w", line.text)]
    told_of_death = ended.by_signal in (9, 15) or ended.code == _SSH_LOST
    for index, line in reversed(words[-5:]):
        body = hear(line.text).body
        if _LINK_CLOSED.match(body):
            continue
        if re.fullmatch(r"(?:\S+: line \d+: +\d+ )?(?:Terminated|Killed)\b.*", body) and not _PKILL.search(body):
            told_of_death = True
            continue
        if _PKILL.search(body):
            return line if told_of_death and not any(at > index for at in told.steps_at) else None
        if not (_SHELL_ECHO.match(body) and told_of_death and re.match(r"\++ (?:sleep|true|:)\b", body)):
            return None
    return None


def _out_of_memory(ended: Ended, cause: Cause | None) -> Judged | None:
    """Memory is named only with evidence: the kernel's own line, or the count of kills that the keeper compared."""
    if cause is not None and cause.trust is Trust.KERNEL:
        return _by_cause(cause)
    killed = ended.by_signal == 9 or (cause is not None and cause.reason is Reason.SIGKILL_UNKNOWN)
    if not killed or ended.oom not in ("proven", "likely"):
        return None
    # Proven: the count of the run's own group. Likely: the host's count rose about then.
    reason = Reason.CGROUP_OOM if ended.oom == "proven" else Reason.HOST_OOM
    detail = f"{ended.oom}: {ended.oom_detail or 'the kernel counted a kill for want of memory'}"
    return Judged(reason=reason, detail=detail, cause=cause)


# -- symptoms, status -------------------------------------------------------------------------------------------------


def _by_symptom(ended: Ended, told: Told) -> Judged | None:
    for symptom in told.symptoms:
        if symptom.reason is Reason.NAN_LOSS or ended.may_live:
            return Judged(reason=symptom.reason, detail=symptom.detail, evidence=symptom.lines)
    return None


def _by_status(ended: Ended, told: Told) -> Judged:
    last = telling_line(told.lines)
    if ended.may_live:
        return Judged(reason=None, detail=steps_words(told.step, told.total_steps))
    if ended.code == 0:
        if told.step is None and not told.steps_at:
            return Judged(reason=Reason.EXIT_WITHOUT_STEP, detail="exit status 0, no step was seen in the log")
        where = steps_words(told.step, told.total_steps)
        return Judged(
            reason=Reason.INCOMPLETE_EXIT0, detail=f"exit status 0 at {where}, and the log does not say that it is done"
        )
    if ended.code is None:
        return Judged(reason=Reason.UNKNOWN, detail="no exit status was recorded")
    if ended.code == 126:
        detail = last or "exit status 126: found, but may not be executed"
        return Judged(reason=Reason.EXEC_NOT_PERMITTED, detail=detail)
    if ended.code == 127:
        return Judged(reason=Reason.COMMAND_NOT_FOUND, detail=last or "exit status 127: not found")
    return Judged(reason=Reason.EXIT_STATUS, detail=last or f"exit status {ended.code}, and the log says nothing")


def _signal_detail(signal: int, ended: Ended) -> str:
    if signal != 9:
        return f"{signal_name(signal)}, sender unknown"
    memory = {"no": "kernel OOM count unchanged", "unknown": "whether memory ran out can't be seen here"}
    return "checked: " + ", ".join([memory.get(ended.oom, f"memory {ended.oom}"), "no stop by an operator"])


def signal_name(signal: int) -> str:
    return f"signal {signal} ({_SIGNALS[signal]})" if signal in _SIGNALS else f"signal {signal}"


def steps_words(step: int | None, total_steps: int | None) -> str:
    if step is None:
        return "no step"
    if total_steps is None:
        return f"step {texts.count(step)}"
    return f"{texts.count(step)} of {texts.count(total_steps)} steps"
