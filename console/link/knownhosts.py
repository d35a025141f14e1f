"""Host keys: which are known, and what a key that is not accepted means.

Checking is never off: where no file can be read nothing is trusted. A line that can't be understood is passed over, as
OpenSSH does, and makes nothing trusted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import asyncssh
from asyncssh.public_key import get_default_certificate_algs, get_default_public_key_algs

from console.reasons import Reason

if TYPE_CHECKING:
    from console.link.sshoptions import Hop

DEFAULT_FILES = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts")
_SSH_PORT = 22


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """The known_hosts files that count for one hop, read once."""

    paths: tuple[Path, ...]
    all: asyncssh.SSHKnownHosts
    by_file: tuple[tuple[Path, asyncssh.SSHKnownHosts], ...]

    @classmethod
    def read(cls, names: Iterable[str]) -> KnownHosts:
        paths = tuple(Path(name).expanduser() for name in names)
        together = asyncssh.import_known_hosts("")
        by_file = []
        for path in paths:
            try:
                lines = path.read_text("utf-8", "replace").splitlines()
            except OSError:
                continue
            alone = asyncssh.import_known_hosts("")
            for line in lines:
                _load_line(together, line)
                _load_line(alone, line)
            by_file.append((path, alone))
        return cls(paths, together, tuple(by_file))

    def algorithms(self, name: str, port: int) -> list[str]:
        """Return host key algorithms, those of the known keys first.

        All others stay offered: a server whose key is of another type than the known one then shows it, and can be
        named with its fingerprint rather than fail in the key exchange.
        """
        keys, authorities, *_ = self.all.match(name, "", _other_port(port))
        certificates, plain = get_default_certificate_algs(), get_default_public_key_algs()
        known = [algorithm for key in keys for algorithm in key.sig_algorithms if algorithm in plain]
        first = certificates + known if authorities else known
        return [name.decode("ascii") for name in dict.fromkeys([*first, *plain, *certificates])]

    def vouches(self, hop: Hop, key: asyncssh.SSHKey) -> str:
        """Return what is said of an accepted key: kind, fingerprint and the file that knows it."""
        for path, hosts in self.by_file:
            keys, authorities, *_ = hosts.match(hop.key_name, "", _other_port(hop.port))
            if key in keys:
                return f"{_describe(key)} in {path}"
            if authorities:
                return f"{_describe(key)}, signed by an authority in {path}"
        return _describe(key)

    def judge(self, hop: Hop, key: asyncssh.SSHKey | None, text: str) -> tuple[Reason, str]:
        """Return unknown or changed for a key that was not accepted, with the facts to decide by."""
        offered = _describe(key) if key is not None else text
        for path, hosts in self.by_file:
            keys, *_ = hosts.match(hop.key_name, "", _other_port(hop.port))
            if keys:
                known = ", ".join(_describe(known) for known in keys)
                return Reason.HOST_KEY_CHANGED, f"{hop.named} offers {offered}; {path} has {known}"
        if "revoked" in text:
            return Reason.HOST_KEY_CHANGED, f"{hop.named}: {text}"
        where = ", ".join(str(path) for path in self.paths) or "any known_hosts file"
        return Reason.HOST_KEY_UNKNOWN, f"{hop.named} offers {offered}, which is not in {where}"


def _load_line(hosts: asyncssh.SSHKnownHosts, line: str) -> None:
    try:
        hosts.load(line)
    except ValueError:
        pass


def _other_port(port: int) -> int | None:
    return None if port == _SSH_PORT else port


def _describe(key: asyncssh.SSHKey) -> str:
    return f"{key.get_algorithm()} {key.get_fingerprint()}"
