"""Run a function in a throw-away child with a deadline: for what can hang (wedged processes, dead mounts).

The child that overran is killed and left to the reaper; one in uninterruptible sleep is abandoned. Agent and keeper may
import this module; it imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from typing import Any, Callable, List


class TookTooLong(Exception):
    """The deadline passed."""


class ChildFailed(Exception):
    """The function raised, or its child died."""


def call(function: Callable[[], Any], timeout_s: float) -> Any:
    """Return what `function` returns, by way of JSON. Raises: TookTooLong, ChildFailed.

    The function finds no descriptor of ours but 0 to 2: a child that hangs must not hold a lock with it.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(function, writer)
    os.close(writer)
    try:
        raw = _read_all(reader, time.monotonic() + timeout_s)
    finally:
        os.close(reader)
        _end(pid)
    answer = json.loads(raw or b"{}")
    if "value" not in answer:
        raise ChildFailed(answer.get("error", "the child died"))
    return answer["value"]


def _child(function: Callable[[], Any], writer: int) -> None:
    try:
        signal.set_wakeup_fd(-1)
        _close_all_but(writer)
        try:
            answer = {"value": function()}
        except BaseException as error:  # noqa: BLE001 - the child's task root: told to the parent
            answer = {"error": "%s: %s" % (type(error).__name__, error)}
        raw = json.dumps(answer).encode("utf-8", "surrogateescape")
        while raw:
            raw = raw[os.write(writer, raw) :]
    finally:
        os._exit(0)


def _close_all_but(kept: int) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != kept:
            try:
                os.close(int(name))
            except OSError:
                pass  # the listing's own


def _read_all(reader: int, deadline: float) -> bytes:
    poll = select.poll()  # not select(): a descriptor may be beyond its 1,024
    poll.register(reader, select.POLLIN)
    parts: List[bytes] = []
    while True:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TookTooLong
        part = os.read(reader, 65536)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 0.5
        while os.waitpid(pid, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.002)
    except (ChildProcessError, ProcessLookupError):
        pass
