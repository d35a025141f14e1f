"""What the lines of a log say about why a run ended: the first cause, not its consequences.

Walks the lines once, with the signs of `signs` and the shape of tracebacks, and keeps everything that speaks for a
reason: where, how far it is trusted (the table is in `sign`), and whether it was handled. What comes before new steps was
handled; so was what a line says was retried, skipped or recovered from. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

from console.reasons import Reason
from console.state.events import LogLine
from console.state.gpumemory import is_held_by_others
from console.state.sign import Sign, Trust
from console.state.signs import sign_of
from console.state.signs_group import CONSEQUENCES
from console.state.speech import Speech, hear

__all__ = ["Cause", "Trust", "bare", "find_causes", "first_cause", "says_finished", "settled", "telling_line"]


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

_CONSEQUENCE: Final = re.compile(CONSEQUENCES)
_NO_EXCEPTION: Final = re.compile(r"ChildFailedError|CalledProcessError|Process(?:Raised|Exited)Exception|resource_tracker|SignalException")
_TABLE_ROW: Final = re.compile(r"^ +(?:exitcode|traceback|Reason|Exit Code) *: ")
"""Rows of torchrun's table of failures and of kubectl's; any other indented line is source code or a stack."""
_TRACEBACK: Final = re.compile(r"Traceback \(most recent call last\)(?::| ─+╮)?\s*$")
_IGNORED: Final = re.compile(r"^Exception ignored (?:in|on|while)\b|^Error in atexit\._run_exitfuncs")
_EXCEPTION_NAME: Final = r"(?:[a-zA-Z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning|Timeout|Refused|NotFound|Failure)\w*"
_EXCEPTION: Final = re.compile(rf"^{_EXCEPTION_NAME}(?:: .*|:)?$")
_MERGED: Final = re.compile(r"^(?:[A-Z]\w*?(?:Error|Exception)){2,}\b")
_ANY_DOTTED: Final = re.compile(r"^(?:[a-zA-Z_]\w*\.)*[A-Z_]\w*(?:: .*|:)?$|^(?:[a-z_]\w*\.)+[a-z_]\w*(?:: .*)?$")
_WARNING: Final = re.compile(r"^\W{0,4}(?:[\w./-]+:\d+: )?(?:\w+\.)*\w*Warning\b")
_METRIC: Final = re.compile(r"^\S+: *[-+]?[\d.]+(?:e[-+]?\d+)?%?$")
_DURING: Final = "During handling of the above exception"
_DIRECT: Final = "direct cause of the following exception"
_ERROR_SHAPE: Final = re.compile(
    r"^(?:fatal|error|panic|Error|FATAL|ERROR|Fatal Python error|fatal error|E)\b:? |"
    r"\b(?:Training|training|run|Run|job|Job|step|Step|worker|Worker|process|Process) (?:\S+ )?(?:failed|crashed|died|aborted)\b|\b(?:[Uu]ncaught|[Uu]nhandled)\b"
)
_HANDLED: Final = re.compile(
    r"(?i)\b(?:re-?try(?:ing)?|re-?tried|retries left|caught|handled|recover(?:ed|ing)|ignor(?:ed|ing)|skip(?:ped|ping)?|fall(?:ing|s)? back|fell back"
    r"|fallback|suppressed|resolved|continuing|going on|carrying on|proceeding|will (?:be )?re-?(?:try|tried|start)|attempt \d+ ?(?:/|of) ?\d+"
    r"|re-?connect(?:ed|ing)|re-?running|halv(?:ed|ing)|reduc(?:ed|ing) (?:the )?(?:micro-?)?batch|restart(?:ed|ing) (?:the )?worker|respawn\w*|succeeded)\b"
)
_NO_EVENT: Final = re.compile(
    r"(?i)\b(?:if (?:you|we|it|this|any|a|the|there)\b.{0,40}\b(?:see|get|hit|encounter|run into|experience|occurs?|happens?|fails?|raises?|goes|is)\b|in case of|to (?:avoid|prevent|debug)"
    r"|simulat\w+|handler (?:for|installed)|would (?:be|cause)|can cause|may cause|might cause|errors? like|such as|checks? (?:for|passed)|test(?:ed|ing)? for|no (?:\w+ )?errors?"
    r"|0 (?:\w+ )?errors?|without (?:\w+ )?errors?)\b"
)
_ORDINARY: Final = re.compile(r"[A-Za-z]{2}|%\|")
_NOISE: Final = re.compile(
    r"^\s|^wandb:|^Exception raised from|^frame #|^#\d|^\^C|^[-=*#~─╭╰│]{3,}|^\*{3}|^During |^The above |^For debugging|^Compile with|^CUDA kernel errors"
    r"|^Set TORCH|^You can suppress|^Search for|^Device-side|^\(most recent|^Please |^See |^Note:|^Hint|^Tip|^Make sure|^Access to |^Cannot access|^Root Cause|^\[\d\]:$"
)
_WORTH: Final = re.compile(
    r"rror|xception|raceback|nterrupt|kill|ignal|SIG|fault|bus|bort|hang|terminat|memory|time[d-]? ?out|Xid|NVRM|NVML|NVIDIA|nvml|cuda|CUBLAS|CUDNN|gpu"
    r"|device|fail|not found|no such|denied|annot |can't|wandb|quota|space|full|stale|too many|ancdata|limit|compil|symbol|version|module|corrupt"
    r"|unexpected|gated|40[13]|nan|inf\b|diverg|scale|empty|starv|insufficient|scope|slice|CANCELLED|barrier|in use|EADDR|lost|ECC|oom|exit|driver"
    r"|ioctl|tty|terminal|gcc|ninja|python\.h|nvidia|fabric|rendezvous|wait|got stuck|collective|reaped|package|fork|watchdog|\^C|syntax|EOF|magic|truncat"
    r"|reconnect|KeyboardI|died|in total|aborted|weights|archive|torchvision|numpy|FlashA|PTX|sm_\d|shared|posix_f|no hidden|no batches|token|log ?in",
    re.IGNORECASE,
)


def find_causes(lines: Sequence[LogLine], steps_at: Collection[int] = ()) -> list[Cause]:
    """Return everything that speaks for a reason, in the log's order; lines at `steps_at` are steps and speak for none."""
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
            if index in steps_at or not (self._open or _WORTH.search(line.text)):
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
        if before is not None and before < len(self.causes) and found.reason is not Reason.PYTHON_EXCEPTION:
            if self.causes[before].reason is Reason.PYTHON_EXCEPTION:
                del self.causes[before]  # the same failure, and the later one names it
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


