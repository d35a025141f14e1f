"""Hashes of the scripts that a run is made of, so that the next plan can say what was edited since."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Any, Dict, Iterable, List, Optional, Sequence

Scripts = Dict[str, Dict[str, Any]]
"""Path -> {"sha256", "mode", "mtime"}."""

_MOST_BYTES = 8 << 20


def scripts_of(spec: Dict[str, Any], argvs: Iterable[Sequence[str]] = ()) -> Scripts:
    """Return the scripts of a run: its command's files and the training script that `match` names.

    `argvs`: command lines of the run that goes on now; the training script may be found through them alone.
    """
    cwd = spec.get("cwd") or "/"
    command = list(spec.get("command") or ())
    paths = [os.path.join(cwd, word) for word in command if "/" in word or word.endswith((".py", ".sh"))]
    folders = [cwd, *(os.path.dirname(path) for path in paths)]
    for name in spec.get("match") or ():
        paths += [os.path.join(folder, name) for folder in folders]
        paths += [os.path.join(cwd, word) for argv in argvs for word in argv if os.path.basename(word) == name]
    found: Scripts = {}
    for path in map(os.path.normpath, paths):
        described = None if path in found else _describe(path)
        if described is not None:
            found[path] = described
    return found


def changes(then: Optional[Scripts], now: Scripts) -> List[str]:
    """Return the scripts that are not what they were: paths, with what changed unless it is the content."""
    if not then:
        return []
    told = []
    for path in sorted(set(then) | set(now)):
        before, after = then.get(path), now.get(path)
        if after is None:
            # Not asked for any more is no change; gone from the disk is one.
            if not os.path.lexists(path):
                told.append(f"{path} (gone)")
        elif before is None:
            told.append(f"{path} (new)")
        elif before.get("sha256") != after["sha256"]:
            told.append(path)
        elif before.get("mode") != after["mode"]:
            told.append(f"{path} (mode {before.get('mode'):o} -> {after['mode']:o})")
    return told


def _describe(path: str) -> Optional[Dict[str, Any]]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            return None
        digest = hashlib.sha256(file.read(_MOST_BYTES)).hexdigest()
    return {"sha256": digest, "mode": stat.S_IMODE(status.st_mode), "mtime": status.st_mtime}
