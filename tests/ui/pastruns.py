"""Six runs of a ledger, as the specification's picture has them, with curves for two of them; and a source of them."""

from __future__ import annotations

import math
import random
from functools import cache

from msgspec.structs import replace

from console.history.entry import Entry, Runs
from console.history.samples import Curves
from console.model import Script, Settings
from console.reasons import ConsoleError, Exit, Reason
from console.state.digest import Digester
from console.state.steadiness import Window
from tests.ui.fixtures import GIB, NOW, SCENES, FakeSource

_HOUR = 3600.0


def settings(split: str = "0", batch: int = 8, sha: str = "9c02ab") -> Settings:
    return Settings(
        argv=("/root/run.sh", "--batch", str(batch)),
        cwd="/root",
        env={"DFLASH_PROFILE_INTERVAL": "60", "DFLASH_SPLIT_FC_LAYERS": split, "WANDB_API_KEY": "hmac:51c0"},
        scripts={"/root/train_dflash_pipeline.py": Script(sha256=sha, mode=0o644, mtime=NOW - 9000)},
    )


def entry(number: int, ago_s: float, **fields: object) -> Entry:
    known: dict[str, object] = {
        "id": f"r-{number:04d}",
        "name": f"slammed{number}",
        "operator": "ops1",
        "origin": "jump (pts/3)",
        "accepted_wall": NOW - ago_s,
        "state": "ended",
        "is_over": True,
        "cache": "cleared",
        "stepped": True,
        "outcome": "ended",
        "loss_state": "ok",
        "scope": "global",
        "settings": settings(),
        "log_path": f"/workspace/train_slammed{number}.log",
        "seq": number,
    }
    return Entry(**(known | fields))  # type: ignore[arg-type]


def peak(gib: float) -> dict[str, int]:
    return {"6": int(gib * GIB)}


LIVE = entry(
    41, 2.3 * _HOUR, id="r-0041", name="slammed5", state="running", is_over=False, outcome="running", launch_s=221.2,
    last_step=18420, steady_tok_s=21480.0, steady_mad=190.0, steady_n=290, peaks=peak(137.9), last_loss=1.192,
    settings=settings("1"), queue_empty_pct=0.0, checkpoint_step=18000, log_path="/workspace/train_slammed5.log",
)  # fmt: skip
BEFORE = entry(
    40, 5.5 * _HOUR, name="slammed4", outcome="stopped", ended_by="anna", launch_s=218.0, last_step=26110,
    steady_tok_s=21035.0, steady_mad=230.0, steady_n=295, peaks=peak(131.2), last_loss=1.171, queue_empty_pct=3.1,
    settings=settings("0", sha="a31f77"), note="batch 8 again",
)  # fmt: skip
ROWS = (
    LIVE,
    BEFORE,
    entry(
        39, 20 * _HOUR, name="slammed3", reason="nan_loss", is_judged=True, launch_s=432.0, last_step=9311,
        steady_tok_s=14510.0, steady_mad=160.0, peaks=peak(96.4), loss_state="nan", settings=settings(batch=6),
        detail="loss is NaN since step 9,311",
    ),
    entry(
        38, 20.1 * _HOUR, name="", outcome="failed", failed_stage="spawned", exit_code=126, stepped=False,
        loss_state=None,
    ),
    entry(
        37, 23.5 * _HOUR, name="slammed2", reason="cuda_oom", is_judged=True, launch_s=235.0, last_step=1204,
        steady_tok_s=14880.0, steady_mad=410.0, peaks=peak(139.6), last_loss=2.310,
    ),
    entry(
        36, 27 * _HOUR, name="slammed1", outcome="stopped", ended_by="ops1", launch_s=230.0, last_step=5540,
        steady_tok_s=10120.0, steady_mad=120.0, peaks=peak(88.0), last_loss=1.402,
    ),
    Entry(
        id="log:/workspace/train_old.log", name="old", outcome="log_only", is_over=True, accepted_wall=NOW - 60 * _HOUR,
        ended_wall=NOW - 60 * _HOUR, last_step=8800, steady_tok_s=9875.0, steady_mad=140.0, last_loss=1.9,
        loss_state="ok", log_path="/workspace/train_old.log",
    ),
)  # fmt: skip


@cache
def curves(seed: int, rate: float, sd: float, hours: float, *, late: bool = False) -> Curves:
    """Return a run's curves: 2 s a step, the loss falling, the drafters the busier the faster it is."""
    rng = random.Random(seed)
    digests = {name: Digester() for name in ("tok_s", "loss", "queue", *_GPU)}
    rates: list[float] = []
    state = 0.0
    for step in range(int(hours * 1800)):
        at = step * 2.0
        state = 0.6 * state + 0.8 * rng.gauss(0, 1)
        warm = 1 - 0.25 * math.exp(-at / (1500 if late else 600))
        value = rate * warm + sd * state
        rates.append(value)
        digests["tok_s"].add(at, value, step)
        digests["loss"].add(at, 1.1 + 9 * math.exp(-step / 3000) + 0.02 * rng.gauss(0, 1), step)
        digests["queue"].add(at, 6 + 4 * rng.random(), step)
        if step % 5 == 0:
            for name, mean in _GPU.items():
                digests[name].add(at, mean * (rate / 21480 if "drafter" in name else 1) + rng.gauss(0, 1))
    steady = Window(hours * _HOUR, tuple(rates[-300:]))
    return Curves(digests={name: each.digest for name, each in digests.items()}, steady=steady)


_GPU = {"busy:target": 96.0, "power:target": 606.0, "busy:drafter": 86.0, "power:drafter": 544.0}


class FakeArchive:
    """Plays back rows and curves, and remembers the notes."""

    def __init__(self, rows: tuple[Entry, ...] = ROWS) -> None:
        self.rows = rows
        self.kept = {"r-0041": curves(5, 21_480, 280, 2.2), "r-0040": curves(4, 21_035, 340, 2.6, late=True)}
        self.refuse: ConsoleError | None = None
        self.unwritten = ""

    async def runs(self, limit: int = 100, since: int = 0) -> Runs:
        if self.refuse is not None:
            raise self.refuse
        return Runs(rows=self.rows[:limit], seq=41, unwritten=self.unwritten)

    async def run(self, which: str) -> tuple[Entry, Curves]:
        found = next((row for row in self.rows if which in (row.id, row.name)), None)
        if found is None:
            raise ConsoleError(Reason.RUN_UNKNOWN, which, Exit.REFUSED)
        return found, self.kept.get(found.id, Curves())

    async def annotate(self, run_id: str, text: str) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.rows = tuple(replace(row, annotation=text) if row.id == run_id else row for row in self.rows)


def source(rows: tuple[Entry, ...] = ROWS) -> FakeSource:
    """Return the healthy moment with six runs before it."""
    found = SCENES["healthy"]()
    found.archive = FakeArchive(rows)
    return found
