"""Python stacks by py-spy, where the host has it: read out of the process's memory, which goes on running.

Only diagnose_run.py imports this module.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from typing import Iterable, Iterator, List, Optional, Tuple

from . import loginenv, procfs

EACH_S = 5.0
MAX_PROCESSES = 16
_AT_ONCE = 4
_REAP_S = 0.5
_MAX_CHARS = 60_000
_PYTHON = re.compile(r"(python|pypy)[\d.]*\Z")


def find(pids: Iterable[int]) -> Optional[str]:
    """Return py-spy's path: on our PATH, on a login's, on the run's, beside the run's Python."""
    paths = [os.environ.get("PATH", ""), loginenv.FALLBACK_PATH]
    for pid in list(pids)[:4]:
        paths += [procfs.environ(pid).get("PATH", ""), os.path.dirname(procfs.exe(pid))]
    return shutil.which("py-spy", path=":".join(path for path in paths if path))


def is_python(pid: int) -> bool:
    return bool(_PYTHON.match(os.path.basename(procfs.exe(pid))))


def dump(program: str, pids: List[int]) -> Iterator[Tuple[int, str]]:
    """Yield (pid, what py-spy says), a few at a time, each with 5 s."""
    for first in range(0, min(len(pids), MAX_PROCESSES), _AT_ONCE):
        batch = pids[first : min(first + _AT_ONCE, MAX_PROCESSES)]
        until = time.monotonic() + EACH_S
        started = [(pid, _start(program, pid)) for pid in batch]
        for pid, process in started:
            yield pid, _said(process, until)


def _start(program: str, pid: int) -> "Optional[subprocess.Popen[bytes]]":
    try:
        return subprocess.Popen(
            [program, "dump", "--nonblocking", "--pid", str(pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except OSError:
        return None


def _said(process: "Optional[subprocess.Popen[bytes]]", until: float) -> str:
    if process is None:
        return "could not be started"
    try:
        said, _ = process.communicate(timeout=max(0.05, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()  # ours, not the run's
        assert process.stdout is not None
        process.stdout.close()
        try:
            process.wait(_REAP_S)
        except subprocess.TimeoutExpired:
            pass  # in uninterruptible sleep, as what it looked at may be
        return f"no answer in {EACH_S:g} s"
    text = said.decode("utf-8", "replace").rstrip()
    return text[:_MAX_CHARS] + (f"\n[cut: {len(text)} characters]" if len(text) > _MAX_CHARS else "")