_OF_ITSELF: Final = frozenset({Reason.USER_INTERRUPT, Reason.SIGTERM_EXTERNAL, Reason.SIGHUP, Reason.SEGFAULT, Reason.PYTHON_EXCEPTION})


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
    if _HANDLED.search(body) and not _WARNING.match(body):
        return False
    if said.level in ("W", "I") and not found.quiet:
        return False
    if is_exception or said.level == "E" or _ERROR_SHAPE.search(body):
        return True
    if _NO_EVENT.search(body) or (_WARNING.match(body) and not found.quiet):
        return False
    match = found.says.search(body)
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
        if ordinary <= _RECOVERY_LINES and _HANDLED.search(body) and not re.search(r"(?i)\bfail|\berror|give|giving", body):
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


# -- ends well --------------------------------------------------------------------------------------------------------

_ENDED_WELL: Final = re.compile(
    r"\b(?:training|train|finetuning|fine-tuning|pretraining|run|job|experiment)\b.{0,40}\b(?:complete|completed|finished|done|succeeded|ended successfully)\b"
    r"|\b(?:done|finished|completed) (?:with )?(?:the )?(?:training|finetuning|fine-tuning|pretraining)\b|['\"]train_runtime['\"]"
    r"|\b(?:complete|completed|finished|done) (?:the )?(?:run|job)\b|\bTrainer\.fit`? stopped: `?max_(?:epochs|steps|time)\b|\bexiting program at iteration\b|\bafter training is done\b"
    r"|\b(?:reached|hit) (?:the )?max(?:imum)?[_ ](?:steps|iterations|epochs|iters)\b|\ball (?:steps|epochs|iterations) (?:are |were )?(?:done|finished|complete\w*)\b"
    r"|^all done\b|^done[.!]*$|\bexited successfully\b|\bfinal (?:model|checkpoint|weights) (?:was |has been |is )?(?:saved|written)\b|\b(?:saved|wrote) (?:the )?final (?:model|checkpoint|weights)\b"
    r"|\bearly stopping (?:triggered|condition met)\b|\btraining time[: ]+\d+:\d+:\d+|\btotal training time\b",
    re.IGNORECASE,
)
_NOT_THE_END: Final = re.compile(
    r"\b(?:not|never|fail\w*|error|before|until|incomplete|will be|when|once|if|while|unless|epoch|phase|stage|round|warm-?up|eval\w*|valid\w*|download\w*|load\w*"
    r"|tokeni[sz]\w*|compil\w*|preprocess\w*|so far|steps? \d+ of|percent|reward model|tokenizer|split)\b",
    re.IGNORECASE,
)
_NO_ERRORS: Final = re.compile(r"\b(?:0|no|zero|without(?: any)?) (?:errors?|failures?|failed)\b(?:\(s\))?|\b(?:errors?|failures?|failed)[ :=]+0\b|\b(?:with )?exit code 0\b", re.IGNORECASE)
_STILL_WAITS: Final = re.compile(
    r"\b(?:wait(?:ing)?|finali[sz]ing|upload(?:ing)?|sync(?:ing|hroni[sz]ing)|flush(?:ing)?|join(?:ing)?|shut(?:ting)? ?down|tear(?:ing)? ?down|clean(?:ing)? ?up"
    r"|still (?:running|alive|there)|not exit\w*|process group|destroy\w*|draining|closing|terminating workers)\b",
    re.IGNORECASE,
)
_GONE_AT_LAST: Final = re.compile(r"\bSynced\b|\bFind logs at\b|\bexited\b|\bbye\b|\ball (?:files|uploads|workers) (?:\w+ )?(?:synced|done|finished|exited)\b", re.IGNORECASE)
_LAST_LINES: Final = 60


