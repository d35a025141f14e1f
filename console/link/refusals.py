"""What the agent refuses with, as an error of the catalogue and with its exit code."""

from __future__ import annotations

from console.protocol import Reply
from console.reasons import ConsoleError, Exit, Reason

_EXITS = {
    Reason.RESTART_UNDER_WAY: Exit.LOCKED,
    Reason.UNEXPECTED_RUN: Exit.LOCKED,
    Reason.NOTHING_RUNS: Exit.NOTHING_RUNS,
    Reason.PROTOCOL: Exit.BUG,
    Reason.BUG: Exit.BUG,
    Reason.UNKNOWN: Exit.BUG,
}
"""All other refusals leave the host untouched: Exit.REFUSED."""


def refused_by_agent(reply: Reply) -> ConsoleError:
    if reply.error is None:
        return ConsoleError(Reason.PROTOCOL, "the agent refuses without a reason", Exit.BUG)
    try:
        reason, detail = Reason(reply.error.reason), reply.error.detail
    except ValueError:
        reason, detail = Reason.UNKNOWN, f"{reply.error.reason}: {reply.error.detail}"
    return ConsoleError(reason, detail, _EXITS.get(reason, Exit.REFUSED), data=dict(reply.error.data))
