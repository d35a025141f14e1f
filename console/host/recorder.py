"""The flight recorder of one run: recorder.ndjson, bounded, so that a console opened later sees what happened.

Lines are protocol.Growth. When the file is full every second sample of its older half goes; stages and the exit stay,
and so does the launch: when it stepped is told by the log's growth, a week later still.
Only the keeper imports this module.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Dict, List, Optional

from . import procfs

NAME = "recorder.ndjson"
MAX_BYTES = 4 * 1024 * 1024
_LAUNCH_PART = 8
"""Of the bound, one part in so many is the launch's: with eight GPUs the first 20 minutes."""
_THINNED = frozenset({'{"k":"log"', '{"k":"gpu"'})


class Recorder:
    """Appends lines and keeps the file below its bound. A full disk loses lines, never the run."""

    def __init__(self, run_dir: str, max_bytes: int = MAX_BYTES) -> None:
        self._path = os.path.join(run_dir, NAME)
        self._max_bytes = max_bytes
        self._last_log_size: Optional[int] = None

    def log(self, size: int) -> None:
        """Record the log's size if it changed since the last call."""
        if size != self._last_log_size:
            self._last_log_size = size
            self._append({"k": "log", **_now(), "size": size})

    def stage(self, stage: str, state: str, detail: str) -> None:
        self._append({"k": "stage", **_now(), "stage": stage, "state": state, "detail": detail})

    def gpus(self, sample: Dict[str, Any]) -> None:
        rows = [[gpu["i"], gpu.get("used"), gpu.get("util"), gpu.get("power_mw")] for gpu in sample["gpus"]]
        if rows:
            self._append({"k": "gpu", **_now(), "gpus": rows})

    def exit(self, detail: str) -> None:
        self._append({"k": "exit", **_now(), "detail": detail})

    def _append(self, line: Dict[str, Any]) -> None:
        raw = json.dumps(line, separators=(",", ":")).encode("utf-8", "surrogateescape") + b"\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.write(descriptor, raw)
                size = os.fstat(descriptor).st_size
            finally:
                os.close(descriptor)
            if size > self._max_bytes:
                self._thin()
        except OSError:
            pass

    def _thin(self) -> None:
        with open(self._path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.readlines()
        launch = _lines_within(lines, self._max_bytes // _LAUNCH_PART)
        half = launch + (len(lines) - launch) // 2
        kept = lines[:launch] + _every_second_sample(lines[launch:half]) + lines[half:]
        temporary = self._path + ".thin"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o600), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(kept)
        os.rename(temporary, self._path)


def _lines_within(lines: List[str], size_bytes: int) -> int:
    """Return how many of the first lines fit into so many bytes (characters; all but paths are ASCII)."""
    for number, line in enumerate(lines):
        size_bytes -= len(line)
        if size_bytes < 0:
            return number
    return len(lines)


def _every_second_sample(lines: List[str]) -> List[str]:
    kept: List[str] = []
    keep = False
    for line in lines:
        if line[:10] in _THINNED:
            keep = not keep
            if not keep:
                continue
        kept.append(line)
    return kept


def _now() -> Dict[str, float]:
    return {"bt": round(procfs.boottime(), 3), "wall": round(time.time(), 3)}
