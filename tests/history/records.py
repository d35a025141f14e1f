"""Run records as a host would tell them, for the ledger's tests."""

from __future__ import annotations

from typing import Any

from console.protocol import CudaRecord, ExitRecord, HostStage, RunRecord

PLACE, TARGET = "train:/root/.local/state/dflash-console", "ct200"


def done(began_bt: float, took_s: float) -> HostStage:
    return HostStage(state="done", began_bt=began_bt, ended_bt=began_bt + took_s, evidence="seen")


def record(number: int, **fields: Any) -> RunRecord:
    """Return the record of `slammed<number>`: killing 12 s, a cleared cache, spawned 0.8 s, CUDA 112 s."""
    at = 1000.0 * number
    known: dict[str, Any] = {
        "id": f"r-{number}",
        "name": f"slammed{number}",
        "state": "running",
        "operator": "ops1",
        "boot": "b/1",
        "accepted_wall": 1_800_000_000.0 + at,
        "accepted_bt": at,
        "argv": ("/root/run.sh",),
        "cwd": "/root",
        "env": {"SPLIT": "0"},
        "keep_cache": False,
        "stages": {"killing": done(at, 12.0), "cache": done(at + 12, 0.01), "spawned": done(at + 12.2, 0.8)},
        "cuda": CudaRecord(contexts=tuple(range(8)), expected=8, complete_bt=at + 125.0),
    }
    return RunRecord(**(known | fields))


def ended(number: int, *, code: int = 1, **fields: Any) -> RunRecord:
    at = 1_800_000_000.0 + 1000.0 * number
    return record(number, state="ended", exit=ExitRecord(code=code, ended_wall=at + 300, lived_s=280.0), **fields)
