"""The way to the host: ssh config, jump hosts, host keys, refused logins. Real SSH on loopback."""

import asyncio
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import asyncssh
import pytest

from console.config import Target
from console.link import ssh
from console.link.ssh import connect_ssh
from console.reasons import ConsoleError, Exit, Reason
from tests.link.conftest import Serve, target_of, trust, write_key
from tests.link.servers import LOOPBACK, SshServer
from tests.waiting import until_async


async def output_of(target: Target, *words: str) -> bytes:
    connection = await connect_ssh(target)
    try:
        process = await connection.open(words)
        data = b""
        while more := await process.read():
            data += more
        return data
    finally:
        await connection.close()


async def failure_of(target: Target) -> ConsoleError:
    with pytest.raises(ConsoleError) as caught:
        await connect_ssh(target)
    assert caught.value.exit_code is Exit.LINK
    return caught.value


async def test_words_reach_the_host_as_they_are(home: Path, key: Path, serve: Serve) -> None:
    server = await serve()
    trust(home, server)

    data = await output_of(target_of(server, key), "printf", "%s|", "a b", "$HOME", "it's")

    assert data == b"a b|$HOME|it's|"


async def test_exit_status_is_told_and_a_lost_link_leaves_it_unknown(home: Path, key: Path, serve: Serve) -> None:
    server = await serve()
    trust(home, server)
    connection = await connect_ssh(target_of(server, key))

    process = await connection.open(["sh", "-c", "exit 7"])
    assert (await process.wait()).code == 7

    process = await connection.open(["cat"])
    server.connections[0].abort()
    with pytest.raises(ConsoleError) as caught:
        await process.read()
    assert caught.value.reason is Reason.LINK_LOST
    ended = await process.wait()
    assert (ended.code, ended.signal) == (None, None)
    await connection.close(abruptly=True)


async def test_closed_process_ends_there_while_its_connection_goes_on(home: Path, key: Path, serve: Serve) -> None:
    server = await serve()
    trust(home, server)
    connection = await connect_ssh(target_of(server, key))
    process = await connection.open(["cat"], narrow=True)
    await until_async(lambda: server.alive)

    await process.close()

    await until_async(lambda: not server.alive)
    again = await connection.open(["true"])
    assert (await again.wait()).code == 0
    await connection.close()


async def test_ssh_config_gives_name_user_port_key_and_included_files(home: Path, key: Path, serve: Serve) -> None:
    server = await serve()
    trust(home, server)
    (home / ".ssh" / "config").write_text("Include more/*.conf\n")
    (home / ".ssh" / "more").mkdir()
    (home / ".ssh" / "more" / "lab.conf").write_text(
        f"Host gpu1\n  HostName {LOOPBACK}\n  Port {server.port}\n  User trainer\n  IdentityFile {key}\n"
        "  IdentityFile ~/.ssh/not-there\n"
    )

    data = await output_of(Target(host="gpu1"), "echo", "in")

    assert data == b"in\n"
    assert server.logins == ["trainer"]


async def test_own_config_goes_before_ssh_config(home: Path, key: Path, serve: Serve) -> None:
    server = await serve()
    trust(home, server)
    (home / ".ssh" / "config").write_text(f"Host *\n  User wrong\n  Port 1\n  IdentityFile {key}\n")

    await output_of(target_of(server, None), "true")

    assert server.logins == ["me"]


@pytest.mark.parametrize("by", ["jump", "ssh config"])
async def test_jump_host_is_used_and_named(by: str, home: Path, key: Path, serve: Serve) -> None:
    jump, server = await serve(), await serve()
    trust(home, jump, server)
    place = f"ops@{LOOPBACK}:{jump.port}"
    if by == "ssh config":
        (home / ".ssh" / "config").write_text(f"Match host {LOOPBACK} user me\n  ProxyJump {place}\n")

    connection = await connect_ssh(target_of(server, key, jump=place if by == "jump" else None))

    assert connection.label == f"me@{LOOPBACK}:{server.port} · via ops@{LOOPBACK}:{jump.port}"
    assert jump.logins == ["ops"]
    assert jump.forwarded == [(LOOPBACK, server.port)]
    assert server.logins == ["me"]
    await connection.close()


async def test_jump_none_goes_straight(home: Path, key: Path, serve: Serve) -> None:
    server = await serve()
    trust(home, server)
    (home / ".ssh" / "config").write_text("Host *\n  ProxyJump ops@nowhere.invalid\n")

    assert await output_of(target_of(server, key, jump="none"), "echo", "in") == b"in\n"


