"""Work in a child of the agent: its answer, its end, and that it never outlives whoever asked."""

import os
import subprocess
import sys
import time

from console.host import background, procfs
from tests.host.keeperlab import REPOSITORY
from tests.waiting import until

_ASKS_AND_WAITS = """
import sys, time
sys.path.insert(0, sys.argv[1])
from console.host import background
job = background.Job(lambda: time.sleep(600), 600.0)
print(job._pid, flush=True)
time.sleep(600)
"""


def test_answer_and_failure_are_told() -> None:
    good = background.Job(lambda: {"pid": 7}, 10.0)
    bad = background.Job(lambda: [][1], 10.0)

    until(good.advance, 60)
    until(bad.advance, 60)

    assert (good.result, good.error) == ({"pid": 7}, "")
    assert bad.error.startswith("IndexError")


def test_what_takes_too_long_is_ended() -> None:
    job = background.Job(lambda: time.sleep(600), 0.05)
    pid = job._pid
    assert pid is not None

    until(job.advance, 60)

    assert job.error == "gave no answer in time"
    until(lambda: _reaped_and_gone(pid), 60)


def _reaped_and_gone(pid: int) -> bool:
    background.reap()
    return procfs.read_stat(pid) is None


def test_job_of_an_agent_that_was_killed_ends_with_it_and_lets_go_of_its_stderr() -> None:
    asker = subprocess.Popen(
        [sys.executable, "-c", _ASKS_AND_WAITS, str(REPOSITORY)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with asker:
        assert asker.stdout is not None
        assert asker.stderr is not None
        stderr = asker.stderr
        pid = int(asker.stdout.readline())

        asker.kill()

        os.set_blocking(stderr.fileno(), False)
        until(lambda: stderr.read() == b"", 60, "nobody holds it any more")  # None while somebody does
        until(lambda: procfs.is_gone(procfs.read_stat(pid)), 60)
