"""Runs that were started by hand, recognised by an exact argv element of a Python process, with their kin.

A name within a command line is never enough: the *script* of a python, torchrun, accelerate or deepspeed process must
be the one looked for. Editors, pagers, greps and shells with `-c` that carry the name are bystanders. Signals nothing.
Reads command lines, which can hang on a wedged process: callers run this through `bounded`.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import pwd
import re
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set

from . import procfs

_PYTHON = re.compile(r"(python|pypy)[\d.]*[a-z]?$")
_LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed"})
_LAUNCHER_MODULES = frozenset(
    {
        "torch.distributed.run",
        "torch.distributed.launch",
        "accelerate.commands.launch",
        "deepspeed.launcher.runner",
        "deepspeed.launcher.launch",
        "debugpy",
        "cProfile",
        "coverage",
        "pdb",
        "viztracer",
        "scalene",
    }
)
_OPTIONS_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "busybox"})
_SPAWNED_WORKER = re.compile(r"from multiprocessing\.(spawn|forkserver|resource_tracker) import")
_INVISIBLE_STDOUT = ("/dev/", "pipe:", "socket:", "anon_inode:")
_ORIGINS = ("sshd", "tmux: server", "screen", "cron", "crond", "lxc-attach", "login", "code-server", "jupyter-lab")


class _World(NamedTuple):
    """One look at the machine: everything below reads from it, so that all answers are of the same moment."""

    stats: procfs.Table
    argvs: Dict[int, List[str]]
    ours: Set[int]
    """Ourselves and our ancestors: never part of a run."""


def find_runs(
    match: Sequence[str],
    exclude_pids: Iterable[int] = (),
    log_glob: str = "",
    cwd: str = "",
) -> List[Dict[str, Any]]:
    """Return one dict shaped like protocol.HandRun for each run of `match` outside of `exclude_pids`.

    `log_glob` (the log template with `*` for the name) and `cwd` find what is left of a run whose main process died:
    orphans that still write such a log, and orphaned workers from there that hold the GPUs.
    """
    world = _look()
    excluded = set(exclude_pids) | world.ours
    matched = {
        pid: _matching(world.argvs[pid], match) for pid in world.stats if pid not in excluded and _is_python(world, pid)
    }
    hits = {pid: element for pid, element in matched.items() if element}
    tops = [pid for pid in sorted(hits) if not _parents(world, pid) & set(hits)]
    found = [_run(world, pid, hits[pid], excluded) for pid in tops]
    runs = _merged(found)
    claimed = excluded.union(*[_pids_of(run) for run in runs]) if runs else excluded
    return runs + _remains(world, claimed, match, log_glob, cwd)


def may_be_of_a_run(argvs: Mapping[int, Sequence[str]], match: Sequence[str], log_glob: str = "") -> bool:
    """Whether any of these processes, taken alone, is what `find_runs` begins a run with. Reads nothing that hangs."""
    for pid, argv in argvs.items():
        output = procfs.fd_target(pid, 1).replace(" (deleted)", "")
        if _matching(argv, match) or _is_spawned_worker(argv) or (log_glob and fnmatch.fnmatch(output, log_glob)):
            return True
    return False


def bystanders(match: Sequence[str], exclude_pids: Iterable[int] = ()) -> List[Dict[str, Any]]:
    """Return processes that carry a name of `match` in their command line without being a run (WireProcess dicts).

    `exclude_pids`: the pids of the runs found before.
    """
    world = _look()
    excluded = set(exclude_pids) | world.ours
    names = [os.path.basename(element) for element in match if element]
    carriers = [
        pid
        for pid, argv in sorted(world.argvs.items())
        if pid not in excluded and any(name in argument for name in names for argument in argv)
    ]
    return [wire_process(world.stats[pid], world.argvs[pid]) for pid in carriers]


def wire_process(stat: procfs.Stat, argv: Sequence[str]) -> Dict[str, Any]:
    """Return one process as protocol.WireProcess, without what costs more than its stat line."""
    return {
        "pid": stat.pid,
        "start": stat.start,
        "ppid": stat.ppid,
        "argv": list(argv),
        "state": stat.state,
        "age_s": round(procfs.age_s(stat), 1),
        "rss": stat.rss_bytes,
    }


def matched_element(argv: Sequence[str], match: Sequence[str]) -> Optional[str]:
    """Return the element of a Python process's command line by which it is a run of `match`, else None."""
    return _matching(argv, match) if argv and _names_python(argv[0]) else None


# -- recognising ------------------------------------------------------------------------------------------------------


def _look() -> _World:
    """Read all processes of our pid namespace: from a host, the runs inside its containers are not ours to end."""
    own = os.getpid()
    here = (procfs.pid_namespace(own), "")
    stats = {
        pid: stat
        for pid, stat in procfs.table().items()
        if not procfs.is_gone(stat) and (stat.is_kernel or procfs.pid_namespace(pid) in here)
    }
    argvs = {pid: [] if stat.is_kernel else procfs.argv(pid) for pid, stat in stats.items()}
    return _World(stats, argvs, {own} | set(procfs.ancestors(own)))


