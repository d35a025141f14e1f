"""What the agent sends of files: the followed log in chunks, any part of it and what matches there, the logs that there
are, and a run's flight recorder.

Only the agent imports this module.
"""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any, Callable, Dict, List, Optional, Set

from . import files, loglines, logs, logtail, notify, procfs, questions, recorder, startkeeper, wire
from .replies import Operation, Refused, Replies

_STEP_S = 0.05
"""Between two looks at a file that grows, or that nobody tells us of."""
_TOLD_STEP_S = 1.0 + _STEP_S
"""Between two looks at a file of whose changes the kernel tells us: as often as the follower says that it looked."""
_TRICKLE_S = 0.2
"""Between two looks at a file to which a little is written all the time: read as well as at once, for half the cost."""
_TRICKLE_BYTES = 1024
"""What one look finds of a trickle at most. More is wanted at once: a traceback, a thousand lines a second."""
_STEADY_S = 0.5
"""What comes after a longer silence is no trickle, and told at once."""
_ROOM_BYTES = 256 * 1024
_RECORDER_BYTES = 3 << 20
_LOOK_S = 20.0
"""For one look into a log: it takes a second at most, unless the disk or the network filesystem hangs."""
_MOST_LOOKS = 4
_MATCHING_S = 2.0
"""Of CPU time, for the matching of one look: half a second is usual, but a block of a megabyte is done whole."""


class _TooSlow(Exception):
    """A pattern takes too long."""


class LogDuty:
    """Follows at most one log, within the credit that the console gives."""

    def __init__(self, out: wire.Outbox, replies: Replies, asked: questions.Questions) -> None:
        self._out, self._replies, self._asked = out, replies, asked
        self._follower: Optional[logtail.Follower] = None
        self._ears = notify.Ears()
        self._looked = self._next = 0.0
        self._fed_at = float("-inf")
        self._trickles = False

    def fds(self) -> List[int]:
        """Return what tells that the file changed, while that is worth waking up for."""
        return self._ears.fds() if self._follower and not self._trickles else []

    def due(self) -> float:
        """Return the monotonic time of the next look."""
        return self._next if self._follower else float("inf")

    def close(self) -> None:
        self._ears.close()
        if self._follower:
            self._follower.close()

    def follow(self, operation: Operation) -> Dict[str, Any]:
        follower = logtail.Follower(operation)
        self.close()
        self._follower, self._ears, self._next = follower, notify.Ears(), 0.0
        self._fed_at, self._trickles = float("-inf"), False
        return {}

    def credit(self, operation: Operation) -> None:
        if self._follower:
            self._follower.add_credit(int(operation["bytes"]))
            self._next = 0.0

    def step(self, ready: Set[int]) -> None:
        """Look for what was written, where it is time to."""
        if self._follower is None:
            return
        if self._ears.ring(ready):
            self._next = min(self._next, self._looked + _STEP_S)
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _STEP_S
        if self._out.waiting_bytes > _ROOM_BYTES:
            return
        # Amid a trickle the time says when to look: listening for each of its lines costs more than reading them.
        by_ear = not self._trickles
        told = by_ear and self._ears.listen({self._follower.path: notify.FILE})
        self._looked = time.monotonic()
        try:
            events = self._follower.step()
        except OSError as error:
            events = [self._follower.trouble(error)]
        for event, data in events:
            self._out.put(dict(event, ev="log", bt=procfs.boottime()), data)
        found_bytes = sum(len(data) for _, data in events)
        if by_ear:
            self._ears.found(found_bytes > 0, self._follower.at_end)
        # What is left over for want of credit is looked at when there is new credit.
        if told and not self._ears.deaf:
            self._next = self._looked + _TOLD_STEP_S
        self._trickles = 0 < found_bytes <= _TRICKLE_BYTES and self._looked - self._fed_at <= _STEADY_S
        if self._trickles:
            self._next = self._looked + _TRICKLE_S
        if found_bytes:
            self._fed_at = self._looked

    def read(self, operation: Operation) -> None:
        try:
            data, size = logtail.read_range(operation["path"], int(operation["offset"]), int(operation["length"]))
        except OSError as error:
            raise Refused("file_missing", f"{operation['path']}: {error.strerror}") from error
        self._replies.reply(operation["id"], {"size": size}, data)

    def sample(self, operation: Operation) -> None:
        numbers = [int(operation[name]) for name in ("first", "last", "count", "length")]
        numbers.append(int(operation.get("larger_than", 0)))
        try:
            offsets, pieces = logtail.sample_ranges(operation["path"], *numbers)
        except OSError as error:
            raise Refused("file_missing", f"{operation['path']}: {error.strerror}") from error
        found = {"offsets": offsets, "sizes": [len(piece) for piece in pieces]}
        self._replies.reply(operation["id"], found, b"".join(pieces))

    def lines(self, operation: Operation) -> None:
        self._look(operation, loglines.lines)

    def count(self, operation: Operation) -> None:
        self._look(operation, loglines.count)

    def files(self, operation: Operation) -> None:
        self._look(operation, logs.listed)

    def _look(self, operation: Operation, work: Callable[[Operation], Dict[str, Any]]) -> None:
        """Answer from a child: the tail goes on meanwhile, and the run's own work comes first."""
        if len(self._asked.jobs()) >= _MOST_LOOKS:
            raise Refused("unknown", f"{_MOST_LOOKS} questions are being answered already")

        def look() -> Dict[str, Any]:
            os.nice(5)
            try:
                if operation.get("query"):
                    _bound_matching()
                found = work(operation)
                signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
                return found
            except _TooSlow as error:
                raise Refused("pattern_slow", f"it was ended after {_MATCHING_S:g} s of work") from error
            except OSError as error:
                raise Refused("log_unreadable", f"{operation.get('path', '')}: {error.strerror or error}") from error
            except (KeyError, TypeError, ValueError) as error:
                raise Refused("protocol", f"{type(error).__name__}: {error}") from error

        self._asked.put(operation["id"], "look into the log", look, _LOOK_S)

    def recorder(self, operation: Operation, state: str, target: Optional[str]) -> None:
        if target is None or not startkeeper.is_run_id(operation["run"]):
            raise Refused("protocol", "no target is watched, or no such run id")
        directory = files.run_dir(state, target, operation["run"])
        lines = recorder_lines(os.path.join(directory, "recorder.ndjson"))
        head = json.dumps({"re": operation["id"], "ok": True})[:-1].encode("ascii")
        self._out.put_line(head + b',"data":{"records":[' + b",".join(lines) + b"]}}\n")


def _bound_matching() -> None:
    """Have a signal end what a pattern such as `(a+)+$` would take years for; only in a child, whose end ends it."""

    def end(number: int, frame: object) -> None:
        raise _TooSlow

    signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, _MATCHING_S)


def recorder_lines(path: str) -> List[bytes]:
    """Return the complete JSON lines of a flight recorder, coarse but for the last ten minutes, within bounds."""
    try:
        with open(path, "rb") as file:
            text = file.read(wire.MAX_LINE_BYTES * 2).decode("utf-8", "surrogateescape")
            lines = [line.encode("utf-8", "surrogateescape") for line in recorder.coarser(text.split("\n")[:-1])]
    except OSError:
        return []
    good = [line for line in lines if wire.decode(line) is not None]
    while sum(map(len, good)) + len(good) > _RECORDER_BYTES:
        bulky = [index for index, line in enumerate(good) if b'"k":"gpu"' in line.replace(b" ", b"")]
        drop = set(bulky[1::2]) or set(range(1, len(good), 2))
        good = [line for index, line in enumerate(good) if index not in drop]
    return good
