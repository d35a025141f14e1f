"""What the host says of a process and of the lock, as the model has it: a snapshot and a plan show the same. Pure."""

from __future__ import annotations

from console.model import Lock, Process
from console.protocol import LockHolder, WireProcess


def process(wire: WireProcess) -> Process:
    return Process(
        pid=wire.pid,
        start_ticks=wire.start,
        parent=wire.ppid,
        argv=wire.argv,
        state=wire.state,
        age_s=wire.age_s,
        rss_bytes=wire.rss,
        cpu_pct=wire.cpu_pct,
    )


def lock(holder: LockHolder) -> Lock:
    """Return who holds it. Since when by whose clock, and whether that is us, its record alone does not tell."""
    return Lock(operator=holder.operator, origin=holder.origin, run_id=holder.run, name=holder.name, stage=holder.stage)
