"""The keeper's newest GPU sample in a file of its run directory, so that an agent beside it need not ask the driver.

Overwritten in place with a checksum: renaming would wake up whoever listens to the directory, once a second, and
neither side may ever wait for the other. A reader that meets a half-written sample finds none, and looks again.
"""

from __future__ import annotations

import json
import os
import stat
import zlib
from typing import Any, Dict, Optional

NAME = "gpus.sample"
_MAX_BYTES = 1 << 20
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

Sample = Dict[str, Any]


class Outlet:
    """The keeper's end. What can't be written is missed by nobody: the agent samples itself then."""

    def __init__(self, run_dir: str, simulated: Optional[str]) -> None:
        self._path = os.path.join(run_dir, NAME)
        self._words = json.dumps(simulated).encode("ascii")
        self._descriptor = -1

    def put(self, sample: Sample, line: Optional[bytes] = None) -> None:
        """Replace what was there. `line`: the sample in JSON, where somebody has it."""
        text = line if line is not None else json.dumps(sample, separators=(",", ":")).encode("utf-8")
        body = b'{"simulated":%s,"sample":%s}' % (self._words, text)
        try:
            if self._descriptor < 0:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | _FLAGS, 0o600)
            os.pwrite(self._descriptor, b"%08x %08x " % (zlib.crc32(body), len(body)) + body, 0)
        except OSError:
            pass

    def close(self) -> None:
        """Take the file away: nothing in it is worth keeping with the run."""
        if self._descriptor < 0:
            return
        os.close(self._descriptor)
        self._descriptor = -1
        try:
            os.unlink(self._path)
        except OSError:
            pass


def take(run_dir: str, simulated: Optional[str]) -> Optional[Sample]:
    """Return the sample that the keeper of this run has put there last; None where there is none of these GPUs."""
    try:
        descriptor = os.open(os.path.join(run_dir, NAME), os.O_RDONLY | _FLAGS)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            return None
        raw = os.pread(descriptor, _MAX_BYTES, 0)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return _sample_in(raw, simulated)


def _sample_in(raw: bytes, simulated: Optional[str]) -> Optional[Sample]:
    try:
        checksum, size, body = raw.split(b" ", 2)
        body = body[: int(size, 16)]
        if zlib.crc32(body) != int(checksum, 16):
            return None
        told = json.loads(body.decode("utf-8"))
        sample = told["sample"]
        fits = told["simulated"] == simulated and isinstance(sample["gpus"], list) and float(sample["bt"]) > 0
    except (ValueError, KeyError, TypeError):
        return None
    return sample if fits else None
