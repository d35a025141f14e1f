"""What the lines of a log say about why a run ended: the first cause, not its consequences.

Walks the lines once, with the signs of `signs` and the shape of tracebacks, and keeps everything that speaks for a
reason: where, and how far it is trusted (the table is in `sign`). What comes before new steps was handled; so was what
a line says was retried, skipped or recovered from. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

from console.reasons import Reason
from console.state.events import LogLine
from console.state.gpumemory import is_held_by_others
from console.state.lazy import lazy
from console.state.sign import Sign, Trust
from console.state.signs import may_be_sign, sign_of
from console.state.signs_group import CONSEQUENCES
from console.state.speech import Speech, hear

__all__ = ["Cause", "Trust", "bare", "find_causes", "first_cause", "settled", "telling_line"]


class Cause(Struct, frozen=True):
    reason: Reason
    trust: Trust
    line: LogLine
    index: int = 0
    """Its place among the lines that were read."""
    is_sure: bool = True
    """Said by an error; else it stands somewhere in a line, or on a warning, and counts only for a run that failed."""
    lasting: bool = False
    alone: bool = False
    """An exception without a traceback of its own."""


QUIET_LINES: Final = 20
"""So many ordinary lines between two errors say that the first was handled, or belongs to an earlier attempt."""
GOES_ON_LINES: Final = 8
"""So many ordinary lines behind an error say that the program goes on, where nothing says that it has ended."""
GOES_ON_ALONE: Final = 3
"""The same for an exception that is only mentioned, without a traceback."""
_RECOVERY_LINES: Final = 3
_MESSAGE_LINES: Final = 3

_CONSEQUENCE: Final = lazy(CONSEQUENCES)
_NO_EXCEPTION: Final = lazy(
    r"ChildFailedError|CalledProcessError|Process(?:Raised|Exited)Exception|resource_tracker|SignalException"
)
_TABLE_ROW: Final = lazy(r"^ +(?:exitcode|traceback|Reason|Exit Code) *: ")
"""Rows of torchrun's table of failures and of kubectl's; any other indented line is source code or a stack."""
_TRACEBACK: Final = lazy(r"Traceback \(most recent call last\)(?::| ─+╮)?\s*$")
_IGNORED: Final = lazy(r"^Exception ignored (?:in|on|while)\b|^--- Logging error ---|^Error in atexit\._run_exitfuncs")
_EXCEPTION_NAME: Final = (
    r"(?:[a-zA-Z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning|Timeout|Refused|NotFound|Failure)\w*"
)
_EXCEPTION: Final = lazy(rf"^{_EXCEPTION_NAME}(?:: .*|:)?$")
_MERGED: Final = lazy(r"^(?:[A-Z]\w*?(?:Error|Exception)){2,}\b")
_ANY_DOTTED: Final = lazy(r"^(?:[a-zA-Z_]\w*\.)*[A-Z_]\w*(?:: .*|:)?$|^(?:[a-z_]\w*\.)+[a-z_]\w*(?:: .*)?$")
_WARNING: Final = lazy(r"^\W{0,4}(?:[\w./-]+:\d+: )?(?:\w+\.)*\w*Warning\b")
_METRIC: Final = lazy(r"^\S+: *[-+]?[\d.]+(?:e[-+]?\d+)?%?$")
_DURING: Final = "During handling of the above exception"
_DIRECT: Final = "direct cause of the following exception"
_ERROR_SHAPE: Final = lazy(
    r"^(?:fatal|error|panic|Error|FATAL|ERROR|Fatal Python error|fatal error|E)\b:? |"
    r"\b(?:Training|training|run|Run|job|Job|step|Step|worker|Worker|process|Process) (?:\S+ )?(?:failed|crashed"
    r"|died|aborted)\b|\b(?:[Uu]ncaught|[Uu]nhandled)\b"
)
_HANDLED: Final = lazy(
    r"(?i)\b(?:re-?try(?:ing)?|re-?tried|retries left|caught|handled|recover(?:ed|ing)|ignor(?:ed|ing)|skip(?:ped"
    r"|ping)?|fall(?:ing|s)? back|fell back"
    r"|fallback|suppressed|resolved|continuing|going on|carrying on|proceeding|will (?:be )?re-?(?:try|tried|start)"
    r"|attempt \d+ ?(?:/|of) ?\d+"
    r"|re-?connect(?:ed|ing)|re-?running|halv(?:ed|ing)|reduc(?:ed|ing) (?:the )?(?:micro-?)?batch|restart(?:ed"
    r"|ing) (?:the )?worker|respawn\w*|succeeded)\b"
)
_NO_RECOVERY: Final = lazy(r"(?i)\bfail|\berror|give|giving|\b(?:to|on|using) (?:the )?cpu\b")
"""Going on without the GPUs is no way out for a training."""
_NO_EVENT: Final = lazy(
    r"(?i)\b(?:if (?:you|we|it|this|any|a|the|there)\b.{0,40}\b(?:see|get|hit|encounter|run into|experience|occurs?"
    r"|happens?|fails?|raises?|goes|is)\b|in case of|to (?:avoid|prevent|debug)"
    r"|simulat\w+|handler (?:for|installed)|would (?:be|cause)|can cause|may cause|might cause|errors? like|such as"
    r"|checks? (?:for|passed)|test(?:ed|ing)? for|no (?:\w+ )?errors?"
    r"|0 (?:\w+ )?errors?|without (?:\w+ )?errors?)\b"
)
_ORDINARY: Final = lazy(r"[A-Za-z]{2}|%\|")
_NOISE: Final = lazy(
    r"^\s|^wandb:|^Exception raised from|^frame #|^#\d|^\^C|^[-=*#~─╭╰│]{3,}|^\*{3}|^During |^The above "
    r"|^For debugging|^Compile with|^CUDA kernel errors"
    r"|^Set TORCH|^You can suppress|^Search for|^Device-side|^\(most recent|^Please |^See |^Note:|^Hint|^Tip"
    r"|^Make sure|^Access to |^Cannot access|^Root Cause|^\[\d\]:$"
)
_SHAPES: Final = (
    "raceback",
    "rror",
    "xception",
    "nterrupt",
    "Failures:",
    "Root Cause (first",
    "Failure",
    "Timeout",
    "Refused",
    "NotFound",
    "Exit",
)
"""What else an error or the frame of one holds."""


def find_causes(lines: Sequence[LogLine], steps_at: Collection[int] = ()) -> list[Cause]:
    """Return everything that speaks for a reason, in the log's order; the steps speak for none."""
    return _Walk(lines, frozenset(steps_at)).causes


