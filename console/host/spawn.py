"""Executing the run's command: no shell in between, an explicit environment, a fresh log, and exec's own errors.

Only the keeper imports this module, apart from `explain`, which preflight shares.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, NoReturn, Optional, Sequence, Tuple

_BUSY_TRIES, _BUSY_S = 10, 0.05  # ETXTBSY: somebody is still writing the file, as after a checkout or an rsync
_RUN_UMASK = 0o022
_MAX_SHEBANG_BYTES = 256


class SpawnError(Exception):
    """The command was not started. `reason` is a slug of the catalogue, `number` the errno."""

    def __init__(self, reason: str, detail: str, number: Optional[int] = None) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.number = number


class OpenedLog(NamedTuple):
    fd: int
    path: str
    dev: int
    inode: int


def run_environment(
    login: Mapping[str, str], declared: Mapping[str, str], unset: Sequence[str], cwd: str, run: str
) -> Dict[str, str]:
    """Return the run's whole environment: a login shell's, changed as the config says."""
    env = dict(login, PWD=cwd)
    for name in unset:
        env.pop(name, None)
    env.update(declared)
    if "PYTHONUNBUFFERED" not in declared and "PYTHONUNBUFFERED" not in unset:
        env["PYTHONUNBUFFERED"] = "1"
    env["DFLASH_RUN_ID"] = run
    return env


def open_log(path: str) -> OpenedLog:
    """Create the log, which must not exist: an old one is never overwritten. Raises: SpawnError."""
    # Readable by others as a shell's redirection would make it: it is the run's file, colleagues follow it.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    before = os.umask(_RUN_UMASK)
    try:
        fd = os.open(path, flags, 0o644)
    except FileExistsError as error:
        raise SpawnError("plan_changed", "%s exists by now" % path, error.errno) from error
    except OSError as error:
        raise SpawnError("log_not_opened", "%s: %s" % (path, error.strerror), error.errno) from error
    finally:
        os.umask(before)
    found = os.fstat(fd)
    return OpenedLog(fd, path, found.st_dev, found.st_ino)


def resolve(command: str, path: str, cwd: str) -> str:
    """Return the file that `command` names: as it is if it has a slash, else the first executable on `path`.

    Raises: SpawnError `command_not_found` or `exec_not_permitted`.
    """
    if "/" in command:
        return command
    found_but_not_executable = ""
    for directory in path.split(os.pathsep):
        candidate = os.path.join(cwd, directory, command)
        if os.path.isfile(candidate):
            if os.access(candidate, os.X_OK):
                return candidate
            found_but_not_executable = found_but_not_executable or candidate
    if found_but_not_executable:
        raise SpawnError("exec_not_permitted", "%s is not executable" % found_but_not_executable, errno.EACCES)
    raise SpawnError("command_not_found", "%s is not on PATH (%s)" % (command, path), errno.ENOENT)


def spawn(
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    log: OpenedLog,
    oom_score_adj: str,
    forked: Callable[[int], None] = lambda pid: None,
) -> int:
    """Fork and execute `argv` in a session of its own; return its pid once exec succeeded. Raises: SpawnError.

    `forked` is told the pid before anything is executed: a keeper killed between exec and its journal would leave a run
    that nobody knows of. Killed before it has returned, it leaves none.
    """
    program = resolve(argv[0], env.get("PATH", os.defpath), cwd)
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    reader, writer = os.pipe()
    go, starter = os.pipe()
    keeper = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(starter)
        if not os.read(go, 1):
            os._exit(127)  # the keeper is gone
        _become(program, argv, cwd, env, (null, log.fd, log.fd), oom_score_adj, writer, keeper)
    for descriptor in (writer, null, go):
        os.close(descriptor)
    try:
        forked(pid)
        os.write(starter, b"g")
    finally:
        os.close(starter)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read()  # ends at exec: the pipe is close-on-exec
    if not told:
        return pid
    os.waitpid(pid, 0)
    failure = json.loads(told)
    raise _explained(failure, program, cwd)


def _become(
    program: str,
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    descriptors: Tuple[int, int, int],
    oom_score_adj: str,
    writer: int,
    keeper: int,
) -> NoReturn:
    """In the child: never returns, tells the keeper what failed."""
    step = "chdir"
    try:
        os.setsid()
        _default_signals()
        os.umask(_RUN_UMASK)
        _restore_oom_score(oom_score_adj)
        os.chdir(cwd)
        step = "exec"
        for target, source in enumerate(descriptors):
            os.dup2(source, target)
        _exec(program, argv, env, keeper)
    except BaseException as error:  # noqa: BLE001 - nothing of the keeper's stack may run in the child
        failure = {"step": step, "errno": getattr(error, "errno", None), "text": str(error)}
        os.write(writer, json.dumps(failure).encode("utf-8", "surrogateescape"))
    os._exit(127)


def _exec(program: str, argv: Sequence[str], env: Mapping[str, str], keeper: int) -> None:
    for left in range(_BUSY_TRIES, 0, -1):
        if os.getppid() != keeper:
            return  # the keeper was killed meanwhile: a run that nobody watches must not start
        try:
            os.execve(program, list(argv), dict(env))
        except OSError as error:
            if error.errno != errno.ETXTBSY or left == 1:
                raise
        time.sleep(_BUSY_S)


def _default_signals() -> None:
    """The keeper ignores much, and Python ignores SIGPIPE and SIGXFSZ: the run must find what a shell gives it."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            try:
                signal.signal(number, signal.SIG_DFL)
            except (OSError, ValueError):
                pass  # reserved by the C library
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _restore_oom_score(value: str) -> None:
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(value)
    except OSError:
        pass


