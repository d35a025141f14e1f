"""Opens the log of what runs in a fresh process: `python -m tests.bench.opening CONFIG` prints what that took."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from console import configfile
from console.headless.session import deadline_after, first_word, opened
from tests.bench import procstat


async def measure(config: Path) -> dict[str, float]:
    name, target = next(iter(configfile.load(config).targets.items()))
    async with opened(name, target) as engine:
        await first_word(engine, deadline_after(20.0))
        began, before = time.monotonic(), procstat.rss_bytes(os.getpid())
        if await engine.until(lambda now: now if now.log.caught_up else None, deadline_after(30.0)) is None:
            raise TimeoutError("the log's end was not reached")
        return {"took_s": time.monotonic() - began, "grown_bytes": procstat.rss_bytes(os.getpid()) - before}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(Path(sys.argv[1])))))
