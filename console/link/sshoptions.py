"""What asyncssh is told for each hop on the way to a target: config, keys, known hosts, limits.

`~/.ssh/config` counts (Host, Match, Include, HostName, User, Port, IdentityFile, IdentitiesOnly, IdentityAgent,
ProxyJump, ProxyCommand, UserKnownHostsFile, HostKeyAlias); what the console's own config says goes first.
Hops are resolved here rather than by asyncssh, so that a failure can name the hop. Nothing here connects, and nothing
ever asks a person.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import asyncssh

from console.config import Target
from console.link.knownhosts import DEFAULT_FILES, KnownHosts
from console.reasons import ConsoleError, Exit, Reason

KEEPALIVE_S = 1.0
KEEPALIVE_MISSES = 3  # a dead link raises after 1 s x (3 + 1)
_JUMP_DEPTH = 8

Options = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One SSH connection of the way, in the order in which they are opened."""

    host: str
    """As written, which is what ssh config's Host patterns match."""
    port: int
    shown: str
    """For people, as written: `ops@jump`, `root@gpu1:2222`."""
    address: str
    """What the ssh config makes of `host`."""
    key_name: str
    """The name that known_hosts is searched for."""
    is_jump: bool
    via: str
    """The hop before, as shown; empty for the first."""
    known_hosts: KnownHosts
    identities: tuple[str, ...]
    options: Options

    @property
    def named(self) -> str:
        """For errors: with the address, where the ssh config gives another."""
        return self.shown if self.address == self.host else f"{self.shown} ({self.address})"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What was asked for, before ssh config has been read."""

    host: str
    user: str | None = None
    port: int | None = None


def resolve(target: Target) -> tuple[Hop, ...]:
    """Return the hops that lead to `target`, the target itself last. Reads files; run it in a thread.

    Raises: ConsoleError (config, identity_unusable).
    """
    last = _Wanted(host=target.host, user=target.user, port=target.port)
    jumps = [_parse_hop(part) for part in _jump_names(target.jump or _read_config(last).tunnel)]
    while jumps and len(jumps) < _JUMP_DEPTH:  # a jump host may have a ProxyJump of its own
        before = [_parse_hop(part) for part in _jump_names(_read_config(jumps[0]).tunnel)]
        if not before or any(hop.host == jumps[0].host for hop in before):
            break
        jumps = before + jumps
    hops: list[Hop] = []
    for wanted in [*jumps, last]:
        via = hops[-1].shown if hops else ""
        hops.append(_hop(wanted, target, is_jump=wanted is not last, via=via))
    return tuple(hops)


def _hop(wanted: _Wanted, target: Target, *, is_jump: bool, via: str) -> Hop:
    read = _read_config(wanted)
    key_name = read.host_key_alias or read.host
    known = KnownHosts.read([target.known_hosts] if target.known_hosts else _known_hosts_files(read))
    shown = f"{read.username}@{wanted.host}" + ("" if read.port == asyncssh.DEFAULT_PORT else f":{read.port}")
    identities, keys = _keys(read, target, shown)
    options: Options = {
        "port": read.port,
        "username": read.username,
        "config": _config_paths(),
        "known_hosts": known.all,
        "compression_algs": None,
        "keepalive_interval": KEEPALIVE_S,
        "keepalive_count_max": KEEPALIVE_MISSES,
        "connect_timeout": None,  # both limits are ours: which of them passed is part of the reason
        "login_timeout": 0,
        "preferred_auth": ("publickey",),
        "password_auth": False,
        "kbdint_auth": False,
        "host_based_auth": False,
        "gss_host": None,
        "agent_forwarding": False,
        "x11_forwarding": False,
        **keys,
    }
    if not read.config.get("HostKeyAlgorithms"):
        options["server_host_key_algs"] = known.algorithms(key_name, read.port)
    if via:
        options["proxy_command"] = None
    return Hop(
        host=wanted.host,
        port=read.port,
        shown=shown,
        address=read.host,
        key_name=key_name,
        is_jump=is_jump,
        via=via,
        known_hosts=known,
        identities=identities,
        options=options,
    )


def _config_paths() -> list[str]:
    path = Path("~/.ssh/config").expanduser()
    return [str(path)] if os.access(path, os.R_OK) else []


def _read_config(wanted: _Wanted) -> Any:
    """Return asyncssh's view of the ssh config for one host, without loading a key."""
    try:
        return asyncssh.SSHClientConnectionOptions(
            host=wanted.host,
            port=wanted.port or (),
            username=wanted.user or (),
            config=_config_paths(),
            client_keys=None,
            known_hosts=b"",
        )
    except (ValueError, OSError) as exc:
        raise ConsoleError(Reason.CONFIG, f"ssh config for {wanted.host}: {exc}", Exit.USAGE) from exc