class _Walk:
    """One pass over the lines: which speaker is within a traceback, within a table, within what Python ignores."""

    def __init__(self, lines: Sequence[LogLine], steps_at: frozenset[int]) -> None:
        self.causes: list[Cause] = []
        self._open: set[str] = set()
        self._ignored: set[str] = set()
        self._chained: dict[str, int] = {}
        self._dropped: dict[str, Cause] = {}
        self._just_raised: dict[str, Cause] = {}
        self._in_table = False
        for index, line in enumerate(lines):
            if index in steps_at or not (self._open or _is_worth(line.text)):
                continue
            self._take(index, line, hear(line.text))
        self.causes += self._dropped.values()  # what was raised while handling them was cut off
        self.causes.sort(key=lambda cause: cause.index)

    def _take(self, index: int, line: LogLine, said: Speech) -> None:
        speaker, body = said.speaker, said.body
        if self._is_frame(speaker, body):
            return
        if self._in_table and body[:1].isspace():
            return  # who else failed in torchrun's table: only its root cause counts
        in_traceback = speaker in self._open
        is_row = _TABLE_ROW.match(body) is not None
        if not body or (body[:1].isspace() and not is_row and not body.lstrip().startswith(("NVRM", "what():"))):
            return
        if body.startswith(("│", "╭", "╰", "❱")):
            return
        found = _cause_of(index, line, said, in_traceback=in_traceback)
        if in_traceback and _ANY_DOTTED.match(body):
            self._open.discard(speaker)
            if speaker in self._ignored:
                self._ignored.discard(speaker)
                if found is None or found.reason is Reason.PYTHON_EXCEPTION:
                    return
        if found is not None:
            self._add(speaker, found)

    def _is_frame(self, speaker: str, body: str) -> bool:
        """Lines that only tell what the next ones are."""
        if _TRACEBACK.search(body) and not body.startswith(("'", '"')):
            self._open.add(speaker)
            self._just_raised.pop(speaker, None)
            # `^CTraceback`: the key is printed where the cursor stood.
            return not body.startswith("^C")
        if _IGNORED.match(body):
            self._ignored.add(speaker)
            return True
        if body.startswith(("Failures:", "Other Failures:")):
            self._in_table = True
            return True
        if body.startswith("Root Cause (first observed"):
            self._in_table = False
            return True
        if _DURING in body:
            self._drop_handled(speaker)
            return True
        if _DIRECT in body:
            if self.causes:
                self._chained[speaker] = len(self.causes) - 1
            return True
        return False

    def _drop_handled(self, speaker: str) -> None:
        """It was being handled when the next one came: that one ended the program."""
        if self.causes and self.causes[-1].reason is Reason.PYTHON_EXCEPTION:
            self._dropped[speaker] = self.causes.pop()

    def _add(self, speaker: str, found: Cause) -> None:
        self._dropped.pop(speaker, None)
        self._merge_message(speaker, found)
        before = self._chained.pop(speaker, None)
        chained = self.causes[before] if before is not None and before < len(self.causes) else None
        if chained is not None and chained.reason is Reason.PYTHON_EXCEPTION is not found.reason:
            self.causes.remove(chained)  # the same failure, and the later one names it
        self.causes.append(found)
        if found.reason is Reason.PYTHON_EXCEPTION:
            self._just_raised[speaker] = found

    def _merge_message(self, speaker: str, found: Cause) -> None:
        """A message of several lines: one of the next may say what it is."""
        raised = self._just_raised.pop(speaker, None)
        if raised is None or found.index - raised.index > _MESSAGE_LINES or found.reason in _OF_ITSELF:
            return
        if found.trust is Trust.PROGRAM and raised in self.causes:
            self.causes.remove(raised)