async def test_unknown_host_key_is_refused_with_type_fingerprint_and_file(home: Path, key: Path, serve: Serve) -> None:
    server = await serve()
    known = trust(home)

    error = await failure_of(target_of(server, key))

    assert error.reason is Reason.HOST_KEY_UNKNOWN
    assert "ssh-ed25519" in error.detail
    assert server.key.get_fingerprint() in error.detail
    assert str(known) in error.detail
    assert server.logins == []


async def test_changed_host_key_is_told_from_an_unknown_one(home: Path, key: Path, serve: Serve) -> None:
    server, other = await serve(), await serve()
    other.port = server.port
    known = trust(home, other)

    error = await failure_of(target_of(server, key))

    assert error.reason is Reason.HOST_KEY_CHANGED
    assert server.key.get_fingerprint() in error.detail
    assert other.key.get_fingerprint() in error.detail
    assert str(known) in error.detail


async def test_host_key_of_another_type_is_a_changed_one(home: Path, key: Path, serve: Serve) -> None:
    server = await serve(key=asyncssh.generate_private_key("ecdsa-sha2-nistp256"))
    other = await serve()
    other.port = server.port
    trust(home, other)

    error = await failure_of(target_of(server, key))

    assert error.reason is Reason.HOST_KEY_CHANGED
    assert "ecdsa-sha2-nistp256 " + server.key.get_fingerprint() in error.detail


@pytest.mark.parametrize("value", ["none", "/dev/null"])
async def test_host_key_checking_cannot_be_switched_off(value: str, home: Path, key: Path, serve: Serve) -> None:
    server = await serve()
    trust(home, server)
    (home / ".ssh" / "config").write_text(f"Host *\n  UserKnownHostsFile {value}\n  StrictHostKeyChecking no\n")

    assert (await failure_of(target_of(server, key))).reason is Reason.HOST_KEY_UNKNOWN


async def test_a_broken_known_hosts_line_trusts_nobody_and_spoils_nothing(home: Path, key: Path, serve: Serve) -> None:
    server = await serve()
    known = trust(home, server)
    known.write_text("@@ nonsense\n|9|x|y ssh-rsa AAAA\nlonely\n" + known.read_text())

    assert await output_of(target_of(server, key), "echo", "in") == b"in\n"


async def test_known_hosts_of_the_config_is_the_only_file(home: Path, key: Path, serve: Serve) -> None:
    server = await serve()
    trust(home, server)
    other = home / "empty"
    other.write_text("")

    error = await failure_of(target_of(server, key, known_hosts=str(other)))

    assert error.reason is Reason.HOST_KEY_UNKNOWN
    assert str(other) in error.detail


async def test_jump_hosts_key_is_told_from_the_targets(home: Path, key: Path, serve: Serve) -> None:
    jump, server = await serve(), await serve()
    trust(home, server)
    target = target_of(server, key, jump=f"ops@{LOOPBACK}:{jump.port}")

    error = await failure_of(target)
    assert error.reason is Reason.HOST_KEY_UNKNOWN
    assert error.detail.startswith(f"jump host ops@{LOOPBACK}:{jump.port}")
    assert jump.key.get_fingerprint() in error.detail

    trust(home, jump)
    error = await failure_of(target)
    assert error.reason is Reason.HOST_KEY_UNKNOWN
    assert error.detail.startswith(f"me@{LOOPBACK}:{server.port}")
    assert server.key.get_fingerprint() in error.detail


async def test_refused_login_is_tried_once(home: Path, key: Path, serve: Serve) -> None:
    server = await serve()
    trust(home, server)
    stranger = write_key(home / "stranger")

    error = await failure_of(target_of(server, stranger))

    assert error.reason is Reason.LOGIN_REFUSED
    assert str(stranger) in error.detail
    assert len(server.connections) == 1


async def test_refused_login_at_the_jump_host_is_a_failed_jump(home: Path, key: Path, serve: Serve) -> None:
    stranger = write_key(home / "stranger")
    jump, server = await serve(authorized=stranger.with_name("stranger.pub")), await serve()
    trust(home, jump, server)

    error = await failure_of(target_of(server, key, jump=f"ops@{LOOPBACK}:{jump.port}"))

    assert error.reason is Reason.JUMP_FAILED
    assert error.data["cause"] == Reason.LOGIN_REFUSED
    assert f"ops@{LOOPBACK}:{jump.port}" in error.detail
    assert len(jump.connections) == 1
    assert server.connections == []


