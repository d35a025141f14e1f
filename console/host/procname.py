"""Another name for this process: what `ps`, `pgrep` and a colleague's `pkill -f python3` see.

argv is overwritten in place, since that is what /proc/PID/cmdline shows; a faked argv[0] would empty `sys.executable`.
Agent and keeper may import this module; it imports nothing of ours.
"""

from __future__ import annotations

import ctypes

_PR_SET_NAME = 15
_COMM_BYTES = 15


def rename(title: str, comm: str) -> None:
    """Show `title` as the command line, cut to the room that argv has, and `comm` as the process's name."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NAME, ctypes.c_char_p(comm.encode()[:_COMM_BYTES]), 0, 0, 0)
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    begin, end = int(fields[45]), int(fields[46])  # arg_start and arg_end: fields 48 and 49 of the whole line
    room = end - begin
    if begin <= 0 or room < 2:
        return
    # The last byte stays NUL: without it the kernel takes what follows for more of the command line.
    shown = title.encode("utf-8", "surrogateescape")[: room - 1].ljust(room, b"\0")
    ctypes.memmove(begin, shown, room)
