"""What the console and nvidia-smi say of a CUDA process must be the same, from its first context to its end.

With an NVIDIA GPU nothing is replaced. Where there is none, the same way is taken with a stand-in for driver and
`nvidia-smi`, which says nothing about CUDA, and everything about the rest of the way.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.gpu_real import standin
from tests.gpu_real.check import STAGES
from tests.gpu_real.cudaload import SIZE_BYTES

CHECK = [sys.executable, "-m", "tests.gpu_real.check"]
_ASK_CUDA = "import ctypes, sys; sys.exit(ctypes.CDLL('libcuda.so.1').cuInit(0))"


def why_no_gpu() -> str | None:
    """Return what is missing here, or None."""
    if shutil.which("nvidia-smi") is None:
        return "no nvidia-smi"
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no libcuda.so.1"
    if subprocess.run([sys.executable, "-c", _ASK_CUDA], capture_output=True, check=False, timeout=60).returncode:
        return "CUDA finds no GPU"
    return None


def test_a_cuda_process_is_seen_from_its_context_to_its_end(tmp_path: Path) -> None:
    why = why_no_gpu()
    if why is not None:
        pytest.skip(f"needs an NVIDIA GPU: {why}")

    _holds(_seen([*CHECK, str(tmp_path / "real")], {}))


def test_the_same_way_is_taken_with_a_stand_in(tmp_path: Path) -> None:
    why = standin.why_not()
    if why is not None:
        pytest.skip(f"no stand-in for a GPU: {why}")
    machine = standin.Machine(tmp_path)

    seen = _seen(machine.inside([*CHECK, str(tmp_path / "it"), "--stand-in", str(machine.state)]), machine.env)

    _holds(seen)
    assert seen["rule"] == "nvml pid in tree"
    assert seen["smi_bytes"]["after"] == standin.IDLE_BYTES


def _seen(command: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _holds(seen: dict[str, Any]) -> None:
    assert seen["stages"] == {name: "skipped" if name in ("killing", "cache") else "done" for name in STAGES}
    assert seen["source"] in ("nvml", "nvidia-smi")
    gpu, smi, recorder = seen["gpu"], seen["smi_bytes"], seen["recorder"]
    assert gpu["owner"] == "run"
    assert gpu["used_bytes"] == pytest.approx(smi["running"], rel=0.02)
    assert smi["running"] - smi["before"] >= SIZE_BYTES
    assert smi["running"] - smi["after"] >= SIZE_BYTES, "the kill gave its memory back"
    assert seen["killing"]["state"] == "done"
    assert "freed" in seen["killing"]["evidence"]
    assert seen["after"] == "stopped"
    assert recorder["held"] > 0
    assert recorder["most_bytes"] == pytest.approx(smi["running"], rel=0.02)
    assert recorder["peak_bytes"] == pytest.approx(smi["running"], rel=0.02)
    assert recorder["exit_signal"] == 15
