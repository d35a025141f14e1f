"""Clearing a cache directory in constant time: renamed into a trash directory beside it, deleted later and idly.

The deletion runs in a detached child that never leaves the filesystem it began on, whatever was mounted meanwhile.
Only the keeper imports this module; the guards are in cacheguard.py.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import signal
import stat
import time
from typing import Iterable, List, NamedTuple, NoReturn, Optional, Tuple

from . import bounded, cacheguard, files

TRASH_PREFIX = ".dflash-trash-"
_IN_PLACE_S = 300.0
_DEEPEST_IN_PLACE = 400
_MEASURE_S = 0.02  # of the 300 ms between confirmed and spawned, where no plan has counted
_MOST_TRASHES = 15  # paths of 4 KiB at most: a pipe takes 64 KiB without waiting for its reader
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30, "ppc64le": 273}
_IOPRIO_WHO_PROCESS, _IOPRIO_IDLE = 1, 3 << 13
_DIR_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class CacheError(Exception):
    """A cache was not cleared. `reason`: cache_refused or cache_failed."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class SetAside(NamedTuple):
    """A cache that is out of the way. `size_bytes` is a lower bound where `partial`; `trash` is "" if deleted."""

    path: str
    trash: str
    size_bytes: int
    partial: bool


def set_aside(path: str, precious: Iterable[str], counted: Optional[Tuple[int, bool]] = None) -> Optional[SetAside]:
    """Rename `path` into a fresh trash directory beside it; None where it does not exist. Raises: CacheError.

    `counted`: its size as far as that is known, and whether that is not all.
    """
    why = cacheguard.refusal(path, precious)
    if why:
        raise CacheError("cache_refused", "%s %s" % (path, why))
    path = os.path.normpath(path)
    if not os.path.lexists(path):
        return None
    try:
        # Random and ours: renaming onto a directory that somebody else has put there would succeed silently.
        trash = os.path.join(os.path.dirname(path), TRASH_PREFIX + os.urandom(8).hex())
        os.mkdir(trash, 0o700)
        moved = os.path.join(trash, os.path.basename(path))
        try:
            os.rename(path, moved)
        except OSError as error:
            os.rmdir(trash)
            if error.errno == errno.EXDEV:
                return _delete_in_place(path)
            raise
    except OSError as error:
        raise CacheError("cache_failed", "%s: %s" % (path, error.strerror)) from error
    point = cacheguard.mount_within(os.path.realpath(trash))
    if point is not None:
        _put_back(moved, path, trash)
        raise CacheError("cache_refused", "%s: %s was mounted beneath it meanwhile" % (path, point))
    size_bytes, partial = counted or _measure(moved, time.monotonic() + _MEASURE_S)
    return SetAside(path, trash, size_bytes, partial)


def _delete_in_place(path: str) -> SetAside:
    """What overlayfs leaves: a lower layer's directory can't be renamed. Takes its time. Raises: CacheError."""
    size_bytes, partial = _measure(path, time.monotonic() + _MEASURE_S)
    try:
        if bounded.call(lambda: _delete_tree(path), _IN_PLACE_S):
            return SetAside(path, "", size_bytes, partial)
    except bounded.TookTooLong:
        raise CacheError("cache_failed", "%s: deleting took more than %d s" % (path, _IN_PLACE_S)) from None
    except bounded.ChildFailed as error:
        raise CacheError("cache_failed", "%s: %s" % (path, error)) from error
    raise CacheError("cache_failed", "%s: not all of it can be deleted" % path)


def left_behind(path: str) -> List[str]:
    """Return trash directories beside `path` whose deletion did not get to its end."""
    parent = os.path.dirname(os.path.normpath(path))
    try:
        names = os.listdir(parent)
    except OSError:
        return []
    candidates = [os.path.join(parent, name) for name in names if name.startswith(TRASH_PREFIX)]
    return [trash for trash in candidates if _is_our_trash(trash)]


def _is_our_trash(trash: str) -> bool:
    try:
        found = os.lstat(trash)
    except OSError:
        return False
    # What another user named like that is theirs; ours are private directories by construction.
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == 0o700


def _put_back(moved: str, path: str, trash: str) -> None:
    try:
        os.rename(moved, path)
        os.rmdir(trash)
    except OSError:
        pass  # it stays in the trash directory, undeleted; the refusal names the mount


def _measure(directory: str, deadline: float) -> Tuple[int, bool]:
    """Return bytes beneath `directory` as far as can be counted until `deadline`, and whether that was not all."""
    total, todo = 0, [directory]
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if time.monotonic() > deadline:
                        return total, True
        except OSError:
            continue
    return total, False


# -- deletion ---------------------------------------------------------------------------------------------------------


