"""The driver's own library through pynvml, which came along with us: one sample of all GPUs, each field for itself.

What changes each second is asked each second, the rest now and then. A GPU that is lost keeps its row. Any call may
hang: this runs in a disposable child. Only gpusource.py and nvidiasmi.py import this module.
"""

from __future__ import annotations

import glob
import os
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

Sample = Dict[str, Any]
Crumb = Callable[[str], None]
Procs = Optional[List[List[Optional[int]]]]

LASTING_S = 10.0
"""What an administrator changes, if anybody, and the counters of broken memory are asked anew after this."""
PROCS_S = 5.0
"""Who is on a GPU is asked again when its memory's use is another to the byte, else after this: two calls of seven."""
# nvml.h: NVML_ERROR_GPU_IS_LOST, NVML_ERROR_RESET_REQUIRED.
_LOST, _NEEDS_RESET = 15, 16
_LOST_WORDS = {_LOST: "gone from the bus", _NEEDS_RESET: "needs a reset"}
_DRIVER_NOT_LOADED, _LIBRARY_NOT_FOUND, _MISMATCH, _NO_PERMISSION = 9, 12, 18, 4
_ALL_BITS = 0xFFFFFFFF
_KERNEL_MODULE = "/proc/driver/nvidia/version"
FIELDS = (
    *("uuid", "name", "bus", "used", "total", "reserved", "util", "power_mw", "limit_mw", "temp", "hot_at", "sm_mhz"),
    *("sm_max_mhz", "throttle", "ecc", "retired", "pending", "xid", "mig", "procs"),
)


class SourceFailed(Exception):
    """This source has no figures at all; the text says why."""


def gpu(index: int, **known: Any) -> Dict[str, Any]:
    """Return one GPU of a sample: bytes, percent, milliwatts, degrees Celsius, MHz; None where not told.

    `throttle` is NVML's mask of clock event reasons, `ecc` uncorrected errors since the driver was loaded, `retired`
    pages or rows taken out of use, `pending` whether more wait for a reset, `xid` the newest error that was reported
    while we looked, `mig` its instances (None: not divided).
    """
    return {"i": index, **dict.fromkeys(FIELDS), **known}


