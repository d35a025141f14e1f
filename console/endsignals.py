"""The signals that ask a command to end, and what is to be done with them at the moment."""

from __future__ import annotations

import signal
import threading
from typing import Any


def handlers(*numbers: int) -> dict[int, Any]:
    """Return signals with their handlers; none outside the main thread, which alone may set them."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.getsignal(number) for number in numbers or (signal.SIGTERM, signal.SIGHUP)}