_OF_ITSELF: Final = frozenset(
    {Reason.USER_INTERRUPT, Reason.SIGTERM_EXTERNAL, Reason.SIGHUP, Reason.SEGFAULT, Reason.PYTHON_EXCEPTION}
)


def _is_worth(text: str) -> bool:
    for shape in _SHAPES:
        if shape in text:
            return True
    return may_be_sign(text)


def _cause_of(index: int, line: LogLine, said: Speech, *, in_traceback: bool) -> Cause | None:
    body = said.body
    if said.is_settings and not in_traceback:
        return None
    is_exception = not said.level and bool(_EXCEPTION.match(body) or _MERGED.match(body)) and not _WARNING.match(body)
    is_raised = in_traceback and _ANY_DOTTED.match(body) is not None
    found = sign_of(body)
    if found is not None:
        reason = found.reason
        if reason is Reason.CUDA_OOM and is_held_by_others(body):
            reason = Reason.GPU_MEMORY_HELD
        sure = is_raised or _is_sure(found, said, is_exception=is_exception)
        return Cause(reason, found.trust, line, index, sure, found.lasting)
    if _CONSEQUENCE.search(body):
        named = (is_exception or is_raised) and not _NO_EXCEPTION.search(body)
        return Cause(Reason.PYTHON_EXCEPTION, Trust.GENERAL, line, index) if named else None
    if is_raised and not _WARNING.match(body):
        return Cause(Reason.PYTHON_EXCEPTION, Trust.PROGRAM, line, index)
    if is_exception and not _METRIC.match(body):
        sure = not (_HANDLED.search(body) or _NO_EVENT.search(body))
        return Cause(Reason.PYTHON_EXCEPTION, Trust.PROGRAM, line, index, sure, alone=True)
    if said.level == "E" and (match := re.match(rf"^.{{0,80}}?(?::|-) (?={_EXCEPTION_NAME}: )", body)) is not None:
        sure = not (_HANDLED.search(body) or _NO_EVENT.search(body[: match.end()]))
        return Cause(Reason.PYTHON_EXCEPTION, Trust.PROGRAM, line, index, sure, alone=True)
    return None