class Nvml:
    """Opened at the first sample and again after everything failed."""

    def __init__(self, crumb: Crumb) -> None:
        self._crumb = crumb
        self._nvml: Any = None
        self._handles: Dict[int, Any] = {}
        self._driver = ""
        self._closed: List[int] = []
        self._known: Dict[str, int] = {}
        """The index of each GPU that was ever seen, by UUID: one that is gone must not give its number to another."""
        self._identity: Dict[int, Dict[str, str]] = {}
        """What each GPU is: a card that is gone from the bus is to be found in the machine by it."""
        self._lost: Dict[int, str] = {}
        self._lasting: Dict[int, Dict[str, Any]] = {}
        self._lasting_at = float("-inf")
        self._xids: Dict[int, int] = {}
        self._listed: Dict[int, Tuple[int, float, Procs]] = {}
        """The processes of each GPU, and with what use of its memory and when they were asked for."""
        self._events: Any = None

    def sample(self) -> Sample:
        try:
            if self._nvml is None:
                self._open()
            if time.monotonic() - self._lasting_at >= LASTING_S:
                self._lasting, self._lasting_at = {}, time.monotonic()
            self._hear_errors()
            gpus = [self._one(index, handle) for index, handle in sorted(self._handles.items())]
        except ImportError as error:
            raise SourceFailed("pynvml: %s" % error) from error
        except self._errors() as error:
            self._nvml = None
            raise SourceFailed("NVML: %s" % in_words(error)) from error
        if not gpus:
            self._nvml = None
            raise SourceFailed("NVML lists no GPU%s" % _devices_in_words())
        if all(each["used"] is None and each["util"] is None for each in gpus):
            self._nvml = None  # a driver that was reloaded wants new handles
        why = "%d more may not be used from here" % len(self._closed) if self._closed else ""
        return {"source": "nvml", "why": why, "driver": self._driver, "gpus": gpus}

    def _errors(self) -> Any:
        try:
            import pynvml
        except ImportError:
            return OSError
        return (pynvml.NVMLError, OSError)

    # -- opening --

    def _open(self) -> None:
        import pynvml

        self._lasting, self._events, self._lost, self._listed = {}, None, {}, {}
        self._crumb("nvmlInit")
        pynvml.nvmlInit()
        self._driver = _text(self._ask(pynvml, "nvmlSystemGetDriverVersion")) or ""
        self._crumb("nvmlDeviceGetCount")
        count = pynvml.nvmlDeviceGetCount()
        self._handles, closed = {}, []
        for index in range(count):
            self._crumb("nvmlDeviceGetHandleByIndex")
            try:
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            except pynvml.NVMLError as error:
                if getattr(error, "value", None) == _NO_PERMISSION:
                    closed.append(index)  # of a card that others were given: the count holds all that are plugged in
                    continue
                handle = error
            self._handles[self._place(pynvml, index, handle)] = handle
        if closed and not self._handles:
            raise pynvml.NVMLError(_NO_PERMISSION)
        self._closed = closed
        for index in self._known.values():
            if index not in self._handles:
                self._handles[index] = pynvml.NVMLError(_LOST)
        self._nvml = pynvml
        self._listen()

    def _place(self, nvml: Any, index: int, handle: Any) -> int:
        """Return the index under which a GPU was seen first."""
        uuid = None if isinstance(handle, nvml.NVMLError) else _text(self._ask(nvml, "nvmlDeviceGetUUID", handle))
        if uuid is None:
            return index
        return self._known.setdefault(uuid, index if index not in self._handles else max(self._handles) + 1)

    def _listen(self) -> None:
        """Have the driver tell of Xids; where it does not, they are unknown."""
        nvml = self._nvml
        self._events = self._ask(nvml, "nvmlEventSetCreate")
        if self._events is None:
            return
        told = False
        for handle in self._handles.values():
            if not isinstance(handle, nvml.NVMLError):
                kinds = self._ask(nvml, "nvmlDeviceGetSupportedEventTypes", handle) or 0
                wanted = kinds & nvml.nvmlEventTypeXidCriticalError
                if wanted and self._says(nvml, "nvmlDeviceRegisterEvents", handle, wanted, self._events):
                    told = True
        if not told:
            self._ask(nvml, "nvmlEventSetFree", self._events)
            self._events = None

    def _hear_errors(self) -> None:
        nvml = self._nvml
        for _ in range(64):  # a GPU that dies reports dozens; the rest waits for the next sample
            event = self._ask(nvml, "nvmlEventSetWait_v2", self._events, 0) if self._events is not None else None
            if event is None:
                return
            uuid = _text(self._ask(nvml, "nvmlDeviceGetUUID", event.device))
            index = self._known.get(uuid or "")
            if index is not None:
                self._xids[index] = int(event.eventData)

    # -- asking --

    def _says(self, nvml: Any, call: str, *args: Any) -> bool:
        """Whether a call that answers nothing succeeds."""
        self._crumb(call)
        try:
            getattr(nvml, call)(*args)
        except (nvml.NVMLError, AttributeError, OSError):
            return False
        return True

    def _ask(self, nvml: Any, call: str, *args: Any, gpu_index: int = -1, **options: Any) -> Any:
        """Return what `call` answers, or None where it fails: one field less, not one sample less."""
        self._crumb(call)
        try:
            return getattr(nvml, call)(*args, **options)
        except nvml.NVMLError as error:
            if gpu_index >= 0 and getattr(error, "value", None) in _LOST_WORDS:
                self._lost[gpu_index] = _LOST_WORDS[error.value]
        except (AttributeError, OSError, UnicodeDecodeError):
            pass
        return None

    def _one(self, index: int, handle: Any) -> Dict[str, Any]:
        nvml = self._nvml
        if isinstance(handle, nvml.NVMLError):
            lost = _LOST_WORDS.get(getattr(handle, "value", None) or 0)
            warning = "" if lost else "NVML: %s" % handle
            return gpu(
                index, **self._identity.get(index, {}), lost=lost or "", warning=warning, xid=self._xids.get(index)
            )

        def ask(call: str, *args: Any, **options: Any) -> Any:
            return self._ask(nvml, call, handle, *args, gpu_index=index, **options)

        self._lost.pop(index, None)
        lasting = self._what_lasts(index, ask)
        memory = self._memory(ask)
        found = gpu(
            index,
            **lasting,
            used=getattr(memory, "used", None),
            total=getattr(memory, "total", None),
            reserved=getattr(memory, "reserved", None),
            util=getattr(ask("nvmlDeviceGetUtilizationRates"), "gpu", None),
            power_mw=_told(ask("nvmlDeviceGetPowerUsage")),
            temp=ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            sm_mhz=_told(ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM)),
            throttle=self._throttle(ask),
            procs=self._procs_at(handle, index, getattr(memory, "used", None), bool(lasting["mig"])),
            xid=self._xids.get(index),
        )
        if lasting["mig"]:
            found["mig"] = [self._instance(each) for each in lasting["mig"]]
        identity = {key: found[key] for key in ("uuid", "name", "bus")}
        if None not in identity.values():
            self._identity[index] = identity
        if index in self._lost:  # also what was told before it went is not so any more
            return gpu(index, **self._identity.get(index, {}), lost=self._lost[index], xid=found["xid"])
        return found

    def _what_lasts(self, index: int, ask: Callable[..., Any]) -> Dict[str, Any]:
        """Return what is asked now and then; names that were not told are asked for each time."""
        known = self._lasting.get(index)
        if known is not None and known["uuid"] is not None and known["name"] is not None:
            return known
        nvml = self._nvml
        retired, pending = self._broken_memory(ask)
        known = self._lasting[index] = {
            "uuid": _text(ask("nvmlDeviceGetUUID")),
            "name": _text(ask("nvmlDeviceGetName")),
            "bus": _text(getattr(ask("nvmlDeviceGetPciInfo"), "busId", None)),
            "limit_mw": _told(ask("nvmlDeviceGetEnforcedPowerLimit")),
            "hot_at": ask("nvmlDeviceGetTemperatureThreshold", nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
            "sm_max_mhz": _told(ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM)),
            "ecc": ask("nvmlDeviceGetTotalEccErrors", nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC),
            "retired": retired,
            "pending": pending,
            "mig": self._instances(ask),
        }
        return known

    def _broken_memory(self, ask: Callable[..., Any]) -> Any:
        """Return how much memory was taken out of use, and whether more waits: rows since Ampere, pages before it."""
        rows = ask("nvmlDeviceGetRemappedRows")
        if rows is not None:
            corrected, uncorrected, pending, _failed = rows
            return corrected + uncorrected, bool(pending)
        nvml = self._nvml
        causes = (
            nvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS,
            nvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR,
        )
        pages = [ask("nvmlDeviceGetRetiredPages", cause) for cause in causes]
        known = [len(each) for each in pages if each is not None]
        pending = ask("nvmlDeviceGetRetiredPagesPendingStatus")
        return (sum(known) if known else None), (None if pending is None else bool(pending))

    def _instances(self, ask: Callable[..., Any]) -> Optional[List[Dict[str, Any]]]:
        """Return the MIG instances with what lasts of them; None where the GPU is not divided."""
        nvml, mode = self._nvml, ask("nvmlDeviceGetMigMode")
        if mode is None or mode[0] != nvml.NVML_DEVICE_MIG_ENABLE:
            return None
        found = []
        for number in range(ask("nvmlDeviceGetMaxMigDeviceCount") or 0):
            handle = ask("nvmlDeviceGetMigDeviceHandleByIndex", number)
            if handle is not None:
                uuid, name = (
                    _text(self._ask(nvml, call, handle)) for call in ("nvmlDeviceGetUUID", "nvmlDeviceGetName")
                )
                found.append({"i": number, "uuid": uuid, "name": name, "_handle": handle})
        return found

    def _instance(self, known: Dict[str, Any]) -> Dict[str, Any]:
        nvml, handle = self._nvml, known["_handle"]
        memory = self._ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
        return {
            **{key: value for key, value in known.items() if key != "_handle"},
            "used": getattr(memory, "used", None),
            "total": getattr(memory, "total", None),
            "procs": self._procs(handle),
        }

    def _procs_at(self, handle: Any, index: int, used: Optional[int], is_divided: bool) -> Procs:
        """Return who is on a GPU, as of a few seconds ago where as much of its memory is used as then.

        A context takes hundreds of MiB and gives them back; in a run that steps nothing moves.
        """
        level, asked_at, procs = self._listed.get(index, (-1, 0.0, None))
        now = time.monotonic()
        if procs is None or is_divided or used != level or now - asked_at >= PROCS_S:
            procs = self._procs(handle, index)
            self._listed[index] = (-1 if used is None else used, now, procs)
        return procs

    def _procs(self, handle: Any, gpu_index: int = -1) -> Procs:
        # By name of the version: pynvml's own choice raises no NVMLError where a driver (before 510) lacks the third.
        for call in ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"):
            found = self._ask(self._nvml, call, handle, gpu_index=gpu_index)
            if found is not None:
                return [[each.pid, each.usedGpuMemory] for each in found]
        return None

    def _throttle(self, ask: Callable[..., Any]) -> Any:
        mask = ask("nvmlDeviceGetCurrentClocksEventReasons")  # as it is called since 535
        return mask if mask is not None else ask("nvmlDeviceGetCurrentClocksThrottleReasons")

    def _memory(self, ask: Callable[..., Any]) -> Any:
        # v2 tells used without what the driver reserves, as nvidia-smi shows it; drivers before 510 lack it.
        version = getattr(self._nvml, "nvmlMemory_v2", None)
        memory = ask("nvmlDeviceGetMemoryInfo", version=version) if version else None
        return memory if memory is not None else ask("nvmlDeviceGetMemoryInfo")


