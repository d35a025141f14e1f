"""A module's text without what nobody asks it for, to be sent over a link and compiled at its other end.

By the words in it alone, since parsing a third of a megabyte takes longer than all else that is packed: whatever is
mentioned, in a text or a remark too, is kept. Only payload.py imports this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# What defines no name, an import or a condition for one, is always kept.
_DEFINES = re.compile(r"(?:def|class) +(\w+)|(\w+) *=(?!=)")
_STATEMENT = re.compile(r"^(?=[A-Za-z_@])", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_QUOTES = ('"""', "'''")


def only_what_is_used(source: str, users: Iterable[str], always: str) -> str:
    """Return `source` with what `users`, texts too, do not lead to blanked out; every line keeps its number.

    `always`: names that begin so are kept: the module itself looks for them.
    """
    head, *statements = _statements(source)
    defined: dict[str, list[int]] = {}
    reached: list[int] = []
    for number, statement in enumerate(statements):
        name = _defined_by(statement)
        if name is None or name.startswith(always):
            reached.append(number)
        else:
            defined.setdefault(name, []).append(number)
    for text in users:
        reached += _newly_reached(text, defined)
    kept: set[int] = set()
    while reached:
        number = reached.pop()
        kept.add(number)
        reached += _newly_reached(statements[number], defined)
    lean = (each if number in kept else "\n" * each.count("\n") for number, each in enumerate(statements))
    return head + "".join(lean)


def _newly_reached(text: str, defined: dict[str, list[int]]) -> list[int]:
    """Return the statements that define what `text` mentions, each name's only once."""
    return [number for word in set(_WORD.findall(text)) & defined.keys() for number in defined.pop(word)]


def _defined_by(statement: str) -> str | None:
    while statement.startswith("@"):
        statement = statement.partition("\n")[2]
    match = _DEFINES.match(statement)
    return (match[1] or match[2]) if match else None


def _statements(source: str) -> Iterator[str]:
    """Yield what stands before the first statement at the margin, then each of them with all its lines."""
    unfinished = ""
    for number, part in enumerate(_STATEMENT.split(source)):
        unfinished += part
        within_text = any(quotes in unfinished and unfinished.count(quotes) % 2 for quotes in _QUOTES)
        if number == 0 or not (within_text or part.startswith("@")):
            yield unfinished
            unfinished = ""
    if unfinished:
        yield unfinished
