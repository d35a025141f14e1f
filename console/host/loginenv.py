"""The environment that a login shell of this user would have: asked for while the old run dies, used for the new one.

`pct exec` brings the *host's* PATH and HOME and a systemd service brings none, so neither is passed on.
Only the keeper and the agent's preflight import this module.
"""

from __future__ import annotations

import os
import pwd
import select
import signal
import subprocess
import time
from typing import Dict, Optional

FALLBACK_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TIMEOUT_S = 5.0
_TERM_S = 0.5
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
    """A login shell that prints its environment: started now, read when it is needed."""

    def __init__(self) -> None:
        self.why = ""
        """Why the answer is only the fallback; "" where a login shell gave it."""
        self._deadline = time.monotonic() + TIMEOUT_S
        self._raw = b""
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._reader, writer = os.pipe()
        shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
        # By a descriptor of its own: profiles like to print on stdout.
        script = "env -0 >&%d" % writer
        try:
            self._process = subprocess.Popen(
                [shell, "-lc", script],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(who(), TERM="dumb"),
                cwd="/",
                pass_fds=(writer,),
                start_new_session=True,
            )
        except OSError as error:
            self.why = "%s: %s" % (shell, error.strerror)
        finally:
            os.close(writer)

    def fileno(self) -> int:
        return self._reader

    def get(self) -> Dict[str, str]:
        """Return the environment, waiting for the rest of the 5 s at most."""
        if self._process is not None:
            self._collect(self._process)
        self.close()
        env = _parsed(self._raw)
        if "PATH" not in env:
            self.why = self.why or "the login shell printed no environment"
            return fallback()
        return dict(who(), **env)

    def close(self) -> None:
        """Want no answer any more. The shell ends by itself: killed amid a profile it would leave behind what
        profiles take (the lock of `pyenv rehash` holds up every later login for a minute).
        """
        if self._reader >= 0:
            os.close(self._reader)
            self._reader = -1

    def _collect(self, process: subprocess.Popen[bytes]) -> None:
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        # Not to the end of the pipe: what a profile leaves in the background keeps it open.
        while process.poll() is None or poll.poll(0):
            if time.monotonic() > self._deadline:
                self.why = "the login shell took longer than %d s" % TIMEOUT_S
                _end(process)
                return
            if poll.poll(20):
                part = os.read(self._reader, 65536)
                if not part:
                    break
                self._raw += part
        try:
            status = process.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            _end(process)  # it has said all that it had to say
            return
        if status != 0 and not self._raw:
            self.why = "the login shell ended with %d" % status


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a shell that takes too long, gently at first: its traps give back the locks that a profile took."""
    for number, patience_s in ((signal.SIGTERM, _TERM_S), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(patience_s)
            return
        except subprocess.TimeoutExpired:
            continue


def _parsed(raw: bytes) -> Dict[str, str]:
    pairs = (os.fsdecode(entry).partition("=") for entry in raw.split(b"\0") if entry)
    return {name: value for name, separator, value in pairs if separator and name not in _DROPPED}
