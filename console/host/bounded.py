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
from typing import Any, Callable, Iterable, List


class TookTooLong(Exception):
    """The deadline passed."""


class ChildFailed(Exception):
    """The function raised, or its child died."""


def call(function: Callable[[], Any], timeout_s: float, close: Iterable[int] = ()) -> Any:
    """Return what `function` returns, by way of JSON. Raises: TookTooLong, ChildFailed.

    `close`: descriptors that the child must not keep, such as a lock's.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(function, reader, writer, close)
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


def _child(function: Callable[[], Any], reader: int, writer: int, close: Iterable[int]) -> None:
    try:
        os.close(reader)
        for descriptor in close:
            os.close(descriptor)
        try:
            answer = {"value": function()}
        except BaseException as error:  # noqa: BLE001 - the child's task root: told to the parent
            answer = {"error": "%s: %s" % (type(error).__name__, error)}
        raw = json.dumps(answer).encode("utf-8", "surrogateescape")
        while raw:
            raw = raw[os.write(writer, raw) :]
    finally:
        os._exit(0)


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
