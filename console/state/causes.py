"""What the lines of a log say about why a run ended: the first cause, not its consequences.

A table of patterns, each with the reason it speaks for and how much it is trusted: the kernel and the hardware before
the program's own words, those before what is only told of a signal. Lines before the last step were handled. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from msgspec import Struct

from console.reasons import Reason
from console.state.events import LogLine


class Trust(IntEnum):
    """Lower is believed first."""

    KERNEL = 0
    PROGRAM = 1
    SIGNAL = 2


class Cause(Struct, frozen=True):
    reason: Reason
    trust: Trust
    line: LogLine


QUIET_LINES: Final = 20
"""So many ordinary lines behind an error say that it was handled, or belongs to an earlier attempt."""

_PREFIX: Final = re.compile(
    r"^(?:\[?(?:default)?\d+\]?:(?!\d)|\[rank ?\d+\]:?|\(\w+ pid=\d+\)|rank ?\d+:) ?", re.IGNORECASE
)

# What others say after the first has failed, and tables of such: never a cause.
_CONSEQUENCE: Final = re.compile(
    r"ChildFailedError|closing signal SIGTERM|Watchdog caught|watchdog got stuck|ProcessGroupNCCL|DistBackendError"
    r"|torch\.distributed\.Dist\w+Error.*(?:Connection|closed by peer|Broken pipe)"
    r"|NCCL (?:error|communicator was aborted)"
    r"|To enable traceback see|Root Cause \(first observed|\bFAILED$|Signal (?:6|15) \(SIG(?:ABRT|TERM)\) received"
    r"|exitcode\s*: -(?:6|15)\b|failed \(exitcode: (?:1|-6|-15)\)|leaked semaphore|resource_tracker"
)

_TABLE: Final[tuple[tuple[re.Pattern[str], Reason, Trust], ...]] = tuple(
    (re.compile(pattern), reason, trust)
    for pattern, reason, trust in (
        (r"[Mm]emory cgroup out of memory: Kill", Reason.CGROUP_OOM, Trust.KERNEL),
        (r"\bOut of memory: Kill(?:ed)? process", Reason.HOST_OOM, Trust.KERNEL),
        # The shell's own words: FILE: line N: PROGRAM: what is wrong.
        (r": (?:bad interpreter|cannot execute: required file not found)", Reason.BAD_INTERPRETER, Trust.PROGRAM),
        (r": cannot execute binary file|Exec format error$", Reason.EXEC_FORMAT, Trust.PROGRAM),
        (r"^\S+: (?:line )?\d+: .*: Permission denied$", Reason.EXEC_NOT_PERMITTED, Trust.PROGRAM),
        (r"^(?:env|nohup|setsid|timeout|exec): .*: Permission denied$", Reason.EXEC_NOT_PERMITTED, Trust.PROGRAM),
        (r": command not found$|^\S+: \d+: \S+: not found$", Reason.COMMAND_NOT_FOUND, Trust.PROGRAM),
        (
            r"^\S+: (?:line )?\d+: .*: No such file or directory$|^(?:env|nohup|setsid): .*: No such file",
            Reason.COMMAND_NOT_FOUND,
            Trust.PROGRAM,
        ),
        (r": (?:line )?\d+: [Ss]yntax error", Reason.SCRIPT_SYNTAX, Trust.PROGRAM),
        (r"\bNo module named ['\"]?[\w.]+", Reason.MISSING_MODULE, Trust.PROGRAM),
        (
            r"\bCUDA out of memory\b|\bOutOfMemoryError: |CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED",
            Reason.CUDA_OOM,
            Trust.PROGRAM,
        ),
        (
            (
                r"No CUDA GPUs are available|Found no NVIDIA driver|no CUDA-capable device|CUDA unknown error"
                r"|CUDA driver version is insufficient|cudaGetDeviceCount|system not yet initialized"
                r"|CUDA driver initialization failed|driver on your system is too old|Torch not compiled with CUDA"
                r"|CUDA initialization error|system has unsupported display driver"
            ),
            Reason.CUDA_INIT_FAILED,
            Trust.PROGRAM,
        ),
        (r"\bSegmentation fault\b|\(SIGSEGV\)|exitcode ?:? -11\b|exitcode\s*: -11\b", Reason.SEGFAULT, Trust.PROGRAM),
        (r"(?!.*(?:/dev/shm|[Ss]hared mem|NCCL|shm)).*\bNo space left on device\b", Reason.DISK_FULL, Trust.PROGRAM),
        (r"Received 1 death signal|closing signal SIGHUP|got signal: 1$|^Hangup$", Reason.SIGHUP, Trust.SIGNAL),
        (r"Received 15 death signal|got signal: 15$|^Terminated$", Reason.SIGTERM_EXTERNAL, Trust.SIGNAL),
        (r"^KeyboardInterrupt\b|Received 2 death signal", Reason.SIGNALLED, Trust.SIGNAL),
        (
            r"^Killed$|^\S+: line \d+: +\d+ Killed\b|exitcode ?:? -9\b|exitcode\s*: -9\b",
            Reason.SIGKILL_UNKNOWN,
            Trust.SIGNAL,
        ),
    )
)

_TABLE_ROW: Final = re.compile(r"^ +(?:exitcode|traceback) *: ")
"""Rows of torchrun's table of failures; any other indented line is source code or a stack."""
_TRACEBACK: Final = re.compile(r"Traceback \(most recent call last\)")
_EXCEPTION: Final = re.compile(
    r"^(?:[a-zA-Z_][\w]*\.)*(?:[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning|Timeout|Refused|NotFound)|[A-Z]\w+Error\w*)"
    r"(?:: .*|:)?$"
)
_ANY_DOTTED: Final = re.compile(r"^(?:[a-zA-Z_]\w*\.)*[A-Z]\w*(?:: .*)?$")
_WARNING: Final = re.compile(r"\b\w*Warning\b")
_DURING: Final = "During handling of the above exception"
_DIRECT: Final = "direct cause of the following exception"
_ENDED_WELL: Final = re.compile(
    r"\b(?:training|train|run)\b.{0,20}\b(?:complete|completed|finished|done)\b|\bdone training\b|\bfinished training\b"
    r"|['\"]train_runtime['\"]",
    re.IGNORECASE,
)
_FAILURE_WORDS: Final = re.compile(r"\b(?:not|never|fail\w*|error|before|until|incomplete)\b", re.IGNORECASE)


