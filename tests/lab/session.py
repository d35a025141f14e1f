"""One session of the lab: its folder, what it has started, and how everything of it is cleared away again.

The folder alone tells what there is to end, so that a session which was killed is cleared by the next one.
"""

import contextlib
import fcntl
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Literal

from tests.lab import containers, lxcfs, sshd, wire
from tests.lab.commands import LabError, call
from tests.lab.rootfs import CACHE, Flavour

_SESSIONS = CACHE / "sessions"
_NUMBERS = {Flavour.PLAIN: 200, Flavour.SYSTEMD: 201, Flavour.MINIMAL: 202, Flavour.UNPRIVILEGED: 203}
_FIRST_FRESH_NUMBER = 210

# What Proxmox's `pct exec` hands over to, with the host's HOME; sessions of the wire's sshd go back to the namespace
# where lxc listens.
_PCT = """#!/bin/sh
[ "$1" = exec ] && [ "$3" = -- ] || {{ echo "lab: only 'pct exec ID -- CMD' is known" >&2; exit 255; }}
id=$2; shift 3
export HOME=/root
exec {enter}lxc-attach -P {lxc} -n "$id" -- "$@"
"""

Way = Literal["host", "jump", "wire"]
Setting = str | int | float | bool | list[str] | Mapping[str, str | float]


class Lab:
    """Starts the parts when they are first asked for; `close` ends them all."""

    def __init__(self, *, by_hand: bool = False) -> None:
        with _exclusive():
            _clear_stale()
            self.folder = Path(tempfile.mkdtemp(dir=_SESSIONS))
            self.folder.chmod(0o711)
            self._owner: IO[str] = (self.folder / "owner").open("w")
            fcntl.flock(self._owner, fcntl.LOCK_EX)
            if by_hand:
                (self.folder / "by-hand").touch()
        self.keys = sshd.Keys(self.folder / "keys")
        self.keys.create()
        self._containers: dict[int, containers.Container] = {}
        self._servers: list[sshd.Sshd] = []
        self._hosts: dict[Way, sshd.Sshd] = {}
        self._jump: sshd.Sshd | None = None
        self._wire: wire.Wire | None = None
        self._write_programs()

    @property
    def jump(self) -> sshd.Sshd:
        """The jump host: a second sshd on 127.0.0.2."""
        if self._jump is None:
            programs = self.folder / "bin"
            self._jump = self._serve(sshd.Sshd(self.folder / "jump-host", self.keys, "127.0.0.2", programs=programs))
        return self._jump

    def host(self, way: Way = "host") -> sshd.Sshd:
        """Return the training host's sshd, started: straight ("host"), by the jump host, or over the wire."""
        if way not in self._hosts:
            self._hosts[way] = self._new_host(way)
        return self._hosts[way]

    @property
    def wire(self) -> wire.Wire:
        """The link that can be dropped or limited, with its own sshd."""
        if self._wire is None:
            self._wire = wire.Wire(self.folder, self.keys, self.folder / "bin-wire")
            self._wire.start()
            self._servers.append(self._wire.host)
        return self._wire

    def container(self, flavour: Flavour | str) -> containers.Container:
        """Return the session's shared container of `flavour`, started."""
        number = _NUMBERS[Flavour(flavour)]
        if number not in self._containers:
            self._add(number, Flavour(flavour), self._still_vmstat())
        return self._containers[number]

    def fresh_container(self, flavour: Flavour | str = Flavour.PLAIN) -> containers.Container:
        """Return a container nobody has used yet, numbered from 210; its caller may stop or freeze it as it likes.

        It counts the kernel's kills for want of memory as a host does, those of other tests, too.
        """
        number = max([_FIRST_FRESH_NUMBER - 1, *self._containers]) + 1
        return self._add(number, Flavour(flavour))

    def config(self, container: containers.Container | None, *, way: Way = "host", **settings: Setting) -> str:
        """Return a config.toml for the console with one target, "lab"; `settings` go into the target as they are."""
        host = self.host(way)
        target: dict[str, Setting] = {
            "host": host.address,
            "port": host.port,
            "user": "root",
            "identity": str(self.keys.identity),
            "known_hosts": str(self.keys.known_hosts),
            "command": ["/root/run.sh"],
            "cwd": "/root",
            "log": "/workspace/train_{name}.log",
            "match": ["train.py"],
            "caches": ["/tmp/torchinductor_root"],
        }
        if host.jump:
            target["jump"] = f"root@{host.jump.address}:{host.jump.port}"
        if container:
            target["exec"] = container.exec_prefix
        lines = [f"{key} = {_toml(value)}" for key, value in {**target, **settings}.items()]
        return "\n".join(['default_target = "lab"', "", "[targets.lab]", *lines, ""])

    def close(self) -> None:
        """End everything that this session has started and delete its folder."""
        for server in self._servers:
            server.stop()
        clear(self.folder)
        self._owner.close()

    def _new_host(self, way: Way) -> sshd.Sshd:
        if way == "wire":
            return self.wire.host
        jump = self.jump if way == "jump" else None
        return self._serve(
            sshd.Sshd(self.folder / f"way-{way}", self.keys, "127.0.0.1", programs=self.folder / "bin", jump=jump)
        )

    def _serve(self, server: sshd.Sshd) -> sshd.Sshd:
        server.start()
        self._servers.append(server)
        return server

    def _still_vmstat(self) -> Path:
        """Return counts that stand: a kill for want of memory in another test is not near the death of any run here."""
        path = self.folder / "vmstat"
        if not path.exists():
            path.write_text(Path("/proc/vmstat").read_text())
        return path

    def _add(self, number: int, flavour: Flavour, vmstat: Path | None = None) -> containers.Container:
        container = containers.Container(self.folder, number, flavour, vmstat=vmstat)
        container.start()
        container.make_folder("/workspace")
        self._containers[number] = container
        return container

    def _write_programs(self) -> None:
        namespace = self.folder / "here.net"
        namespace.touch()
        call("mount", "--bind", "/proc/self/ns/net", namespace)
        for name, enter in (("bin", ""), ("bin-wire", f"nsenter --net={namespace} ")):
            pct = self.folder / name / "pct"
            pct.parent.mkdir()
            pct.write_text(_PCT.format(enter=enter, lxc=self.folder / "lxc"))
            pct.chmod(0o755)


