"""The NVML test library as the real pynvml sees it, each time in a process of its own."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console.demo import gpustate, trainer
from tests.waiting import until

GIB = 1 << 30
LINE = (
    'gpu {index} uuid=GPU-sim-{index} name="NVIDIA H200" total=150121480192 used=3758096384 util=97 memutil=41 '
    "power_mw=612000 limit_mw=700000 temp=61 sm_mhz=1755 mem_mhz=2619 procs={procs}"
)

Ask = Callable[..., Any]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def ask(nvml_library: Path, state: Path) -> Ask:
    """Run lines with pynvml as `n`, initialised, and return what they leave in `answer`; `h` is the handle of `gpu`."""

    def run(lines: str, gpu: int | None = 0, init: bool = True, timeout_s: float = 20) -> Any:
        script = ["import json, pynvml as n", "def attempt(call, *args):", "  try: return call(*args)"]
        script += ["  except n.NVMLError as error: return type(error).__name__"]
        script += ["n.nvmlInit()"] if init else []
        script += [f"h = n.nvmlDeviceGetHandleByIndex({gpu})"] if init and gpu is not None else []
        script += [lines, "print(json.dumps(answer))"]
        environ = {**os.environ, "LD_LIBRARY_PATH": str(nvml_library.parent), "FAKE_NVML_STATE": str(state)}
        argv = [sys.executable, "-c", "\n".join(script)]
        return json.loads(subprocess.run(argv, env=environ, check=True, capture_output=True, timeout=timeout_s).stdout)

    return run


def write(state: Path, *lines: str) -> None:
    state.write_text("driver 550.90.07\n" + "\n".join(lines) + "\n")


def test_every_value_arrives_through_the_real_binding(ask: Ask, state: Path) -> None:
    me = os.getpid()
    write(state, LINE.format(index=0, procs=f"{me}:{3 * GIB}"), LINE.format(index=1, procs=""))

    answer = ask(
        "m, m2, u = n.nvmlDeviceGetMemoryInfo(h), n.nvmlDeviceGetMemoryInfo(h, n.nvmlMemory_v2), "
        "n.nvmlDeviceGetUtilizationRates(h)\n"
        "pci = n.nvmlDeviceGetPciInfo(h)\n"
        "answer = dict(driver=n.nvmlSystemGetDriverVersion(), nvml=n.nvmlSystemGetNVMLVersion(),"
        "count=n.nvmlDeviceGetCount(), uuid=n.nvmlDeviceGetUUID(h), index=n.nvmlDeviceGetIndex(h),"
        "by_uuid=n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID('GPU-sim-1')), name=n.nvmlDeviceGetName(h),"
        "by_bus=n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByPciBusId(pci.busId)),"
        "memory=[m.total, m.free, m.used], memory2=[m2.total, m2.reserved, m2.free, m2.used], util=[u.gpu, u.memory],"
        "power=n.nvmlDeviceGetPowerUsage(h), limit=n.nvmlDeviceGetEnforcedPowerLimit(h),"
        "temp=[n.nvmlDeviceGetTemperature(h, 0), n.nvmlDeviceGetTemperatureV(h, 0)],"
        "clocks=[n.nvmlDeviceGetClockInfo(h, kind) for kind in range(4)],"
        "most=[n.nvmlDeviceGetMaxClockInfo(h, kind) for kind in range(4)],"
        "reasons=[n.nvmlDeviceGetCurrentClocksEventReasons(h), n.nvmlDeviceGetCurrentClocksThrottleReasons(h)],"
        "procs=[[p.pid, p.usedGpuMemory] for p in n.nvmlDeviceGetComputeRunningProcesses(h)],"
        "graphics=n.nvmlDeviceGetGraphicsRunningProcesses(h), pci=[pci.busId, pci.busIdLegacy, pci.bus],"
        "ecc=n.nvmlDeviceGetTotalEccErrors(h, 1, 0), mig=attempt(n.nvmlDeviceGetMigMode, h),"
        "persistence=n.nvmlDeviceGetPersistenceMode(h), display=n.nvmlDeviceGetDisplayActive(h))"
    )

    assert answer == {
        "driver": "550.90.07",
        "nvml": "12.550.90.07",
        "count": 2,
        "uuid": "GPU-sim-0",
        "index": 0,
        "by_uuid": 1,
        "by_bus": 0,
        "name": "NVIDIA H200",
        "memory": [150121480192, 150121480192 - 3758096384, 3758096384],
        "memory2": [150121480192, 0, 150121480192 - 3758096384, 3758096384],
        "util": [97, 41],
        "power": 612000,
        "limit": 700000,
        "temp": [61, 61],
        "clocks": [1755, 1755, 2619, 1755],
        "most": [1980, 1980, 2619, 1980],
        "reasons": [0, 0],
        "procs": [[me, 3 * GIB]],
        "graphics": [],
        "pci": ["00000000:10:00.0", "0000:10:00.0", 16],
        "ecc": 0,
        "mig": "NVMLError_NotSupported",
        "persistence": 1,
        "display": 0,
    }


def test_many_processes_arrive_in_order(ask: Ask, state: Path) -> None:
    sleepers = [subprocess.Popen(["sleep", "60"]) for _ in range(12)]
    try:
        write(state, LINE.format(index=0, procs=",".join(f"{p.pid}:{i}" for i, p in enumerate(sleepers))))

        answer = ask("answer = [[p.pid, p.usedGpuMemory] for p in n.nvmlDeviceGetComputeRunningProcesses(h)]")
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()

    assert answer == [[sleeper.pid, i] for i, sleeper in enumerate(sleepers)]


def test_it_reads_the_file_as_the_reference_parser_does(ask: Ask, state: Path) -> None:
    dice = random.Random(5)
    dead = subprocess.Popen(["true"])
    dead.wait()
    me, start = os.getpid(), trainer.start_ticks(os.getpid())
    entries = [f"{me}:{GIB}", f"{me}:{GIB}:{start}", f"{me}:{GIB}:1", f"{dead.pid}:{2 * GIB}", f"{me}:?", str(me)]
    lines = []
    for index in range(24):
        procs = ",".join(dice.sample(entries, dice.randint(0, 4)))
        fields = [field for field in LINE.format(index=index, procs=procs).split(" ") if dice.random() < 0.9]
        fields += [f"held_until={time.time() + dice.choice([-5, 60]):.3f}"] if dice.random() < 0.5 else []
        line = " ".join(["gpu", str(index), *[f for f in fields if f not in ("gpu", str(index)) and '"' not in f]])
        lines.append(line.replace("temp=61", "temp=?") if dice.random() < 0.2 else line)
    write(state, *lines)

    answer = ask(
        "answer = []\n"
        "for i in range(n.nvmlDeviceGetCount()):\n"
        "  h = n.nvmlDeviceGetHandleByIndex(i)\n"
        "  memory = attempt(n.nvmlDeviceGetMemoryInfo, h)\n"
        "  util = attempt(n.nvmlDeviceGetUtilizationRates, h)\n"
        "  procs = [[p.pid, p.usedGpuMemory] for p in n.nvmlDeviceGetComputeRunningProcesses(h)]\n"
        "  answer.append([memory if isinstance(memory, str) else memory.used,"
        "    util if isinstance(util, str) else util.gpu, attempt(n.nvmlDeviceGetPowerUsage, h),"
        "    attempt(n.nvmlDeviceGetTemperature, h, 0), attempt(n.nvmlDeviceGetClockInfo, h, 1), procs])",
        gpu=None,
    )

    def said(value: int | None) -> int | str:
        return "NVMLError_NotSupported" if value is None else value

    assert answer == [
        [
            said(None if gpu["total"] is None else gpu["used"]),
            said(gpu["util"]),
            said(gpu["power_mw"]),
            said(gpu["temp"]),
            said(gpu["sm_mhz"]),
            [list(proc) for proc in gpu["procs"]],
        ]
        for gpu in gpustate.parse(state.read_text())
    ]


def test_a_missing_file_is_a_driver_that_is_not_loaded(ask: Ask) -> None:
    assert ask("answer = attempt(n.nvmlInit)", init=False) == "NVMLError_DriverNotLoaded"


def test_calls_before_the_start_and_after_the_end_are_refused(ask: Ask, state: Path) -> None:
    write(state, LINE.format(index=0, procs=""))

    answer = ask(
        "n._LoadNvmlLibrary()\nbefore = attempt(n.nvmlDeviceGetCount)\nn.nvmlInit()\nduring = n.nvmlDeviceGetCount()\n"
        "n.nvmlShutdown()\nanswer = [before, during, attempt(n.nvmlDeviceGetCount), attempt(n.nvmlShutdown)]",
        init=False,
    )

    assert answer == ["NVMLError_Uninitialized", 1, "NVMLError_Uninitialized", "NVMLError_Uninitialized"]


def test_gpus_that_do_not_exist_or_went_away_are_named(ask: Ask, state: Path) -> None:
    write(state, LINE.format(index=0, procs=""))

    answer = ask(
        f"import pathlib\nfile = pathlib.Path({str(state)!r})\n"
        "wrong = attempt(n.nvmlDeviceGetHandleByIndex, 1)\nnone = attempt(n.nvmlDeviceGetHandleByUUID, 'x')\n"
        "file.write_text('driver 550.90.07\\n')\nlost = attempt(n.nvmlDeviceGetName, h)\n"
        "file.unlink()\nanswer = [wrong, none, lost, attempt(n.nvmlDeviceGetName, h)]"
    )

    assert answer == ["NVMLError_InvalidArgument", "NVMLError_NotFound", "NVMLError_GpuIsLost", "NVMLError_Unknown"]


def test_a_failure_can_be_injected_for_one_call_on_one_gpu(ask: Ask, state: Path) -> None:
    write(
        state,
        *(LINE.format(index=index, procs="") for index in range(2)),
        "fail nvmlDeviceGetPowerUsage=15 gpu=1",
        "fail nvmlDeviceGetTemperature=3",
    )

    answer = ask(
        "handles = [n.nvmlDeviceGetHandleByIndex(i) for i in range(2)]\n"
        "answer = [[attempt(n.nvmlDeviceGetPowerUsage, h), attempt(n.nvmlDeviceGetTemperature, h, 0),"
        " n.nvmlDeviceGetTemperatureV(h, 0)] for h in handles]"
    )

    assert answer == [[612000, "NVMLError_NotSupported", 61], ["NVMLError_GpuIsLost", "NVMLError_NotSupported", 61]]


def test_the_start_can_fail(ask: Ask, state: Path) -> None:
    write(state, "fail nvmlInitWithFlags=18")

    assert ask("answer = attempt(n.nvmlInit)", init=False) == "NVMLError_LibRmVersionMismatch"


def test_a_call_can_hang_while_others_answer(ask: Ask, state: Path) -> None:
    write(state, LINE.format(index=0, procs=""), "hang nvmlDeviceGetUtilizationRates")

    assert ask("answer = n.nvmlDeviceGetPowerUsage(h)") == 612000
    with pytest.raises(subprocess.TimeoutExpired):
        ask("answer = str(n.nvmlDeviceGetUtilizationRates(h))", timeout_s=2)


def test_a_simulated_run_is_seen_from_its_first_context_to_its_end(ask: Ask, state: Path, tmp_path: Path) -> None:
    count = (
        "answer = [len(n.nvmlDeviceGetComputeRunningProcesses(n.nvmlDeviceGetHandleByIndex(i)))"
        " for i in range(n.nvmlDeviceGetCount())], n.nvmlDeviceGetMemoryInfo(h).used"
    )
    argv = [sys.executable, trainer.__file__, "--speed", "50", "--gpu-state", str(state), "--open-uvm", ""]
    with (tmp_path / "log").open("wb") as log:
        run = subprocess.Popen(argv, stdout=log, stdin=subprocess.DEVNULL)
    try:
        until(lambda: state.exists() and " util=9" in state.read_text(), 60)
        stepping = ask(count)
    finally:
        run.kill()
        run.wait()
    until(lambda: not any(gpu["procs"] for gpu in gpustate.parse(state.read_text())), 60)
    killed = ask(count)

    assert stepping[0] == [1] * 8
    assert stepping[1] > 70 * GIB
    assert killed == [[0] * 8, GIB // 2]


def test_utilization_is_shared_evenly_by_the_processes_of_a_gpu(ask: Ask, state: Path) -> None:
    me, parent = os.getpid(), os.getppid()
    write(state, LINE.format(index=0, procs=f"{me}:1,{parent}:2"), LINE.format(index=1, procs=""))

    answer = ask(
        "idle = attempt(n.nvmlDeviceGetProcessUtilization, n.nvmlDeviceGetHandleByIndex(1), 0)\n"
        "answer = [[u.pid, u.smUtil, u.memUtil] for u in n.nvmlDeviceGetProcessUtilization(h, 0)], idle,"
        " n.nvmlDeviceGetPcieThroughput(h, 0)"
    )

    assert answer == [[[me, 48, 20], [parent, 48, 20]], "NVMLError_NotFound", 0]
