"""Runs the app on one of the fixtures, to be looked at: `python -m tests.ui.preview healthy`.

`--plan restart|refused|locked|start|stop` sets what the dialogs show; `--ascii`, `--light` as in the product.
"""

from __future__ import annotations

import argparse
from datetime import UTC

from console.ui.app import ConsoleApp
from tests.ui import fixtures, pastruns


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scene", choices=[*fixtures.SCENES, "runs", "no-config"])
    parser.add_argument("--plan", default="")
    parser.add_argument("--ascii", action="store_true")
    parser.add_argument("--light", action="store_true")
    chosen = parser.parse_args()
    source = None
    if chosen.scene != "no-config":
        source = pastruns.source() if chosen.scene == "runs" else fixtures.SCENES[chosen.scene]()
        plans = {
            "refused": fixtures.REFUSED_PLAN,
            "locked": fixtures.LOCKED_PLAN,
            "start": fixtures.START_PLAN,
        }
        if chosen.plan in plans:
            source.plans = [plans[chosen.plan]]
    ConsoleApp(
        source,
        ascii_only=chosen.ascii,
        light=chosen.light,
        zone=UTC,
        config_path="~/.config/dflash-console/config.toml",
    ).run()


if __name__ == "__main__":
    main()
