"""`diagnose`: what a hung run can tell, saved into one file before it is restarted."""

from __future__ import annotations

import os
import time
from pathlib import Path

from console.config import Target
from console.headless import output
from console.headless.interruption import carried_out
from console.headless.session import deadline_after, opened, settled
from console.reasons import ConsoleError, Exit, Reason

_WORD_S = 30.0


def run(name: str, target: Target, *, path: Path | None, as_json: bool) -> int:
    """Carry the command out; return its exit code."""
    if path is not None and os.path.lexists(path):
        raise ConsoleError(Reason.NOT_SAVED, f"{path} exists already and was left as it is", Exit.USAGE)
    return carried_out(_diagnose(name, target, path, as_json=as_json))


async def _diagnose(name: str, target: Target, path: Path | None, *, as_json: bool) -> int:
    began = time.monotonic()
    async with opened(name, target) as engine:
        await settled(engine, deadline_after(_WORD_S))
        output.progress("looking at the run, which is not touched")
        saved = await engine.diagnose(path)
        fields = output.run_fields(engine.snapshot)
    if as_json:
        fields |= {"ok": True, "outcome": "diagnosed", "path": saved.path, "size_bytes": saved.bytes}
        fields |= {"took_s": output.rounded(time.monotonic() - began), "exit_code": int(Exit.OK)}
        output.emit_json(fields)
    else:
        run_id = f" id={saved.run_id}" if saved.run_id else ""
        size = output.size(saved.bytes).replace(" ", "")
        output.say(
            f"OK diagnosed {output.one_line(saved.run or name)}{run_id} size={size} file={output.one_line(saved.path)}"
        )
    return Exit.OK
