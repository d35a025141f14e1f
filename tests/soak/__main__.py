"""`python -m tests.soak`: what happens in 75 minutes, in ten; code 1 where something has grown in the last 30."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.lab import Lab
from tests.bench.sizes import TINY
from tests.soak.soaking import Plan, Soak, grown, soak, too_much

_LONG = Plan(minutes=75, burst_bytes=50_000_000, restart_each=10, cut_each=5, warm=45)


async def _soaked(folder: Path, plan: Plan) -> Soak:
    with Lab(folder / "lab", TINY) as lab:
        async with soak(folder, lab, plan) as work:
            await work.run()
            return work


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--each", action="store_true", help="print the sizes of each minute, too")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dflash-soak-") as folder:
        work = asyncio.run(_soaked(Path(folder), _LONG))
    print(
        f"{_LONG.minutes} minutes in {time.monotonic() - began:.0f} s: {work.lines:,} lines taken, "
        f"{work.burst_bytes / 1e6:,.0f} MB in bursts, {work.samples:,} GPU samples, {work.restarts} restarts, "
        f"{work.cuts} cuts"
    )
    if options.each:
        for size in work.sizes:
            print(size)
    found = grown(work.sizes, _LONG.warm)
    over = too_much(found, _LONG)
    print(f"{'who':10}{'what':14}{'before':>10}{'after':>10}")
    for each in found:
        who, what, before, after = each
        print(f"{who:10}{what:14}{before:10.1f}{after:10.1f}{'  GROWN' if each in over else ''}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
