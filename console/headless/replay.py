"""`replay`: a run's recording played in the screens, or written into a file that can be played elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from console.config import Target
from console.engine.tape import Tape, load, save
from console.headless import output
from console.headless.session import deadline_after, first_word, opened
from console.host import scrub
from console.reasons import Exit


def from_file(path: Path) -> Tape:
    return load(path)


def from_host(name: str, target: Target, run: str, timeout_s: float | None) -> Tape:
    """Fetch the recording of a run. Raises: ConsoleError."""
    return asyncio.run(_fetch(name, target, run, timeout_s))


async def _fetch(name: str, target: Target, run: str, timeout_s: float | None) -> Tape:
    async with opened(name, target) as engine:
        await first_word(engine, deadline_after(timeout_s))
        return await engine.tape_of(run)


def export(tape: Tape, path: Path, *, env: Mapping[str, str], as_json: bool) -> int:
    """Write the recording into a new file, secrets taken out: what looks like one, and those of the config's `env`."""
    size = save(tape, path, scrub.values_of([env]))
    samples = sum(1 for each in tape.records if each.k == "gpu")
    fields: dict[str, Any] = {"path": str(path), "bytes": size, "run": tape.run.name, "id": tape.run.id}
    if as_json:
        output.emit_json({"ok": True, "target": tape.target, **fields, "gpu_samples": samples, "exit_code": 0})
    else:
        output.say(f"saved {path}  {size:,} bytes: {tape.run.name} ({tape.run.id}), {samples:,} GPU samples")
    return Exit.OK


def play(tape: Tape, *, speed: float, ascii_only: bool, light: bool) -> int:
    from console import tui

    return tui.replay(tape, speed=speed, ascii_only=ascii_only, light=light)
