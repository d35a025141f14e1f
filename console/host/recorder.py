"""The flight recorder of one run: recorder.ndjson, bounded, so that a console opened later sees what happened.

Lines are protocol.Growth. When the file is full every second sample of its older half goes; stages and the exit stay,
and so does the launch: when it stepped is told by the log's growth, a week later still.
The keeper writes, the agent makes what it sends coarser.
"""

from __future__ import annotations

import json
import os
import re
import time
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from . import procfs

NAME = "recorder.ndjson"
ROW_FIELDS = ("used", "util", "power_mw", "temp", "sm_mhz", "throttle")
KIND_FIELDS = ("uuid", "name", "total", "limit_mw", "hot_at", "sm_max_mhz", "lost")
MAX_BYTES = 3 * 1024 * 1024
"""With eight GPUs some two hours of each second, and coarser before that."""
RECENT_S = 600.0
"""So long before its last word a recorder is sent as it is."""
COARSE_S = 10.0
LAUNCH_S, LAUNCH_EVERY_S = 1200.0, 1.0
"""The log's growth in the first 20 minutes stays this fine: it says when the run began to step."""
_LAUNCH_PART = 8
"""Of the bound, one part in so many is the launch's: with eight GPUs the first 20 minutes."""
_GROWTH = '{"k":"log"'
_SAMPLES = (_GROWTH, '{"k":"gpu"', '{"k":"proc')
_BT = re.compile(r'"bt":([0-9.]+)')
_MOST_PROCS = 16

# Made once: with these options json.dumps would make an encoder for each line.
_words = json.JSONEncoder(separators=(",", ":")).encode


class Recorder:
    """Appends lines and keeps the file below its bound. A full disk loses lines, never the run."""

    def __init__(self, run_dir: str, max_bytes: int = MAX_BYTES) -> None:
        self._path = os.path.join(run_dir, NAME)
        self._max_bytes = max_bytes
        self._last_log_size: Optional[int] = None
        self._kinds: Any = None
        self._named: Set[Tuple[int, int]] = set()
        self._descriptor = -1

    def log(self, size: int) -> None:
        """Record the log's size if it changed since the last call."""
        if size != self._last_log_size:
            self._last_log_size = size
            self._append({"k": "log", **_now(), "size": size})

    def stage(self, stage: str, state: str, detail: str) -> None:
        self._append({"k": "stage", **_now(), "stage": stage, "state": state, "detail": detail})

    def gpus(self, sample: Dict[str, Any], contexts: Iterable[int] = ()) -> None:
        """Record a sample; what each GPU is once, and again when that changes."""
        kinds = [[gpu["i"], *(gpu.get(name) for name in KIND_FIELDS)] for gpu in sample["gpus"]]
        told = [sample.get("source"), sample.get("driver"), sample.get("why"), kinds]
        if told != self._kinds:
            self._kinds = told
            names = dict(zip(("source", "driver", "why"), told))
            self._append({"k": "gpukind", **_now(), **names, "kinds": kinds})
        rows = [[gpu["i"], *(gpu.get(name) for name in ROW_FIELDS)] for gpu in sample["gpus"]]
        if rows:
            self._append({"k": "gpu", **_now(), "gpus": rows, "held": sorted(contexts)})

    def procs(self, stats: Iterable[procfs.Stat]) -> None:
        """Record what the processes of the run use: pid, state, bytes, ticks of CPU; the biggest, where there are many.

        Command lines are left out: they may hold secrets.
        """
        most = sorted(stats, key=lambda stat: -stat.rss_bytes)[:_MOST_PROCS]
        fresh = [stat for stat in most if (stat.pid, stat.start) not in self._named]
        if fresh:
            self._named.update((stat.pid, stat.start) for stat in fresh)
            who = [[stat.pid, stat.start, stat.ppid, stat.comm] for stat in fresh]
            self._append({"k": "who", **_now(), "who": who})
        if most:
            rows = [[stat.pid, stat.state, stat.rss_bytes, stat.utime + stat.stime] for stat in most]
            self._append({"k": "proc", **_now(), "procs": rows})

    def exit(self, detail: str) -> None:
        self._append({"k": "exit", **_now(), "detail": detail})

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _append(self, line: Dict[str, Any]) -> None:
        raw = _words(line).encode("utf-8", "surrogateescape") + b"\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            if self._descriptor < 0:
                self._descriptor = os.open(self._path, flags, 0o600)
            os.write(self._descriptor, raw)
            found = os.fstat(self._descriptor)
            if found.st_size > self._max_bytes:
                self._thin()
            if found.st_size > self._max_bytes or not found.st_nlink:
                self._close()  # what is there under that name now is another file
        except OSError:
            self._close()

    def _thin(self) -> None:
        with open(self._path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.readlines()
        launch = _lines_within(lines, self._max_bytes // _LAUNCH_PART)
        kept = lines[:launch] + coarser(lines[launch:], launch_s=0.0)
        if sum(map(len, kept)) > self._max_bytes * 3 // 4:
            half = launch + (len(kept) - launch) // 2
            kept = kept[:launch] + _every_second_sample(kept[launch:half]) + kept[half:]
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


def coarser(lines: List[str], every_s: float = COARSE_S, launch_s: float = LAUNCH_S) -> List[str]:
    """Keep of the samples from before the last ten minutes one of each kind in `every_s`; all else stays.

    Of the log's growth in the first `launch_s` one a second stays.
    """
    first = next((bt for bt in map(_bt_of, lines) if bt is not None), 0.0)
    last = next((bt for bt in map(_bt_of, reversed(lines)) if bt is not None), None)
    if last is None:
        return lines
    kept: List[str] = []
    seen: Dict[str, float] = {}
    for line in lines:
        bt = _bt_of(line) if line.startswith(_SAMPLES) else None
        if bt is not None and bt < last - RECENT_S:
            kind = line[:10]
            is_launch = line.startswith(_GROWTH) and bt < first + launch_s
            if bt - seen.get(kind, float("-inf")) < (min(LAUNCH_EVERY_S, every_s) if is_launch else every_s):
                continue
            seen[kind] = bt
        kept.append(line)
    return kept


def _bt_of(line: str) -> Optional[float]:
    found = _BT.search(line, 0, 48)
    return float(found.group(1)) if found else None


def _every_second_sample(lines: List[str]) -> List[str]:
    kept: List[str] = []
    keep = False
    for line in lines:
        if line.startswith(_SAMPLES):
            keep = not keep
            if not keep:
                continue
        kept.append(line)
    return kept


def _now() -> Dict[str, float]:
    return {"bt": round(procfs.boottime(), 3), "wall": round(time.time(), 3)}
