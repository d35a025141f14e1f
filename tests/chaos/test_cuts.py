"""Random cuts at random moments of a launch: whatever a fresh console shows afterwards is true.

The same seed gives the same cuts. `CHAOS_SEED` chooses it, `CHAOS_N` says how many (40), `CHAOS_ONLY` names one.
"""

from __future__ import annotations

import asyncio
import os
import time
import traceback
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from tests.chaos.cuts import LOCALLY, OVER_SSH, Cut, carry_out
from tests.chaos.world import Console, World

_WORLDS = int(os.environ.get("CHAOS_WORLDS", "4"))
_SEED = os.environ.get("CHAOS_SEED", "1")
_COUNT = int(os.environ.get("CHAOS_N", "40"))
_ONLY = os.environ.get("CHAOS_ONLY")


async def test_state_shown_after_any_cut_is_true(tmp_path: Path) -> None:
    numbers = [int(_ONLY)] if _ONLY else range(_COUNT)
    failures: list[str] = []
    done: Counter[str] = Counter()
    began = time.monotonic()
    with ExitStack() as stack:
        worlds = [stack.enter_context(World(tmp_path / f"w{n}", over_ssh=n % 2 == 0)) for n in range(_WORLDS)]
        await asyncio.gather(
            *(_live_through(world, list(numbers)[at::_WORLDS], failures, done) for at, world in enumerate(worlds))
        )
    print(f"\nCHAOS_SEED={_SEED}: {sum(done.values())} cuts in {time.monotonic() - began:.0f} s: {dict(done)}")
    agreed = sorted(seconds for world in worlds for seconds in world.agreed_s) or [0.0]
    p50, p95, worst = (agreed[min(len(agreed) - 1, int(len(agreed) * share))] for share in (0.5, 0.95, 1.0))
    print(f"agreed {len(agreed)} times, p50 {p50:.1f} s, p95 {p95:.1f} s, at most {worst:.1f} s")
    assert not failures, f"{len(failures)} of {len(numbers)} with CHAOS_SEED={_SEED}:\n\n" + "\n\n".join(failures)


async def _live_through(world: World, numbers: list[int], failures: list[str], done: Counter[str]) -> None:
    console: Console | None = None
    for number in numbers:
        cut = Cut.of(_SEED, number, OVER_SSH if world.over_ssh else LOCALLY)
        try:
            console = await carry_out(world, cut, console or await world.open())
        except Exception:  # noqa: BLE001 - told with its number, and the others go on
            console = None
            failures.append(f"CHAOS_ONLY={number} {cut}\n{traceback.format_exc()}")
            print(f"\n{failures[-1]}", flush=True)  # now: a run of many minutes may be ended before its end
            world.claims.clear()
        done[str(cut.kind)] += 1
        if sum(done.values()) % 10 == 0:
            print(f"CHAOS_SEED={_SEED}: {sum(done.values())} cuts, {len(failures)} failed", flush=True)
    if console is not None:
        await console.close()
