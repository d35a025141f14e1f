"""Whether a file lies on a network filesystem: there sizes are seconds old, handles go stale, changes are not told of.

Only the log's follower and otherfile.py import this module.
"""

from __future__ import annotations

import os

_KINDS = frozenset(("nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "gpfs", "beegfs", "afs", "pvfs2", "wekafs"))
_LOCAL = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "tmpfs", "overlay"))
_MOUNTS = "/proc/self/mountinfo"


def kind(dev: int, mounts: str = _MOUNTS) -> str:
    """Return the type of the network filesystem with that device number, "" for any other."""
    found = _type_of(dev, mounts)
    return found if found in _KINDS or found.startswith("fuse.") else ""


def is_here(dev: int, mounts: str = _MOUNTS) -> bool:
    """Whether a filesystem with that device number surely is this machine's own: whoever asks there need not wait."""
    return _type_of(dev, mounts) in _LOCAL


def _type_of(dev: int, mounts: str) -> str:
    """Return the type that is mounted with that device number, "" where none is seen."""
    wanted = "%d:%d" % (os.major(dev), os.minor(dev))
    found = ""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                fields, _, rest = line.partition(" - ")
                if fields.split(" ")[2:3] == [wanted]:
                    found = rest.split(" ", 1)[0]
    except OSError:
        return ""
    return found


def look_again(path: str) -> None:
    """Have the client ask its server for the file's size: it does so when a file is opened, else after seconds."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        pass  # the look itself will say so
