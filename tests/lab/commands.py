"""Running the lab's programs: bounded, quiet when they succeed, with their own words when they fail."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path


class LabError(Exception):
    """Something of the lab did not come up or did not do as told; the text holds what the program said."""


def call(*argv: str | Path, timeout_s: float = 30.0, check: bool = True) -> str:
    """Run `argv` and return its standard output. Raises: LabError with both streams, unless `check` is false."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
            env=plain_environment(),
        )
    except subprocess.TimeoutExpired as late:
        raise LabError(f"{' '.join(words)}: still running after {timeout_s:g} s") from late
    if check and done.returncode:
        raise LabError(f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def plain_environment() -> dict[str, str]:
    """Return this process's environment in the C locale, with the system's folders on PATH."""
    path = os.environ.get("PATH", "")
    return {**os.environ, "LC_ALL": "C", "PATH": f"{path}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"}


def descendants(pid: int) -> list[int]:
    """Return the pids of all living descendants of `pid`, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text(errors="replace")
        except OSError:
            continue  # ended since
        parent = int(stat.rpartition(")")[2].split()[1])
        children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    rest = [pid]
    while rest:
        below = children.get(rest.pop(0), [])
        found += below
        rest += below
    return found


def argv_of(pid: int, proc: Path = Path("/proc")) -> list[str]:
    """Return the command line of `pid`, empty where it has ended or has none."""
    try:
        raw = (proc / str(pid) / "cmdline").read_bytes()
    except OSError:
        return []
    return [word.decode(errors="surrogateescape") for word in raw.rstrip(b"\0").split(b"\0")] if raw else []


def joined(argv: Sequence[str]) -> str:
    """Return `argv` as ssh would send it: joined by blanks, quoted by nobody."""
    return " ".join(argv)
