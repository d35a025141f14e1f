"""From the confirmation to the new process, beyond the time that the old one needs to die."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from console.engine import Engine
from tests.bench import lab as laboratory
from tests.bench.lab import Lab
from tests.bench.stopping import noted
from tests.bench.table import Row

DIES_S = 0.5
SMALL_CACHE_FILES = 10
_FILES_A_FOLDER = 1000
_READING_S = 1.0
"""An operator reads the plan before confirming it."""


def beyond_dying(lab: Lab) -> list[Row]:
    small = _restarts(lab, "small", SMALL_CACHE_FILES, lab.sizes.launches)
    big = _restarts(lab, "big", lab.sizes.big_cache_files, max(1, lab.sizes.launches // 2))  # filling it takes longest
    return [
        Row(f"confirm -> spawned beyond dying, cache of {SMALL_CACHE_FILES} files", small, budget=0.3),
        Row(f"  cache of {lab.sizes.big_cache_files:,} files", big, "ms", "the small cache", small, 0.3),
    ]


def _restarts(lab: Lab, name: str, files: int, launches: int) -> list[float]:
    notes, cache = lab.folder / f"launch-notes-{name}", lab.folder / f"cache-{name}" / "inductor"
    plain = lab.writing("--dies-s", str(DIES_S), "--notes", str(notes))
    target = lab.changed(command=plain.command, match=plain.match, caches=(str(cache),))

    async def again(engine: Engine) -> float:
        plan = await engine.plan("restart")
        await asyncio.sleep(_READING_S)
        began = time.clock_gettime(time.CLOCK_BOOTTIME)
        accepted = await engine.execute(plan)
        await laboratory.reached(engine, lambda now: _count(notes, "began") > starts, "the new process")
        await laboratory.reached(engine, lambda now: now.verdict == "stepping", "stepping")
        status = laboratory.run_status(target, accepted.run_id)
        died_s = noted(notes, "end") - noted(notes, "term")
        return float(status["spawned_bt"]) - began - died_s

    lab.start(target)
    took = []
    for _ in range(launches):
        fill_cache(cache, files)
        starts = _count(notes, "began")
        took.append(lab.ask(target, again))
    lab.stop(target)
    return took


def fill_cache(cache: Path, files: int) -> None:
    for first in range(0, files, _FILES_A_FOLDER):
        folder = cache / f"fx{first:06d}"
        folder.mkdir(parents=True, exist_ok=True)
        for index in range(first, min(files, first + _FILES_A_FOLDER)):
            (folder / f"kernel{index}").touch()


def _count(notes: Path, word: str) -> int:
    return sum(line.startswith(f"{word} ") for line in notes.read_text().splitlines()) if notes.exists() else 0
