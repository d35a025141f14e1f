"""How a request becomes a keeper: run directory, request.json, and a process that outlives everything of ours.

The run directory is made by exclusive mkdir, so a resend starts nothing. The keeper is started as a systemd service
where a system manager answers, as a user service where the user lingers, else by double fork. What it does then is its
own; the agent only reads the files it writes.
"""

from __future__ import annotations

import os
import pwd
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List, Optional

from . import files, loader, procfs, request

FIRST_WORD_S = 10.0
"""How long a new keeper may take to say that it is there: beside busy data loaders Python takes seconds to start."""
SLOW_WORD_S = 25.0
"""The same for one that is seen to live: on a busy host it takes seconds to look through the processes."""
SYSTEMD_RUN_S = 3.0
_RUN_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}\Z")
_SYSTEM_SOCKET = "/run/systemd/private"
_ERROR_TAIL_BYTES = 2000

# HOST.md of the design, 2: the defaults kill the run along with the keeper.
_PROPERTIES = (
    "Type=exec",
    "KillMode=process",
    "OOMPolicy=continue",
    "Delegate=yes",
    "TasksMax=infinity",
    "IgnoreSIGPIPE=no",
    "SendSIGHUP=no",
    "LimitNPROC=infinity",
    "LimitMEMLOCK=infinity",
    "LimitCORE=0",
    "StandardInput=null",
)


