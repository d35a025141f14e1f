"""Textual's driver for a terminal that can go away: whoever closes the window leaves no process behind.

A terminal that hangs up sends SIGHUP and SIGCONT, fails each write, and is at its end for each read. Of its own
Textual's driver takes that SIGCONT for the end of a suspension: it starts its threads a second time, of which the first
are never ended; and once a write has failed, nobody empties its full queue, in which the end of the app then waits for
ever. Nor is its choice of what to draw on ours: stderr, which may be sent to a file.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import IO, Any, cast

from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver

from console.ui.escapes import EscapeParser

vars(linux_driver)["XTermParser"] = EscapeParser  # what its thread reads with: there is no other way to say so


class TerminalDriver(LinuxDriver):
    """Ends the app when the terminal is gone, and begins anew what a stop from outside has interrupted."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._file = cast(Any, _Output(_terminal(), self._lost))

    def _lost(self) -> None:
        """Called by the thread that writes, maybe when all is over."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._app.exit)

    def _sigcont_application(self, *_signal: Any) -> None:
        """Not in the handler itself: it can interrupt what holds the queue's lock."""
        self._loop.call_soon_threadsafe(self._go_on)

    def _go_on(self) -> None:
        if not self._auto_restart or not os.isatty(self.fileno):
            return
        if not self._must_signal_resume:  # by SIGSTOP: the threads live, and others used the terminal
            self.suspend_application_mode()
            self._must_signal_resume = True
        self.resume_application_mode()


def _terminal() -> IO[str]:
    """Return what is drawn on: stderr, as Textual does, but stdout where only that is a terminal."""
    candidates = [stream for stream in (sys.__stderr__, sys.__stdout__) if stream is not None]
    return next((stream for stream in candidates if stream.isatty()), candidates[0])


class _Output:
    """What is written to a terminal; what comes after that is gone is dropped."""

    def __init__(self, file: IO[str], lost: Callable[[], None]) -> None:
        self._file, self._lost = file, lost
        self._is_gone = False

    def write(self, text: str) -> None:
        self._try(lambda: self._file.write(text))

    def flush(self) -> None:
        self._try(self._file.flush)

    def fileno(self) -> int:
        return self._file.fileno()

    def _try(self, work: Callable[[], object]) -> None:
        if self._is_gone:
            return
        try:
            work()
        except OSError:
            self._is_gone = True
            self._lost()
