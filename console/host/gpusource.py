"""Where GPU figures come from: NVML, `nvidia-smi`, a simulated state file, or nothing; in a disposable child.

Each source answers `sample()` with {"source", "why", "driver", "gpus": [...]}; a field that a GPU does not tell is
None, alone. Nothing here knows runs or process trees. Only gpu.py and plan.py import this module.
"""

from __future__ import annotations

import ctypes  # with the next four: what pynvml needs, loaded while this Python is still installed
import ctypes.util  # noqa: F401
import functools  # noqa: F401
import shlex
import shutil
import string  # noqa: F401
import subprocess
import threading  # noqa: F401
import time
from typing import Any, Callable, Dict, List, Optional

Sample = Dict[str, Any]
Crumb = Callable[[str], None]
"""Is told the name of a call before it is made, so that a call that never returns can be named."""

SMI_TIMEOUT_S = 8.0
# A driver that failed to answer is asked anew after this long, not at each sample.
RETRY_S = 30.0

_SMI_FIELDS = (
    "index,uuid,name,memory.used,memory.total,utilization.gpu,power.draw,enforced.power.limit,temperature.gpu,"
    "driver_version"
)
_IDLE_POWER_MW = 77_000


class Sources:
    """Asks the best source that answers and remembers for a while which ones did not."""

    def __init__(self, simulated: Optional[str], crumb: Crumb) -> None:
        self._simulated = Simulated(simulated) if simulated else None
        self._nvml = Nvml(crumb)
        self._smi = Smi(crumb)
        self._failed_at: Optional[float] = None
        self._why = ""

    def sample(self) -> Sample:
        if self._simulated:
            return self._simulated.sample()
        if self._failed_at is not None and time.monotonic() - self._failed_at < RETRY_S:
            return _nothing(self._why)
        whys = []
        for source in (self._nvml, self._smi):
            try:
                answer = source.sample()
            except SourceFailed as failure:
                whys.append(str(failure))
                continue
            self._failed_at = None
            answer["why"] = answer["why"] or "; ".join(whys)
            return answer
        self._failed_at, self._why = time.monotonic(), "; ".join(whys)
        return _nothing(self._why)


class SourceFailed(Exception):
    """This source has no figures at all; the text says why."""


def _nothing(why: str) -> Sample:
    return {"source": "none", "why": why, "driver": "", "gpus": []}


def _gpu(index: int, **known: Any) -> Dict[str, Any]:
    """Return one GPU of a sample: bytes, percent, milliwatts, degrees Celsius; None where not told."""
    fields = ("uuid", "name", "used", "total", "util", "power_mw", "limit_mw", "temp", "procs")
    return {"i": index, **dict.fromkeys(fields), **known}


class Nvml:
    """The driver's own library through pynvml, which came along with us."""

    def __init__(self, crumb: Crumb) -> None:
        self._crumb = crumb
        self._nvml: Any = None
        self._handles: List[Any] = []
        self._driver = ""

    def sample(self) -> Sample:
        try:
            if self._nvml is None:
                self._open()
            gpus = [self._one(index, handle) for index, handle in enumerate(self._handles)]
        except ImportError as error:
            raise SourceFailed(f"pynvml: {error}") from error
        except self._errors() as error:
            self._nvml = None
            raise SourceFailed(f"NVML: {error}") from error
        if gpus and all(gpu["used"] is None and gpu["util"] is None for gpu in gpus):
            self._nvml = None  # a driver that was reloaded wants new handles
        return {"source": "nvml", "why": "", "driver": self._driver, "gpus": gpus}

    def _errors(self) -> Any:
        try:
            import pynvml
        except ImportError:
            return OSError
        return (pynvml.NVMLError, OSError)

    def _open(self) -> None:
        import pynvml

        self._crumb("nvmlInit")
        pynvml.nvmlInit()
        self._driver = _text(self._ask(pynvml, "nvmlSystemGetDriverVersion")) or ""
        self._crumb("nvmlDeviceGetCount")
        count = pynvml.nvmlDeviceGetCount()
        self._handles = []
        for index in range(count):
            self._crumb("nvmlDeviceGetHandleByIndex")
            try:
                self._handles.append(pynvml.nvmlDeviceGetHandleByIndex(index))
            except pynvml.NVMLError as error:
                self._handles.append(error)
        self._nvml = pynvml

    def _ask(self, nvml: Any, call: str, *args: Any, **options: Any) -> Any:
        """Return what `call` answers, or None where it fails: one field less, not one sample less."""
        self._crumb(call)
        try:
            return getattr(nvml, call)(*args, **options)
        except (nvml.NVMLError, AttributeError, OSError, UnicodeDecodeError):
            return None

    def _one(self, index: int, handle: Any) -> Dict[str, Any]:
        nvml = self._nvml
        if isinstance(handle, nvml.NVMLError):
            return _gpu(index, warning=f"NVML: {handle}")
        memory = self._memory(handle)
        util = self._ask(nvml, "nvmlDeviceGetUtilizationRates", handle)
        procs = self._ask(nvml, "nvmlDeviceGetComputeRunningProcesses", handle)
        return _gpu(
            index,
            uuid=_text(self._ask(nvml, "nvmlDeviceGetUUID", handle)),
            name=_text(self._ask(nvml, "nvmlDeviceGetName", handle)),
            used=getattr(memory, "used", None),
            total=getattr(memory, "total", None),
            util=getattr(util, "gpu", None),
            power_mw=self._ask(nvml, "nvmlDeviceGetPowerUsage", handle),
            limit_mw=self._ask(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle),
            temp=self._ask(nvml, "nvmlDeviceGetTemperature", handle, nvml.NVML_TEMPERATURE_GPU),
            procs=None if procs is None else [[proc.pid, proc.usedGpuMemory] for proc in procs],
        )

    def _memory(self, handle: Any) -> Any:
        # v2 tells used without what the driver reserves, as nvidia-smi shows it; drivers before 510 lack it.
        nvml = self._nvml
        version = getattr(nvml, "nvmlMemory_v2", None)
        memory = self._ask(nvml, "nvmlDeviceGetMemoryInfo", handle, version=version) if version else None
        return memory if memory is not None else self._ask(nvml, "nvmlDeviceGetMemoryInfo", handle)


