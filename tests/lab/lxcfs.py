"""An lxcfs of the session's own, which gives an unprivileged container its own view of memory, load and uptime."""

import contextlib
import os
import signal
from pathlib import Path

from tests.lab.commands import argv_of, call
from tests.waiting import until

_FILES = ("cpuinfo", "diskstats", "loadavg", "meminfo", "stat", "swaps", "uptime")


def mount_entries(folder: Path) -> list[str]:
    """Return lxc's mount entries for a container of the session in `folder`, with its lxcfs started."""
    mounted = folder / "lxcfs"
    if not mounted.is_dir():
        _start(folder, mounted)
    return [f"{mounted}/proc/{name} proc/{name} none bind,optional 0 0" for name in _FILES]


def end(folder: Path) -> None:
    """End the session's lxcfs, if that pid is still one, and unmount what it served."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((folder / "lxcfs.pid").read_text())
        if str(folder / "lxcfs") in argv_of(pid):
            os.kill(pid, signal.SIGKILL)
    call("umount", "--lazy", folder / "lxcfs", check=False)


def _start(folder: Path, mounted: Path) -> None:
    mounted.mkdir()
    # Told to go into the background by itself it keeps our pipes open.
    line = 'setsid -f lxcfs -f -l -p "$1/lxcfs.pid" "$1/lxcfs" >"$1/lxcfs.log" 2>&1'
    call("sh", "-c", line, "sh", folder)
    until((mounted / "proc/uptime").exists, timeout_s=60, what="lxcfs serves")
