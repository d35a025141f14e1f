"""What other GPU monitors read from the NVML test library, each through its own code: so much of it is a driver's.

nvitop and gpustat are no dependencies: where they are not installed their test is skipped.
"""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from console.demo import gpustate

GIB, MIB = 1 << 30, 1 << 20
GPUS = 8
NVITOP = """
import json
from nvitop import Device

def told(device):
    with device.oneshot():
        device.as_snapshot()
        procs = {each.pid: each.gpu_memory() for each in device.processes().values()}
        return {
            "i": device.index, "uuid": device.uuid(), "name": device.name(), "used": device.memory_used(),
            "total": device.memory_total(), "util": device.gpu_utilization(), "power_mw": device.power_usage(),
            "limit_mw": device.power_limit(), "temp": device.temperature(), "procs": sorted(procs.items()),
        }

print(json.dumps([told(device) for device in Device.all()]))
"""
GPUSTAT = """
import json, gpustat
print(json.dumps(gpustat.new_query().jsonify()["gpus"], default=str))
"""
Run = Callable[..., tuple[list[dict[str, Any]], str]]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def holders() -> Iterator[list[int]]:
    sleepers = [subprocess.Popen(["sleep", "120"]) for _ in range(3)]
    yield [each.pid for each in sleepers]
    for each in sleepers:
        each.kill()
        each.wait()


@pytest.fixture
def run(nvml_library: Path, state: Path) -> Run:
    def ask(tool: str, script: str) -> tuple[list[dict[str, Any]], str]:
        if importlib.util.find_spec(tool) is None:
            pytest.skip(f"{tool} is not installed")
        env = {**os.environ, "LD_LIBRARY_PATH": str(nvml_library.parent), "FAKE_NVML_STATE": str(state)}
        argv = [sys.executable, "-c", script]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        answer: list[dict[str, Any]] = json.loads(done.stdout)
        return answer, done.stderr

    return ask


def write(state: Path, holders: list[int]) -> list[Any]:
    """Write eight GPUs, no two alike, and return what the state's reference parser makes of them."""
    lines = ["driver 550.90.07"]
    for index in range(GPUS):
        procs = ",".join(f"{pid}:{(3 + index) * GIB + n * MIB}" for n, pid in enumerate(holders[: index % 4]))
        lines.append(
            f'gpu {index} uuid=GPU-sim-{index} name="NVIDIA H200" total={140 * GIB} used={(20 + index) * GIB + MIB} '
            f"util={90 + index} memutil={40 + index} power_mw={600_000 + 1000 * index} limit_mw=700000 "
            f"temp={50 + index} sm_mhz=1755 mem_mhz=2619 procs={procs}"
        )
    state.write_text("\n".join(lines) + "\n")
    return gpustate.parse(state.read_text())


def test_nvitop_reads_what_the_state_says(run: Run, state: Path, holders: list[int]) -> None:
    wanted = write(state, holders)

    told, complaints = run("nvitop", NVITOP)

    alike = ("uuid", "used", "total", "util", "power_mw", "limit_mw", "temp")
    assert [[each[key] for key in alike] for each in told] == [[each[key] for key in alike] for each in wanted]
    assert [each["procs"] for each in told] == [sorted([p, used] for p, used in each["procs"]) for each in wanted]
    assert [len(each["procs"]) for each in told] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert "undefined symbol" not in complaints, "a call that a driver has and the library lacks"


def test_gpustat_reads_what_the_state_says(run: Run, state: Path, holders: list[int]) -> None:
    wanted = write(state, holders)

    told, complaints = run("gpustat", GPUSTAT)

    assert [
        [
            each["uuid"],
            each["memory.used"],
            each["memory.total"],
            each["utilization.gpu"],
            each["power.draw"],
            each["enforced.power.limit"],
            each["temperature.gpu"],
            sorted([proc["pid"], proc["gpu_memory_usage"]] for proc in each["processes"]),
        ]
        for each in told
    ] == [
        [
            each["uuid"],
            each["used"] // MIB,
            each["total"] // MIB,
            each["util"],
            each["power_mw"] // 1000,
            each["limit_mw"] // 1000,
            each["temp"],
            sorted([pid, used // MIB] for pid, used in each["procs"]),
        ]
        for each in wanted
    ]
    assert "undefined symbol" not in complaints, "a call that a driver has and the library lacks"
