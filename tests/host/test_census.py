"""Who is in a tree of processes, asked again and again without reading all of /proc."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from console.host import procfs, tree
from console.host.census import WHOLE_S, Census
from tests.waiting import until

PARENT = """
import subprocess, sys
children = []
for line in sys.stdin:
    if line.strip() == "more":
        children.append(subprocess.Popen(["sleep", "300"]))
        print(children[-1].pid, flush=True)
    else:
        children.pop().kill()
        print("done", flush=True)
"""


class Parent:
    """A process that has children, and ends them, when it is told to."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self.process.pid
        self.children: list[int] = []

    def _say(self, word: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def more(self) -> int:
        self.children.append(int(self._say("more")))
        return self.children[-1]

    def fewer(self) -> int:
        self._say("fewer")
        child = self.children.pop()
        until(lambda: procfs.is_gone(procfs.read_stat(child)))
        return child

    def below(self, stats: procfs.Table) -> set[int]:
        return {pid for pid in procfs.descendants([self.pid], stats) if not procfs.is_gone(stats[pid])}

    def close(self) -> None:
        for pid in self.children:
            os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def parent() -> Iterator[Parent]:
    made = Parent()
    yield made
    made.close()


def test_child_that_came_and_one_that_went_between_two_looks_are_told(parent: Parent) -> None:
    census = Census()
    first = parent.more()
    assert set(census.take(parent.below, 0.0)) == {first}

    second = parent.more()
    parent.more()
    gone = parent.fewer()

    assert set(census.take(parent.below, 1.0)) == {first, second}
    assert gone not in census.again()
    parent.fewer()
    assert set(census.take(parent.below, 2.0)) == {first}


def test_processes_outside_are_read_no_more_than_twice(parent: Parent, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = os.getpid()
    asked: list[int] = []
    read = procfs.read_stat

    def noted(pid: int) -> procfs.Stat | None:
        asked.append(pid)
        return read(pid)

    monkeypatch.setattr(procfs, "read_stat", noted)
    census, child = Census(), parent.more()

    for now in range(10):
        census.take(parent.below, float(now))

    assert asked.count(stranger) == 2
    assert asked.count(child) == 10


def test_process_that_looked_like_a_stranger_once_is_asked_again(parent: Parent) -> None:
    census, child = Census(), parent.more()
    census.take(lambda stats: set(), 0.0)

    assert set(census.take(parent.below, 1.0)) == {child}


def test_stranger_whose_number_was_given_to_a_member_is_found_by_the_look_at_all(parent: Parent) -> None:
    census, child = Census(), parent.more()
    for now in (0.0, 1.0, 2.0):
        census.take(lambda stats: set(), now)

    assert census.take(parent.below, 3.0) == {}
    assert set(census.take(parent.below, WHOLE_S)) == {child}


def test_stranger_that_is_named_is_found_at_once(parent: Parent) -> None:
    census, child = Census(), parent.more()
    for now in (0.0, 1.0, 2.0):
        census.take(lambda stats: set(), now)

    found = census.take(lambda stats: {parent.pid} & set(stats) | parent.below(stats), 3.0, {parent.pid, child})

    assert set(found) == {parent.pid, child}


def test_kin_that_is_told_later_is_sampled_from_then_on(parent: Parent) -> None:
    kin = subprocess.Popen(["sleep", "300"])
    idents = []
    for pid in (parent.pid, kin.pid):
        stat = procfs.read_stat(pid)
        assert stat is not None
        idents.append({"pid": pid, "start": stat.start})
    sampler = tree.Sampler()
    for _ in range(3):
        assert sampler.look(None, [{"main": idents[0], "pids": idents[:1]}]).pids == {parent.pid}

    look = sampler.look(None, [{"main": idents[0], "pids": idents}])

    kin.kill()
    kin.wait()
    assert look.pids == {parent.pid, kin.pid}


def test_sampled_tree_of_a_run_started_by_hand_follows_its_children(parent: Parent) -> None:
    stat = procfs.read_stat(parent.pid)
    assert stat is not None
    ident = {"pid": parent.pid, "start": stat.start}
    hand = [{"main": ident, "pids": [ident]}]
    sampler = tree.Sampler()
    assert sampler.look(None, hand).pids == {parent.pid}

    child = parent.more()
    assert sampler.look(None, hand).pids == {parent.pid, child}
    parent.fewer()

    assert sampler.look(None, hand).pids == {parent.pid}
