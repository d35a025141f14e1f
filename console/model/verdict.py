"""The word that stands first on the screen, and the reasons why something is not well."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from console.severity import Severity


class Verdict(StrEnum):
    """The word that the screen shows first (UI specification, section 2)."""

    NO_WORD = "no_word"  # connected or connecting, the host has not told its state yet
    IDLE = "idle"
    LAUNCHING = "launching"
    STEPPING = "stepping"
    RUNNING = "running"  # alive, but its steps can't be seen: buffered, elsewhere, no connection, unknown format
    SLOW = "slow"
    STALLED = "stalled"
    NAN = "nan"
    SPIKE = "spike"  # the loss has jumped and stays up
    SUSPENDED = "suspended"  # stopped by a signal, or held by a debugger
    NOT_EXITED = "not_exited"  # it said that it is done, and its process is still there
    FAILED = "failed"
    ENDED = "ended"
    FINISHED = "finished"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"  # the keeper was lost in the middle of a transaction
    LINK_LOST = "link_lost"
    FROZEN = "frozen"  # the container is: nothing in it goes on, and nothing in it answers
    HOST_RESTARTED = "host_restarted"


OUT_OF_REACH = frozenset({Verdict.LINK_LOST, Verdict.FROZEN})
"""Nothing new is heard of the run: all that is shown of it is as old as it says."""


class Fact(Struct, frozen=True, kw_only=True):
    """One piece of evidence: `log, last line` / `/root/run.sh: line 12: ...`."""

    label: str
    text: str
    severity: Severity = Severity.INFO


class ReasonView(Struct, frozen=True, kw_only=True):
    """Why something is not well, with the facts that it rests on, first cause first."""

    slug: str
    title: str
    detail: str = ""
    facts: tuple[Fact, ...] = ()
    safe: str = ""
    next: tuple[str, ...] = ()
    severity: Severity = Severity.ERROR
    brief: str = ""
    """The detail in at most 17 cells, for the rail; empty where the rail has its own words."""
