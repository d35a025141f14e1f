"""What is checked before anything is killed: whether the new run can start here, each check bounded in time.

`Preflight(...).checks()` returns WireCheck dicts. A check refuses only on what it has seen; what can't be told is a
warning. Touches nothing but a probe file in the state directory. Runs in a child of the agent (plan.py).
"""

from __future__ import annotations

import errno
import os
import pwd
import subprocess
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import bounded, busyfile, files, gpu, lock, logout, script, startkeeper

Check = Dict[str, Any]

GIB = 1 << 30
CHECK_S = 3.0
SYNTAX_S = 4.0
MODULES_S = 20.0
# Below this a log fills the disk within minutes, whatever is configured.
_LEAST_BYTES = 16 << 20
_LITTLE_BYTES = GIB
_PROBE_BYTES = 256 * 1024
_FOREIGN_BYTES = gpu.GIB // 2


class World(NamedTuple):
    """What the checks rest on beside the filesystem."""

    spec: Dict[str, Any]
    log_path: str
    env: Dict[str, str]
    """The environment that the run will have."""
    state: str
    sample: Dict[str, Any]
    """Newest GPU sample; {} where there is none."""
    judged: Dict[str, Any]
    """gpu.judge of it for the run that is to be replaced."""
    own_pids: List[int]
    """Processes that will be gone by then."""
    login_why: str = ""
    """Why the environment is not a login shell's; "" where it is."""


def checks(world: World, action: str) -> List[Check]:
    """Run all checks of `action` and return their outcomes, in the order of the screen."""
    steps: List[Tuple[Callable[[World], Any], str, float]] = [
        (state_dir, "state_dir", CHECK_S),
        (_lock, "lock", CHECK_S),
    ]
    if action == "restart":
        steps = [
            (_command, "command", SYNTAX_S + CHECK_S),
            (_cwd, "cwd", CHECK_S),
            (_log_dir, "log_dir", CHECK_S),
            (_free_space, "free_space", CHECK_S),
            (_files, "files", CHECK_S),
            (_modules, "modules", MODULES_S + CHECK_S),
            (gpus, "gpus", CHECK_S),
            (gpu_memory, "gpu_memory_foreign", CHECK_S),
            *reversed(steps),
            (_survives_logout, "survives_logout", CHECK_S),
        ]
    return [check for step, name, timeout_s in steps for check in _bounded(step, world, name, timeout_s)]


def _bounded(step: Callable[[World], Any], world: World, name: str, timeout_s: float) -> List[Check]:
    try:
        answer = bounded.call(lambda: step(world), timeout_s)
    except bounded.TookTooLong:
        return [_check(name, "warn", f"no answer in {timeout_s:g} s")]
    except bounded.ChildFailed as failure:
        return [_check(name, "warn", f"could not be checked: {failure}")]
    return answer if isinstance(answer, list) else [answer] if answer else []


def _check(name: str, state: str, detail: str = "", reason: Optional[str] = None, label: str = "") -> Check:
    return {"id": name, "state": state, "detail": detail, "reason": reason, "label": label or name.replace("_", " ")}


# -- the command ------------------------------------------------------------------------------------------------------


def _command(world: World) -> List[Check]:
    """command, interpreter and syntax: three checks that stand on each other."""
    spec, search = world.spec, world.env.get("PATH", "")
    words = list(spec.get("command") or ())
    base = os.path.basename(words[0]) if words else "command"
    found, problem = script.analyse(words, spec.get("cwd") or "/", search)
    about_file = problem is not None and (found is None or problem.reason == "file_missing")
    if about_file:
        assert problem is not None
        return [_check("command", "refuse", problem.detail, problem.reason, base)]
    assert found is not None
    answers = [_ready(found, base)]
    if problem is not None:
        return [*answers, _check("interpreter", "refuse", problem.detail, problem.reason, f"{base}'s interpreter")]
    detail = found.reader or "a program"
    if world.login_why:
        answers.append(_check("interpreter", "warn", f"{detail}; {world.login_why}", label=f"{base}'s interpreter"))
    else:
        answers.append(_check("interpreter", "ok", detail, label=f"{base}'s interpreter"))
    return [*answers, *_syntax(found, world)]


def _ready(found: script.Command, base: str) -> Check:
    """The command itself: there, and nobody is writing it just now."""
    by = busyfile.writers(found.path)
    if by:
        told = f"{found.path} is open for writing by {', '.join(by[:3])}: exec says `Text file busy` until it is closed"
        return _check("command", "refuse", told, "exec_failed", base)
    return _check("command", "ok", found.path, label=base)


def _syntax(found: script.Command, world: World) -> List[Check]:
    label = f"{os.path.basename(found.script or found.path)}'s syntax"
    if found.script is None:
        return []
    problem, note = script.syntax(found, world.env)
    if problem is not None:
        return [_check("syntax", "refuse", problem.detail, problem.reason, label)]
    trouble = script.shell_trouble(found)
    if trouble is not None:
        return [_check("syntax", "warn", trouble.detail, trouble.reason, label)]
    return [_check("syntax", "warn" if "no answer" in note else "ok", note, label=label)]


