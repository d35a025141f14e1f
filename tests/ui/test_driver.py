"""The console on a real terminal: one that hangs up, whose program is stopped and goes on, that isn't its stderr."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import until

_START_S, _END_S = 90.0, 90.0
_LOOKS = 50
_BEGIN = b"\x1b[?1049h"
"""Switches to the alternate screen."""


class Page:
    """The console of a target on this machine on which nothing runs, on a terminal of its own."""

    def __init__(self, folder: Path, *, errors: Path | None = None) -> None:
        """`errors`: the file that its stderr is sent to; else it is the terminal, too."""
        self.painted = b""
        config = folder / "config.toml"
        state = f"{str(folder / 'state')!r}"
        config.write_text(
            f"[targets.here]\nhost = 'local'\ncommand = ['/bin/true']\nlog = '/nowhere/x'\nstate_dir = {state}\n"
        )
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            try:
                if errors is not None:
                    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT, 0o600), 2)
                home = {"HOME": str(folder), "XDG_STATE_HOME": str(folder), "TERM": "xterm-256color"}
                path = {"PYTHONPATH": str(Path(__file__).parents[2])}
                os.execve(
                    sys.executable,
                    [sys.executable, "-m", "console", "--config", str(config)],
                    {**os.environ, **home, **path},
                )
            finally:
                os._exit(127)
        self._rows, self._waits = 24, 0
        self.resize()

    def resize(self) -> None:
        self._rows ^= 1
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", self._rows, 80, 0, 0))

    def read(self) -> bytes:
        """Return what was painted."""
        if select.select([self._fd], [], [], 0)[0]:
            with contextlib.suppress(OSError):  # EIO: the console has ended
                self.painted += os.read(self._fd, 1 << 16)
        return self.painted

    def shows(self, text: bytes) -> bool:
        return text in self.read()

    def press(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    def readers(self) -> int:
        """Return how many threads wait for keys; one that has just been woken up is seen by another look."""
        self.read()
        return max(self._waiting("poll_schedule_timeout") for _ in range(_LOOKS))

    def _waiting(self, where: str) -> int:
        found = 0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(OSError):  # a thread that has ended since
                found += (task / "wchan").read_text().startswith(where)
        return found

    def waits_for_its_terminal(self) -> bool:
        """Have it paint once more, unless its loop waits for room, not for events, and has done so for a while."""
        if Path(f"/proc/{self.pid}/wchan").read_text().startswith("futex"):
            self._waits += 1
        else:
            self._waits = 0  # it waited for another thread, which takes a moment
            self.resize()
        return self._waits >= _LOOKS

    def hang_up(self) -> None:
        os.close(self._fd)
        self._fd = -1

    def is_over(self) -> bool:
        return os.waitpid(self.pid, os.WNOHANG) != (0, 0)

    def state(self) -> str:
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self._fd >= 0:
            os.close(self._fd)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    page = Page(tmp_path)
    try:
        until(lambda: page.shows(b"quit"), _START_S, "the screen is painted")
        yield page
    finally:
        page.end()


def test_terminal_that_hangs_up_with_more_to_be_painted_than_it_took_leaves_no_process(page: Page) -> None:
    until(page.waits_for_its_terminal, _START_S, "the terminal, which nobody reads, takes no more")

    page.hang_up()

    until(page.is_over, _END_S, "the console has ended")


@pytest.mark.parametrize("stops", [False, True])
def test_console_that_is_told_to_go_on_waits_for_keys_once_and_answers(page: Page, stops: bool) -> None:
    if stops:
        os.kill(page.pid, signal.SIGSTOP)
        until(lambda: page.state() == "T", _START_S, "the console is stopped")
    page.painted = b""

    os.kill(page.pid, signal.SIGCONT)

    until(lambda: page.shows(_BEGIN), _START_S, "the screen is begun anew")
    until(lambda: page.readers() == 1, _START_S, "one thread waits for keys")
    page.press(b"q")
    until(page.is_over, _END_S, "the console has taken the key")


def test_screen_is_drawn_on_the_terminal_where_stderr_goes_to_a_file(tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    page = Page(tmp_path, errors=errors)
    try:
        until(lambda: page.shows(b"quit"), _START_S, "the screen is painted")
        page.press(b"q")
        until(lambda: page.read() and page.is_over(), _END_S, "the console has taken the key")
    finally:
        page.end()

    assert errors.read_text() == ""
