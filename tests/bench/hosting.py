"""What watching costs on the training host, beside other GPU monitors that ask the same NVML library once a second."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec

from console.config import Gpus
from tests.bench import procstat
from tests.bench.lab import Lab
from tests.bench.procstat import Cost
from tests.bench.table import Row
from tests.bench.terminal import Terminal
from tests.nvml.build import build, compiler

CPU_BUDGET, RSS_BUDGET_BYTES = 0.005, 25e6
PEERS: dict[str, tuple[str, ...]] = {"nvitop": (), "gpustat": ("-i", "1")}
"""Not dependencies: measured where somebody has installed them."""


def on_the_host(lab: Lab) -> list[Row]:
    """Agents and keeper, with simulated GPUs and, where a compiler is, through the NVML test library."""
    rows = _rows(lab, "simulated GPUs", lab.target.gpus.simulated, {})
    if compiler() is None:
        return rows
    library = build(lab.folder / "nvml")
    state = lab.folder / "nvml-lab" / "host" / "gpus"
    # The library reads its file once a sample instead of at each call: else its own cost would be what is measured.
    env = {"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_STATE": str(state), "FAKE_NVML_KEEP_MS": "500"}
    with Lab(lab.folder / "nvml-lab", lab.sizes, env=env) as other:
        return [*rows, *_rows(other, "NVML", None, env)]


def _rows(lab: Lab, what: str, simulated: str | None, env: Mapping[str, str]) -> list[Row]:
    """Measure all at the same time: who runs beside them, and how busy the machine is, is the same for all."""
    writing = lab.writing("--lines-per-s", "10")
    target = msgspec.structs.replace(writing, gpus=Gpus(expected=8, simulated=simulated))
    started = lab.start(target)
    with ExitStack() as stack:
        screen = stack.enter_context(lab.console(target))
        screen.wait_for("STEPPING|RUNNING")
        peers = {name: stack.enter_context(Terminal(command, env=env)).pid for name, command in _peers(env).items()}
        time.sleep(lab.sizes.settle_s)
        agents = set(procstat.below(lab.server_pid))
        keepers = {started.keeper_pid, *procstat.children(started.keeper_pid, "dflash-gpu")}
        costs = procstat.watch([*agents, *keepers, *peers.values()], lab.sizes.steady_s)
    lab.stop(target)
    of_peers = {name: costs[pid] for name, pid in peers.items()}
    return [
        *_costs(f"agents, 8 GPUs at 1 Hz, {what}", [costs[pid] for pid in agents], of_peers, "nvitop"),
        *_costs(f"keeper, 8 GPUs at 1 Hz, {what}", [costs[pid] for pid in keepers], of_peers, "gpustat"),
    ]


def _costs(what: str, ours: list[Cost], peers: Mapping[str, Cost], name: str) -> list[Row]:
    """Return CPU of all processes together and RSS of the largest one, which shares most of its pages with the rest."""
    peer = peers.get(name)
    cpu, rss = sum(each.cpu_share for each in ours), max(each.rss_bytes for each in ours)
    peer_cpu = [peer.cpu_share] if peer else []
    peer_rss = [peer.rss_bytes] if peer else []
    return [
        Row(f"CPU of {what}", [cpu], "%", name if peer else "", peer_cpu, CPU_BUDGET, "p50"),
        Row(f"largest RSS of {what}", [rss], "MB", name if peer else "", peer_rss, RSS_BUDGET_BYTES, "p50"),
    ]


def _peers(env: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the command of each monitor that is here; without an NVML library none has anything to ask."""
    found: dict[str, list[str]] = {}
    for name, options in PEERS.items() if env else ():
        beside = Path(sys.executable).with_name(name)
        program = str(beside) if beside.exists() else shutil.which(name)
        if program is None:
            print(f"{name} is not installed: left out", file=sys.stderr)
        else:
            found[name] = [program, *options]
    return found
