"""What the gutter of the log pane says about a line: error, warning, checkpoint, step or nothing.

Conservative: a line is an error only where its shape says so, never for holding the word. Knows nothing of other lines.
Pure.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from console.state.checkpoints import read_checkpoint
from console.state.formatrules import Kind, read
from console.state.formats import LITERALS
from console.state.lazy import lazy
from console.state.prefix import PREFIX, skip_prefix


class ErrorShape(NamedTuple):
    """What makes a line an error, as data: for whoever must judge lines elsewhere (protocol.ErrorRule)."""

    words: tuple[str, ...]
    prefix: str
    here: str
    anywhere: str
    after: str
    unless: str
    level: str


class LineKind(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    CHECKPOINT = "checkpoint"
    STEP = "step"
    PLAIN = "plain"


_ERROR_WORDS: Final = (
    *(
        "rror",
        "xception",
        "nterrupt",
        "ERROR",
        "FATAL",
        "CRITICAL",
        "FAILED",
        "raceback",
        "ermission denied",
        "not found",
    ),
    *(
        "uch file",
        "cannot exec",
        "bad interp",
        "Killed",
        "fault",
        "core dumped",
        "Bus err",
        "Abort",
        "Illegal",
        "panic",
    ),
    *("erminate", "return code", "ut of memory", "NCCL", "NVML", "Xid"),
)
"""A line that holds none of these is no error, except for a glog line of level E or F."""
_ERROR_ANYWHERE: Final = lazy(
    r"Traceback \(most recent call last\)"
    r"|\bCUDA (?:error|driver error|kernel error)\b|\bCUDA out of memory\b|\bNCCL "
    r"(?:error|failure)\b|\bcuda runtime error \("
    r"|\bSegmentation fault\b|\(core dumped\)|\bBus error\b|\bFATAL\b(?!=)|\bFatal Python error\b"
    r"|(?:: |^)(?:Permission denied|command not found|cannot execute(?: binary file)?\b.*|bad interpreter\b.*)$"
    r"|^\S+: (?:line )?\d+: .*: (?:No such file or directory|[Pp]ermission denied|not found)$"
    r"|can't open file .*No such file or directory|bad interpreter: "
    r"|^\S+: line \d+: +\d+ (?:Killed|Aborted|Illegal instruction|Bus error|Terminated)\b"
    r"|^[\w./-]+ FAILED$|exits with return code = -?[1-9]|NVRM: Xid \(|\bFailed to initialize NVML"
    r"|\b[Oo]ut of memory: Killed process|^\w+: ERROR\b"
    r"|(?:^|[\[\s|:-])(?:ERROR|CRITICAL)(?:\]|:| -| \||\s\s?\[|\|)(?! *0\b)"
)
_ERROR_HERE: Final = lazy(
    r"(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt)(?::(?:\s|$)|$)"
    r"|(?:fatal )?error: (?!\d)|Error: (?!\d)|FATAL\b|ERROR\b(?=[ :])(?! *[:=]? *0\b)|Killed$|Aborted(?: "
    r"\(core dumped\))?$|panic: "
    r"|terminate called after throwing|Aborting training\b"
)
_WARNING: Final = lazy(r"\b[A-Z]\w*Warning:|(?:^|[\[\s|:-])(?:WARNING|WARN)(?:\]|:| |\||$)|(?:^|: )[Ww]arning: ")
_GLOG: Final = lazy(r"\[?(?P<level>[EFW])(?:\d{3,4} \d\d:\d\d:\d\d| [\w.]+\.(?:cpp|cc|cu|py):\d+\])")
_EXCEPTION_AFTER: Final = lazy(r"(?:^|[\]:] )(?:[a-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception): ")


def error_shape() -> ErrorShape:
    """Return what `is_error` goes by, in its order: level, words, here, anywhere, after unless."""
    return ErrorShape(
        words=_ERROR_WORDS,
        prefix=PREFIX.pattern,
        here=_ERROR_HERE.pattern,
        anywhere=_ERROR_ANYWHERE.pattern,
        after=_EXCEPTION_AFTER.pattern,
        unless=_WARNING.pattern,
        level=_GLOG.pattern,
    )


def is_error(text: str) -> bool:
    """Say whether `classify` would call it an error, at a tenth of the price for a step line."""
    if not _holds_error_word(text) and _GLOG.search(text) is None:
        return False  # most lines: the prefix need not even be looked for
    start, _ = skip_prefix(text)
    return _glog_level(text, start) in ("E", "F") or _is_error(text, start)


def classify(text: str) -> LineKind:
    """Say what kind of line this is; `plain` wherever that isn't certain."""
    start, _ = skip_prefix(text)
    glog = _glog_level(text, start)
    if glog in ("E", "F") or _is_error(text, start):
        return LineKind.ERROR
    if glog == "W" or (("arning:" in text or "WARN" in text) and _WARNING.search(text)):
        return LineKind.WARNING
    if read_checkpoint(text) is not None:
        return LineKind.CHECKPOINT
    return LineKind.STEP if _is_step(text, start) else LineKind.PLAIN


def _glog_level(text: str, start: int) -> str:
    return match["level"] if (match := _GLOG.match(text, start)) is not None else ""


def _holds_error_word(text: str) -> bool:
    for word in _ERROR_WORDS:  # noqa: SIM110  any() with a generator takes three times as long
        if word in text:
            return True
    return False


def _is_error(text: str, start: int) -> bool:
    if not _holds_error_word(text):
        return False
    if _ERROR_HERE.match(text, start) or _ERROR_ANYWHERE.search(text):
        return True
    return _EXCEPTION_AFTER.search(text) is not None and _WARNING.search(text) is None


def _is_step(text: str, start: int) -> bool:
    for fmt in LITERALS.candidates(text):
        if (reading := read(fmt, text, start)) is not None:
            return reading.rule.kind in (Kind.STEP, Kind.EVAL) or reading.scope is not None
    return False
