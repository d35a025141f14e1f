"""Why the way into the container or into its Python failed: judged from what the words on the way printed.

Pure: text and an exit status in, a ConsoleError out. The order of the table is the order of trust; exit statuses alone
prove little (a missing python3 is status 1 under csh, a wrapper may swallow any).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from console.link.transport import Ended
from console.reasons import ConsoleError, Exit, Reason

MIN_PYTHON = (3, 8)
TAIL_LINES = 12

_NOT_FOUND = r"not found|no such file or directory|unknown command|failed to exec|cannot find command"
_SIGNS: tuple[tuple[Reason, str], ...] = (
    (Reason.CONTAINER_FROZEN, r"\b(is|are) (paused|frozen)\b"),
    (
        Reason.CONTAINER_MISSING,
        (
            r"configuration file '.*' does not exist|\b(CT|VM|container|instance) ?\S* does(n't| not) exist"
            r"|no such (container|instance)|no container with name|instance not found"
        ),
    ),
    (
        Reason.CONTAINER_STOPPED,
        r"failed to get init pid|\b(CT|VM|container|instance)\b.*\bnot running\b|container state improper",
    ),
    (Reason.PYTHON_TOO_OLD, r"unknown option:? ['\"]?-?-I\b"),
)


def _says(pattern: str, line: str) -> bool:
    return re.search(pattern, line, re.IGNORECASE) is not None


def never_answered(ended: Ended, printed: Sequence[str], prefix: Sequence[str], python: str) -> ConsoleError:
    """Return why the program at the end of the words ended before it answered."""
    tail = tuple(printed[-TAIL_LINES:])
    for reason, sign in _SIGNS:
        if line := _last(line for line in tail if _says(sign, line)):
            return _error(reason, line, tail)
    if line := _last(line for line in tail if _says(_NOT_FOUND, line) and _names(line, [python])):
        return _error(Reason.PYTHON_MISSING, line, tail)
    if line := _last(line for line in tail if _says(_NOT_FOUND, line) and _names(line, prefix)):
        return _error(Reason.WRAPPER_MISSING, line, tail)
    if ended.code == 127 and not prefix:
        return _error(Reason.PYTHON_MISSING, f"{python}: {ended}", tail)
    said = f", saying {tail[-1]!r}" if tail else ""
    return _error(Reason.BOOTSTRAP_FAILED, f"{' '.join([*prefix, python])} {ended} before it answered{said}", tail)


def unfit_python(python: str, version: tuple[int, ...], missing: Sequence[str]) -> ConsoleError | None:
    """Return what keeps an answering Python from running the agent, if anything does."""
    shown = ".".join(str(part) for part in version)
    if version[:2] < MIN_PYTHON:
        needed = ".".join(str(part) for part in MIN_PYTHON)
        return _error(Reason.PYTHON_TOO_OLD, f"{python} is Python {shown}; {needed} or later is needed", ())
    if missing:
        return _error(Reason.PYTHON_INCOMPLETE, f"{python} (Python {shown}) lacks {', '.join(missing)}", ())
    return None


def broke_down(ended: Ended, printed: Sequence[str]) -> ConsoleError:
    """Return why an agent that was being started never said hello."""
    tail = tuple(printed[-TAIL_LINES:])
    said = f": {tail[-1]}" if tail else ""
    return _error(Reason.BOOTSTRAP_FAILED, f"the agent {ended} while it was started{said}", tail)


def _error(reason: Reason, detail: str, tail: tuple[str, ...]) -> ConsoleError:
    return ConsoleError(reason, detail.strip(), Exit.ENTRY, tail=tail)


def _last(lines: Iterable[str]) -> str:
    return ["", *lines][-1]


def _names(line: str, words: Sequence[str]) -> bool:
    """Whether one of the words stands in the line as a word of its own; options and separators don't count."""
    for word in words:
        if not word.startswith("-") and re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w.-])", line):
            return True
    return False