async def test_jump_host_that_cannot_reach_the_target(home: Path, key: Path, serve: Serve) -> None:
    jump = await serve()
    trust(home, jump)
    with closed_port() as port:
        target = Target(host=LOOPBACK, port=port, user="me", identity=str(key), jump=f"ops@{LOOPBACK}:{jump.port}")
        error = await failure_of(target)

    assert error.reason is Reason.LINK_UNREACHABLE
    assert f"from ops@{LOOPBACK}:{jump.port}" in error.detail


async def test_jump_host_that_forbids_forwarding(home: Path, key: Path, serve: Serve) -> None:
    jump, server = await serve(forwards=False), await serve()
    trust(home, jump, server)

    error = await failure_of(target_of(server, key, jump=f"ops@{LOOPBACK}:{jump.port}"))

    assert error.reason is Reason.JUMP_FAILED
    assert server.connections == []


async def test_nobody_listens(home: Path, key: Path) -> None:
    with closed_port() as port:
        error = await failure_of(Target(host=LOOPBACK, port=port, user="me", identity=str(key)))

    assert error.reason is Reason.LINK_UNREACHABLE


async def test_name_that_nobody_knows(home: Path, key: Path) -> None:
    error = await failure_of(Target(host="no-such-host.invalid", user="me", identity=str(key)))

    assert error.reason is Reason.DNS_FAILED
    assert "no-such-host.invalid" in error.detail


async def test_host_that_accepts_and_says_nothing(home: Path, key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "LOGIN_S", 0.2)
    with socket.create_server((LOOPBACK, 0)) as listener:
        target = Target(host=LOOPBACK, port=listener.getsockname()[1], user="me", identity=str(key))

        error = await failure_of(target)

    assert error.reason is Reason.LINK_TIMEOUT
    assert "no login" in error.detail


@pytest.mark.parametrize(
    ("content", "expected"),
    [(None, "No such file"), ("hello\n", "not a private key"), ("encrypted", "passphrase")],
)
async def test_configured_key_that_cannot_be_used(
    content: str | None, expected: str, home: Path, key: Path, serve: Serve
) -> None:
    server = await serve()
    trust(home, server)
    bad = home / "bad"
    if content == "encrypted":
        write_key(bad, passphrase="secret")
    elif content:
        bad.write_text(content)

    error = await failure_of(target_of(server, bad))

    assert error.reason is Reason.IDENTITY_UNUSABLE
    assert str(bad) in error.detail
    assert expected in error.detail
    assert server.connections == []


async def test_agent_holds_the_key_that_needs_a_passphrase(
    home: Path, key: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = write_key(home / "locked")
    server = await serve(authorized=locked.with_name("locked.pub"))
    trust(home, server)
    async with ssh_agent(home, monkeypatch) as agent:
        await agent.add_keys([asyncssh.read_private_key(locked)])
        command = ["ssh-keygen", "-q", "-p", "-N", "secret", "-f", str(locked)]
        await asyncio.to_thread(subprocess.run, command, check=True, timeout=10)

        assert await output_of(target_of(server, locked), "echo", "in") == b"in\n"


async def test_a_stale_agent_socket_is_no_obstacle(
    home: Path, key: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(home / "gone.sock"))
    server: SshServer = await serve()
    trust(home, server)

    assert await output_of(target_of(server, key), "echo", "in") == b"in\n"


async def test_nonsense_in_the_ssh_config_is_a_config_error(home: Path, key: Path) -> None:
    (home / ".ssh" / "config").write_text("Host *\n  Port many\n")

    with pytest.raises(ConsoleError) as caught:
        await connect_ssh(Target(host="somewhere"))

    assert (caught.value.reason, caught.value.exit_code) == (Reason.CONFIG, Exit.USAGE)
    assert "line 2" in caught.value.detail


@contextmanager
def closed_port() -> Iterator[int]:
    """A port at which nobody listens, nor begins to meanwhile."""
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        yield int(taken.getsockname()[1])


@asynccontextmanager
async def ssh_agent(home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[asyncssh.SSHAgentClient]:
    sock = str(home / "agent.sock")
    process = await asyncio.create_subprocess_exec("ssh-agent", "-D", "-a", sock, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    await process.stdout.readline()
    monkeypatch.setenv("SSH_AUTH_SOCK", sock)
    try:
        async with await asyncssh.connect_agent(sock) as agent:
            yield agent
    finally:
        process.terminate()
        await process.wait()
