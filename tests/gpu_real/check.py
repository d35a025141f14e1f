"""Take the CUDA process through the stages with the command line, as an operator would, and say what was seen.

The target is local, its files in a new folder; what runs is ended before this returns.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from console import configwriter
from console.config import Deadlines, Gpus, Stop, Target
from console.engine.tape import load
from tests.gpu_real import cudaload
from tests.headless.running import Done, call

NAME = "gpu"
STAGES = ("killing", "cache", "spawned", "cuda", "stepping")
_WAIT_S = 30.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu_real.check", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stand-in", type=Path, metavar="STATE")
    options = parser.parse_args()
    folder: Path = options.folder.absolute()
    for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
        os.environ[f"XDG_{kind}_HOME"] = str(folder / kind.lower())
    print(json.dumps(seen(_Session(folder, options.stand_in))))
    return 0


def seen(session: _Session) -> dict[str, Any]:
    """Start, look, kill, look again; return what the console and nvidia-smi said of each."""
    idle = nvidia_smi()
    with session.run() as started:
        told = session("status", "--json")
        gpu = next((each for each in told["gpus"] if each["context"]), None) or {}
        shown = nvidia_smi()
    index = gpu.get("index")
    free = _settled(index, idle)
    stopped, after = session.stopped, session("status", "--json")
    tape_file = session.folder / "run.json"
    session("replay", started["run"], "--export", str(tape_file), "--json")
    tape = load(tape_file)
    samples = [each for each in tape.records if each.k == "gpu"]
    held = [row[1] for each in samples for row in each.gpus if row[0] == index and index in each.held]
    return {
        "stages": {each["stage"]: each["state"] for each in started["stages"]},
        "source": told["gpu_source"],
        "rule": tape.run.cuda.rule if tape.run.cuda else None,
        "gpu": {key: gpu.get(key) for key in ("index", "name", "owner", "used_bytes", "peak_bytes", "util_pct")},
        "smi_bytes": {"before": idle.get(index), "running": shown.get(index), "after": free},
        "killing": next((each for each in stopped["stages"] if each["stage"] == "killing"), None),
        "after": after["verdict"],
        "recorder": {
            "samples": len(samples),
            "held": len(held),
            "most_bytes": max(filter(None, held), default=None),
            "peak_bytes": tape.run.gpu_peak.get(str(index)),
            "exit_signal": tape.run.exit.signal if tape.run.exit else None,
        },
    }


def nvidia_smi() -> dict[int | None, int]:
    """Return bytes in use by GPU, as `nvidia-smi` tells them."""
    query = ["nvidia-smi", "--query-gpu=index,memory.used", "--format=csv,noheader,nounits"]
    answer = subprocess.run(query, capture_output=True, text=True, check=True, timeout=60).stdout
    rows = [line.split(",") for line in answer.splitlines()]
    return {int(index): int(used) << 20 for index, used in rows}


def _settled(index: int | None, idle: dict[int | None, int]) -> int | None:
    """Return what the GPU uses once that is near the level before, or what it uses after half a minute."""
    deadline = time.monotonic() + _WAIT_S
    while True:
        used = nvidia_smi().get(index)
        if used is None or used < idle[index] + cudaload.SIZE_BYTES // 2 or time.monotonic() > deadline:
            return used
        time.sleep(0.5)


class _Session:
    """A local target in a folder of its own."""

    def __init__(self, folder: Path, stand_in: Path | None) -> None:
        self.folder, work = folder, folder / "work"
        work.mkdir(parents=True)
        trainer = work / "train_cudaload.py"
        shutil.copy(cudaload.__file__, trainer)
        script = work / "run.sh"
        options = f"--stand-in {stand_in}" if stand_in is not None else ""
        script.write_text(f"#!/bin/sh\nexec {sys.executable} -u {trainer} {options}\n")
        script.chmod(0o755)
        target = Target(
            host="local",
            python=sys.executable,
            state_dir=str(folder / "host"),
            command=(str(script),),
            cwd=str(work),
            env={"CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
            name="cuda{n}",
            log=f"{work}/{{name}}.log",
            match=(str(trainer),),
            stop=Stop(grace_s=5.0),
            gpus=Gpus(expected=1),
            deadlines=Deadlines(cuda=60.0, stepping=60.0),
        )
        self._config = folder / "config.toml"
        self._config.write_text(configwriter.render_whole(NAME, target))
        self.stopped: dict[str, Any] = {}

    def __call__(self, command: str, *words: str) -> dict[str, Any]:
        return self._told(self._call(command, *words))

    @contextmanager
    def run(self) -> Iterator[dict[str, Any]]:
        """Start the run and yield the answer; stop it in any case."""
        try:
            yield self._told(self._call("restart", "--yes", "--json", "--timeout", "180s"))
        finally:
            stopped = self._call("stop", "--yes", "--json", "--timeout", "90s")
        self.stopped = self._told(stopped)

    def _call(self, command: str, *words: str) -> Done:
        return call(command, "--config", str(self._config), *words)

    def _told(self, done: Done) -> dict[str, Any]:
        if done.code != 0:
            raise SystemExit(f"exit code {done.code}\n{done.out}\n{done.err}")
        return done.json


if __name__ == "__main__":
    sys.exit(main())
