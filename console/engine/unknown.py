"""What is said of a run that nobody knows: that it isn't known, and which known one was perhaps meant. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from operator import itemgetter

from console.reasons import ConsoleError, Exit, Reason

_NEAR = 0.7


def unknown_run(which: str, where: str, known: Iterable[str]) -> ConsoleError:
    """Return the refusal. `where`: whose run it isn't; `known`: the names and ids of those that are, newest first."""
    # Names that count up are equally near: the first, the newest of them, is meant.
    near, name = max(((_likeness(which, name), name) for name in known if name), key=itemgetter(0), default=(0.0, ""))
    hint = f"; did you mean {name}?" if near >= _NEAR else ""
    return ConsoleError(Reason.RUN_UNKNOWN, f"{which}: no such run of {where}{hint}", Exit.REFUSED)


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()
