"""A link of our own, which can go silent or slow without touching the machine's: a network namespace with an sshd."""

import random
from pathlib import Path

from tests.lab.commands import LabError, call
from tests.lab.sshd import Keys, Sshd


class Wire:
    """A veth pair into a namespace of our own; `host` is the sshd at its far end."""

    def __init__(self, folder: Path, keys: Keys, programs: Path) -> None:
        self._folder = folder
        self._name = f"dflash-{folder.name}"
        self._near = f"dfl-{random.getrandbits(32):08x}"
        # 198.18.0.0/15 is set aside for tests between networks (RFC 2544); a /30 of it is ours.
        block = random.randrange(1, 2**15) * 4
        self._near_address, address = (
            f"198.{18 + block // 2**16}.{block // 256 % 256}.{block % 256 + n}" for n in (1, 2)
        )
        self.host = Sshd(
            folder / "wire", keys, address, programs=programs, through=["nsenter", f"--net=/run/netns/{self._name}"]
        )

    def start(self) -> None:
        (self._folder / "netns").write_text(self._name)
        call("ip", "netns", "add", self._name)
        call("ip", "link", "add", self._near, "type", "veth", "peer", "name", "far", "netns", self._name)
        call("ip", "address", "add", f"{self._near_address}/30", "dev", self._near)
        call("ip", "link", "set", self._near, "up")
        self._inside("ip", "address", "add", f"{self.host.address}/30", "dev", "far")
        self._inside("ip", "link", "set", "far", "up")
        self._inside("ip", "link", "set", "lo", "up")
        self.host.start()

    def drop(self) -> None:
        """From now on lose every packet, both ways, without a word to either end."""
        for chain in ("INPUT", "OUTPUT"):
            self._inside("iptables", "-w", "20", "-A", chain, "-j", "DROP")

    def restore(self) -> None:
        """Undo `drop` and `limit`. Waiting retransmissions of TCP may still take seconds to come."""
        for chain in ("INPUT", "OUTPUT"):
            self._inside("iptables", "-w", "20", "-F", chain)
        self._inside("tc", "qdisc", "del", "dev", "far", "root", check=False)

    def limit(self, bytes_per_s: int) -> None:
        """Let no more than `bytes_per_s` come from the host; what waits is at most 200 ms old."""
        rate = ["rate", f"{bytes_per_s * 8}bit", "burst", "32kb", "latency", "200ms"]
        self._inside("tc", "qdisc", "replace", "dev", "far", "root", "tbf", *rate)

    def _inside(self, *argv: str, check: bool = True) -> None:
        call("nsenter", f"--net=/run/netns/{self._name}", *argv, check=check)


def remove_namespace(folder: Path) -> None:
    """Delete the namespace that a session of `folder` made, and with it both ends of its link."""
    try:
        name = (folder / "netns").read_text()
    except FileNotFoundError:
        return
    if not name.startswith("dflash-"):
        raise LabError(f"{name!r} is no namespace of the lab")
    call("ip", "netns", "delete", name, check=False)
