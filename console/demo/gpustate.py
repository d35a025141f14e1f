"""The state file of simulated GPUs: the format, and the parser that all readers follow.

Standard library only, Python 3.8 and later. Written by trainer.py beside this file and by tests; read by the agent's
simulated source and by the NVML test library in tests/nvml. The file is replaced as a whole (rename), about twice a
second while a trainer lives. One record a line, UTF-8, fields separated by blanks, unknown lines and fields ignored:

    driver 550.90.07
    gpu 0 uuid=GPU-sim-0 name="NVIDIA H200" total=150121480192 used=76985741824 util=97 memutil=41 power_mw=612000
        limit_mw=700000 temp=61 sm_mhz=1755 mem_mhz=2619 procs=84942:76448870912:8812345 held_until=1790000000.250
                                                                        (one line in the file; broken here for reading)
    fail nvmlDeviceGetPowerUsage=3 gpu=2
    hang nvmlDeviceGetCount_v2

- A field that is absent, or `?`, is not available on that GPU: alone, not the whole sample. total, used: bytes; util,
  memutil: percent; power_mw, limit_mw: milliwatts; temp: degrees Celsius; sm_mhz, mem_mhz: MHz.
- `procs` holds PID:BYTES or PID:BYTES:START, comma-separated; START is the process's start time in clock ticks since
  boot (field 22 of /proc/PID/stat). Pids are of the writer's pid namespace.
- Nobody rewrites the file after the writer was killed, so **readers do the driver's part**. A process is dead where
  /proc/PID is gone, its state is Z or X, or its start time differs from START. Dead processes are dropped from
  `procs`, and their bytes subtracted from `used`. Until `held_until` (seconds since 1970, optional: a slow release) the
  bytes stay used although the process is no longer listed. A GPU whose processes are all dead is at rest:
  util and memutil 0, power at most 77,000 mW, sm clock at most 345 MHz.
- `fail CALL=CODE [gpu=I]` and `hang CALL [gpu=I]` are for the NVML test library alone: that call returns the NVML error
  code, or never returns.
- Optional fields: throttle (mask of clock event reasons), ecc_uncorrected, reserved (bytes), sm_max_mhz, hot_at,
  retired, xid. Only the test library reads remapped, pending, and lines `mig GPU.INSTANCE ...` (tests/nvml); only the
  agent's source reads lost (a word without blanks).
"""

from __future__ import annotations

import shlex
import time
from typing import Any, Callable

IDLE_POWER_MW = 77_000
IDLE_SM_MHZ = 345
NUMBERS = ("total", "used", "util", "memutil", "power_mw", "limit_mw", "temp", "sm_mhz", "mem_mhz")

Alive = Callable[[int, "int | None"], bool]


def is_alive(pid: int, start: int | None = None) -> bool:
    """Return whether the process lives: not gone, not a zombie, and not another one under a reused pid."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return fields[0] not in (b"Z", b"X") and (start is None or int(fields[19]) == start)


def driver_version(text: str) -> str | None:
    """Return the driver version that the file states, or None."""
    for line in text.splitlines():
        if line.startswith("driver "):
            return line[len("driver ") :].strip() or None
    return None


def parse(text: str, alive: Alive = is_alive, now: float | None = None) -> list[dict[str, Any]]:
    """Return a dict for each GPU, by index: `index`, `uuid`, `name`, the names in NUMBERS and `procs`.

    What isn't available is None. `procs` is a list of (pid, used bytes or None) of living processes. `now` is seconds
    since 1970. Lines that can't be understood are left out.
    """
    moment = time.time() if now is None else now
    gpus: dict[int, dict[str, Any]] = {}
    for line in text.splitlines():
        if line.startswith("gpu "):
            try:
                gpu = _parse_gpu(line, alive, moment)
            except (ValueError, IndexError):
                continue
            gpus[gpu["index"]] = gpu
    return [gpus[index] for index in sorted(gpus)]


def _parse_gpu(line: str, alive: Alive, now: float) -> dict[str, Any]:
    words = shlex.split(line)
    fields = dict(word.split("=", 1) for word in words[2:] if "=" in word)
    gpu: dict[str, Any] = {"index": int(words[1]), "uuid": fields.get("uuid"), "name": fields.get("name")}
    for key in NUMBERS:
        gpu[key] = _number(fields.get(key))
    living, dead_bytes, dead = [], 0, 0
    for entry in filter(None, fields.get("procs", "").split(",")):
        pid, used, start = (entry.split(":") + ["", ""])[:3]
        if alive(int(pid), _number(start)):
            living.append((int(pid), _number(used)))
        else:
            dead += 1
            dead_bytes += _number(used) or 0
    gpu["procs"] = living
    if gpu["used"] is not None and now >= float(fields.get("held_until", 0)):
        gpu["used"] = max(0, gpu["used"] - dead_bytes)
    if dead and not living:
        _rest(gpu)
    return gpu


def _number(text: str | None) -> int | None:
    return int(text) if text and text != "?" else None


def _rest(gpu: dict[str, Any]) -> None:
    """Nobody works here any more, whatever the last writer saw."""
    for key, most in (("util", 0), ("memutil", 0), ("power_mw", IDLE_POWER_MW), ("sm_mhz", IDLE_SM_MHZ)):
        if gpu[key] is not None:
            gpu[key] = min(gpu[key], most)
