"""Compiling in a child: it gives the code back, and it never outlives whoever asked for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from console.host import loader, procfs
from tests.waiting import until

_ROOT = Path(__file__).parents[2]
_ASKS = """
import os, sys
from console.host import loader

def slow(name, source):
    print(os.getpid(), flush=True)
    sys.stdin.readline()
    return compile(source, name, "exec")

loader._compile = slow
loader._compile_apart("large", "x = " + repr("a" * 1_000_000))
"""


def test_what_was_compiled_apart_runs_as_if_it_had_been_compiled_here() -> None:
    space: dict[str, object] = {}

    exec(loader._compile_apart("some", "x = [n * n for n in range(4)]"), space)  # noqa: S102  that is what importing is

    assert space["x"] == [0, 1, 4, 9]


def test_child_that_compiles_ends_when_its_parent_was_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _ASKS], cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        stat = procfs.read_stat(child)
        assert stat is not None

        parent.kill()
        parent.wait()
        parent.stdin.write("go on\n")

    until(lambda: not procfs.is_alive(child, stat.start), 10, "the child's end")
