"""From a death in a container to red on the screen, by the way that operators go: sshd, `pct exec`, lxc-attach."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from tests.bench import lab as laboratory
from tests.bench.deaths import pidfd_s
from tests.bench.lab import Lab, program
from tests.bench.table import Row
from tests.bench.terminal import Terminal
from tests.lab.commands import argv_of
from tests.lab.requirements import why_no_lab
from tests.lab.rootfs import Flavour
from tests.lab.session import Lab as Containers
from tests.lab.training import Training

_TRAINER = Path(__file__).parent / "bench_trainer.py"
_WHAT = "process death -> red on the screen, through `pct exec`"
_GPUS = "/root/bench-gpus"


def death_in_a_container(lab: Lab) -> list[Row]:
    why_not = why_no_lab()
    if why_not:
        return [Row(_WHAT, [], budget=0.15, why_not=why_not)]
    containers = Containers()
    try:
        return [_death(lab, containers)]
    finally:
        containers.close()


def _death(lab: Lab, containers: Containers) -> Row:
    container = containers.container(Flavour.PLAIN)
    name = f"bench_trainer_{os.getpid()}.py"  # no other's on this machine: it is killed from outside, by its name
    container.copy_in(_TRAINER, f"/root/{name}")
    training = Training(containers, container, lab.folder, Path())
    config = training.config(
        command=["/usr/bin/python3", "-I", f"/root/{name}", "--gpu-state", _GPUS],
        match=[name],
        caches=[],
        gpus={"expected": 8, "simulated": _GPUS},
    )
    training.restart(config=config)
    seen, limit = [], []
    with Terminal(program("--config", str(config)), env=lab.surroundings) as screen:
        for count in range(lab.sizes.repeats):
            before = screen.position if count else 0
            if count:
                training.restart(config=config)
            screen.wait_for("STEPPING", before)
            (pid,) = _pids_here(name)
            red = screen.expect(laboratory.RED, screen.position)
            began = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            seen.append(screen.wait(red) - began)
            limit.append(pidfd_s())
    return Row(_WHAT, seen, peer_name="kill -> pidfd readable", peer=limit, budget=0.15)


def _pids_here(name: str) -> list[int]:
    """Return the pids, as this machine counts them, of the trainer inside."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return [pid for pid in pids if f"/root/{name}" in argv_of(pid)[:4]]
