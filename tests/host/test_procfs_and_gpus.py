"""Reading /proc, the wait for GPU memory, OOM evidence and the login shell's environment."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from console.host import gpuwatch, oom, procfs
from tests.host.keeperlab import Lab
from tests.waiting import until

GIB = 1 << 30


def sample(
    *used_gib: float, procs: dict[int, list[tuple[int, int | None]]] | None = None, bt: float = 0
) -> dict[str, Any]:
    gpus = [
        {"i": index, "used": int(amount * GIB), "procs": None if procs is None else procs.get(index, [])}
        for index, amount in enumerate(used_gib)
    ]
    return {"bt": bt, "source": "nvml", "why": "", "gpus": gpus}


def test_process_is_read_whatever_its_name(lab: Lab) -> None:
    code = (
        "import ctypes, time; ctypes.CDLL(None).prctl(15, b') R 1 (\\n x'); print('ready', flush=True); time.sleep(600)"
    )
    process = lab.start(sys.executable, "-c", code, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()

    stat = procfs.read_stat(process.pid)

    assert stat is not None
    assert (stat.comm, stat.ppid, stat.pgrp) == (") R 1 (\n x", os.getpid(), process.pid)
    assert 0 <= procfs.age_s(stat) < 30
    assert procfs.argv(process.pid)[1] == "-c"


@pytest.mark.parametrize(("flags", "is_kernel"), [(69238880, True), (2129984, True), (4194560, False)])
def test_threads_of_the_kernel_are_told_from_processes(
    monkeypatch: pytest.MonkeyPatch, flags: int, is_kernel: bool
) -> None:
    line = b"8 (kworker/R-netns) I 2 0 0 0 -1 %d 0 0 0 0 0 0 0 0 0 -20 1 0 25 0 0 18446744073709551615 0 0 0\n" % flags
    monkeypatch.setattr(procfs, "_content", lambda path, at_once: line)

    stat = procfs.read_stat(8)

    assert stat is not None
    assert (stat.comm, stat.start, stat.is_kernel) == ("kworker/R-netns", 25, is_kernel)


def test_zombie_is_dead_and_another_start_is_another_process(lab: Lab) -> None:
    process = lab.start("sleep", "600")
    start = procfs.read_stat(process.pid).start  # type: ignore[union-attr]
    assert procfs.is_alive(process.pid, start)
    assert not procfs.is_alive(process.pid, start + 1)
    assert procfs.pidfd_of(process.pid, start + 1) is None

    os.kill(process.pid, signal.SIGKILL)
    until(lambda: (procfs.read_stat(process.pid) or procfs.read_stat(1)).state == "Z")  # type: ignore[union-attr]

    assert not procfs.is_alive(process.pid, start)


def test_leader_that_left_its_threads_behind_is_not_gone(lab: Lab) -> None:
    code = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "ctypes.CDLL(None).syscall(60 if __import__('platform').machine() == 'x86_64' else 93, 0)"
    )
    process = lab.start(sys.executable, "-c", code)

    stat = until(lambda: next(filter(lambda s: s and s.state == "Z", [procfs.read_stat(process.pid)]), None))

    assert not procfs.is_gone(stat)


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="no /dev")
def test_signals_through_a_pidfd_reach_the_process(lab: Lab) -> None:
    process = lab.start("sleep", "600")
    pidfd = procfs.pidfd_of(process.pid, procfs.read_stat(process.pid).start)  # type: ignore[union-attr]
    assert pidfd is not None

    procfs.pidfd_send_signal(pidfd, signal.SIGTERM)

    assert process.wait(20) == -signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        procfs.pidfd_send_signal(pidfd, signal.SIGTERM)
    os.close(pidfd)


# -- GPU memory -------------------------------------------------------------------------------------------------------


def test_release_waits_for_the_gpus_that_the_dead_held() -> None:
    before = sample(72, 72, 40, procs={0: [(7, 71 * GIB)], 1: [(7, 71 * GIB)], 2: [(99, 39 * GIB)]})
    release = gpuwatch.Release(before, [7], {}, anonymous=True)

    assert release.waits_for(sample(72, 1, 40), 0.0) == {0: 71 * GIB}
    assert release.waits_for(sample(1.2, 1, 40), 1.0) == {}
    assert release.freed_bytes == pytest.approx(141.8 * GIB)


def test_release_is_measured_by_the_level_before_the_launch_where_it_is_known() -> None:
    before = sample(72, procs={0: [(7, None)]})
    release = gpuwatch.Release(before, [7], {0: 20 * GIB}, anonymous=False)

    assert release.waits_for(sample(72), 0.0)
    assert release.waits_for(sample(20.3), 1.0) == {}


def test_release_gives_up_on_memory_that_nobody_says_was_the_runs() -> None:
    release = gpuwatch.Release(sample(72, 0.5), [7], {}, anonymous=True)

    assert release.waits_for(sample(72, 0.5), 0.0) == {0: 72 * GIB}
    assert release.waits_for(sample(60, 0.5), 8.0) == {0: 60 * GIB}
    assert release.waits_for(sample(60, 0.5), 17.0) == {0: 60 * GIB}
    assert release.waits_for(sample(60, 0.5), 19.0) == {}


def test_nothing_is_waited_for_where_nothing_was_held() -> None:
    assert gpuwatch.Release(sample(72, procs={0: [(99, GIB)]}), [7], {}, anonymous=True).pointless
    assert gpuwatch.Release(None, [7], {}, anonymous=True).pointless


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (616327086080, "574 GiB"), (int(3.1 * GIB), "3.1 GiB"), (41 << 20, "41 MiB"), (1020 << 20, "1.0 GiB")],
)
def test_sizes_are_short(size: int, text: str) -> None:
    assert gpuwatch.size_text(size) == text


# -- OOM and login ----------------------------------------------------------------------------------------------------


def test_oom_is_proven_by_the_own_cgroup_and_likely_by_a_shared_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, shared = tmp_path / "own", tmp_path / "shared"
    for path in (own, shared):
        path.write_text("low 0\noom_kill 3\n")

    monkeypatch.setattr(oom, "_memory_cgroup", lambda: (str(own), ""))
    proven = oom.OomWatch()
    own.write_text("low 0\noom_kill 4\n")
    assert proven.verdict() == ("proven", "the run's own cgroup counted 1 OOM kill")

    monkeypatch.setattr(oom, "_memory_cgroup", lambda: ("", str(shared)))
    likely = oom.OomWatch()
    assert likely.verdict()[0] == "no"
    shared.write_text("low 0\noom_kill 5\n")
    assert likely.verdict()[0] == "likely"
