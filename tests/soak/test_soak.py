"""A few minutes of the soak: enough to see that it soaks, and that nothing piles up. The long one: `-m tests.soak`."""

from __future__ import annotations

from pathlib import Path

from tests.bench.lab import Lab
from tests.bench.sizes import TINY
from tests.soak.soaking import SAMPLES_A_MINUTE, Plan, grown, soak, too_much

_PLAN = Plan(minutes=5, burst_bytes=40_000_000, restart_each=2, cut_each=3, warm=1, console_mb=16.0)
"""The agent that comes after the cut has a restart and a burst before its growth is measured: what those need stays."""


async def test_minutes_of_all_that_happens_leave_nothing_behind(tmp_path: Path) -> None:
    with Lab(tmp_path / "lab", TINY) as lab:
        async with soak(tmp_path, lab, _PLAN) as work:
            await work.run()

    found = grown(work.sizes, _PLAN.warm)
    assert (work.restarts, work.cuts) == (3, 1)
    assert work.samples == _PLAN.minutes * SAMPLES_A_MINUTE
    assert work.has_skipped, "a burst is more than anybody reads"
    assert {who for who, *_ in found} >= {"console", "agent", "keeper"}
    assert too_much(found, _PLAN) == []
