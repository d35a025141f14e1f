"""The first thing that runs. Loading the rest takes a moment, and control-c within it ends as quietly as later on.

Nothing is collected meanwhile: what is loaded stays, and looking at it again and again takes a sixth of the time. The
command turns it on again.
"""

from __future__ import annotations

import gc
import sys


def main() -> None:
    gc.disable()
    try:
        from console.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)  # as Exit.INTERRUPTED, which is not loaded yet
    run()


if __name__ == "__main__":
    main()