class NotStarted(Exception):
    """No keeper runs; `reason` is a slug of the catalogue, the text its detail."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def is_run_id(text: Any) -> bool:
    return isinstance(text, str) and _RUN_ID.match(text) is not None


# -- the request ------------------------------------------------------------------------------------------------------


def make_run_dir(state: str, target: str, run: str) -> Optional[str]:
    """Make the directory of a new run; None where it exists already (a resend).

    Raises: NotStarted where the state directory can't be used.
    """
    directory = files.run_dir(state, target, run)
    try:
        files.secure_makedirs(os.path.dirname(directory))
        os.mkdir(directory, 0o700)
    except FileExistsError:
        return None
    except files.Unusable as error:
        raise NotStarted("state_dir_unusable", str(error)) from error
    except OSError as error:
        raise NotStarted("state_dir_unusable", f"{directory}: {error.strerror}") from error
    return directory


def write_request(directory: str, operation: Dict[str, Any], known: Dict[str, Any]) -> None:
    """Write request.json. `known`: what the agent adds to the operation. Raises: NotStarted."""
    now_bt = procfs.boottime()
    asked = {key: value for key, value in operation.items() if key not in ("op", "id")}
    asked.update(known)
    asked.update(
        accepted_bt=now_bt,
        accepted_wall=time.time(),
        expires_bt=now_bt + float(operation.get("ttl_s", 60.0)),
        boot=procfs.boot_identity(),
    )
    try:
        files.write_json(directory, request.NAME, asked)
    except OSError as error:
        raise NotStarted("state_dir_unusable", f"{directory}: {error.strerror}") from error


def write_program(directory: str) -> None:
    """Write what a keeper is started from. Raises: NotStarted."""
    try:
        for name, content in zip(("start.bin", "start.py"), reversed(loader.program())):
            _replace(os.path.join(directory, name), content)
    except OSError as error:
        raise NotStarted("state_dir_unusable", f"{directory}: {error.strerror}") from error


def is_asked(directory: str) -> bool:
    """Whether the request stands there, whole."""
    return files.read_json(directory, request.NAME) is not None


def is_taken(directory: str) -> bool:
    """Whether a keeper has begun to carry it out. If not, its agent may have been lost before it could start one."""
    return os.path.lexists(os.path.join(directory, request.CLAIM))


def withdraw(directory: str) -> None:
    """Let the request expire, so that a keeper which comes to life later does nothing."""
    asked = files.read_json(directory, request.NAME)
    if asked is not None:
        asked["expires_bt"] = request.WITHDRAWN_BT
        try:
            files.write_json(directory, request.NAME, asked)
        except OSError:
            pass  # it expires by itself within its time


def _replace(path: str, content: bytes) -> None:
    """Whole or not at all: another agent may be at it, or have been lost amid it."""
    part = f"{path}.{os.urandom(4).hex()}"
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
    os.rename(part, path)


# -- the process ------------------------------------------------------------------------------------------------------


def has_system_manager() -> bool:
    """Whether a systemd system manager answers us, so that services can be started."""
    return os.geteuid() == 0 and shutil.which("systemd-run") is not None and _answers(_SYSTEM_SOCKET)


def has_user_manager() -> bool:
    """Whether a user manager of ours answers that stays after logout (lingering)."""
    uid = os.geteuid()
    return (
        uid != 0
        and shutil.which("systemd-run") is not None
        and os.path.exists(f"/var/lib/systemd/linger/{user_name()}")
        and _answers(f"/run/user/{uid}/systemd/private")
    )


def user_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.2)
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


def python() -> str:
    """The interpreter that runs us; a faked argv[0] may have emptied sys.executable."""
    return sys.executable or os.readlink("/proc/self/exe")


class Start:
    """A keeper that is being started: call `advance` until it returns True, then look at `record` or `error`."""

    def __init__(self, directory: str, read: Callable[[], Optional[Dict[str, Any]]], unit: Optional[str]) -> None:
        """Start the keeper of `directory`; without a `unit` (a resend) only wait for the word of the one there."""
        self.directory = directory
        self.record: Optional[Dict[str, Any]] = None
        self.error: Optional[NotStarted] = None
        self.how = "started before"
        self.notes: List[str] = []
        self._read = read
        self._began = time.monotonic()
        self._systemd: Optional[subprocess.Popen[bytes]] = None
        self._systemd_until = time.monotonic() + SYSTEMD_RUN_S
        # -S: nothing of site-packages is wanted, and looking through it costs a fifth of the interpreter's start.
        self._command = [python(), "-I", "-S", os.path.join(directory, "start.py"), "keeper", directory]
        if unit is None:
            return
        if has_system_manager():
            self._start_service(unit, [])
        elif has_user_manager():
            self._start_service(unit, ["--user"])
        else:
            self._fork()

    def advance(self) -> bool:
        self._watch_systemd()
        record = self._read()
        if record is not None and record["state"] != "":
            self.record = record
            return True
        is_there = record is not None and bool(record["keeper_alive"])
        if time.monotonic() - self._began < (SLOW_WORD_S if is_there else FIRST_WORD_S):
            return False
        withdraw(self.directory)
        record = self._read()
        if record is not None and record["state"] != "":
            self.record = record
            return True
        self.error = NotStarted("keeper_not_started", self._why())
        return True

    def _why(self) -> str:
        said = _tail(os.path.join(self.directory, "start.log"))
        waited = f"no word from the keeper in {time.monotonic() - self._began:.0f} s"
        parts = [f"{waited} ({self.how})", *self.notes, said]
        return "; ".join(part for part in parts if part)

    def _start_service(self, unit: str, scope: List[str]) -> None:
        log = os.path.join(self.directory, "start.log")
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        limit = "infinity" if hard == resource.RLIM_INFINITY else str(hard)
        properties = [
            *_PROPERTIES,
            f"LimitNOFILE={limit}",
            f"StandardOutput=append:{log}",
            f"StandardError=append:{log}",
        ]
        command = [
            "systemd-run",
            *scope,
            "--quiet",
            "--collect",
            f"--unit={unit}",
            "--description=dflash keeper",
        ]
        command += [f"--property={each}" for each in properties]
        environment = dict(os.environ)
        if scope:
            environment.setdefault("XDG_RUNTIME_DIR", f"/run/user/{os.geteuid()}")
        try:
            self._systemd = subprocess.Popen(
                [*command, "--", *self._command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment,
            )
            self.how = f"service {unit}"
        except OSError as error:
            self._fall_back(f"systemd-run: {error.strerror}")

    def _watch_systemd(self) -> None:
        child = self._systemd
        if child is None:
            return
        code = child.poll()
        if code is None and time.monotonic() < self._systemd_until:
            return
        self._systemd = None
        assert child.stderr is not None
        if code is None:
            # It may still start the unit; the keeper that comes second finds the request taken.
            child.kill()
            self.notes.append(f"systemd-run gave no answer in {SYSTEMD_RUN_S:g} s")
        elif code != 0:
            os.set_blocking(child.stderr.fileno(), False)
            said = (child.stderr.read() or b"").decode("utf-8", "replace").strip()
            self._fall_back(f"systemd-run ended with {code}: {said[-300:]}")
        child.stderr.close()

    def _fall_back(self, why: str) -> None:
        self.notes.append(why)
        self._fork()

    def _fork(self) -> None:
        self.how = "fork"
        middle = os.fork()
        if middle == 0:
            _detach(self._command, os.path.join(self.directory, "start.log"))
        os.waitpid(middle, 0)


def _detach(command: List[str], log: str) -> None:
    """In the forked child: become a session of its own, let init inherit us, become the keeper. Never returns."""
    try:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        null = os.open(os.devnull, os.O_RDONLY)
        said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        os.dup2(null, 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.chdir("/")
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        os.execv(command[0], command)
    finally:
        os._exit(127)


def _tail(path: str) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _ERROR_TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].strip() if lines else ""


def unit_name(target: str, run: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", f"dflash-{target}-{run}")[:200] + ".service"


# -- a running keeper -------------------------------------------------------------------------------------------------


def ask_to_stop(directory: str, operation: Dict[str, Any]) -> None:
    """Ask the living keeper of `directory` to end its run. Raises: NotStarted where nobody listens."""
    spec = operation["spec"]
    who = (str(operation.get("operator", ""))[:200], str(operation.get("origin", ""))[:200])
    signal_name, grace_s = spec.get("stop_signal") or "TERM", float(spec.get("grace_s", 20.0))
    if not request.send_stop(directory, *who, operation["request"], signal_name, grace_s):
        raise NotStarted("keeper_lost", f"nobody listens at {directory}/{request.CONTROL}")