def clear(folder: Path) -> None:
    """End whatever runs out of a session's folder, unmount it and delete it."""
    lxcfs.end(folder)  # first, since a dead one makes every look into its folder fail
    for pid_file in folder.glob("*/sshd.pid"):
        sshd.end_listener(pid_file)
    for config in folder.glob("lxc/*/config"):
        containers.stop(config.parent.parent, config.parent.name)
    wire.remove_namespace(folder)
    for mounted in (*folder.glob("lxc/*/rootfs"), folder / "here.net"):
        call("umount", "--lazy", mounted, check=False)
        if mounted.is_mount():
            raise LabError(f"{mounted} can't be unmounted")
    shutil.rmtree(folder)


def clear_by_hand() -> int:
    """Clear every session that was started by hand; return how many there were."""
    with _exclusive():
        folders = [marker.parent for marker in _SESSIONS.glob("*/by-hand")]
        for folder in folders:
            clear(folder)
        return len(folders)


def _clear_stale() -> None:
    for folder in _SESSIONS.iterdir():
        if (folder / "by-hand").exists() or not _ownerless(folder):
            continue
        clear(folder)


def _ownerless(folder: Path) -> bool:
    with (folder / "owner").open("a") as owner:
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextlib.contextmanager
def _exclusive() -> Iterator[None]:
    """Hold off other sessions while one is being made or cleared."""
    _SESSIONS.mkdir(parents=True, exist_ok=True)
    _SESSIONS.chmod(0o711)  # an unprivileged container's root passes through
    with (CACHE / "sessions.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _toml(value: Setting) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {json.dumps(text)}" for key, text in value.items()) + " }"
    return json.dumps(value)