def _modules(world: World) -> Optional[Check]:
    wanted = list((world.spec.get("preflight") or {}).get("modules") or ())
    if not wanted:
        return None
    label = ", ".join(wanted)
    search = world.env.get("PATH", "")
    found, _ = script.analyse(list(world.spec.get("command") or ()), world.spec.get("cwd") or "/", search)
    if found is None:
        return _check("modules", "warn", "the command is not there, so neither is its Python", label=label)
    python, certain = script.python_of(found, list(world.spec.get("match") or ()), search)
    if python is None:
        return _check("modules", "warn", "no Python is on the run's PATH", label=label)
    code = (
        "import importlib.util as u, sys\nsys.path.insert(0, '')\n"
        "def missing(name):\n try: return u.find_spec(name) is None\n except ImportError: return True\n"
        "print(' '.join(name for name in sys.argv[1:] if missing(name)))"
    )
    try:
        done = subprocess.run(
            [python, "-c", code, *wanted],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=world.spec.get("cwd") or "/",
            env=world.env,
            timeout=MODULES_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _check("modules", "warn", f"{python} gave no answer in {MODULES_S:g} s", label=label)
    except OSError as error:
        return _check("modules", "warn", f"{python}: {error.strerror}", label=label)
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return _check("modules", "warn", f"{python}: {said[-1] if said else done.returncode}"[:300], label=label)
    missing = done.stdout.decode("utf-8", "replace").split()
    if not missing:
        return _check("modules", "ok", f"found by {python}", label=label)
    told = f"{python} does not find {', '.join(missing)}" + ("" if certain else "; run.sh may use another Python")
    return _check("modules", "refuse" if certain else "warn", told, "missing_module", label)


# -- places -----------------------------------------------------------------------------------------------------------


def _cwd(world: World) -> Check:
    cwd = world.spec.get("cwd") or "/"
    if not os.path.isdir(cwd):
        what = "is not a directory" if os.path.lexists(cwd) else "does not exist"
        return _check("cwd", "refuse", f"{cwd} {what}", "cwd_missing")
    if not os.access(cwd, os.X_OK):
        return _check("cwd", "refuse", f"{cwd} may not be entered", "cwd_missing")
    return _check("cwd", "ok", cwd)


def _log_dir(world: World) -> Check:
    folder = os.path.dirname(world.log_path) or "/"
    if not os.path.isdir(folder):
        what = "is not a directory" if os.path.lexists(folder) else "does not exist"
        return _check("log_dir", "refuse", f"{folder} {what}", "log_dir_missing", "log dir")
    if not os.access(folder, os.W_OK | os.X_OK):
        read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
        why = "lies on a read-only filesystem" if read_only else "may not be written to"
        return _check("log_dir", "refuse", f"{folder} {why}", "log_dir_unwritable", "log dir")
    return _check("log_dir", "ok", folder, label="log dir")


def _free_space(world: World) -> Check:
    folder = os.path.dirname(world.log_path) or "/"
    try:
        space = os.statvfs(folder)
    except OSError as error:
        return _check("free_space", "warn", f"{folder}: {error.strerror}")
    free = space.f_bavail * space.f_frsize
    label = f"{size(free)} free"
    wanted_gib = (world.spec.get("preflight") or {}).get("free_gib")
    if wanted_gib is not None and free < wanted_gib * GIB:
        told = f"{size(free)} free for {folder}, {wanted_gib:g} GiB are asked for"
        return _check("free_space", "refuse", told, "disk_space_low", label)
    if free < _LEAST_BYTES:
        return _check("free_space", "refuse", f"{size(free)} free for {folder}", "disk_space_low", label)
    if space.f_files and not space.f_favail:
        return _check("free_space", "refuse", f"no inode is free for {folder}", "disk_space_low", label)
    if wanted_gib is None and free < _LITTLE_BYTES:
        return _check("free_space", "warn", f"{size(free)} free for {folder}", "disk_space_low", label)
    return _check("free_space", "ok", f"{size(free)} free for {folder}", label=label)


def size(count: int) -> str:
    if count < GIB:
        return f"{count >> 20} MiB"
    return f"{count / GIB:.0f} GiB" if count >= 10 * GIB else f"{count / GIB:.1f} GiB"


def _files(world: World) -> List[Check]:
    answers = []
    for path in (world.spec.get("preflight") or {}).get("files") or ():
        there = os.path.exists(os.path.join(world.spec.get("cwd") or "/", path))
        detail = path if there else f"{path} does not exist"
        answers.append(_check("files", "ok" if there else "refuse", detail, None if there else "file_missing", path))
    return answers


def state_dir(world: World) -> Check:
    """Make it and fill a probe file: a full disk shows only when blocks are asked for."""
    folder = files.runs_dir(world.state, world.spec["target"])
    probe = os.path.join(folder, f".probe-{os.getpid()}")
    try:
        files.secure_makedirs(folder)
        fd = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, 0, _PROBE_BYTES)
        finally:
            os.unlink(probe)
            os.close(fd)
    except files.Unusable as error:
        return _check("state_dir", "refuse", str(error), "state_dir_unusable", "state dir")
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            told = f"{folder}: {error.strerror}"
            return _check("state_dir", "refuse", told, "state_dir_unusable", "state dir")
    return _check("state_dir", "ok", folder, label="state dir")