class Deleter:
    """A detached process that waits for trash directories to delete; forking it takes longer than setting them aside.

    To be made before becoming a subreaper: it must not count as one of the run's. It ends with its work, and with
    whoever made it where none was given: what lies there then is `left_behind`.
    """

    def __init__(self) -> None:
        reader, self._writer = os.pipe()
        child = os.fork()
        if child == 0:
            if os.fork() == 0:
                _delete_and_exit(reader)
            os._exit(0)
        os.close(reader)
        os.waitpid(child, 0)

    def delete(self, trashes: Iterable[str], urgent: bool = False) -> None:
        """Have them deleted, at idle priority unless `urgent`; does not wait."""
        wanted = list(trashes)[-_MOST_TRASHES:]  # the newest stand last
        work = json.dumps({"trashes": wanted, "urgent": urgent}).encode("utf-8", "surrogateescape")
        try:
            os.write(self._writer, work)
        except OSError:
            pass  # it was killed: the next restart deletes what is left behind
        self.close()

    def close(self) -> None:
        """Want nothing deleted any more."""
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1


def _delete_and_exit(reader: int) -> NoReturn:
    try:
        os.setsid()
        _close_all_but(reader)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with os.fdopen(reader, "rb") as pipe:
            work = json.loads(pipe.read() or b"{}")
        if not work.get("urgent"):
            _be_idle()
        for trash in work.get("trashes") or ():
            delete_trash(trash)
    except BaseException:  # noqa: BLE001 - nothing of the keeper's stack may run in the child
        pass
    os._exit(0)


def _close_all_but(kept: int) -> None:
    # The keeper's lock, FIFO and log must be free when the keeper lets them go.
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != kept:
            try:
                os.close(int(name))
            except OSError:
                pass


def _be_idle() -> None:
    os.nice(19)
    number = _IOPRIO_SET.get(os.uname().machine)
    if number is not None:
        ctypes.CDLL(None).syscall(number, _IOPRIO_WHO_PROCESS, 0, _IOPRIO_IDLE)


def delete_trash(trash: str) -> bool:
    """Delete everything in `trash` and itself; False where something had to stay (a mount, no permission).

    Every directory found is moved up into the trash itself before it is emptied: no recursion, no long paths, a handful
    of descriptors, whatever the depth.
    """
    try:
        root = os.open(trash, _DIR_FLAGS)
    except OSError:
        return False
    try:
        fcntl.flock(root, fcntl.LOCK_EX | fcntl.LOCK_NB)
        mount = files.mount_id(root)
        whole, number = True, 0
        todo = os.listdir(root)
        while todo:
            name = todo.pop()
            directory = _open_on(root, name, mount)
            if directory is None:
                whole = _unlink(root, name) and whole
                continue
            try:
                for inner in os.listdir(directory):
                    if _unlink(directory, inner):
                        continue
                    number += 1
                    raised = ".%d" % number
                    if _raise(directory, inner, root, raised, mount):
                        todo.append(raised)
                    else:
                        whole = _empty_and_remove(directory, inner, mount, 0) and whole
            finally:
                os.close(directory)
            whole = _rmdir(root, name) and whole
    except BlockingIOError:
        return False  # another deletion is at it
    finally:
        os.close(root)
    return whole and _rmdir(None, trash)


def _open_on(parent: int, name: str, mount: str) -> Optional[int]:
    """Open a directory without leaving the mount; None for anything else."""
    try:
        directory = os.open(name, _DIR_FLAGS, dir_fd=parent)
    except OSError as error:
        if error.errno != errno.EACCES:
            return None
        try:
            os.chmod(name, 0o700, dir_fd=parent)
            directory = os.open(name, _DIR_FLAGS, dir_fd=parent)
        except OSError:
            return None
    if files.mount_id(directory) != mount:
        os.close(directory)
        return None
    if not os.fstat(directory).st_mode & stat.S_IWUSR:
        os.fchmod(directory, 0o700)
    return directory


def _raise(parent: int, name: str, root: int, raised: str, mount: str) -> bool:
    inner = _open_on(parent, name, mount)
    if inner is None:
        return False
    os.close(inner)
    try:
        os.rename(name, raised, src_dir_fd=parent, dst_dir_fd=root)
    except OSError:
        return False
    return True


def _delete_tree(path: str) -> bool:
    parent = os.open(os.path.dirname(path), _DIR_FLAGS)
    try:
        return _empty_and_remove(parent, os.path.basename(path), files.mount_id(parent), 0)
    finally:
        os.close(parent)


def _empty_and_remove(parent: int, name: str, mount: str, depth: int) -> bool:
    """Delete a directory where it is: for what can't be renamed, a layer's directory on overlayfs."""
    directory = _open_on(parent, name, mount)
    if directory is None or depth > _DEEPEST_IN_PLACE:
        return False
    try:
        whole = True
        for inner in os.listdir(directory):
            whole = (_unlink(directory, inner) or _empty_and_remove(directory, inner, mount, depth + 1)) and whole
    finally:
        os.close(directory)
    return _rmdir(parent, name) and whole


def _unlink(parent: int, name: str) -> bool:
    try:
        os.unlink(name, dir_fd=parent)
    except OSError as error:
        return error.errno == errno.ENOENT
    return True


def _rmdir(parent: Optional[int], name: str) -> bool:
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        return error.errno == errno.ENOENT
    return True
