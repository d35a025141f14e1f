"""`nvidia-smi` as a source of GPU samples, bounded: killed and left alone where it does not end in time.

Only gpusource.py imports this module.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import nvml

Crumb = Callable[[str], None]

SMI_TIMEOUT_S = 8.0

_FIELDS = (
    *("index", "uuid", "name", "memory.used", "memory.total", "utilization.gpu", "power.draw"),
    *("enforced.power.limit", "temperature.gpu", "driver_version"),
)
# Not known to every version; one that a version does not know makes it refuse the whole query.
_MORE_FIELDS = (
    *("pci.bus_id", "memory.reserved", "clocks.sm", "clocks.max.sm"),
    *("clocks_event_reasons.active", "clocks_throttle_reasons.active"),  # since 535, and before that
    *("ecc.errors.uncorrected.volatile.total", "mig.mode.current"),
)


class Smi:
    """Asks for everything, and for less where this version refuses that."""

    def __init__(self, crumb: Crumb) -> None:
        self._crumb = crumb
        self._more: Tuple[str, ...] = _MORE_FIELDS

    def sample(self) -> Dict[str, Any]:
        command = shutil.which("nvidia-smi")
        if command is None:
            raise nvml.SourceFailed("no nvidia-smi on the PATH")
        rows = self._rows(command)
        if not rows:
            raise nvml.SourceFailed("nvidia-smi lists no GPU")
        try:
            held = self._procs(command)
        except nvml.SourceFailed:
            held = None
        gpus = [_gpu(row, held) for row in rows]
        return {"source": "nvidia-smi", "why": "", "driver": rows[0]["driver_version"], "gpus": gpus}

    def _rows(self, command: str) -> List[Dict[str, str]]:
        fields = (*_FIELDS, *self._more)
        try:
            rows = self._query(command, "--query-gpu=" + ",".join(fields))
        except nvml.SourceFailed as failure:
            if not self._more or "not a valid field" not in str(failure):
                raise
            # It names the first that it does not know, in quotes; one that says so otherwise is asked for no more.
            known = tuple(field for field in self._more if '"%s"' % field not in str(failure))
            self._more = known if len(known) < len(self._more) else ()
            return self._rows(command)
        # An older one may answer with fewer columns only where a wrapper stands in for it.
        whole = [_one_name(row, len(row) - len(fields)) for row in rows]
        return [dict(zip(fields, row)) for row in whole if len(row) >= len(_FIELDS) and row[0].isdigit()]

    def _procs(self, command: str) -> Dict[str, List[List[Optional[int]]]]:
        held: Dict[str, List[List[Optional[int]]]] = {}
        for row in self._query(command, "--query-compute-apps=gpu_uuid,pid,used_memory"):
            if len(row) >= 3 and row[1].isdigit():
                held.setdefault(row[0], []).append([int(row[1]), _mib(row[2])])
        return held

    def _query(self, command: str, query: str) -> List[List[str]]:
        self._crumb("nvidia-smi")
        try:
            child = subprocess.Popen(
                [command, query, "--format=csv,noheader,nounits"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                close_fds=True,
            )
        except OSError as error:
            raise nvml.SourceFailed("nvidia-smi: %s" % error.strerror) from error
        try:
            out, _ = child.communicate(timeout=SMI_TIMEOUT_S)
        except subprocess.TimeoutExpired as late:
            stuck = _let_go(child)
            raise nvml.SourceFailed("nvidia-smi gave no answer in %g s%s" % (SMI_TIMEOUT_S, stuck)) from late
        lines = out.decode("utf-8", "replace").splitlines()
        if child.returncode != 0:
            first = next((line.strip() for line in lines if line.strip()), "")
            raise nvml.SourceFailed("nvidia-smi ended with %d: %s" % (child.returncode, first[:200]))
        return [[cell.strip() for cell in line.split(",")] for line in lines if line.strip()]


def _one_name(row: List[str], more: int) -> List[str]:
    """Put a name with commas together again: nvidia-smi doesn't quote."""
    return [*row[:_NAME], ", ".join(row[_NAME : _NAME + more + 1]), *row[_NAME + more + 1 :]] if more > 0 else row


_NAME = _FIELDS.index("name")


def _let_go(child: "subprocess.Popen[bytes]") -> str:
    """Kill it and wait a moment; one in state D is left behind, since it would take us along, and named."""
    child.kill()
    if child.stdout is not None:
        child.stdout.close()
    try:
        child.wait(0.5)
    except subprocess.TimeoutExpired:
        return "; pid %d can't be killed: the driver is wedged" % child.pid
    return ""


def _gpu(row: Dict[str, str], held: Any) -> Dict[str, Any]:
    watt, limit = _number(row["power.draw"]), _number(row["enforced.power.limit"])
    used, total = _mib(row["memory.used"]), _mib(row["memory.total"])
    name = row["name"]
    lost = "gone from the bus" if "lost" in (name + row["memory.used"]).lower() else ""
    return nvml.gpu(
        int(row["index"]),
        uuid=row["uuid"],
        name=name,
        bus=row.get("pci.bus_id"),
        used=used,
        total=total,
        reserved=_mib(row.get("memory.reserved", "")),
        util=_whole(row["utilization.gpu"]),
        power_mw=None if watt is None else int(watt * 1000),
        limit_mw=None if limit is None else int(limit * 1000),
        temp=_whole(row["temperature.gpu"]),
        sm_mhz=_whole(row.get("clocks.sm", "")),
        sm_max_mhz=_whole(row.get("clocks.max.sm", "")),
        throttle=_mask(row.get("clocks_event_reasons.active") or row.get("clocks_throttle_reasons.active", "")),
        ecc=_whole(row.get("ecc.errors.uncorrected.volatile.total", "")),
        mig=[] if row.get("mig.mode.current", "").lower() == "enabled" else None,
        procs=None if held is None else held.get(row["uuid"], []),
        **({"lost": lost} if lost else {}),
    )


def _number(cell: str) -> Optional[float]:
    try:
        return float(cell)
    except ValueError:
        return None  # "[N/A]", "[Not Supported]", "ERR!"


def _whole(cell: str) -> Optional[int]:
    value = _number(cell)
    return None if value is None else int(value)


def _mask(cell: str) -> Optional[int]:
    try:
        return int(cell, 16)
    except ValueError:
        return None


def _mib(cell: str) -> Optional[int]:
    value = _number(cell)
    return None if value is None else int(value) * 1024 * 1024
