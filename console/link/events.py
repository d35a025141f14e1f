"""What a Link tells its owner, in the order in which it happened. Frozen values, nothing else."""

from __future__ import annotations

from msgspec import Struct

from console.protocol import AgentEvent, Hello
from console.reasons import Reason


class LinkUp(Struct, frozen=True, kw_only=True):
    """The control connection has an agent that said hello; it has not been told yet what to watch."""

    hello: Hello
    rtt_s: float
    label: str
    """Where the target is, now with what the ssh config says: `root@10.1.2.6 · via ops@jump · pct 200`."""


class LinkDown(Struct, frozen=True, kw_only=True):
    """The link is lost, or an attempt to bring it up failed. Bulk is down with it, without an event of its own."""

    reason: Reason
    detail: str
    attempt: int
    """Failures in a row, this one included."""
    retry_in_s: float | None
    """None: nothing is tried again before `retry_now`, except where `held`."""
    held: bool = False
    """The attempt is still open and goes on by itself: a frozen container."""
    tail: tuple[str, ...] = ()
    """The last lines of what the other side printed, where that matters."""


class BulkUp(Struct, frozen=True, kw_only=True):
    shared: bool = False
    """It is a second channel of the control connection, because the host gave no second connection."""
    detail: str = ""
    """Why it is shared."""


class BulkDown(Struct, frozen=True, kw_only=True):
    """Only the bulk connection failed; control goes on."""

    reason: Reason
    detail: str
    retry_in_s: float


class OutsideUp(Struct, frozen=True, kw_only=True):
    """The helper on the host itself has said hello; it has not been told yet which container is meant."""


class OutsideDown(Struct, frozen=True, kw_only=True):
    """There is no helper on the host, or none any more; nothing else is touched by that."""

    detail: str


class AgentSaid(Struct, frozen=True, kw_only=True):
    event: AgentEvent
    data: bytes = b""


class Rtt(Struct, frozen=True, kw_only=True):
    """A ping was answered: round trip, and the host's two clocks when it answered."""

    rtt_s: float
    bt: float
    wall: float


LinkEvent = LinkUp | LinkDown | BulkUp | BulkDown | OutsideUp | OutsideDown | AgentSaid | Rtt
