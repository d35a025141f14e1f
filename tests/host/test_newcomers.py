"""Which new processes are worth looking through all of them for."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from console.host import procfs
from console.host.newcomers import OLD_LOOK_S, YOUNG_S, Newcomers
from tests.waiting import until


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
    try:
        until(lambda: "sh" in os.path.basename(procfs.exe(process.pid)))
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The only processes that the machine has: what else runs here must not decide a test."""
    pids: set[int] = set()
    monkeypatch.setattr(procfs, "all_pids", lambda: sorted(pids))
    monkeypatch.setattr(procfs, "last_pid", lambda: None)
    return pids


def python(stack: ExitStack) -> int:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    stack.callback(child.wait)
    stack.callback(child.kill)
    stack.enter_context(child.stdin or ExitStack())
    until(lambda: procfs.argv(child.pid)[1:2] == ["-c"])
    return child.pid


def test_new_python_is_looked_for_twice_and_then_known(others: set[int]) -> None:
    with ExitStack() as stack:
        newcomers = Newcomers()
        assert not newcomers.may_be_runs(0.0, set())
        others.add(python(stack))

        answers = [newcomers.may_be_runs(2.0 + turn, set()) for turn in range(4)]

    assert answers == [True, True, False, False]


def test_thread_of_the_kernel_is_asked_once_what_it_is(others: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    thread = procfs.Stat(7, "pt_kernel", "I", 2, 0, 0, 20, 0, 0, 0, 1, is_kernel=True)

    def exe(pid: int) -> str:
        asked.append(pid)
        return ""

    monkeypatch.setattr(procfs, "exe", exe)
    monkeypatch.setattr(procfs, "read_stat", lambda pid: thread)
    others.add(7)
    newcomers = Newcomers()

    answers = [newcomers.may_be_runs(float(second), set()) for second in range(4)]

    assert (answers, asked) == ([False] * 4, [7])


def test_workers_of_a_known_run_are_not_looked_for(others: set[int]) -> None:
    with ExitStack() as stack:
        worker = python(stack)
        others.add(worker)

        assert not Newcomers().may_be_runs(0.0, {worker})


def test_shell_that_becomes_python_by_exec_is_found_however_old_it_is(others: set[int]) -> None:
    with running("bash", "-c", f"read; exec {sys.executable} -c 'input()'") as shell:
        others.add(shell.pid)
        newcomers = Newcomers()
        assert not newcomers.may_be_runs(0.0, set())
        assert not newcomers.may_be_runs(YOUNG_S + 1.0, set())
        assert shell.stdin is not None
        shell.stdin.write("\n")
        shell.stdin.flush()
        until(lambda: "python" in os.path.basename(procfs.exe(shell.pid)))

        assert newcomers.may_be_runs(YOUNG_S + 2.0 + OLD_LOOK_S, set())


def test_python_that_becomes_another_by_exec_is_looked_for_anew(others: set[int]) -> None:
    program = f"input(); import os; os.execv({sys.executable!r}, ['python', '-c', 'input()', 'second'])"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, text=True)
    try:
        assert child.stdin is not None
        until(lambda: procfs.argv(child.pid)[1:2] == ["-c"])
        others.add(child.pid)
        newcomers = Newcomers()
        assert [newcomers.may_be_runs(0.0, set()) for _ in range(3)] == [True, True, False]
        child.stdin.write("\n")
        child.stdin.flush()
        until(lambda: procfs.argv(child.pid)[-1:] == ["second"])

        assert newcomers.may_be_runs(1.0, set())
    finally:
        child.kill()
        child.communicate()
