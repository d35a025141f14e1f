"""When the pids that there are need not be listed anew."""

import itertools
import subprocess
import time
from dataclasses import dataclass

import pytest

from console.host import listing, procfs
from tests.waiting import until


@dataclass
class Kernel:
    """What the listing asks: the clock, the last number, and who is there."""

    now: float = 100.0
    last_pid: int | None = 500
    listed: int = 0

    def monotonic(self) -> float:
        return self.now

    def all_pids(self) -> list[int]:
        self.listed += 1
        return [1, 2]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    monkeypatch.setattr(listing, "time", made)
    monkeypatch.setattr(procfs, "last_pid", lambda: made.last_pid)
    monkeypatch.setattr(procfs, "all_pids", made.all_pids)
    return made


def times_listed(kernel: Kernel, of: listing.Listing, *after_s: float) -> list[int]:
    """Return how often the pids were listed by each of some questions, so long after one another."""
    counts = [kernel.listed]
    for pause_s in after_s:
        kernel.now += pause_s
        of.pids()
        counts.append(kernel.listed)
    return [after - before for before, after in itertools.pairwise(counts)]


def test_nobody_is_listed_while_no_number_is_given_out(kernel: Kernel) -> None:
    of = listing.Listing()

    assert times_listed(kernel, of, 0.0, 1.0, 1.0, 1.0) == [1, 1, 0, 0]
    assert of.pids() is of.pids()


def test_new_number_has_all_listed_twice_since_its_process_may_not_show_at_once(kernel: Kernel) -> None:
    of = listing.Listing()
    times_listed(kernel, of, 0.0, 1.0)

    kernel.last_pid = 501

    assert times_listed(kernel, of, 0.1, 0.1, 1.0, 1.0) == [1, 1, 1, 0]


def test_all_are_listed_now_and_then_whatever_the_kernel_says(kernel: Kernel) -> None:
    of = listing.Listing()
    times_listed(kernel, of, 0.0, 1.0)

    assert times_listed(kernel, of, listing.WHOLE_S - 0.1, 0.2, 1.0) == [0, 1, 0]


def test_where_the_kernel_tells_no_number_all_are_listed_each_time(kernel: Kernel) -> None:
    kernel.last_pid = None

    assert times_listed(kernel, listing.Listing(), 0.0, 1.0, 1.0, 1.0) == [1, 1, 1, 1]


def test_in_a_proc_of_another_namespace_all_are_listed_each_time(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_own_number", lambda: 4_000_000)

    assert times_listed(kernel, listing.Listing(), 0.0, 1.0, 1.0, 1.0) == [1, 1, 1, 1]


def test_process_that_has_just_come_is_listed_whatever_was_listed_before() -> None:
    of = listing.Listing()
    began = time.monotonic()
    until(lambda: of.pids() is of.pids() or time.monotonic() > began + 2 * listing.SETTLED_S)

    with subprocess.Popen(["sleep", "300"]) as child:
        pids = of.pids()
        child.kill()

    assert child.pid in pids
