"""The signals that ask a command to end."""

from __future__ import annotations

import signal
import threading
from typing import Any


def handlers(*numbers: int) -> dict[int, Any]:
    """Return those signals, else all that ask a command to end, with their handlers as they are.

    None outside the main thread, which alone may set them.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.getsignal(number) for number in numbers or (signal.SIGTERM, signal.SIGHUP)}
