"""The state directory on the training host: where it is, and how its JSON files are written and read.

A file is written into a preallocated spare beside it and exchanged with it, so that readers see the old or the new one,
also on a full disk. Everything is 0600 in directories of 0700, opened without following symlinks. The keeper writes,
the agent reads (and writes request.json). Imports nothing of ours.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import pwd
import re
import stat
from typing import Any, Dict, List, Optional, Tuple

SCHEMA = 1
_BLOCK_BYTES = 4096
_SPARE_BYTES = 16384  # a status with five stages, eight GPUs and texts is about 4 KiB
_MAX_BYTES = 4 * 1024 * 1024
_READ_TRIES = 5
_RENAME_EXCHANGE = 2
_UNSAFE = re.compile(r"[^A-Za-z0-9._@+-]")

_libc = ctypes.CDLL(None, use_errno=True)


class Unusable(Exception):
    """A directory of ours that can't be trusted or made: the text names it and says why."""


# -- where ------------------------------------------------------------------------------------------------------------


def home() -> str:
    """The home of whom we run as. `HOME` is the *host's* under `pct exec`, so the password database decides."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return os.environ.get("HOME", "/")


def state_root(configured: Optional[str]) -> str:
    if configured:
        return os.path.join(home(), configured[2:]) if configured.startswith("~/") else configured
    xdg = os.environ.get("XDG_STATE_HOME", "")
    base = xdg if os.path.isabs(xdg) else os.path.join(home(), ".local", "state")
    return os.path.join(base, "dflash-console")


def safe_name(name: str) -> str:
    """Return `name` as a file name: other characters as %XX, never empty, `.` or `..`."""
    safe = _UNSAFE.sub(lambda found: "".join("%%%02X" % byte for byte in os.fsencode(found.group())), name)
    return "%2E" + safe[1:] if safe.startswith(".") else safe or "%"


def target_dir(state: str, target: str) -> str:
    return os.path.join(state, "targets", safe_name(target))


def runs_dir(state: str, target: str) -> str:
    return os.path.join(target_dir(state, target), "runs")


def run_dir(state: str, target: str, run: str) -> str:
    return os.path.join(runs_dir(state, target), safe_name(run))


def lock_path(state: str, target: str) -> str:
    return os.path.join(target_dir(state, target), "lock")


def secure_makedirs(path: str) -> None:
    """Make `path` and what is missing above it, 0700; the last one must be a real directory of ours.

    Raises: Unusable, naming the path; OSError from mkdir is translated.
    """
    missing: List[str] = []
    head = path
    while not os.path.lexists(head):
        missing.append(head)
        head = os.path.dirname(head)
    for directory in reversed(missing):
        try:
            os.mkdir(directory, 0o700)
        except FileExistsError:
            pass
        except OSError as error:
            raise Unusable("%s: %s" % (directory, os.strerror(error.errno or 0))) from error
    check_ours(path)


def check_ours(path: str) -> None:
    """Raises: Unusable unless `path` is a directory (no symlink) that we own and others can't write."""
    try:
        found = os.lstat(path)
    except OSError as error:
        raise Unusable("%s: %s" % (path, os.strerror(error.errno or 0))) from error
    if not stat.S_ISDIR(found.st_mode):
        raise Unusable("%s is not a directory" % path)
    if found.st_uid != os.geteuid():
        raise Unusable("%s belongs to uid %d, not to us" % (path, found.st_uid))
    if found.st_mode & 0o022:
        raise Unusable("%s can be written by others" % path)


# -- JSON files -------------------------------------------------------------------------------------------------------


def reserve(directory: str, name: str, size_bytes: int = _SPARE_BYTES) -> None:
    """Preallocate what the next `write_json` of `name` needs, while there still is space."""
    dir_fd = _open_dir(directory)
    try:
        os.close(_open_spare(dir_fd, name, size_bytes))
    finally:
        os.close(dir_fd)


