"""Regular expressions that are compiled when they are first used: start-up needs none of the hundreds in the tables.

Compiling all of them takes as long as half of the first picture. Pure.
"""

from __future__ import annotations

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn")


def lazy(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return what `re.compile` would, as far as using it goes. Raises: re.error, at the first use."""
    return cast("re.Pattern[str]", _Lazy(source, flags))


class _Lazy:
    """Puts the compiled pattern's own methods in its place at the first use: later ones cost no more than usual."""

    __slots__ = (*_METHODS, "flags", "groupindex", "groups", "pattern")

    def __init__(self, source: str, flags: int) -> None:
        self.pattern = source
        self.flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in self.__slots__:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.flags)
        for each in (*_METHODS, "groupindex", "groups"):
            setattr(self, each, getattr(compiled, each))
        return getattr(self, name)
