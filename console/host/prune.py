"""Old run directories of one target, removed: the only bound on what a host that is restarted every day keeps of them.

Kept are the newest 50 whatever their age and size, and of the older ones those of the last 30 days as far as they are
no more than 500 and take no more than 1 GiB together. Never removed: a run of which anything lives (keeper or main
process), and one that was written to within a day. A console is told of the newest 21 runs, so what goes has long been
read or never will be. A directory leaves by one rename, then is emptied; nothing is followed that is a symlink, and one
that holds what no keeper writes, or belongs to somebody else, stays. Only the keeper imports this module.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from typing import Callable, List, NamedTuple, Optional

from . import files, journal, procfs, request

KEPT = 50
KEPT_AT_MOST = 500
KEPT_S = 30 * 86400.0
KEPT_BYTES = 1 << 30
QUIET_S = 86400.0
"""A run whose keeper we can't see (of another container, say) still shows by what it writes."""
PREFIX = ".pruned-"
_AT_ONCE = 200  # an old state directory is brought down over some launches: no launch waits for all of it
_DIR_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

IsAlive = Callable[[int, int], bool]


class _Run(NamedTuple):
    name: str
    accepted_wall: float
    size_bytes: int
    written_wall: float
    is_alive: bool


def prune(target_dir: str, own: str, is_alive: IsAlive = procfs.is_alive) -> List[str]:
    """Remove what is too old or too much beside the run `own`; return the names of what was removed. Never raises."""
    removed: List[str] = []
    try:
        root = os.open(target_dir, _DIR_FLAGS)
    except OSError:
        return removed
    try:
        for name in os.listdir(root):
            if name.startswith(PREFIX):
                _empty(root, name)  # the keeper that renamed it was lost
        runs = os.open("runs", _DIR_FLAGS, dir_fd=root)
        try:
            if not _is_ours(os.fstat(root)) or not _is_ours(os.fstat(runs)):
                return removed
            for run in _too_much(_runs(runs, os.path.join(target_dir, "runs"), is_alive), own)[:_AT_ONCE]:
                if _remove(root, runs, run.name):
                    removed.append(run.name)
        finally:
            os.close(runs)
    except OSError as error:
        print("prune: %s" % error, file=sys.stderr)
    finally:
        os.close(root)
    if removed:
        print("removed the directories of %d old runs" % len(removed), file=sys.stderr)
    return removed


def _too_much(runs: List[_Run], own: str) -> List[_Run]:
    """Return what goes, the oldest first."""
    now, total_bytes, found = time.time(), 0, []
    newest_first = sorted(runs, key=lambda run: run.accepted_wall, reverse=True)
    for place, run in enumerate(newest_first):
        total_bytes += run.size_bytes
        if place < KEPT or run.name == own or run.is_alive or now - run.written_wall < QUIET_S:
            continue
        if place >= KEPT_AT_MOST or total_bytes > KEPT_BYTES or now - run.accepted_wall > KEPT_S:
            found.append(run)
    return found[::-1]


def _runs(runs: int, path: str, is_alive: IsAlive) -> List[_Run]:
    boot = procfs.boot_identity()
    found = (_look(runs, path, name, boot, is_alive) for name in os.listdir(runs))
    return [run for run in found if run is not None]


def _look(runs: int, path: str, name: str, boot: str, is_alive: IsAlive) -> Optional[_Run]:
    """Return what is known of a run directory; None for anything that is none."""
    asked = files.read_json(os.path.join(path, name), request.NAME)
    directory = _open_ours(runs, name)
    if directory is None:
        return None
    try:
        entries = [os.lstat(each, dir_fd=directory) for each in os.listdir(directory)]
    finally:
        os.close(directory)
    written = max((entry.st_mtime for entry in entries), default=0.0)
    if asked is None or any(stat.S_ISDIR(entry.st_mode) for entry in entries):
        return None
    status = files.read_json(os.path.join(path, name), journal.NAME) or {}
    here = status.get("boot") == boot
    idents = [status.get("keeper"), status.get("main"), status.get("trainer")]
    lives = here and any(is_alive(each["pid"], each["start"]) for each in idents if each)
    accepted = float(asked.get("accepted_wall") or written)
    return _Run(name, accepted, sum(entry.st_blocks * 512 for entry in entries), written, lives)


def _open_ours(parent: int, name: str) -> Optional[int]:
    """Open a directory that is ours, private and on the same filesystem and mount; None for anything else."""
    try:
        directory = os.open(name, _DIR_FLAGS, dir_fd=parent)
    except OSError:
        return None
    if _is_ours(os.fstat(directory)) and files.mount_id(directory) == files.mount_id(parent):
        return directory
    os.close(directory)
    return None


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _remove(root: int, runs: int, name: str) -> bool:
    """Take it away by one rename, so that no reader finds half of it, then empty it."""
    aside = PREFIX + os.urandom(8).hex()
    os.mkdir(aside, 0o700, dir_fd=root)  # ours and new: a rename onto it can't hit what somebody else has put there
    try:
        os.rename(name, aside, src_dir_fd=runs, dst_dir_fd=root)
    except OSError:
        os.rmdir(aside, dir_fd=root)
        return False
    return _empty(root, aside)


def _empty(root: int, name: str) -> bool:
    """Remove a flat directory of ours; False where something in it has to stay."""
    directory = _open_ours(root, name)
    if directory is None:
        return False
    try:
        for each in os.listdir(directory):
            os.unlink(each, dir_fd=directory)  # of a symlink the link; a directory is refused
        os.rmdir(name, dir_fd=root)
    except OSError as error:
        print("prune: %s: %s" % (name, error), file=sys.stderr)
        return False
    finally:
        os.close(directory)
    return True
