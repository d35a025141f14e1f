"""What this machine lacks for the lab, in words."""

import os
import shutil
from pathlib import Path

_PROGRAMS = {
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "/usr/sbin/sshd": "openssh-server",
    "lxc-start": "lxc",
    "lxc-attach": "lxc",
    "ip": "iproute2",
    "iptables": "iptables",
    "lxcfs": "lxcfs",
    "nsenter": "util-linux",
}


def missing() -> list[str]:
    """Return one phrase for each thing that the lab needs and does not find; empty when it can come up."""
    complaints = [] if os.geteuid() == 0 else ["not root"]
    complaints += [f"no {name} (package {package})" for name, package in _PROGRAMS.items() if not shutil.which(name)]
    if not Path("/sys/fs/cgroup/cgroup.procs").exists() and not any(Path("/sys/fs/cgroup").glob("*/cgroup.procs")):
        complaints.append("no control groups mounted at /sys/fs/cgroup")
    return complaints


def why_no_lab() -> str | None:
    """Return the reason why the lab can't come up, or None."""
    complaints = missing()
    return f"the lab needs more than this machine has: {', '.join(complaints)}" if complaints else None
