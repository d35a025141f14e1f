"""A run that dies while nobody watches: a console that comes later sees its last minute, up to the moment of death."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.config import Gpus, Metrics, Target
from console.engine import Engine, gpucurves
from console.host import recorder
from console.model import Snapshot, Verdict
from console.protocol import GpusEvent, Growth, WireGpu
from console.state.series import Series
from tests.host.keeperlab import Lab, ended, reached
from tests.waiting import until

GIB = 1 << 30


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    made.close()


def lines(directory: Path, kind: str) -> list[dict[str, Any]]:
    path = directory / recorder.NAME
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line for line in found if line["k"] == kind]


async def test_death_that_nobody_watched_is_seen_by_a_console_that_comes_later(lab: Lab) -> None:
    gpus = lab.folder / "gpus"
    gpus.write_text(f"driver 550\ngpu 0 uuid=GPU-0 name=H200 total={140 * GIB} used={GIB // 2} util=0 procs=\n")
    lab.trainer()
    directory, _ = lab.launch("r1")
    pid = reached(directory, "running")["main"]["pid"]
    (lab.folder / "new").write_text(
        f"driver 550\ngpu 0 uuid=GPU-0 name=H200 total={140 * GIB} used={71 * GIB} util=97 procs={pid}:{70 * GIB}\n"
    )
    (lab.folder / "new").rename(gpus)
    until(lambda: any(line["gpus"][0][1] == 71 * GIB for line in lines(directory, "gpu")), 60, "a sample of its use")
    until(lambda: lines(directory, "proc"), 60, "a sample of its processes")

    os.kill(pid, signal.SIGKILL)
    died_bt = ended(directory)["ended_bt"]
    until(lambda: lines(directory, "exit"), 60, "the end on record")
    target = Target(
        host="local", python=sys.executable, state_dir=str(lab.state), command=("/bin/true",), cwd=str(lab.work),
        log=str(lab.work / "{name}.log"), gpus=Gpus(simulated=str(gpus), expected=1), metrics=Metrics(),
    )  # fmt: skip
    engine = Engine("t", target, operator="later", origin="here")
    watching = asyncio.create_task(engine.run())
    try:
        await asyncio.wait_for(_curves(engine), 30)
        shown = engine.snapshot
    finally:
        watching.cancel()
        await asyncio.wait([watching])

    assert shown.verdict is Verdict.FAILED or shown.verdict is Verdict.ENDED
    assert shown.run is not None
    assert shown.run.exit is not None
    assert shown.run.exit.signal == 9
    memory = engine.series["gpu_memory:0"].points
    died_at = shown.run.exit.at
    assert died_at is not None
    last = [point for point in memory if point.value > GIB][-1]
    assert last.value == 71 * GIB
    assert -2.0 < died_at - last.at < 30.0  # clocks are set by one round trip; the machine may be busy
    assert lines(directory, "exit")[0]["bt"] >= died_bt
    assert lines(directory, "proc")[-1]["procs"][0][0] == pid


async def _curves(engine: Engine) -> Snapshot:
    def there(snapshot: Snapshot) -> Snapshot | None:
        memory = engine.series.get("gpu_memory:0", Series())
        return snapshot if any(point.value > GIB for point in memory.points) and snapshot.run else None

    found = await engine.until(there, None)
    assert found is not None
    return found


def test_recorded_samples_stand_before_and_between_those_that_were_watched() -> None:
    series: dict[str, Series] = {}
    watched = series.setdefault("gpu_memory:0", Series())
    for at in (100.0, 101.0, 200.0):
        watched.add(at, at)
    records = [
        Growth(k="gpu", bt=bt, gpus=[[0, 101 if bt == 101.2 else int(bt * 10), 50, 600_000]])
        for bt in (10.0, 90.0, 101.2, 150.0, 250.0)
    ]

    gpucurves.join(series, records, lambda bt: bt)

    points = series["gpu_memory:0"].points
    assert [(p.at, p.value) for p in points] == [
        (10.0, 100), (90.0, 900), (100.0, 100), (101.0, 101), (150.0, 1500), (200.0, 200), (250.0, 2500),
    ]  # fmt: skip
    assert [p.opens for p in points] == [False, True, False, False, True, True, True]
    assert series["gpu_power:0"].points[0].value == 600.0


@pytest.mark.parametrize("asked_first", [True, False], ids=["recorder first", "samples first"])
def test_nothing_is_drawn_between_a_runs_end_and_the_console_that_came_later(asked_first: bool) -> None:
    series: dict[str, Series] = {}
    coarse = [0.0, 10.0, 20.0, 40.0]  # one is missing there, and it is still one curve
    ended = [float(bt) for bt in range(50, 60)]
    records = [Growth(k="gpu", bt=bt, gpus=[[0, 71 * GIB, 97, 600_000]]) for bt in (*coarse, *ended)]

    if asked_first:
        gpucurves.join(series, records, lambda bt: bt)
    for at in (81.0, 82.0):
        idle = WireGpu(i=0, used=0, util=0, power_mw=77_000)
        gpucurves.take(series, GpusEvent(bt=at, source="nvml", gpus=(idle,)), at)
    if not asked_first:
        gpucurves.join(series, records, lambda bt: bt)

    assert [point.at for point in series["gpu_memory:0"].points if point.opens] == [81.0]


def test_recorder_is_sent_with_each_second_of_the_last_ten_minutes_and_coarser_before(tmp_path: Path) -> None:
    kept = [f'{{"k":"gpu","bt":{bt}.5,"wall":1,"gpus":[]}}\n' for bt in range(5000)]
    kept.insert(3, '{"k":"stage","bt":3.1,"stage":"cuda"}\n')

    coarse = recorder.coarser(kept)

    times = [json.loads(line)["bt"] for line in coarse if '"gpu"' in line]
    assert [bt for bt in times if bt >= 4399.5] == [bt + 0.5 for bt in range(4399, 5000)]
    assert len(times) == 601 + 440
    assert sum('"stage"' in line for line in coarse) == 1


def test_when_a_run_began_to_step_is_told_to_a_second_hours_later() -> None:
    """By the log's growth at its launch: with one note in 10 s a launch of 3 s was told as one of 11 s."""
    kept = [f'{{"k":"log","bt":{bt / 4},"wall":1,"size":{bt}}}\n' for bt in range(20_000)]

    times = [json.loads(line)["bt"] for line in recorder.coarser(kept)]

    launch = [bt for bt in times if bt < recorder.LAUNCH_S]
    between = [bt for bt in times if recorder.LAUNCH_S <= bt < 4399.0]
    assert launch == [float(bt) for bt in range(1200)]
    assert between == [float(bt) for bt in range(1209, 4399, 10)]