def first_cause(lines: Sequence[LogLine]) -> Cause | None:
    """Return the first cause among the last burst of errors: by trust, then by time."""
    found: list[Cause] = []
    last = -1
    for index, cause in _causes(lines):
        if found and index - last > QUIET_LINES:
            found = []  # what came before was handled: the log went on
        found.append(cause)
        last = index
    return min(found, key=lambda cause: cause.trust, default=None)


def says_finished(lines: Sequence[LogLine]) -> bool:
    """Whether one of the last lines says that the training is complete."""
    return any(_ENDED_WELL.search(line.text) and not _FAILURE_WORDS.search(line.text) for line in lines[-40:])


def telling_line(lines: Sequence[LogLine]) -> str:
    """The line to show where no cause is known: the first consequence, else the last line that holds words."""
    for line in lines:
        if _CONSEQUENCE.search(line.text) and not _TABLE_ROW.match(line.text):
            return bare(line.text)
    return next((bare(line.text) for line in reversed(lines) if re.search(r"\w", line.text)), "")


def bare(text: str) -> str:
    """A line without the prefix of its rank."""
    return _PREFIX.sub("", text.strip())


def _causes(lines: Sequence[LogLine]) -> list[tuple[int, Cause]]:
    found: list[tuple[int, Cause]] = []
    open_tracebacks: set[str] = set()
    drop_before_during: Cause | None = None
    for index, line in enumerate(lines):
        prefix, text = _split(line.text)
        if _TRACEBACK.search(text):
            open_tracebacks.add(prefix)
            continue
        if _DURING in text and found and found[-1][1].reason is Reason.PYTHON_EXCEPTION:
            # It was being handled when the next one came: that one ended the program.
            drop_before_during = found.pop()[1]
            continue
        if _DIRECT in text or not text or (text[:1].isspace() and not _TABLE_ROW.match(text)):
            continue
        in_traceback = prefix in open_tracebacks
        cause = _cause_of(line, text, in_traceback=in_traceback)
        if in_traceback and _ANY_DOTTED.match(text):
            open_tracebacks.discard(prefix)
        if cause is not None:
            found.append((index, cause))
            drop_before_during = None
    if drop_before_during is not None:  # the second one was cut off
        found.append((len(lines) - 1, drop_before_during))
    return found


def _split(text: str) -> tuple[str, str]:
    match = _PREFIX.match(text)
    return (match.group(0), text[match.end() :]) if match is not None else ("", text)


def _cause_of(line: LogLine, text: str, *, in_traceback: bool) -> Cause | None:
    if _CONSEQUENCE.search(text):
        return None
    for pattern, reason, trust in _TABLE:
        if pattern.search(text):
            return Cause(reason, trust, line)
    is_exception = _ANY_DOTTED.match(text) if in_traceback else _EXCEPTION.match(text)
    if is_exception and not _WARNING.match(text):
        return Cause(Reason.PYTHON_EXCEPTION, Trust.PROGRAM, line)
    return None
