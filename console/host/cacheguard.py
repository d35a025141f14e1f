"""Whether a configured cache path may be cleared: asked for the plan, before the kill, and at the deed itself.

Reads only. Agent and keeper share this module, so that the plan refuses what the keeper would refuse.
"""

from __future__ import annotations

import os
import pwd
import re
from typing import Iterable, List, Optional, Set

_SYSTEM = frozenset({"bin", "boot", "etc", "lib", "lib32", "lib64", "lost+found", "proc", "sbin", "sys", "usr"})
_SYSTEM_BELOW_VAR = frozenset({"backups", "cache", "lib", "local", "lock", "log", "mail", "run", "spool", "tmp"})
_OCTAL = re.compile(r"\\([0-7]{3})")


def refusal(path: str, precious: Iterable[str] = ()) -> Optional[str]:
    """Return why `path` must not be cleared, or None where it may be (which includes that it does not exist).

    `precious`: paths that must survive, such as working directory, log, command and state directory.
    """
    if not os.path.isabs(path):
        return "not an absolute path"
    if ".." in path.split("/"):
        return "contains `..`"
    plain = os.path.normpath(path).replace("//", "/")
    if os.path.islink(plain):
        return "is a symlink to %s" % os.path.realpath(plain)
    real = os.path.join(os.path.realpath(os.path.dirname(plain)), os.path.basename(plain))
    return _too_high(real) or _holds_precious(real, precious) or _mounted(real) or _fixed(real)


def mounts() -> List[str]:
    """Return every mount point of our mount namespace. Raises: OSError."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        fields = [line.split(" ") for line in file]
    return [_OCTAL.sub(lambda found: chr(int(found.group(1), 8)), each[4]) for each in fields if len(each) > 4]


def mount_within(path: str) -> Optional[str]:
    """Return a mount point at or beneath `path`. os.path.ismount is blind to bind mounts, mountinfo is not."""
    return next((point for point in mounts() if _contains(path, point)), None)


def _too_high(real: str) -> Optional[str]:
    parts = [part for part in real.split("/") if part]
    if len(parts) < 2:
        return "has fewer than two components" if parts else "is /"
    if parts[0] in _SYSTEM or (parts[0] == "dev" and (parts[1] != "shm" or len(parts) < 3)):
        return "is a system directory"
    if len(parts) == 2 and parts[0] == "var" and parts[1] in _SYSTEM_BELOW_VAR:
        return "is a system directory"
    for home in _homes():
        if _contains(real, home):
            return "is or contains the home %s" % home
    return None


def _homes() -> Set[str]:
    homes = {os.path.realpath(entry.pw_dir) for entry in pwd.getpwall() if entry.pw_dir.startswith("/")}
    # Debian gives service users /nonexistent, /run/... and such as homes; those that people have are directories.
    return {home for home in homes if os.path.isdir(home) and home != "/"}


def _holds_precious(real: str, precious: Iterable[str]) -> Optional[str]:
    for other in precious:
        if other and os.path.isabs(other) and _contains(real, os.path.realpath(other)):
            return "contains %s" % other
    return None


def _mounted(real: str) -> Optional[str]:
    try:
        point = mount_within(real)
    except OSError as error:
        return "the mounts can't be read: %s" % error.strerror
    if point is None:
        return None
    return "is a mount point" if point == real else "%s is mounted beneath it" % point


def _fixed(real: str) -> Optional[str]:
    if not os.path.lexists(real):
        return None
    if not os.path.isdir(real):
        return "is not a directory"
    parent = os.path.dirname(real)
    if not os.access(parent, os.W_OK | os.X_OK):
        return "may not be removed: %s can't be written" % parent
    return None


def _contains(directory: str, path: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
