"""From a process's death on the host to red on the screen."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time

from tests.bench import lab as laboratory
from tests.bench.lab import Lab
from tests.bench.table import Row


def death_to_red(lab: Lab) -> list[Row]:
    target = lab.writing()
    lab.start(target)
    seen, limit = [], []
    with lab.console(target) as screen:
        for count in range(lab.sizes.repeats):
            before = screen.position if count else 0
            started = lab.start(target) if count else None
            screen.wait_for("STEPPING", before)
            pid = started.run.pid if started is not None else lab.ask(target, _pid)
            assert pid is not None
            red = screen.expect(laboratory.RED, screen.position)
            began = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            seen.append(screen.wait(red) - began)
            limit.append(_pidfd_s())
    return [
        Row("process death -> red on the screen", seen, peer_name="kill -> pidfd readable", peer=limit, budget=0.15)
    ]


async def _pid(engine: object) -> int | None:
    return engine.snapshot.run.pid  # type: ignore[attr-defined,no-any-return]


def _pidfd_s() -> float:
    """The physical limit: from kill to a pidfd that says so."""
    child = subprocess.Popen(["sleep", "60"])
    pidfd = os.pidfd_open(child.pid)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    began = time.monotonic()
    child.kill()
    poll.poll(5000)
    took_s = time.monotonic() - began
    os.close(pidfd)
    child.wait()
    return took_s
