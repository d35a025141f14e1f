"""The lab by hand: `python -m tests.lab up [FLAVOUR...]` leaves it running, `python -m tests.lab down` ends it."""

import argparse
import shlex
import sys
from typing import get_args

from tests.lab import standin
from tests.lab.requirements import why_no_lab
from tests.lab.rootfs import Flavour
from tests.lab.session import Lab, Way, clear_by_hand

_WAYS: tuple[Way, ...] = get_args(Way)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description="A real training host on this machine.")
    parser.add_argument("action", choices=["up", "down"])
    parser.add_argument("flavours", nargs="*", choices=[*map(str, Flavour), []], metavar="FLAVOUR", help="default: all")
    asked = parser.parse_args()
    if asked.action == "down":
        print(f"{clear_by_hand()} ended")
        return 0
    if reason := why_no_lab():
        print(reason, file=sys.stderr)
        return 1
    _up([Flavour(name) for name in asked.flavours] or list(Flavour))
    return 0


def _up(flavours: list[Flavour]) -> None:
    session = Lab(by_hand=True)
    print("# the way in: straight, by the jump host, over the wire")
    for way in _WAYS:
        print(shlex.join(session.host(way).ssh_argv()))
    for flavour in flavours:
        container = session.container(flavour)
        standin.install(container)
        for way in _WAYS:
            config = session.folder / f"{flavour}-{way}.toml"
            config.write_text(session.config(container, way=way))
        print(f"\n# container {container.number}, {flavour}; its other configs end in -jump.toml and -wire.toml")
        print(shlex.join(session.host().ssh_argv(*container.exec_prefix, "bash")))
        print(f"dflash-console --config {session.folder}/{flavour}-host.toml")
    print("\n# end all of it: python -m tests.lab down")


if __name__ == "__main__":
    sys.exit(main())
