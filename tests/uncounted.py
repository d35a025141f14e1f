"""The kernel counts its kills for want of memory for the whole machine: who dies soon after one may be put down to it.

A test that has the kernel kill says so, and one on this machine itself in which a run is killed by somebody else waits
for that, and has it wait: they run in different processes, at the same time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_LOCK = Path(tempfile.gettempdir()) / f"dflash-tests-{os.getuid()}.kernel-kills"


@contextlib.contextmanager
def kill() -> Iterator[None]:
    """Have the kernel kill within this block, while no run of the tests below is alive."""
    with _locked(fcntl.LOCK_EX):
        yield


@contextlib.contextmanager
def no_kills() -> Iterator[None]:
    """For the life of a run: the kernel kills nobody meanwhile."""
    with _locked(fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def _locked(how: int) -> Iterator[None]:
    with _LOCK.open("a") as file:
        fcntl.flock(file, how)
        yield
