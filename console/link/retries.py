"""When a link that failed is tried again, and how soon; chance is an argument."""

from __future__ import annotations

import asyncio
import random

from console.reasons import ConsoleError, Reason

FIRST_S = 0.5
LONGEST_S = 15.0
_JITTER = 0.2
STABLE_S = 10.0
"""A link that was up for this long starts again with the shortest wait."""

_NEVER = {
    Reason.LOGIN_REFUSED,
    Reason.IDENTITY_UNUSABLE,
    Reason.HOST_KEY_UNKNOWN,
    Reason.HOST_KEY_CHANGED,
    Reason.WRAPPER_MISSING,
    Reason.PYTHON_MISSING,
    Reason.PYTHON_TOO_OLD,
    Reason.PYTHON_INCOMPLETE,
    Reason.PROTOCOL,
    Reason.CONFIG,
    Reason.UNKNOWN,
}
"""A person has to change something first. A refused login repeated may also lock a shared jump host out."""
_ONCE_PROVEN = {Reason.CONTAINER_MISSING, Reason.CONTAINER_STOPPED, Reason.CONTAINER_FROZEN, Reason.BOOTSTRAP_FAILED}
"""Refused at first; retried where the same words have worked before: a container restart looks like this."""


def is_retried(error: ConsoleError, has_been_up: bool) -> bool:
    reason = error.reason
    if reason is Reason.JUMP_FAILED:
        reason = Reason(str(error.data.get("cause", reason)))
    return reason not in _NEVER and (has_been_up or reason not in _ONCE_PROVEN)


def delay_s(attempt: int, chance: random.Random) -> float:
    """Return the wait after the `attempt`-th failure in a row: 0.5 s doubling to 15 s, give or take a fifth.

    The jitter keeps many consoles from knocking at a jump host in step.
    """
    plain = min(LONGEST_S, FIRST_S * 2 ** min(attempt - 1, 10))
    return float(min(LONGEST_S, plain * chance.uniform(1 - _JITTER, 1 + _JITTER)))


async def pause(seconds: float | None, wake: asyncio.Event) -> None:
    """Wait so long (None: for ever), or until `wake` is set from now on."""
    wake.clear()
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        pass