def _jump_names(jump: object) -> list[str]:
    text = jump if isinstance(jump, str) else ""
    return [] if text.lower() == "none" else [part.strip() for part in text.split(",") if part.strip()]


def _parse_hop(text: str) -> _Wanted:
    """`ops@jump:2222`, `[::1]:22`, `ssh://ops@jump:2222`."""
    user, _, place = text.removeprefix("ssh://").rstrip("/").rpartition("@")
    host, port = place, ""
    if place.startswith("["):
        host, _, port = place[1:].partition("]")
        port = port.removeprefix(":")
    elif place.count(":") == 1:
        host, _, port = place.partition(":")
    if not host or (port and not port.isdecimal()):
        raise ConsoleError(Reason.CONFIG, f"not a jump host: {text!r}", Exit.USAGE)
    return _Wanted(host=host, user=user or None, port=int(port) if port else None)


def _known_hosts_files(read: Any) -> list[str]:
    users = cast("list[str] | None", read.config.get("UserKnownHostsFile"))
    machines = cast("list[str] | None", read.config.get("GlobalKnownHostsFile"))
    return [*(DEFAULT_FILES[:2] if users is None else users), *(DEFAULT_FILES[2:] if machines is None else machines)]


def _keys(read: Any, target: Target, shown: str) -> tuple[tuple[str, ...], Options]:
    """Return what is offered, for people and for asyncssh: the configured identities, else agent and default keys."""
    from_config = cast("list[str]", read.config.get("IdentityFile") or [])
    explicit = [target.identity] if target.identity else []
    agent = _agent_path(read)
    usable: list[str] = []
    left_to_agent: list[str] = []
    for name in [*explicit, *from_config]:
        path = Path(name).expanduser()
        trouble = _trouble_with(path)
        if not trouble:
            usable.append(str(path))
        elif agent and path.with_name(path.name + ".pub").is_file():
            left_to_agent.append(str(path) + ".pub")
        elif name in explicit:
            raise ConsoleError(Reason.IDENTITY_UNUSABLE, f"{path} for {shown}: {trouble}", Exit.LINK)
    keys: Options = {"agent_path": agent or None, "passphrase": None}
    if usable:
        keys["client_keys"] = usable
    if read.config.get("IdentitiesOnly"):
        keys["agent_identities"] = [*usable, *left_to_agent] or None
    return (*usable, *left_to_agent, *(["agent"] if agent else [])), keys


def _agent_path(read: Any) -> str:
    named = read.config.get("IdentityAgent", os.environ.get("SSH_AUTH_SOCK", ""))
    if named == "SSH_AUTH_SOCK":
        named = os.environ.get("SSH_AUTH_SOCK", "")
    return str(Path(str(named)).expanduser()) if named else ""


def _trouble_with(path: Path) -> str:
    """Return why the key can't be used without asking anybody, or an empty string."""
    try:
        asyncssh.read_private_key(path)
    except asyncssh.KeyEncryptionError as exc:
        return f"encrypted ({exc})"
    except asyncssh.KeyImportError as exc:
        return "needs a passphrase" if "assphrase" in str(exc) else f"not a private key ({exc})"
    except OSError as exc:
        return exc.strerror or str(exc)
    return ""
