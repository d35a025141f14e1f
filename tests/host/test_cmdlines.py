"""Command lines that another reads for us: exact whatever is in them, and nobody waits for one that hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.host import background, cmdlines, procfs
from tests.waiting import until

_SLEEP = "import time; print(flush=True); time.sleep(600)"


def sleeping(*words: str | bytes) -> subprocess.Popen[bytes]:
    child = subprocess.Popen([sys.executable, "-c", _SLEEP, *words], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    return child


@pytest.fixture
def odd() -> Iterator[subprocess.Popen[bytes]]:
    with sleeping("", "two\nlines", b"\xff", " ", "") as child:
        yield child
        child.kill()


def told(asked: cmdlines.CommandLines) -> cmdlines.CommandLines:
    until(asked.advance)
    return asked


def test_each_is_told_as_it_is_and_one_that_is_gone_as_empty(odd: subprocess.Popen[bytes]) -> None:
    with sleeping() as gone:
        gone.kill()

    of = told(cmdlines.CommandLines({os.getpid(), odd.pid, gone.pid}, 60.0)).of

    assert of == {
        os.getpid(): procfs.argv(os.getpid()),
        odd.pid: [sys.executable, "-c", _SLEEP, "", "two\nlines", "\udcff", " ", ""],
        gone.pid: [],
    }


def test_one_that_hangs_is_ended_and_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o700)
    monkeypatch.setattr(cmdlines, "_CATS", (str(slow),))
    asked = cmdlines.CommandLines({os.getpid()}, 0.05)
    pid = asked._cat._pid
    assert pid is not None

    told(asked)

    assert (asked.error, asked.of) == ("gave no answer in time", {})

    def is_reaped() -> bool:
        background.reap()
        return procfs.read_stat(pid) is None

    until(is_reaped)


def test_answer_that_is_cut_short_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cmdlines, "_CATS", ("/bin/echo",))

    asked = told(cmdlines.CommandLines({os.getpid(), 1}, 60.0))

    assert asked.error
    assert asked.of == {}


def test_where_nobody_can_be_sent_that_is_raised_and_nothing_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cmdlines, "_CATS", ("/nowhere/cat",))
    before = set(os.listdir("/proc/self/fd"))

    with pytest.raises(OSError, match="No such file"):
        cmdlines.CommandLines({os.getpid()}, 60.0)

    assert set(os.listdir("/proc/self/fd")) == before


def test_who_is_sent_holds_nothing_of_ours_but_the_pipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An agent's stderr that stayed open would say that the agent lives."""
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o700)
    program = background.Program([str(slow)], 60.0)
    assert program._pid is not None
    pid = program._pid
    until(lambda: (stat := procfs.read_stat(pid)) is not None and stat.comm == "sleep")

    targets = procfs.fd_targets(pid)

    assert {targets[0], targets[2]} == {"/dev/null"}
    assert targets[1].startswith("pipe:")
    os.kill(pid, signal.SIGKILL)
    until(program.advance)
