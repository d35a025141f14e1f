"""The first thing that runs. Loading the rest takes a moment, and control-c within it ends as quietly as later on."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from console.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)  # as Exit.INTERRUPTED, which is not loaded yet
    run()


if __name__ == "__main__":
    main()