def _is_sure(found: Sign, said: Speech, *, is_exception: bool) -> bool:
    """Whether the words are said by an error, rather than about one."""
    body = said.body
    match = found.says.search(body)
    around = body if match is None else f"{body[: match.start()]} {body[match.end() :]}"
    if _HANDLED.search(around) and not _WARNING.match(body):
        return False
    if said.level in ("W", "I") and not found.quiet:
        return False
    if is_exception or said.level == "E" or _ERROR_SHAPE.search(body):
        return True
    if _NO_EVENT.search(around) or (_WARNING.match(body) and not found.quiet):
        return False
    return found.anywhere or (match is not None and match.start() == 0)


# -- what counts ------------------------------------------------------------------------------------------------------


def settled(
    causes: Sequence[Cause], lines: Sequence[LogLine], steps_at: Collection[int], *, has_failed: bool
) -> tuple[list[Cause], list[Cause]]:
    """Part the causes into those that were not handled, and the conditions that last although steps went on.

    `has_failed`: the run is known to have ended badly. Then one step line behind an error proves nothing (stderr is
    written at once, stdout later), and words that are no error by themselves are heard where no error is.
    """
    steps = sorted(steps_at)
    open_, lasting = [], []
    for number, cause in enumerate(causes):
        after = sum(at > cause.index for at in steps)
        if after > (1 if has_failed else 0):
            if cause.lasting:
                lasting.append(cause)
            continue
        if _went_on(cause, causes[number + 1 :], lines, has_failed=has_failed):
            continue
        open_.append(cause)
    sure = [cause for cause in open_ if cause.is_sure]
    return (sure or open_) if has_failed else sure, lasting


def _went_on(cause: Cause, later: Sequence[Cause], lines: Sequence[LogLine], *, has_failed: bool) -> bool:
    if cause.trust is Trust.KERNEL:
        return False
    following = next((each for each in later if each.trust <= Trust.PROGRAM), None)
    end = following.index if following is not None else len(lines)
    ordinary = recovered = 0
    for line in lines[cause.index + 1 : end]:
        body = hear(line.text).body
        if not _ORDINARY.search(body) or _NOISE.match(body) or _CONSEQUENCE.search(body) or sign_of(body) is not None:
            continue
        ordinary += 1
        if ordinary <= _RECOVERY_LINES and _HANDLED.search(body) and not _NO_RECOVERY.search(body):
            recovered += 1
        if ordinary > QUIET_LINES:
            break
    if recovered and (following is not None or not has_failed):
        return True
    if following is not None:
        return ordinary > QUIET_LINES
    if has_failed or cause.lasting:
        return False
    return ordinary > (GOES_ON_ALONE if cause.alone else GOES_ON_LINES)


def best(causes: Sequence[Cause]) -> Cause | None:
    """Return the one to believe: by trust, then by time."""
    return min(causes, key=lambda cause: (cause.trust, cause.index), default=None)


def first_cause(lines: Sequence[LogLine], *, has_failed: bool = True) -> Cause | None:
    """Return the first cause that was not handled, of lines that follow the last step."""
    found, _ = settled(find_causes(lines), lines, (), has_failed=has_failed)
    return best(found)


# -- what to show -----------------------------------------------------------------------------------------------------


def telling_line(lines: Sequence[LogLine]) -> str:
    """The line to show where no cause is known: the first consequence, else the last line that holds words."""
    for line in lines:
        if _CONSEQUENCE.search(line.text) and not _TABLE_ROW.match(line.text):
            return bare(line.text)
    return next((bare(line.text) for line in reversed(lines) if re.search(r"\w", line.text)), "")


_RANK: Final = lazy(
    r"^(?:\[(?:default)?\d+\]:|(?:default)?\d+:(?!\d)|\[rank ?\d+\]:?|\(\w+ pid=\d+\)|rank ?\d+:) ?", re.IGNORECASE
)


def bare(text: str) -> str:
    """A line without the prefix of its rank."""
    return _RANK.sub("", text.strip())