def finished_at(lines: Sequence[LogLine]) -> int | None:
    """Return the place of the line among the last ones that says that the training is complete."""
    for index in range(len(lines) - 1, max(-1, len(lines) - 1 - _LAST_LINES), -1):
        text = lines[index].text
        if _ENDED_WELL.search(text) is None:
            continue
        body = _NO_ERRORS.sub("", hear(text).body)
        if "train_runtime" in body or (_ENDED_WELL.search(body) and not _NOT_THE_END.search(body)):
            return index
    return None


def says_finished(lines: Sequence[LogLine]) -> bool:
    """Whether one of the last lines says that the training is complete."""
    return finished_at(lines) is not None


def still_waits(lines: Sequence[LogLine], done_at: int) -> LogLine | None:
    """Return the line behind the done line that tells what the process still waits for."""
    found = None
    for line in lines[done_at + 1 :]:
        if _GONE_AT_LAST.search(line.text):
            return None
        if found is None and _STILL_WAITS.search(line.text):
            found = line
    return found


# -- what to show -----------------------------------------------------------------------------------------------------


def telling_line(lines: Sequence[LogLine]) -> str:
    """The line to show where no cause is known: the first consequence, else the last line that holds words."""
    for line in lines:
        if _CONSEQUENCE.search(line.text) and not _TABLE_ROW.match(line.text):
            return bare(line.text)
    return next((bare(line.text) for line in reversed(lines) if re.search(r"\w", line.text)), "")


_RANK: Final = re.compile(r"^(?:\[?(?:default)?\d+\]?:|\[rank ?\d+\]:?|\(\w+ pid=\d+\)|rank ?\d+:) ?", re.IGNORECASE)


def bare(text: str) -> str:
    """A line without the prefix of its rank."""
    return _RANK.sub("", text.strip())
