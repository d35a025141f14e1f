"""OpenSSH servers with keys, known_hosts and ports of their own, and the `ssh` client's way to them."""

import contextlib
import os
import random
import signal
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab.commands import LabError, argv_of, call, descendants, plain_environment
from tests.waiting import until

_PORTS = range(20_000, 30_000)  # below 32768, from where on Linux gives a connection its own
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Keys:
    """The client's key and what it knows of hosts: one set for a session, so one known_hosts serves every server."""

    folder: Path

    @property
    def identity(self) -> Path:
        return self.folder / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def authorized(self) -> Path:
        return self.folder / "id_ed25519.pub"

    def create(self) -> None:
        self.folder.mkdir(mode=0o700)
        _new_key(self.identity)
        self.known_hosts.touch(mode=0o600)


class Sshd:
    """One server. `through` enters another network namespace first; `jump` is the server that leads to this one."""

    def __init__(
        self,
        folder: Path,
        keys: Keys,
        address: str,
        *,
        programs: Path,
        through: Sequence[str] = (),
        jump: "Sshd | None" = None,
    ) -> None:
        self.address = address
        self.port = 0
        self.keys = keys
        self.jump = jump
        self._folder = folder
        self._programs = programs
        self._through = list(through)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What the server has written so far."""
        return (self._folder / "sshd.log").read_text(errors="replace")

    def start(self) -> None:
        """Start it; again after `stop` it has the same port and host key. Raises: LabError with its log."""
        if not self.port:
            self.port = _free_port("127.0.0.1" if self._through else self.address)
            self._write_files()
        Path("/run/sshd").mkdir(exist_ok=True)
        words = [*self._through, "/usr/sbin/sshd", "-D", "-e", "-f", str(self._folder / "sshd_config")]
        with (self._folder / "sshd.log").open("ab") as log:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=plain_environment()
            )
        until(self._answers, what=f"sshd on {self.address}:{self.port}")

    def stop(self) -> None:
        """End the server and its sessions: a new connection is refused then. Their remote commands are left alone."""
        if self._process is None:
            return
        sessions = self.session_pids()
        self._process.kill()
        self._process.wait(timeout=20)
        self._process = None
        _kill(sessions)

    def session_pids(self) -> list[int]:
        """Return the server's session processes, one or two for each connection; none of the commands that they run."""
        if self._process is None:
            return []
        return [pid for pid in descendants(self._process.pid) if "".join(argv_of(pid)[:1]).startswith("sshd:")]

    def cut(self) -> int:
        """KILL every session process: each connection is reset at once. Return how many there were."""
        doomed = self.session_pids()
        _kill(doomed)
        return len(doomed)

    def ssh_argv(self, *command: str, options: Sequence[str] = ()) -> list[str]:
        """Return the `ssh` client's argv for `command`; one word is a shell line, several are joined by blanks."""
        config = ["-F", str(self._folder / "ssh_config"), *options]
        return ["ssh", *config, "lab", "--", *command] if command else ["ssh", *config, "lab"]

    def run(self, *command: str, stdin: str | None = None, timeout_s: float = 30.0) -> subprocess.CompletedProcess[str]:
        """Run `command` through the `ssh` client and wait for its end. Raises: subprocess.TimeoutExpired."""
        return subprocess.run(
            self.ssh_argv(*command),
            stdin=subprocess.DEVNULL if stdin is None else None,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def _write_files(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        home = self._folder / "home"  # not this machine's: what its .bashrc does is no part of the lab
        home.mkdir()
        host_key = self._folder / "host_ed25519"
        _new_key(host_key)
        kind, blob = host_key.with_suffix(".pub").read_text().split()[:2]
        with self.keys.known_hosts.open("a") as known:
            known.write(f"[{self.address}]:{self.port} {kind} {blob}\n")
        server = [
            f"ListenAddress {self.address}:{self.port}",
            f"HostKey {host_key}",
            f"PidFile {self._folder / 'sshd.pid'}",
            f"AuthorizedKeysFile {self.keys.authorized}",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin yes",
            "AllowTcpForwarding yes",
            "UseDNS no",
            "PrintMotd no",
            "LogLevel VERBOSE",
            "MaxStartups 200",
            "MaxSessions 100",
            f"SetEnv PATH={self._programs}:{_SYSTEM_PATH} HOME={home}",
        ]
        (self._folder / "sshd_config").write_text("\n".join(server) + "\n")
        client = [
            "Host *",
            f"    IdentityFile {self.keys.identity}",
            "    IdentitiesOnly yes",
            f"    UserKnownHostsFile {self.keys.known_hosts}",
            "    GlobalKnownHostsFile /dev/null",
            "    StrictHostKeyChecking yes",
            "    BatchMode yes",
            "    LogLevel ERROR",
            "    User root",
            "Host lab",
            f"    HostName {self.address}",
            f"    Port {self.port}",
        ]
        if self.jump:
            client += ["    ProxyJump lab-jump", "Host lab-jump"]
            client += [f"    HostName {self.jump.address}", f"    Port {self.jump.port}"]
        (self._folder / "ssh_config").write_text("\n".join(client) + "\n")

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise LabError(f"sshd on {self.address}:{self.port} ended with {self._process.returncode}:\n{self.log}")
        try:
            with socket.create_connection((self.address, self.port), timeout=1) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False


def end_listener(pid_file: Path) -> None:
    """End the server that wrote `pid_file`, with its sessions, if that pid is still such a server."""
    try:
        pid = int(pid_file.read_text())
    except (OSError, ValueError):
        return
    if str(pid_file.parent) in " ".join(argv_of(pid)):
        _kill(
            [
                pid,
                *(child for child in descendants(pid) if "".join(argv_of(child)[:1]).startswith("sshd:")),
            ]
        )


def _new_key(path: Path) -> None:
    call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "dflash-lab", "-f", path)


def _free_port(address: str) -> int:
    """Return a port that nobody has, out of those that the kernel gives to no connection: till sshd is there, or while
    it is stopped, one of those would be taken by any client that comes by.
    """
    for port in random.sample(_PORTS, 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((address, port))
            return port
    raise LabError(f"none of a hundred ports of {address} is free")


def _kill(pids: Sequence[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
