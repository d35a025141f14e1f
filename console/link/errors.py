"""The one place where what asyncssh and the system raise becomes a reason of the catalogue.

Each function takes the foreign exception and the hop that it happened at, and returns the ConsoleError to raise.
Details are facts (who, which key, which file); advice is the catalogue's.
"""

from __future__ import annotations

import errno
import socket

import asyncssh

from console.link.sshoptions import Hop
from console.reasons import ConsoleError, Exit, Reason

_UNREACHABLE = {
    errno.ECONNREFUSED,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.EHOSTDOWN,
    errno.ENETDOWN,
    errno.EADDRNOTAVAIL,
}
_KEPT_AT_A_JUMP = {Reason.HOST_KEY_UNKNOWN, Reason.HOST_KEY_CHANGED, Reason.IDENTITY_UNUSABLE}
"""Reasons whose advice is the same at a jump host; all others there become jump_failed with the cause in `data`."""


def refused_connection(exc: Exception, hop: Hop, key: asyncssh.SSHKey | None, connected: bool) -> ConsoleError:
    """Return why `hop` could not be connected to; `key` is the host key that was not accepted."""
    reason, detail = _why(exc, hop, key, connected)
    data: dict[str, object] = {"hop": hop.shown, "is_jump": hop.is_jump, "cause": str(reason)}
    if not hop.is_jump:
        return ConsoleError(reason, detail, Exit.LINK, data=data)
    if reason not in _KEPT_AT_A_JUMP:
        reason = Reason.JUMP_FAILED
    return ConsoleError(reason, f"jump host {detail}", Exit.LINK, data=data)


def lost_link(exc: BaseException | None) -> ConsoleError:
    """Return what a broken connection means to whoever was reading from it."""
    text = str(exc).strip() if exc is not None else ""
    return ConsoleError(Reason.LINK_LOST, text or "the connection was closed", Exit.LINK)


def refused_channel(exc: Exception) -> ConsoleError:
    """Return why a logged-in connection would not run a program."""
    if isinstance(exc, asyncssh.ChannelOpenError) and "connection closed" not in str(exc.reason):
        detail = f"the host refuses another session: {exc.reason}"
        return ConsoleError(Reason.LINK_UNREACHABLE, detail, Exit.LINK, data={"channel_refused": True})
    return lost_link(exc)


def _why(exc: Exception, hop: Hop, key: asyncssh.SSHKey | None, connected: bool) -> tuple[Reason, str]:
    if isinstance(exc, asyncssh.HostKeyNotVerifiable):
        return hop.known_hosts.judge(hop, key, str(exc.reason))
    if isinstance(exc, asyncssh.PermissionDenied):
        return Reason.LOGIN_REFUSED, f"{hop.named}: {_login(exc, hop)}"
    if isinstance(exc, asyncssh.KeyExchangeFailed) and "host key" in str(exc.reason).lower():
        return Reason.HOST_KEY_CHANGED, f"{hop.named}: {exc.reason}"
    if isinstance(exc, socket.gaierror):
        return Reason.DNS_FAILED, f"{hop.named}: {exc.strerror or exc}"
    if isinstance(exc, TimeoutError):
        phase = "login" if connected else "connection"
        return Reason.LINK_TIMEOUT, f"{hop.named}: no {phase} within the time allowed"
    if isinstance(exc, asyncssh.ChannelOpenError):
        return _through_jump(exc, hop)
    if isinstance(exc, asyncssh.DisconnectError):
        return _disconnected(exc, hop, connected)
    if isinstance(exc, OSError):
        reason = Reason.LINK_UNREACHABLE if exc.errno in _UNREACHABLE or not connected else Reason.LINK_LOST
        return reason, f"{hop.named}: {exc.strerror or exc}"
    return Reason.UNKNOWN, f"{hop.named}: {type(exc).__name__}: {exc}"


def _login(exc: asyncssh.PermissionDenied, hop: Hop) -> str:
    offered = hop.identities or ("the agent's and the default keys",)
    return f"{exc.reason or 'permission denied'} (offered: {', '.join(offered)})"


def _through_jump(exc: asyncssh.ChannelOpenError, hop: Hop) -> tuple[Reason, str]:
    """The hop before this one was asked to connect on and could not."""
    text = f"{hop.named}, from {hop.via}: {exc.reason}"
    lowered = str(exc.reason).lower()
    if exc.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
        return Reason.JUMP_FAILED, f"{hop.via} doesn't forward to {hop.named}: {exc.reason}"
    if "name" in lowered and ("not known" in lowered or "resol" in lowered):
        return Reason.DNS_FAILED, text
    return (Reason.LINK_TIMEOUT if "timed out" in lowered else Reason.LINK_UNREACHABLE), text


def _disconnected(exc: asyncssh.DisconnectError, hop: Hop, connected: bool) -> tuple[Reason, str]:
    lowered = str(exc.reason).lower()
    if "too many authentication failures" in lowered:
        return Reason.LOGIN_REFUSED, f"{hop.named}: {exc.reason}"
    if "login timeout" in lowered:
        return Reason.LINK_TIMEOUT, f"{hop.named}: {exc.reason}"
    when = "closed the connection before the login" if connected else "did not answer as an SSH server"
    return Reason.LINK_UNREACHABLE, f"{hop.named} {when}: {exc.reason}"
