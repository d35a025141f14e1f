"""What can be the matter with a run that is alive, as values: the condition, its reason and the facts that it rests on.

`health` judges which one holds; `verdict`, `outcome` and the faces read the answer. Pure.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from console.model import Fact
from console.reasons import Reason


class Condition(StrEnum):
    OK = "ok"
    SUSPENDED = "suspended"
    """Its processes are stopped by a signal, or held by a debugger."""
    NAN = "nan"
    UNSEEN = "unseen"
    """The log can't be read now, so no step can be seen."""
    UNREAD = "unread"
    """The log is still being read: nothing is judged by it yet."""
    NOT_EXITED = "not_exited"
    """It said that it is done, and its process is still there."""
    DOWNLOADING = "downloading"
    """It waits for a download that does not move."""
    ELSEWHERE = "elsewhere"
    """Its output goes somewhere else than into the log."""
    STALLED = "stalled"
    BUFFERED = "buffered"
    FORMAT_UNKNOWN = "format_unknown"
    SPIKE = "spike"
    SLOW = "slow"
    STARVED = "starved"
    """Its drafters wait for hidden states."""
    RECOMPILES = "recompiles"
    """Dynamo gave up compiling a part of it."""


class Health(Struct, frozen=True, kw_only=True):
    condition: Condition = Condition.OK
    reason: Reason | None = None
    detail: str = ""
    """The sentence of evidence."""
    facts: tuple[Fact, ...] = ()
    brief: str = ""
    """The same in at most 17 cells, for the rail."""
    next: tuple[str, ...] | None = None
    """What to do, where the case knows it better than the catalogue."""
