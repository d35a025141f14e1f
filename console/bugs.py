"""Our own crashes: the traceback goes to a file, the screen gets one sentence."""

from __future__ import annotations

import os
import time
import traceback
from pathlib import Path

import platformdirs

from console.configfile import APP


def log_path() -> Path:
    """Return the console's own log file (under the user's state directory)."""
    return platformdirs.user_state_path(APP) / "console.log"


def report_bug() -> str:
    """Write the exception being handled to the log file; return the sentence for the person."""
    kind = traceback.format_exc().strip().rsplit("\n", 1)[-1]
    path = log_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as stream:
            stream.write(time.strftime("%Y-%m-%dT%H:%M:%SZ ", time.gmtime()) + traceback.format_exc() + "\n")
    except OSError as exc:
        return (
            f"error of our own: {kind} (and its log {path} can't be written: {exc.strerror}). The run is not touched."
        )
    return f"error of our own: {kind}. The run is not touched. Details: {path}"
