"""From a process's death on the host to red on the screen, and to its last words there."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from console.engine import Engine
from tests.bench import lab as laboratory
from tests.bench.lab import Lab
from tests.bench.table import Row
from tests.waiting import until

_SAYS_AND_DIES = """
import os, sys, time, traceback
number, home = sys.argv[1:]
time.sleep(0.25)
try:
    raise RuntimeError(f"last words {number}")
except RuntimeError:
    traceback.print_exc()
sys.stderr.flush()
with open(os.path.join(home, "died.new"), "w") as file:
    file.write(str(time.monotonic()))
os.rename(file.name, os.path.join(home, f"died{number}"))
os._exit(1)
"""


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
            limit.append(pidfd_s())
    return [
        Row("process death -> red on the screen", seen, peer_name="kill -> pidfd readable", peer=limit, budget=0.15)
    ]


def error_to_screen(lab: Lab) -> list[Row]:
    """A traceback within 300 ms of the exec: until its last line is read on the screen."""
    seen = []
    for number in range(lab.sizes.repeats):
        words = (sys.executable, "-IS", "-c", _SAYS_AND_DIES, str(number), str(lab.folder))
        target = lab.changed(command=words, match=(), caches=())
        with lab.console(target) as screen:
            screen.wait_for("IDLE|FAILED", 0)
            last_words = screen.expect(f"last words {number}", screen.position)
            lab.ask(target, _press)
            read_at = screen.wait(last_words)
        died = Path(lab.folder) / f"died{number}"
        until(died.exists, what="the word of when it died, which it writes behind its last one")
        seen.append(read_at - float(died.read_text()))
    return [Row("death with a traceback -> its last line on the screen", seen, budget=0.15)]


async def _press(engine: Engine) -> None:
    await engine.execute(await engine.plan("restart"))


async def _pid(engine: object) -> int | None:
    return engine.snapshot.run.pid  # type: ignore[attr-defined,no-any-return]


def pidfd_s() -> float:
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
