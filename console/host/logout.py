"""Whether what we start here would be ended when the login ends: logind's KillUserProcesses.

Asks small programs with a time limit each. Only preflight.py and doctor.py import this module.
"""

from __future__ import annotations

import glob
import os
import subprocess
from typing import List, NamedTuple, Optional

_ASK_S = 1.5
_MANAGER = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
_FILES = ("/etc/systemd/logind.conf", "/etc/systemd/logind.conf.d/*.conf")
_SPARED = "root"
"""Of KillExcludeUsers, where nothing is configured."""


class Logind(NamedTuple):
    kills: Optional[bool]
    """KillUserProcesses; None where neither logind nor its configuration tells."""
    spares_root: bool
    source: str
    """Who said so."""


def has_systemd() -> bool:
    return os.path.isdir("/run/systemd/system")


def ask() -> Logind:
    """Ask logind itself, else read its configuration."""
    kills = _property("KillUserProcesses")
    if kills is not None:
        spared = _property("KillExcludeUsers")
        return Logind(kills[-1:] == ["true"], spared is None or '"root"' in spared, "logind")
    told = _configured("KillUserProcesses")
    spared_users = _configured("KillExcludeUsers")
    known = None if told is None else told.lower() in ("yes", "true", "1", "on")
    return Logind(known, "root" in (_SPARED if spared_users is None else spared_users).split(), "logind.conf")


def _property(name: str) -> Optional[List[str]]:
    try:
        done = subprocess.run(
            ["busctl", "get-property", *_MANAGER, name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_ASK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace").split() if done.returncode == 0 else None


def _configured(key: str) -> Optional[str]:
    value: Optional[str] = None
    for path in [_FILES[0], *sorted(glob.glob(_FILES[1]))]:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                for line in file:
                    name, _, text = line.strip().partition("=")
                    if name.strip() == key:
                        value = text.strip()
        except OSError:
            continue
    return value