def _lock(world: World) -> Check:
    holder = lock.read_holder(files.lock_path(world.state, world.spec["target"]))
    if holder is None:
        return _check("lock", "ok", "free")
    told = f"held by {holder.get('operator') or 'somebody'}, {holder.get('name', '')} at {holder.get('stage', '?')}"
    return _check("lock", "refuse", told, "restart_under_way")


# -- GPUs -------------------------------------------------------------------------------------------------------------


def gpus(world: World) -> Check:
    expected = (world.spec.get("gpus") or {}).get("expected")
    source, listed = world.sample.get("source", "none"), len(world.sample.get("gpus") or ())
    label = f"{expected or listed} GPUs"
    if not listed:
        why = world.sample.get("why") or "no GPU is listed"
        told = f"no GPU can be seen ({source}: {why})"
        return _check("gpus", "warn", told, "gpus_missing" if expected else None, label if expected else "GPUs")
    if expected is not None and listed < expected:
        return _check("gpus", "refuse", f"{listed} of {expected} GPUs are listed by {source}", "gpus_missing", label)
    lost = [str(each["i"]) for each in world.sample["gpus"] if each.get("lost") or each.get("warning")]
    if lost:
        return _check("gpus", "warn", f"GPU {', '.join(lost)} does not answer", "gpus_missing", label)
    return _check("gpus", "ok", f"{listed} listed by {source}", label=label)


def gpu_memory(world: World) -> List[Check]:
    """Memory that will still be held when the old run is gone: told by name, never a reason to kill."""
    answers = []
    owners = {each["i"]: each["owner"] for each in world.judged.get("gpus") or ()}
    whys = {each["i"]: each.get("why") for each in world.judged.get("gpus") or ()}
    own = set(world.own_pids)
    for each in world.sample.get("gpus") or ():
        foreign = [(pid, used) for pid, used in each.get("procs") or () if pid not in own]
        big = [(pid, used) for pid, used in foreign if used is None or used >= _FOREIGN_BYTES]
        if owners.get(each["i"]) == "nobody":
            told = f"GPU {each['i']}: {size(each['used'])} are held by no process that can be seen from here"
            answers.append(_check("gpu_memory_foreign", "warn", told, "gpu_memory_foreign", "GPU memory"))
        elif owners.get(each["i"]) == "unknown" and not each.get("procs"):
            amount = "memory" if each.get("used") is None else size(each["used"])
            told = f"GPU {each['i']}: whose {amount} is can't be told: {whys.get(each['i']) or 'no process is listed'}"
            answers.append(_check("gpu_memory_foreign", "warn", told, "gpu_memory_foreign", "GPU memory"))
        elif owners.get(each["i"]) != "run":
            for pid, used in big:
                held = "memory" if used is None else size(used)
                told = f"GPU {each['i']}: pid {pid} ({_who(pid)}) holds {held}"
                answers.append(_check("gpu_memory_foreign", "warn", told, "gpu_memory_foreign", "GPU memory"))
    if not answers and world.sample.get("gpus"):
        answers.append(_check("gpu_memory_foreign", "ok", "nobody else holds GPU memory", label="GPU memory"))
    return answers


def _who(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            comm = os.fsdecode(file.read().strip())
        return f"{comm}, {_user(os.stat(f'/proc/{pid}').st_uid)}"
    except OSError:
        return "not visible from here"


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


# -- logout -----------------------------------------------------------------------------------------------------------


def _survives_logout(world: World) -> Check:
    label = "outlives the login"
    if os.geteuid() == 0:
        return _check("survives_logout", "ok", "root's processes are not ended at logout", label=label)
    if startkeeper.has_user_manager():
        return _check("survives_logout", "ok", "a user service of a lingering user", label=label)
    if not logout.has_systemd():
        return _check("survives_logout", "ok", "no systemd, so nobody ends it at logout", label=label)
    logind, name = logout.ask(), startkeeper.user_name()
    if logind.kills:
        told = f"{logind.source}: KillUserProcesses=yes ends it at logout"
        told += f"; as root `loginctl enable-linger {name}` prevents it"
        return _check("survives_logout", "refuse", told, "dies_at_logout", label)
    if logind.kills is None:
        told = f"logind's KillUserProcesses can't be read; `loginctl enable-linger {name}` makes sure"
        return _check("survives_logout", "warn", told, "dies_at_logout", label)
    return _check("survives_logout", "ok", "KillUserProcesses=no", label=label)
