"""The run: a context on the first GPU, a GiB of its memory, and a line for each step until it is killed.

With `--stand-in STATE` it holds /dev/nvidia-uvm open and says so in the NVML test library's state file instead of
calling CUDA. Needs the standard library only, as a trainer has it.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import time
from pathlib import Path

SIZE_BYTES = 1 << 30
STEPS = 100_000
_CONTEXT_BYTES = 520 << 20


class Cuda:
    """As much of the driver's API as this takes; a call that fails ends the process with its name and code."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._pointer = ctypes.c_uint64()
        self._ask("cuInit", ctypes.c_uint(0))

    def hold(self, size_bytes: int) -> None:
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._ask("cuDeviceGet", ctypes.byref(device), ctypes.c_int(0))
        self._ask("cuCtxCreate_v2", ctypes.byref(context), ctypes.c_uint(0), device)
        self._ask("cuMemAlloc_v2", ctypes.byref(self._pointer), ctypes.c_size_t(size_bytes))

    def work(self, value: int) -> None:
        """Write all of the memory once, which is what the GPU is seen doing."""
        self._ask("cuMemsetD8_v2", self._pointer, ctypes.c_ubyte(value % 256), ctypes.c_size_t(SIZE_BYTES))
        self._ask("cuCtxSynchronize")

    def _ask(self, call: str, *arguments: object) -> None:
        code = getattr(self._library, call)(*arguments)
        if code:
            sys.exit(f"{call} failed with {code}")


class StandIn:
    """What a driver would show of such a process, in the state file's words."""

    def __init__(self, state: Path) -> None:
        self._state = state

    def hold(self, size_bytes: int) -> None:
        self._uvm = os.open("/dev/nvidia-uvm", os.O_RDONLY)
        used = size_bytes + _CONTEXT_BYTES
        driver, *lines = self._state.read_text().splitlines()
        fields = lines[0].split(" ")
        before = next(int(field[5:]) for field in fields if field.startswith("used="))
        changed = {"used": before + used, "util": 97, "procs": f"{os.getpid()}:{used}"}
        kept = [field for field in fields if field.partition("=")[0] not in changed]
        mine = " ".join([*kept, *(f"{key}={value}" for key, value in changed.items())])
        new = self._state.with_suffix(".new")
        new.write_text("\n".join([driver, mine, *lines[1:]]) + "\n")
        new.rename(self._state)

    def work(self, value: int) -> None:
        """There is nothing to do."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stand-in", type=Path)
    state: Path | None = parser.parse_args().stand_in
    gpu = Cuda() if state is None else StandIn(state)
    gpu.hold(SIZE_BYTES)
    print(f"holds {SIZE_BYTES} bytes", flush=True)
    for step in range(1, STEPS):
        gpu.work(step)
        print(f"[{time.strftime('%H:%M:%S')}] step {step}/{STEPS} | loss {4 - step / STEPS:.4f}", flush=True)
        time.sleep(0.25)


if __name__ == "__main__":
    main()
