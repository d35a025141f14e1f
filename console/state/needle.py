"""The text that every match of a regular expression holds: what makes searching two gigabytes for it quick. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_Tokens = Iterable[tuple[Any, Any]]


def required(pattern: str) -> str:
    """Return the longest text that must stand in whatever the pattern is found in; "" where none is certain."""
    try:
        parsed = _parser.parse(pattern)
    except (re.error, OverflowError, RecursionError):
        return ""
    if parsed.state.flags & ~re.UNICODE.value:
        return ""  # flags of its own: what is literal depends on them
    return max(_runs(parsed), key=len, default="")


def _runs(tokens: _Tokens) -> list[str]:
    runs, current = [], ""
    for op, argument in tokens:
        name = str(op)
        if name == "LITERAL":
            current += chr(argument)
            continue
        runs.append(current)
        current = ""
        if name == "SUBPATTERN" and not argument[1] and not argument[2]:
            runs += _runs(argument[3])
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and argument[0] >= 1:
            runs += _runs(argument[2])
    return [*runs, current]
