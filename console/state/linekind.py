"""What the gutter of the log pane says about a line: error, warning, checkpoint, step or nothing.

Conservative: a line is an error only where its shape says so, never for holding the word. Knows nothing of other lines.
Pure.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from console.state.checkpoints import read_checkpoint
from console.state.formatrules import Kind, read, skip_prefix
from console.state.formats import FORMATS


class LineKind(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    CHECKPOINT = "checkpoint"
    STEP = "step"
    PLAIN = "plain"


_MAYBE_ERROR: Final = re.compile(
    r"rror|xception|FATAL|CRIT|ERR|FAIL|raceback|Permission|ommand not|such file|cannot exec|bad "
    r"interp|Killed|ault|core dumped"
    r"|Bus err|Abort|Illegal|panic|nterrupt|[EF]\d{4} |Terminated|terminate|return code|ot found|NCCL|Xid"
)
_ERROR_ANYWHERE: Final = re.compile(
    r"Traceback \(most recent call last\)"
    r"|\bCUDA (?:error|driver error|kernel error)\b|\bCUDA out of memory\b|\bNCCL "
    r"(?:error|failure)\b|\bcuda runtime error \("
    r"|\bSegmentation fault\b|\(core dumped\)|\bBus error\b|\bFATAL\b(?!=)|\bFatal Python error\b"
    r"|(?:: |^)(?:Permission denied|command not found|cannot execute(?: binary file)?\b.*|bad interpreter\b.*)$"
    r"|^\S+: (?:line )?\d+: .*: (?:No such file or directory|[Pp]ermission denied|not found)$"
    r"|can't open file .*No such file or directory|bad interpreter: "
    r"|^\S+: line \d+: +\d+ (?:Killed|Aborted|Illegal instruction|Bus error|Terminated)\b"
    r"|^[\w./-]+ FAILED$|exits with return code = -?[1-9]|NVRM: Xid \("
    r"|(?:^|[\[\s|:-])(?:ERROR|CRITICAL)(?:\]|:| -| \||\s\s?\[|\|)(?! *0\b)"
)
_ERROR_HERE: Final = re.compile(
    r"(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt)(?::(?:\s|$)|$)"
    r"|(?:fatal )?error: (?!\d)|Error: (?!\d)|FATAL\b|ERROR\b(?=[ :])(?! *[:=]? *0\b)|Killed$|Aborted(?: "
    r"\(core dumped\))?$|panic: "
    r"|terminate called after throwing|Aborting training\b|[EF]\d{4} \d\d:\d\d:\d\d"
)
_MAYBE_WARNING: Final = re.compile(r"arning|WARN|\bW\d{4} ")
_WARNING: Final = re.compile(
    r"\b[A-Z]\w*Warning:|(?:^|[\[\s|:-])(?:WARNING|WARN)(?:\]|:| |\||$)|\bW\d{4} \d\d:\d\d:\d\d|(?:^|: )[Ww]arning: "
)
_EXCEPTION_AFTER: Final = re.compile(r"(?:^|[\]:] )(?:[a-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception): ")


def _is_error(text: str, start: int) -> bool:
    if _ERROR_HERE.match(text, start) or _ERROR_ANYWHERE.search(text):
        return True
    return _EXCEPTION_AFTER.search(text) is not None and _WARNING.search(text) is None


def classify(text: str) -> LineKind:
    """Say what kind of line this is; `plain` wherever that isn't certain."""
    start, _ = skip_prefix(text)
    if _MAYBE_ERROR.search(text) and _is_error(text, start):
        return LineKind.ERROR
    if _MAYBE_WARNING.search(text) and _WARNING.search(text):
        return LineKind.WARNING
    if read_checkpoint(text) is not None:
        return LineKind.CHECKPOINT
    return LineKind.STEP if _is_step(text, start) else LineKind.PLAIN


def _is_step(text: str, start: int) -> bool:
    for fmt in FORMATS:
        if any(literal in text for literal in fmt.literals):
            reading = read(fmt, text, start)
            if reading is not None:
                return reading.rule.kind in (Kind.STEP, Kind.EVAL) or reading.scope is not None
    return False
