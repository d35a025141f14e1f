"""How long until something is seen: the help, the first paint, the host's first word."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence

from tests.bench import lab as laboratory
from tests.bench.lab import Lab
from tests.bench.table import Row
from tests.bench.terminal import Terminal

_FIRST = "CONNECTING(?s:.*)quit"
"""From the band at the top to the end of the footer."""
EMPTY_APP = [sys.executable, "-m", "tests.bench.emptyapp"]


def help_text(lab: Lab) -> list[Row]:
    ours, bare = [], []
    for _ in range(lab.sizes.repeats):
        ours.append(_run([*laboratory.program("--help")]))
        bare.append(_run([sys.executable, "-c", "pass"]))
    return [Row("dflash-console --help", ours, peer_name="python3 -c pass", peer=bare, budget=0.15, judged="p50")]


def first_paint(lab: Lab) -> list[Row]:
    """The first picture is whole: what isn't known yet is called so. The run's verdict comes with the host's word, for
    which there must be a connection first."""
    target = lab.writing()
    lab.start(target)
    painted, judged, known, empty = [], [], [], []
    for _ in range(lab.sizes.repeats):
        with lab.console(target) as screen:
            painted.append(screen.wait_for(_FIRST) - screen.started)
            judged.append(screen.wait_for(laboratory.WORDS) - screen.started)
            known.append(screen.wait_for("STEPPING") - screen.started)
        with Terminal(EMPTY_APP) as screen:
            empty.append(screen.wait_for("READY") - screen.started)
    lab.stop(target)
    return [
        Row("first paint", painted, peer_name="empty Textual app", peer=empty, budget=0.7, judged="p50"),
        Row("  with a verdict on the run", judged, peer_name="empty Textual app", peer=empty),
        Row("  with the host's word", known, peer_name="empty Textual app", peer=empty),
    ]


def _run(command: Sequence[str]) -> float:
    began = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, timeout=120)
    return time.monotonic() - began
