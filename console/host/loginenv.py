"""The environment that a login shell of this user would have: asked for while the old run dies, used for the new one.

`pct exec` brings the *host's* PATH and HOME and a systemd service brings none, so neither is passed on.
Only the keeper and the agent's preflight import this module.
"""

from __future__ import annotations

import os
import pwd
import select
import signal
import time
from typing import Dict, List

FALLBACK_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TIMEOUT_S = 5.0
_END = b"\0\0"
# What a shell says of itself, and the terminal that it does not have.
_DROPPED = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "TERM"})


def who() -> Dict[str, str]:
    """HOME, USER, LOGNAME and SHELL from the password database."""
    try:
        entry = pwd.getpwuid(os.geteuid())
    except KeyError:
        return {"HOME": "/", "USER": str(os.geteuid()), "LOGNAME": str(os.geteuid()), "SHELL": "/bin/sh"}
    return {
        "HOME": entry.pw_dir,
        "USER": entry.pw_name,
        "LOGNAME": entry.pw_name,
        "SHELL": entry.pw_shell or "/bin/sh",
    }


def fallback() -> Dict[str, str]:
    return dict(who(), PATH=FALLBACK_PATH)


class LoginEnv:
    """A login shell that prints its environment: started now, read when it is needed.

    It is nobody's child here and never killed. Killed amid a profile it would leave behind what profiles take: the lock
    of `pyenv rehash`, say, holds up every later login of that user. One that takes too long is abandoned: it goes on
    with a pipe that nobody reads, and init reaps it. As a child of the keeper it would count as one of the run's.
    """

    def __init__(self) -> None:
        self.why = ""
        """Why the answer is only the fallback; "" where a login shell gave it."""
        self._deadline = time.monotonic() + TIMEOUT_S
        self._raw = b""
        self._reader, writer = os.pipe()
        shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
        # By a descriptor of its own: profiles like to print on stdout. An empty entry is the end.
        script = "trap '' PIPE; env -0 >&%d; printf '\\0' >&%d" % (writer, writer)
        try:
            _start_orphan([shell, "-lc", script], writer)
        finally:
            os.close(writer)

    def fileno(self) -> int:
        return self._reader

    def get(self) -> Dict[str, str]:
        """Return the environment, waiting for the rest of the 5 s at most."""
        if self._reader >= 0:
            self._collect()
        self.close()
        env = _parsed(self._raw)
        if "PATH" not in env:
            self.why = self.why or "the login shell ended without printing an environment"
            return fallback()
        return dict(who(), **env)

    def close(self) -> None:
        """Want no answer any more."""
        if self._reader >= 0:
            os.close(self._reader)
            self._reader = -1

    def _collect(self) -> None:
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        # Not to the end of the pipe: what a profile leaves in the background keeps it open.
        while not self._raw.endswith(_END):
            left_s = self._deadline - time.monotonic()
            if left_s <= 0 or not poll.poll(left_s * 1000):
                self.why = "the login shell took longer than %g s and was left to end by itself" % TIMEOUT_S
                self._raw = b""
                return
            part = os.read(self._reader, 65536)
            if not part:
                return
            self._raw += part


def _start_orphan(words: List[str], writer: int) -> None:
    """Start `words` in a session of its own, as a child of init."""
    env = dict(who(), TERM="dumb")
    middle = os.fork()
    if middle == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                null = os.open(os.devnull, os.O_RDWR)
                for number in (0, 1, 2):
                    os.dup2(null, number)
                os.set_inheritable(writer, True)
                os.chdir("/")
                for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and an ignored signal stays so
                    signal.signal(number, signal.SIG_DFL)
                os.execve(words[0], words, env)
        finally:
            os._exit(0)  # where nothing was started the pipe ends, which says so
    os.waitpid(middle, 0)


def _parsed(raw: bytes) -> Dict[str, str]:
    pairs = (os.fsdecode(entry).partition("=") for entry in raw.split(b"\0") if entry)
    return {name: value for name, separator, value in pairs if separator and name not in _DROPPED}
