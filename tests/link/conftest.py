"""Homes, keys and servers of the link's tests."""

import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from console.config import Target
from console.link.events import LinkEvent
from tests.link.servers import LOOPBACK, SshServer, clean_env, serving

Serve = Callable[..., Any]


class Heard(list[LinkEvent]):
    """The events of a link, in order."""

    def of(self, kind: type) -> list[Any]:
        return [event for event in self if isinstance(event, kind)]


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own with a default key, an empty ssh config and no agent."""
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("LOGNAME", "me")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return folder


@pytest.fixture
def key(home: Path) -> Path:
    """A client key outside the default places; its public half is what servers accept."""
    return write_key(home / "key")


def write_key(path: Path, passphrase: str | None = None) -> Path:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase or "", "-f", str(path)], check=True, timeout=20
    )
    return path


@pytest.fixture
async def serve(home: Path, key: Path) -> AsyncIterator[Serve]:
    """Start servers that know `key`, each with a host key of its own; all end with the test."""
    async with AsyncExitStack() as stack:

        async def start(**kwargs: Any) -> SshServer:
            kwargs.setdefault("key", asyncssh.generate_private_key("ssh-ed25519"))
            kwargs.setdefault("authorized", key.with_name("key.pub"))
            kwargs.setdefault("env", clean_env(home))
            server: SshServer = await stack.enter_async_context(serving(SshServer(**kwargs)))
            return server

        yield start


def trust(home: Path, *servers: SshServer, name: str = "known_hosts") -> Path:
    path = home / ".ssh" / name
    path.write_text("".join(server.known_hosts_line() + "\n" for server in servers))
    return path


def target_of(server: SshServer, key: Path | None, **kwargs: Any) -> Target:
    kwargs.setdefault("port", server.port)
    return Target(host=LOOPBACK, user="me", identity=str(key) if key else None, **kwargs)