def _names_python(path: str) -> bool:
    name = os.path.basename(path)
    return bool(_PYTHON.match(name)) or name in _LAUNCHERS


def _is_python(world: _World, pid: int) -> bool:
    argv = world.argvs[pid]
    return bool(argv) and (_names_python(argv[0]) or _names_python(procfs.exe(pid)))


def _is_named(argument: str, match: Sequence[str]) -> bool:
    return any(element and (argument == element or os.path.basename(argument) == element) for element in match)


def _matching(argv: Sequence[str], match: Sequence[str]) -> Optional[str]:
    """Return the argument that is the script of this Python command line, if `match` names it."""
    if not argv:
        return None
    if os.path.basename(argv[0]) in _LAUNCHERS:
        return _first_named(argv[1:], match)
    index = 1
    while index < len(argv):
        argument = argv[index]
        if argument in _OPTIONS_WITH_VALUE:
            index += 2
        elif argument == "-m":
            return _of_module(argv[index + 1 :], match)
        elif argument.startswith("-m") or argument == "-c" or (argument.startswith("-") and argument.endswith("c")):
            return None
        elif argument.startswith("-") and argument != "-":
            index += 1
        elif os.path.basename(argument) in _LAUNCHERS:
            return _first_named(argv[index + 1 :], match)
        else:
            return argument if _is_named(argument, match) else None
    return None


def _of_module(arguments: Sequence[str], match: Sequence[str]) -> Optional[str]:
    if not arguments:
        return None
    if arguments[0] in _LAUNCHER_MODULES:
        return _first_named(arguments[1:], match)
    return arguments[0] if _is_named(arguments[0], match) else None


def _first_named(arguments: Sequence[str], match: Sequence[str]) -> Optional[str]:
    return next((argument for argument in arguments if _is_named(argument, match)), None)


# -- kin --------------------------------------------------------------------------------------------------------------


def _run(world: _World, main: int, element: str, excluded: Set[int]) -> Dict[str, Any]:
    log = _log_of(world, main)
    pids = _kin(world, main, log, excluded)
    stat = world.stats[main]
    return {
        "main": {"pid": main, "start": stat.start},
        "argv": world.argvs[main],
        "matched": element,
        "cwd": procfs.cwd(main),
        "age_s": round(procfs.age_s(stat), 1),
        "started_by": _started_by(world, main),
        "session": procfs.cgroup_session(main),
        "pids": [{"pid": pid, "start": world.stats[pid].start} for pid in sorted(pids)],
        "log": log,
    }


def _kin(world: _World, main: int, log: Optional[Dict[str, Any]], excluded: Set[int]) -> Set[int]:
    kin = {main}
    while True:
        grown = kin | procfs.descendants(kin, world.stats) | _pipeline_readers(world, kin, excluded)
        if log is not None:
            grown |= _writers_of(world, log, grown, excluded)
        grown |= _orphaned_workers(world, kin, excluded)
        grown |= _scripts_above(world, grown, excluded)
        grown -= excluded
        if grown == kin:
            return kin
        kin = grown


def _scripts_above(world: _World, kin: Set[int], excluded: Set[int]) -> Set[int]:
    """Shells that run a script file and have no children but ours: the run.sh above a trainer."""
    found: Set[int] = set()
    for pid in kin:
        parent = world.stats[pid].ppid
        if parent in excluded or parent in kin or parent not in world.stats:
            continue
        if _belongs_above(world, parent, kin):
            found.add(parent)
    return found


def _belongs_above(world: _World, shell: int, kin: Set[int]) -> bool:
    return _is_script_shell(world.argvs[shell]) and set(procfs.children(shell, world.stats)) <= kin


def _is_shell(argv: Sequence[str]) -> bool:
    return bool(argv) and os.path.basename(argv[0]).lstrip("-") in _SHELLS


def _is_script_shell(argv: Sequence[str]) -> bool:
    if not _is_shell(argv):
        return False
    for argument in argv[1:]:
        if argument.startswith("-") and not argument.startswith("--") and "c" in argument:
            return False
        if not argument.startswith(("-", "+")):
            return True
    return False


def _is_command_shell(argv: Sequence[str]) -> bool:
    return _is_shell(argv) and not _is_script_shell(argv)


def _writers_of(world: _World, log: Dict[str, Any], kin: Set[int], excluded: Set[int]) -> Set[int]:
    """Processes whose stdout or stderr is the run's log. Pagers hold it for reading, so they aren't among them."""
    found: Set[int] = set()
    for pid in world.stats:
        if pid in excluded or not any(
            procfs.fd_target(pid, fd) == log["path"] and procfs.fd_writes(pid, fd) for fd in (1, 2)
        ):
            continue
        # dash redirects itself while a redirected command runs, so a shell must pass the test of _scripts_above too.
        if not _is_shell(world.argvs[pid]) or _belongs_above(world, pid, kin):
            found.add(pid)
    return found


