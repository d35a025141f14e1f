"""`python -m tests.bench [NAME ...]`: measure, print one table. `--tiny` only shows that everything runs."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.bench import deaths, hosting, launching, logs, opening, starting, steady, stopping, through
from tests.bench.lab import Lab
from tests.bench.sizes import FULL, TINY, Sizes
from tests.bench.table import Row, table

MEASUREMENTS: dict[str, Callable[[Lab], list[Row]]] = {
    "help": starting.help_text,
    "paint": starting.first_paint,
    "death": deaths.death_to_red,
    "container": through.death_in_a_container,
    "error": deaths.error_to_screen,
    "line": logs.line_to_paint,
    "host": hosting.on_the_host,
    "console": steady.in_the_terminal,
    "stop": stopping.during_a_flood,
    "spawn": launching.beyond_dying,
    "parser": logs.parser,
    "open": opening.of_any_size,
    "key": logs.key_to_paint,
}


def measure(name: str, sizes: Sizes, folder: Path) -> list[Row]:
    """Make one measurement with a host of its own."""
    with Lab(folder, sizes) as lab:
        rows = MEASUREMENTS[name](lab)
    for row in rows:
        if not row.values and not row.why_not:
            raise RuntimeError(f"nothing was measured: {row.what}")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(MEASUREMENTS)} (default: all)")
    parser.add_argument("--tiny", action="store_true", help="sizes that measure nothing, quickly")
    options = parser.parse_args()
    if unknown := set(options.names) - set(MEASUREMENTS):
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}")
    rows: list[Row] = []
    failed = False
    with tempfile.TemporaryDirectory(prefix="dflash-bench-") as folder:
        for name in options.names or MEASUREMENTS:
            print(f"{name} ...", file=sys.stderr, flush=True)
            try:
                measured = measure(name, TINY if options.tiny else FULL, Path(folder) / name)
                print(f"{table(measured)}\nload {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
                rows += measured
            except Exception as error:  # noqa: BLE001  one that can't be made must not cost the others
                failed = True
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                if options.tiny:
                    traceback.print_exc()
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{os.cpu_count()} cores, load {load}, Python {platform.python_version()}, Linux {platform.release()}\n")
    print(table(rows))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