def _text(answer: Any) -> Optional[str]:
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer


class Smi:
    """`nvidia-smi`, bounded: killed and left alone where it does not end in time."""

    def __init__(self, crumb: Crumb) -> None:
        self._crumb = crumb

    def sample(self) -> Sample:
        command = shutil.which("nvidia-smi")
        if command is None:
            raise SourceFailed("no nvidia-smi on the PATH")
        rows = self._query(command, f"--query-gpu={_SMI_FIELDS}")
        if not rows:
            raise SourceFailed("nvidia-smi lists no GPU")
        try:
            held = self._procs(command)
        except SourceFailed:
            held = None
        gpus = [_smi_gpu(row, held) for row in rows if len(row) >= 10]
        return {"source": "nvidia-smi", "why": "", "driver": rows[0][-1], "gpus": gpus}

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
            raise SourceFailed(f"nvidia-smi: {error.strerror}") from error
        try:
            out, _ = child.communicate(timeout=SMI_TIMEOUT_S)
        except subprocess.TimeoutExpired as late:
            _let_go(child)
            raise SourceFailed(f"nvidia-smi gave no answer in {SMI_TIMEOUT_S:g} s") from late
        lines = out.decode("utf-8", "replace").splitlines()
        if child.returncode != 0:
            first = next((line.strip() for line in lines if line.strip()), "")
            raise SourceFailed(f"nvidia-smi ended with {child.returncode}: {first[:200]}")
        return [[cell.strip() for cell in line.split(",")] for line in lines if line.strip()]


def _let_go(child: "subprocess.Popen[bytes]") -> None:
    """Kill it and wait a moment; one in state D is left behind, since it would take us along."""
    child.kill()
    if child.stdout is not None:
        child.stdout.close()
    try:
        child.wait(0.5)
    except subprocess.TimeoutExpired:
        pass


def _smi_gpu(row: List[str], held: Any) -> Dict[str, Any]:
    watt, limit = _number(row[6]), _number(row[7])
    return _gpu(
        int(row[0]),
        uuid=row[1],
        name=row[2],
        used=_mib(row[3]),
        total=_mib(row[4]),
        util=_whole(row[5]),
        power_mw=None if watt is None else int(watt * 1000),
        limit_mw=None if limit is None else int(limit * 1000),
        temp=_whole(row[8]),
        procs=None if held is None else held.get(row[1], []),
    )


def _number(cell: str) -> Optional[float]:
    try:
        return float(cell)
    except ValueError:
        return None  # "[N/A]", "[Not Supported]", "ERR!"


def _whole(cell: str) -> Optional[int]:
    value = _number(cell)
    return None if value is None else int(value)


def _mib(cell: str) -> Optional[int]:
    value = _number(cell)
    return None if value is None else int(value) * 1024 * 1024


class Simulated:
    """A state file of simulated GPUs; console/demo/gpustate.py holds its format.

    Nobody rewrites the file after its writer was killed, so the reader drops dead processes and what they used.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def sample(self) -> Sample:
        try:
            with open(self._path, encoding="utf-8", errors="replace") as state:
                lines = state.read(1 << 20).splitlines()
        except OSError as error:
            return {"source": "simulated", "why": f"{self._path}: {error.strerror}", "driver": "", "gpus": []}
        driver, gpus, now = "", [], time.time()
        for line in lines:
            if line.startswith("driver "):
                driver = line[7:].strip()
            elif line.startswith("gpu "):
                try:
                    gpus.append(_simulated_gpu(line, now))
                except (ValueError, IndexError):
                    continue
        return {"source": "simulated", "why": "", "driver": driver, "gpus": gpus}


def _simulated_gpu(line: str, now: float) -> Dict[str, Any]:
    words = shlex.split(line)
    fields = dict(word.split("=", 1) for word in words[2:] if "=" in word)
    numbers = {key: _known(fields.get(key)) for key in ("total", "used", "util", "power_mw", "limit_mw", "temp")}
    living, dead, dead_bytes = [], 0, 0
    for entry in filter(None, fields.get("procs", "").split(",")):
        pid, used, start = (entry.split(":") + ["", ""])[:3]
        if _lives(int(pid), _known(start)):
            living.append([int(pid), _known(used)])
        else:
            dead, dead_bytes = dead + 1, dead_bytes + (_known(used) or 0)
    if numbers["used"] is not None and now >= float(fields.get("held_until", 0)):
        numbers["used"] = max(0, numbers["used"] - dead_bytes)
    if dead and not living:  # nobody works here any more, whatever the last writer saw
        for key, most in (("util", 0), ("power_mw", _IDLE_POWER_MW)):
            value = numbers[key]
            numbers[key] = None if value is None else min(value, most)
    return _gpu(int(words[1]), uuid=fields.get("uuid"), name=fields.get("name"), procs=living, **numbers)


def _known(text: Optional[str]) -> Optional[int]:
    return int(text) if text and text != "?" else None


def _lives(pid: int, start: Optional[int]) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return fields[0] not in (b"Z", b"X") and (start is None or int(fields[19]) == start)