def _pipeline_readers(world: _World, kin: Set[int], excluded: Set[int]) -> Set[int]:
    """The `tee` of `python train.py | tee log`: its stdin is the pipe that the run writes to."""
    pipes = {
        target for pid in kin for fd in (1, 2) for target in [procfs.fd_target(pid, fd)] if target.startswith("pipe:")
    }
    if not pipes:
        return set()
    readers = {pid for pid in world.stats if pid not in excluded and procfs.fd_target(pid, 0) in pipes}
    return {pid for pid in readers if not _is_command_shell(world.argvs[pid])}


def _orphaned_workers(world: _World, kin: Set[int], excluded: Set[int]) -> Set[int]:
    sessions = {world.stats[pid].sid for pid in kin} - {0}  # 0: a session outside of this pid namespace
    alike = [pid for pid, stat in world.stats.items() if pid not in excluded and stat.sid in sessions]
    return {pid for pid in alike if _is_orphan(world, pid) and _is_spawned_worker(world.argvs[pid])}


def _is_spawned_worker(argv: Sequence[str]) -> bool:
    return any(_SPAWNED_WORKER.match(argument) for argument in argv[1:4])


def _is_orphan(world: _World, pid: int) -> bool:
    parent = world.stats.get(world.stats[pid].ppid)
    return parent is None or parent.pid == 1 or parent.comm in ("systemd", "init")


# -- the run as one ---------------------------------------------------------------------------------------------------


def _log_of(world: _World, main: int) -> Optional[Dict[str, Any]]:
    """The regular file behind stdout, also through the `tee` of a pipeline."""
    target = procfs.fd_target(main, 1)
    if target.startswith("pipe:"):
        for reader in _pipeline_readers(world, {main}, world.ours):
            for fd, name in sorted(procfs.fd_targets(reader).items()):
                if name.startswith("/") and not name.startswith("/dev/") and procfs.fd_writes(reader, fd):
                    return _ident(reader, fd, name)
        return None
    return _ident(main, 1, target) if target and not target.startswith(_INVISIBLE_STDOUT) else None


def _ident(pid: int, fd: int, path: str) -> Optional[Dict[str, Any]]:
    try:
        found = os.stat("/proc/%d/fd/%d" % (pid, fd))
    except OSError:
        return None
    return {"path": path, "dev": found.st_dev, "inode": found.st_ino}


def _pids_of(run: Dict[str, Any]) -> Set[int]:
    return {entry["pid"] for entry in run["pids"]}


def _merged(runs: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Join runs that share a process (ranks whose launcher died, kin by one log); the oldest is the main one."""
    joined: List[Dict[str, Any]] = []
    for run in sorted(runs, key=lambda each: each["main"]["start"]):
        for other in joined:
            if _pids_of(other) & _pids_of(run):
                both = {entry["pid"]: entry for entry in other["pids"] + run["pids"]}
                other["pids"] = [both[pid] for pid in sorted(both)]
                break
        else:
            joined.append(run)
    return joined


def _remains(world: _World, claimed: Set[int], match: Sequence[str], log_glob: str, cwd: str) -> List[Dict[str, Any]]:
    """Runs whose main process is gone: told by the log that they still write, or by GPU memory of orphaned workers."""
    logs = set(glob.glob(log_glob)) if log_glob else set()
    runs: List[Dict[str, Any]] = []
    for pid in sorted(world.stats):
        if pid in claimed or not world.argvs[pid] or not _is_orphan(world, pid) or _is_command_shell(world.argvs[pid]):
            continue
        clue = _clue(world, pid, logs, cwd)
        if clue:
            runs.append(_run(world, pid, clue, claimed))
    return _merged(runs)


def _clue(world: _World, pid: int, logs: Set[str], cwd: str) -> str:
    # A run.sh that is still starting (no trainer yet) writes the log too; it is as much of a run as its trainer.
    target = procfs.fd_target(pid, 1)
    if target and target.replace(" (deleted)", "") in logs and procfs.fd_writes(pid, 1):
        return target
    if _is_spawned_worker(world.argvs[pid]) and cwd and procfs.cwd(pid) == cwd and procfs.holds_uvm(pid):
        return "/dev/nvidia-uvm"
    return ""


def _started_by(world: _World, pid: int) -> str:
    """Who and through what, as far as it can be seen: `root, sshd`, `ops, tmux: server`, `root`."""
    uid = procfs.owner_uid(pid)
    try:
        who = pwd.getpwuid(uid).pw_name if uid is not None else ""
    except KeyError:
        who = "uid %d" % uid if uid is not None else ""
    above = [world.stats[parent].comm for parent in procfs.ancestors(pid) if parent in world.stats]
    through = next((comm for comm in above if comm in _ORIGINS), "")
    return ", ".join(part for part in (who, through) if part)


def _parents(world: _World, pid: int) -> Set[int]:
    found: Set[int] = set()
    while pid in world.stats and world.stats[pid].ppid not in found:
        pid = world.stats[pid].ppid
        found.add(pid)
    return found
