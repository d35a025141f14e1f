"""Whether the helper on the host itself can be had, as `doctor` asks: configured, reachable, and what it may see there.

The helper is optional: without it less can be told, and nothing fails. So the worst here is a warning.
"""

from __future__ import annotations

import asyncio

import msgspec

from console import protocol
from console.config import Target
from console.link.agents import open_agent
from console.link.outside import PYTHON
from console.link.payload import build_payload, entry_line
from console.link.transport import Connection
from console.reasons import ConsoleError, Reason

HELPER_S = 15.0
_FIELDS = {"container": "the container's pids, memory and freezing", "kernel": "the kernel log"}
_WITHOUT = "whose GPU memory it is and kills for want of memory are told as far as they show inside"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """State and sentence for the finding."""

    state: str
    detail: str
    reason: Reason | None = None
    next: str = ""


async def look(connection: Connection, target: Target, inside: protocol.Hello) -> Found:
    """Start a helper beside `connection`'s other agent, which has said `inside`, and ask it once."""
    if not target.wants_host_helper:
        return Found(state="ok", detail=_not_configured(target))
    told: asyncio.Future[protocol.OutsideEvent] = asyncio.get_running_loop().create_future()
    held: list[ConsoleError] = []

    def hear(event: protocol.AgentEvent, data: bytes) -> None:
        if isinstance(event, protocol.OutsideEvent) and not told.done():
            told.set_result(event)

    helper = msgspec.structs.replace(target, exec=(), python=PYTHON)
    payload = entry_line("outside") + build_payload()
    try:
        async with asyncio.timeout(HELPER_S):
            async with open_agent(
                connection, helper, payload, narrow=True, on_event=hear, on_held=held.append
            ) as agent:
                asked = protocol.ProcId(pid=inside.pid, start=inside.start or 0)
                agent.channel.post(protocol.Outside(id=1, agent=asked, pid_ns=inside.pid_ns))
                return _seen(await told)
    except TimeoutError:
        return _refused(held[0] if held else None, f"no answer within {HELPER_S:g} s")
    except ConsoleError as error:
        return _refused(error, str(error.reason))


def _not_configured(target: Target) -> str:
    if target.host_helper is False:
        return f"turned off by `host_helper = false`: {_WITHOUT}"
    if not target.exec:
        return "none is needed: the run is on the host itself, no `exec` leads into a container"
    return f"not configured for a run on this machine (`host_helper = true`): {_WITHOUT}"


def _seen(event: protocol.OutsideEvent) -> Found:
    missing = [f"{_FIELDS.get(name, name)}: {why}" for name, why in sorted(event.cannot.items())]
    if missing:
        return Found(state="warn", detail=f"reachable, but can't see {'; '.join(missing)}", next=_ALLOW)
    seen = [words for name, words in _FIELDS.items() if name != "container" or event.apart]
    what = f"sees {' and '.join(seen)}"
    if not event.apart:
        what += "; `exec` leads into no other pid namespace"
    return Found(state="ok", detail=f"reachable by {PYTHON}: {what}")


_ALLOW = "log in as a user who may see it, or set `host_helper = false`"


def _refused(error: ConsoleError | None, otherwise: str) -> Found:
    why = (error.detail if error is not None else "") or otherwise
    return Found(
        state="warn",
        detail=f"refused: {why}; {_WITHOUT}",
        reason=error.reason if error is not None else None,
        next="let the login run python3 on the host itself, or set `host_helper = false`",
    )
