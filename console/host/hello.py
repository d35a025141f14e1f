"""The first line that the agent says: who and where it is, and both clocks. Only the agent imports this module."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Dict

from . import files, procfs, startkeeper

VERSION = 1


def hello() -> Dict[str, Any]:
    """Return the Hello object: who and where we are, and both clocks."""
    bt, wall = procfs.boottime(), time.time()
    own = procfs.read_stat(os.getpid())
    return {
        "v": VERSION,
        "pid": os.getpid(),
        "start": own.start if own is not None else None,
        "pid_ns": procfs.pid_namespace_here(),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "boot": procfs.boot_identity(),
        "user": startkeeper.user_name(),
        "uid": os.geteuid(),
        "node": os.uname().nodename,
        "bt": bt,
        "wall": wall,
        "utc_offset_s": time.localtime(wall).tm_gmtoff,
        "booted_wall": wall - bt,
        "systemd": os.path.isdir("/run/systemd/system"),
        "systemd_system": startkeeper.has_system_manager(),
        "state_dir": files.state_root(None),
    }
