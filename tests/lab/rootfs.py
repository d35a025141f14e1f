"""The containers' root filesystems: built once, cached, never written to by a session (sessions lay an overlay on top).

One debootstrap gives the systemd flavour; taking packages away from copies of it gives the others, without network.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

CACHE = Path("/var/cache/dflash-console-lab")
# Part of the path: raise it when anything below changes what is built.
_VERSION = 2
# Where the unprivileged container's root stands among this machine's users: Proxmox's default.
FIRST_UNPRIVILEGED_UID = 100_000
_SUITE = "bookworm"
_PACKAGES = ("systemd", "systemd-sysv", "dbus", "python3", "procps", "bash", "iproute2")
_SYSTEMD_PACKAGES = (
    *("systemd", "systemd-sysv", "libpam-systemd", "systemd-timesyncd", "init"),
    *("dbus", "dbus-daemon", "dbus-bin", "dbus-session-bus-common", "dbus-system-bus-common"),
)
_FULL_PYTHON_PACKAGES = ("python3", "libpython3-stdlib", "python3.11", "libpython3.11-stdlib")
# Units that wait for hardware, a console or a network which a container of the lab has not.
_NEEDLESS_UNITS = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
    "systemd-udevd.service",
)

_INIT = """#!/bin/sh
# Reaps orphans and ends on lxc-stop's signal: the least that pid 1 has to do.
trap 'exit 0' TERM PWR INT
while :; do sleep 86400 & wait $!; done
"""


class Flavour(StrEnum):
    """What a container has inside."""

    PLAIN = "plain"
    """A shell loop as init and the whole of python3; no systemd."""
    SYSTEMD = "systemd"
    """systemd as init."""
    MINIMAL = "minimal"
    """As plain, with python3-minimal only."""
    UNPRIVILEGED = "unprivileged"
    """As plain, in a user namespace and with lxcfs: Proxmox's default."""


def rootfs(flavour: Flavour) -> Path:
    """Return the cached root filesystem of `flavour`, building all of them where they are missing.

    Safe to call from several processes at once.
    Raises: subprocess.CalledProcessError, FileNotFoundError (no debootstrap).
    """
    ready = CACHE / f"v{_VERSION}"
    if not ready.is_dir():
        with _lock():
            if not ready.is_dir():
                _build(ready)
    return ready / flavour


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "build.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(ready: Path) -> None:
    print("lab: building the containers' root filesystems, once; about a minute", file=sys.stderr, flush=True)
    unfinished = CACHE / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    full = unfinished / Flavour.SYSTEMD
    included = ",".join(_PACKAGES)
    _run("debootstrap", "--variant=minbase", f"--include={included}", _SUITE, str(full), *_mirror())
    _trim(full)

    plain = _copy(full, unfinished / Flavour.PLAIN)
    _purge(plain, _SYSTEMD_PACKAGES)
    minimal = _copy(plain, unfinished / Flavour.MINIMAL)
    _purge(minimal, _FULL_PYTHON_PACKAGES)
    _shift_owners(_copy(plain, unfinished / Flavour.UNPRIVILEGED))
    for unit in _NEEDLESS_UNITS:
        (full / "etc/systemd/system" / unit).symlink_to("/dev/null")
    unfinished.rename(ready)


def _mirror() -> list[str]:
    """Return the archive that this machine's apt uses, so that a machine behind a mirror needs no second setting."""
    listing = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages"]
    found = subprocess.run(listing, capture_output=True, text=True, timeout=60, check=False).stdout
    uris = [line.split()[0] for line in found.splitlines() if line.split()[1:] == [_SUITE]]
    return uris[:1]


def _trim(root: Path) -> None:
    for needless in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(root / needless, ignore_errors=True)
    init = root / "init.sh"
    init.write_text(_INIT)
    init.chmod(0o755)
    # An id of its own is given to each container when it starts.
    (root / "etc/machine-id").write_text("")


def _copy(source: Path, target: Path) -> Path:
    _run("cp", "-a", "--reflink=auto", str(source), str(target))
    return target


def _shift_owners(root: Path) -> None:
    for folder, _, files in os.walk(root):
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            status = path.lstat()
            os.lchown(path, status.st_uid + FIRST_UNPRIVILEGED_UID, status.st_gid + FIRST_UNPRIVILEGED_UID)
            if not path.is_symlink():
                path.chmod(status.st_mode & 0o7777)  # a change of owner takes setuid bits away
    for link in (path for path in root.iterdir() if path.is_symlink()):
        os.lchown(link, FIRST_UNPRIVILEGED_UID, FIRST_UNPRIVILEGED_UID)


def _purge(root: Path, packages: tuple[str, ...]) -> None:
    query = ["chroot", str(root), "dpkg-query", "-W", "-f", "${Package}\n"]
    installed = set(subprocess.run(query, capture_output=True, text=True, timeout=60, check=True).stdout.split())
    doomed = [package for package in packages if package in installed]
    options = ["--force-depends", "--force-remove-essential", "--force-remove-protected"]
    _run("chroot", str(root), "dpkg", "--purge", *options, *doomed)


def _run(*argv: str) -> None:
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=900,
        check=False,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
    )
    if done.returncode:
        print(done.stdout[-3000:], file=sys.stderr)
        raise subprocess.CalledProcessError(done.returncode, argv, done.stdout)
