"""Whose memory a sample shows, by processes that are there, and some of them newer than the last look at them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from console.host import gpuowners, tree

_PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
child.wait()
"""


@pytest.fixture
def family() -> Iterator[tuple[int, int]]:
    """A process and its child."""
    with subprocess.Popen([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            yield parent.pid, child
        finally:
            subprocess.run(["kill", str(child)], check=False)
            parent.wait(60)


@pytest.fixture
def stranger() -> Iterator[int]:
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def sample(bt: float, *pids: int) -> dict[str, object]:
    gpus = [{"i": i, "used": 70 << 30, "procs": [[pid, 70 << 30]]} for i, pid in enumerate(pids)]
    return {"source": "simulated", "bt": bt, "gpus": gpus}


def test_a_process_that_the_run_started_after_the_last_look_is_nobody_elses(
    family: tuple[int, int], stranger: int
) -> None:
    parent, child = family
    look = tree.Look([], None, {parent}, set())
    owners = gpuowners.GpuOwners()

    told = [owners.event(sample(bt, child, stranger), look, None) for bt in (1.0, 2.0)]

    for event in told:
        ours, other = event["gpus"]
        assert (ours["owner"], ours["context"], "others" in ours) == ("run", True, False)
        assert (other["owner"], [each["pid"] for each in other["others"]]) == ("other", [stranger])
