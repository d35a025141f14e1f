"""The demo's host in a process of its own (its cost is not the console's): `python -m tests.bench.serve DIR LOAD_S`.

Serves until its stdin ends, so that it never outlives whoever started it; the line `cut SECONDS` cuts all links.
"""

from __future__ import annotations

import sys
from pathlib import Path

from console import configwriter
from console.demo.host import NAME, DemoHost


def main(folder: Path, load_s: float) -> None:
    with DemoHost(folder, load_s=load_s) as host:
        configwriter.write_new(folder / "config.toml", configwriter.render_whole(NAME, host.target))
        print("ready", flush=True)
        for line in sys.stdin:
            word, _, number = line.partition(" ")
            if word == "cut":
                host.cut_link(float(number))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
