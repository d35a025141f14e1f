"""What watching costs in the operator's terminal when nothing happens."""

from __future__ import annotations

import time

from tests.bench import procstat
from tests.bench.lab import Lab, Started
from tests.bench.starting import EMPTY_APP
from tests.bench.table import Row
from tests.bench.terminal import Terminal


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