def _told(number: Optional[int]) -> Optional[int]:
    """Drop what drivers say for "not available" without an error: all bits of an unsigned int."""
    return None if number == _ALL_BITS else number


def _text(answer: Any) -> Optional[str]:
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer


# -- why there is nothing --


def in_words(error: Any) -> str:
    """Say what an error of NVML's start means here, with what the kernel shows beside it."""
    code = getattr(error, "value", None)
    if code == _MISMATCH:
        loaded = kernel_driver()
        words = "driver and library have different versions%s" % (": %s is loaded" % loaded if loaded else "")
        return words + "; reload the driver or restart the host"
    if code == _NO_PERMISSION:
        return "no permission to use the driver%s" % _devices_in_words()
    if code in (_DRIVER_NOT_LOADED, _LIBRARY_NOT_FOUND):
        what = "no library here (libnvidia-ml.so.1)" if code == _LIBRARY_NOT_FOUND else "the driver is not loaded"
        return what + _devices_in_words()
    return str(error)


def kernel_driver() -> str:
    """Return the version of the kernel module, which a container shares with its host; "" where none is loaded."""
    try:
        with open(_KERNEL_MODULE) as file:
            words = file.readline().split()
    except OSError:
        return ""
    return next((word for word in words if word[:1].isdigit() and "." in word), "")


def _devices_in_words() -> str:
    """Return what the device files say, as an addition to a sentence."""
    nodes = sorted(glob.glob("/dev/nvidia[0-9]*"))
    loaded = kernel_driver()
    if not nodes and loaded:
        return ", no /dev/nvidia0 in this container although driver %s is loaded" % loaded
    if not nodes:
        return ", no /dev/nvidia0"
    closed = [node for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    return ", %s may not be opened by uid %d" % (closed[0], os.geteuid()) if closed else ""
