"""Hashes of the scripts that a run is made of, so that the next plan can say what was edited since."""

from __future__ import annotations

import os
import re
import stat
from typing import Any, Dict, Iterable, List, Optional, Sequence

from . import digest

Scripts = Dict[str, Dict[str, Any]]
"""Path -> {"sha256", "mode", "mtime"}."""

_MOST_BYTES = 8 << 20
# An interpreter of some MiB is told by its size and times instead: a plan must not take seconds.
_MOST_PROGRAM_BYTES = 1 << 20
_MOST_PROGRAMS = 16
_MOST_SHEBANG_BYTES = 4096
_MOST_SHELL_BYTES = 1 << 20  # behind it an installer may carry what it unpacks
_PROGRAM = re.compile(
    rb"""^[ \t]*(?:(?:exec|nohup|env|time|if|then|do|else|!|setsid|nice)[ \t]+|[A-Za-z_]\w*=\S*[ \t]+)*
         ["']?(/[\w.+/-]+)["']?(?=[ \t;&|\r\n]|$)""",
    re.MULTILINE | re.VERBOSE,
)
"""A program that a line of a shell script begins with, named by its whole path: `exec /venv/bin/python train.py`."""


def scripts_of(spec: Dict[str, Any], argvs: Iterable[Sequence[str]] = ()) -> Scripts:
    """Return the scripts of a run: its command's files, the training script that `match` names, and the programs that
    a shell script starts by their whole path. Data files are none: they change while it runs.

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
    for path in _programs_of(list(found)):
        described = None if path in found else _describe(path, _MOST_PROGRAM_BYTES)
        if described is not None:
            found[path] = described
    return found


def _programs_of(scripts: List[str]) -> List[str]:
    """Return the programs that these scripts start, as far as they are shell scripts."""
    named: Dict[str, None] = {}
    for path in scripts:
        try:
            with open(path, "rb") as file:
                shebang = file.readline(_MOST_SHEBANG_BYTES)
                if not shebang.startswith(b"#!") or b"sh" not in os.path.basename(shebang):
                    continue
                text = file.read(_MOST_SHELL_BYTES)
        except OSError:
            continue
        named.update(dict.fromkeys(os.fsdecode(match) for match in _PROGRAM.findall(text)))
    return [os.path.normpath(path) for path in named][:_MOST_PROGRAMS]


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
            continue  # which files are looked at depends on what runs at that moment
        elif before.get("sha256") != after["sha256"]:
            told.append(path)
        elif before.get("mode") != after["mode"]:
            told.append(f"{path} (mode {before.get('mode'):o} -> {after['mode']:o})")
    return told


def _describe(path: str, most_bytes: Optional[int] = None) -> Optional[Dict[str, Any]]:
    """Return what tells a file from another one; beyond `most_bytes` without reading it, where that is given."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or (most_bytes is None and status.st_size > _MOST_BYTES):
        os.close(fd)  # a folder, for one, can't even be made a file object of
        return None
    with os.fdopen(fd, "rb") as file:
        if most_bytes is not None and status.st_size > most_bytes:
            found = digest.sha256(b"%d bytes, changed %d" % (status.st_size, status.st_mtime_ns))
        else:
            found = digest.sha256_of(file)
    return {"sha256": found, "mode": stat.S_IMODE(status.st_mode), "mtime": status.st_mtime}
