"""From stop pressed to the signal, while the log floods a slow link."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import msgspec

from console.engine import Engine
from tests.bench import lab as laboratory
from tests.bench.lab import Lab
from tests.bench.slowlink import SlowLink
from tests.bench.table import Row

LINK_BYTES_PER_S = 2_000_000


def during_a_flood(lab: Lab) -> list[Row]:
    notes = lab.folder / "stop-notes"
    port = lab.target.port
    assert port is not None
    took, rtt, idle, filled = [], [], [], []
    with SlowLink(port, LINK_BYTES_PER_S) as link:
        known = Path(str(lab.target.known_hosts))
        hosts = lab.folder / "known_hosts_slow"
        hosts.write_text(known.read_text().replace(f":{port} ", f":{link.port} "))
        target = lab.writing("--bytes-per-s", "10e6", "--notes", str(notes), port=link.port, known_hosts=str(hosts))

        async def once(engine: Engine) -> None:
            await laboratory.launch(engine)
            await laboratory.reached(engine, lambda now: (now.log.size_bytes or 0) > 4_000_000, "a flood")
            plan = await engine.plan("stop")
            before, since = link.passed_bytes["down"], time.monotonic()
            await asyncio.sleep(0.5)
            filled.append((link.passed_bytes["down"] - before) / (time.monotonic() - since))
            rtt.append(engine.snapshot.link.rtt_s or 0.0)
            began = time.monotonic()
            await engine.execute(plan)
            idle.append(time.monotonic() - began)
            await laboratory.reached(engine, lambda now: now.run is None or now.run.alive is False, "the stop")
            took.append(noted(notes, "term") - began)
            notes.unlink()

        slow = msgspec.structs.replace(target, stop=msgspec.structs.replace(target.stop, grace_s=5.0))
        for _ in range(lab.sizes.launches):
            lab.ask(slow, once)
    return [
        Row("stop -> TERM, log flood over 2 MB/s", took, peer_name="round trip then", peer=rtt, budget=0.1),
        Row("  stop -> the console knows it is taken", idle, peer_name="round trip then", peer=rtt),
        Row("  the link meanwhile, bytes/s", filled, "B", "its limit", [float(LINK_BYTES_PER_S)]),
    ]


def noted(path: Path, word: str) -> float:
    """Return the newest monotonic time that bench_trainer.py noted under `word`."""
    times = [float(line.split()[1]) for line in path.read_text().splitlines() if line.startswith(f"{word} ")]
    return times[-1]
