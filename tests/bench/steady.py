"""What watching costs when nothing happens: on the host, and in the operator's terminal."""

from __future__ import annotations

import time

import msgspec

from console.config import Gpus
from tests.bench import procstat
from tests.bench.lab import Lab, Started
from tests.bench.starting import EMPTY_APP
from tests.bench.table import Row
from tests.bench.terminal import Terminal
from tests.nvml.build import build, compiler


def on_the_host(lab: Lab) -> list[Row]:
    """Agents and keeper, with simulated GPUs and, where a compiler is, through the NVML test library."""
    rows = _host_rows(lab, "simulated GPUs", lab.target.gpus.simulated)
    if compiler() is None:
        return rows
    library = build(lab.folder / "nvml")
    state = lab.folder / "nvml-lab" / "host" / "gpus"
    env = {"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_STATE": str(state)}
    with Lab(lab.folder / "nvml-lab", lab.sizes, env=env) as other:
        return [*rows, *_host_rows(other, "NVML", None)]


def _host_rows(lab: Lab, what: str, simulated: str | None) -> list[Row]:
    writing = lab.writing("--lines-per-s", "10")
    target = msgspec.structs.replace(writing, gpus=Gpus(expected=8, simulated=simulated))
    started = lab.start(target)
    with lab.console(target) as screen:
        screen.wait_for("STEPPING|RUNNING")
        time.sleep(lab.sizes.settle_s)
        agents = procstat.below(lab.server_pid)
        keepers = {started.keeper_pid, *procstat.children(started.keeper_pid, "dflash-gpu")}
        costs = procstat.watch([*agents, *keepers], lab.sizes.steady_s)
    lab.stop(target)
    of_agents = [costs[pid] for pid in agents]
    of_keeper = [costs[pid] for pid in keepers]
    return [
        Row(
            f"agents + keeper CPU, 8 GPUs, {what}",
            [sum(each.cpu_share for each in costs.values())],
            "%",
            budget=0.005,
            judged="p50",
        ),
        Row("  of it the keeper and its sampler", [sum(each.cpu_share for each in of_keeper)], "%"),
        Row(
            f"largest agent process RSS, {what}",
            [max(each.rss_bytes for each in of_agents)],
            "MB",
            budget=25e6,
            judged="p50",
        ),
        Row(
            f"largest keeper process RSS, {what}",
            [max(each.rss_bytes for each in of_keeper)],
            "MB",
            budget=25e6,
            judged="p50",
        ),
    ]


def in_the_terminal(lab: Lab) -> list[Row]:
    """The console on a wide terminal, all panels shown, 10 lines a second."""
    target = lab.writing("--lines-per-s", "10")
    started: Started = lab.start(target)
    assert started.run.pid
    with lab.console(target, columns=160, rows=48) as screen, Terminal(EMPTY_APP, columns=160, rows=48) as empty:
        empty.wait_for("READY")
        time.sleep(lab.sizes.settle_s)
        painted = screen.position
        costs = procstat.watch([screen.pid, empty.pid], lab.sizes.steady_s)
        painted = screen.position - painted
    lab.stop(target)
    ours, bare = costs[screen.pid], costs[empty.pid]
    return [
        Row(
            "console CPU, 8 GPUs at 1 Hz, 10 lines/s",
            [ours.cpu_share],
            "%",
            "empty Textual app",
            [bare.cpu_share],
            0.04,
            "p50",
        ),
        Row("console RSS", [ours.rss_bytes], "MB", "empty Textual app", [bare.rss_bytes], 90e6, "p50"),
        Row("console writes to the terminal, bytes/s", [painted / lab.sizes.steady_s], "B"),
    ]