# -- what an errno of exec means --------------------------------------------------------------------------------------


def _explained(failure: Dict[str, Any], program: str, cwd: str) -> SpawnError:
    number, text = failure.get("errno"), failure.get("text", "")
    if failure.get("step") == "chdir":
        return SpawnError("cwd_missing" if number is not None else "exec_failed", text, number)
    if number is None:
        return SpawnError("exec_failed", text)
    reason, detail = explain(number, os.path.join(cwd, program))
    return SpawnError(reason, detail, number)


def explain(number: int, path: str) -> Tuple[str, str]:
    """Return reason and facts for an errno of exec: the number alone names the wrong culprit half of the time."""
    words = os.strerror(number)
    try:
        found = os.stat(path)
    except OSError as error:
        reason = "exec_not_permitted" if error.errno == errno.EACCES else "command_not_found"
        return reason, "%s: %s" % (path, error.strerror)
    interpreter = shebang(path)
    if number in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
        if not interpreter:
            return "bad_interpreter", "%s: its loader does not exist (%s)" % (path, words)
        return "bad_interpreter", "%s: interpreter %r: %s" % (path, interpreter[0], words)
    if number in (errno.EACCES, errno.EPERM):
        return _not_permitted(path, found, interpreter, words)
    if number == errno.ENOEXEC:
        return "exec_format", "%s: no #! line and no program (%s)" % (path, words)
    return "exec_failed", "%s: %s" % (path, words)


def _not_permitted(path: str, found: os.stat_result, interpreter: List[str], words: str) -> Tuple[str, str]:
    if stat.S_ISDIR(found.st_mode):
        return "exec_not_permitted", "%s is a directory" % path
    if os.statvfs(path).f_flag & os.ST_NOEXEC:  # before access(2), which refuses there whatever the mode
        return "exec_not_permitted", "%s is on a filesystem mounted noexec" % path
    if not os.access(path, os.X_OK):
        return "exec_not_permitted", "%s is not executable (mode %04o)" % (path, stat.S_IMODE(found.st_mode))
    if interpreter and not os.access(interpreter[0], os.X_OK):
        return "bad_interpreter", "%s: interpreter %r is not executable" % (path, interpreter[0])
    return "exec_not_permitted", "%s: %s" % (path, words)


def shebang(path: str) -> List[str]:
    """Return interpreter and optional argument of the `#!` line, as the kernel reads it (a CR stays part of it)."""
    try:
        with open(path, "rb") as file:
            line = file.read(_MAX_SHEBANG_BYTES).split(b"\n", 1)[0]
    except OSError:
        return []
    return [os.fsdecode(part) for part in line[2:].strip(b" \t").split(None, 1)] if line.startswith(b"#!") else []
