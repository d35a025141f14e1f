"""The console's own log: crashes of ours and what the parts warn of. The screen gets one sentence at most."""

from __future__ import annotations

import logging
import os
import time
import traceback
from pathlib import Path

_MAX_BYTES = 1 << 20  # a link that flaps for a week must not fill a home


def log_path() -> Path:
    """Return the console's own log file (under the user's state directory)."""
    import platformdirs

    from console.configfile import APP

    return platformdirs.user_state_path(APP) / "console.log"


def log_line(text: str) -> OSError | None:
    """Append to the log file, 0600; return why that failed. A full file is begun anew, with one old one kept."""
    path = log_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
            is_full = stream.tell() > _MAX_BYTES
        if is_full:
            path.replace(path.with_suffix(".log.1"))
    except OSError as exc:
        return exc
    return None


class _LogFile(logging.Handler):
    """Warnings of any part, one line each; the file is made by the first of them."""

    def emit(self, record: logging.LogRecord) -> None:
        log_line(self.format(record))


def log_to_file() -> None:
    """Send what the parts log to the file: on the terminal it would stand amid the results or the screen."""
    root = logging.getLogger()
    if any(isinstance(handler, _LogFile) for handler in root.handlers):
        return
    handler = _LogFile(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)


def report_bug(bug: BaseException) -> str:
    """Write the exception to the log file; return the sentence for the person."""
    text = "".join(traceback.format_exception(bug)).strip()
    kind = text.rsplit("\n", 1)[-1]
    failure = log_line(text)
    if failure is not None:
        return f"{kind} (and {log_path()} can't be written: {failure.strerror})"
    return f"{kind}; details: {log_path()}"
