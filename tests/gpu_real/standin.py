"""A machine with one GPU that isn't there: the NVML test library, an `nvidia-smi`, and a /dev/nvidia-uvm of our own.

The device file exists in a mount namespace of the commands that `inside` wraps, nowhere else: other processes of this
machine must not take it for a driver's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.nvml.build import build, compiler

_DEVICES = """
mount --rbind /dev "$1"
mount -t tmpfs -o mode=755 tmpfs /dev
for each in "$1"/*; do ln -s "$each" /dev/; done
: > /dev/nvidia-uvm
shift
exec "$@"
"""
_SMI = """#!/bin/sh
sed -n 's/^gpu \\([0-9]*\\) .*used=\\([0-9]*\\).*/\\1 \\2/p' "$FAKE_NVML_STATE" | while read -r index used; do
    pid=$(sed -n "s/^gpu $index .*procs=\\([0-9]*\\).*/\\1/p" "$FAKE_NVML_STATE")
    [ -z "$pid" ] || [ -d "/proc/$pid" ] || used=$IDLE_BYTES
    echo "$index, $((used / 1048576))"
done
"""
IDLE_BYTES = 600 << 20
_LINE = (
    f'gpu 0 uuid=GPU-sim-0 name="NVIDIA H200" total={140 << 30} used={IDLE_BYTES} util=0 memutil=0 power_mw=77000 '
    "limit_mw=700000 temp=34 sm_mhz=345 mem_mhz=2619 procs="
)


def why_not() -> str | None:
    """Return what this machine lacks for it, or None."""
    if compiler() is None:
        return "no C compiler (gcc)"
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "a mount namespace needs root and unshare"
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False, timeout=20).returncode:
        return "this machine allows no mount namespace"
    return None


class Machine:
    """Its files in `folder`: `state` is what the library answers from."""

    def __init__(self, folder: Path) -> None:
        self._dev, self._programs = folder / "dev", folder / "bin"
        self.state = folder / "state"
        self._library = build(folder / "nvml")
        for each in (self._dev, self._programs):
            each.mkdir()
        smi = self._programs / "nvidia-smi"
        smi.write_text(_SMI)
        smi.chmod(0o755)
        self.state.write_text(f"driver 550.90.07\n{_LINE}\n")

    @property
    def env(self) -> Mapping[str, str]:
        return {
            "LD_LIBRARY_PATH": str(self._library.parent),
            "FAKE_NVML_STATE": str(self.state),
            "IDLE_BYTES": str(IDLE_BYTES),
            "PATH": f"{self._programs}:{os.environ['PATH']}",
        }

    def inside(self, command: Sequence[str]) -> list[str]:
        """Return the command that runs `command` where the device file is."""
        return ["unshare", "-m", "sh", "-ec", _DEVICES, "sh", str(self._dev), *command]