def write_json(directory: str, name: str, obj: Dict[str, Any]) -> None:
    """Replace `name` in `directory` by `obj` plus the schema version. Raises: OSError.

    Visible at once; what must survive a power cut is made durable by `sync` later, since readers must not wait for it.
    """
    raw = json.dumps(dict(obj, schema=SCHEMA), separators=(",", ":")).encode("utf-8", "surrogateescape") + b"\n"
    dir_fd = _open_dir(directory)
    try:
        descriptor = _open_spare(dir_fd, name, _rounded(len(raw)))
        try:
            # Padded instead of truncated: truncating would give the reserved blocks back.
            raw = raw.ljust(max(os.fstat(descriptor).st_size, len(raw)), b"\n")
            _write_all(descriptor, raw)
            _exchange(dir_fd, _spare(name), name)
        finally:
            os.close(descriptor)
    finally:
        os.close(dir_fd)


def sync(directory: str, name: str) -> None:
    """Make what was written last durable. Raises: OSError."""
    dir_fd = _open_dir(directory)
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
        try:
            os.fsync(descriptor)
            os.fsync(dir_fd)
        finally:
            os.close(descriptor)
    finally:
        os.close(dir_fd)


def drop_spare(directory: str, name: str) -> None:
    """Remove the spare of `name`, which after a write holds the content before it."""
    try:
        os.unlink(os.path.join(directory, _spare(name)))
    except FileNotFoundError:
        pass


def read_json(directory: str, name: str) -> Optional[Dict[str, Any]]:
    """Return the object in `name`, or None where it is missing, not ours to read, too big or not an object."""
    path = os.path.join(directory, name)
    for _ in range(_READ_TRIES):
        before = stamp(directory, name)
        raw = _read_regular(path)
        # The inode read may have become the writer's spare meanwhile: then its bytes are of two versions.
        if before is not None and before == stamp(directory, name):
            return _as_object(raw)
    return None


def _read_regular(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_BYTES:
            return b""
        try:
            return file.read()
        except OSError:
            return b""


def _as_object(raw: bytes) -> Optional[Dict[str, Any]]:
    try:
        obj = json.loads(raw)
    except ValueError:
        return None
    return obj if isinstance(obj, dict) else None


def stamp(directory: str, name: str) -> Optional[Tuple[int, int]]:
    """Return what changes whenever `name` is rewritten (inode, mtime in ns): a cheap question before reading."""
    try:
        found = os.lstat(os.path.join(directory, name))
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def mount_id(descriptor: int) -> str:
    """Return which mount an open file is on: a bind mount of the same filesystem has another one."""
    with open("/proc/self/fdinfo/%d" % descriptor) as file:
        return next((line.split()[1] for line in file if line.startswith("mnt_id:")), "")


def _spare(name: str) -> str:
    return ".%s.spare" % name


def _rounded(size: int) -> int:
    return max(_SPARE_BYTES, -(-size // _BLOCK_BYTES) * _BLOCK_BYTES)


def _open_dir(directory: str) -> int:
    return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _open_spare(dir_fd: int, name: str, size_bytes: int) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(_spare(name), flags, 0o600, dir_fd=dir_fd)
    try:
        os.fchmod(descriptor, 0o600)
        os.posix_fallocate(descriptor, 0, size_bytes)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSPC, errno.EDQUOT):
            os.close(descriptor)
            raise
        # Not preallocated: the write itself will tell whether there is room.
    return descriptor


def _write_all(descriptor: int, raw: bytes) -> None:
    written = 0
    while written < len(raw):
        written += os.pwrite(descriptor, raw[written:], written)


def _exchange(dir_fd: int, spare: str, name: str) -> None:
    """Swap both, so that the old file's blocks are the next spare; plain rename where the filesystem can't."""
    if hasattr(_libc, "renameat2"):
        done = _libc.renameat2(dir_fd, os.fsencode(spare), dir_fd, os.fsencode(name), ctypes.c_uint(_RENAME_EXCHANGE))
        if done == 0:
            return
    os.rename(spare, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
