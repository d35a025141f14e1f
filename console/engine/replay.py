"""A tape played back in place of a host: it answers what an agent would have answered at the tape's moment.

To the engine it is a link like any other, so log, stages, GPUs and verdict are joined by the very code that joins them
live. Jumping to a place is what a console does that comes at that moment. Nothing can be started or stopped.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from console import protocol
from console.config import Gpus, Metrics, Target
from console.engine import requests
from console.engine.tape import Piece, Tape
from console.link.channel import Operation
from console.link.events import AgentSaid, BulkUp, LinkEvent, LinkUp, Rtt
from console.link.link import Link
from console.protocol import Reply, RunRecord, WireError
from console.reasons import ConsoleError, Exit, Reason

SPEEDS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_TURN_S = 0.1
_CHUNK_BYTES = 1 << 20
_HEAD_BYTES, _TAIL_BYTES = 8 << 20, 8 << 20
_LEFT_OUT = "the recording leaves out this part of the log"
_REQUEST_S = 30.0
_NEAR_S = 3.0
"""A jump forward by less is played, not jumped: nothing has to be read anew."""


class Replay:
    """The tape's player: a clock that can be stopped, hastened and set, and the link that goes with it."""

    def __init__(self, tape: Tape, *, speed: float = 1.0) -> None:
        self.tape = tape
        self.label = f"recording of {tape.run.name or tape.run.id} · {tape.label}".rstrip(" ·")
        self.speed = speed
        self.is_paused = False
        self._bt, self._real = tape.begin_bt, time.monotonic()
        self._ids = itertools.count(1)
        self._on_event: Callable[[LinkEvent], None] = lambda event: None
        self._rewind: Callable[[], None] = lambda: None
        self._wake = asyncio.Event()
        self._again = True
        self._watched = False
        self._follows: protocol.LogFollow | None = None
        self._offset = 0
        self._credit = 0
        self._told: tuple[object, ...] = ()

    def attach(self, on_event: Callable[[LinkEvent], None], rewind: Callable[[], None]) -> None:
        self._on_event, self._rewind = on_event, rewind

    # -- the clock --

    @property
    def bt(self) -> float:
        """The moment that is played, in the host's boot time."""
        run_s = 0.0 if self.is_paused else (time.monotonic() - self._real) * self.speed
        return min(self.tape.end_bt, self._bt + run_s)

    def now(self) -> float:
        """The same on the wall clock of that time."""
        return self.bt + self.tape.wall_offset

    @property
    def position_s(self) -> float:
        return self.bt - self.tape.begin_bt

    @property
    def length_s(self) -> float:
        return self.tape.end_bt - self.tape.begin_bt

    @property
    def is_over(self) -> bool:
        return self.bt >= self.tape.end_bt

    @property
    def marks(self) -> tuple[tuple[float, str], ...]:
        """Where stages began, and the end: seconds from the start, and a word."""
        run, begin = self.tape.run, self.tape.begin_bt
        found = [
            (s.began_bt, name)
            for name in ("killing", "cache", "spawned")
            if (s := run.stages.get(name)) and s.began_bt is not None
        ]
        if run.cuda is not None and run.cuda.complete_bt is not None:
            found.append((run.cuda.complete_bt, "cuda"))
        if run.exit is not None and run.exit.ended_bt is not None:
            found.append((run.exit.ended_bt, "end"))
        return tuple(sorted((max(0.0, bt - begin), name) for bt, name in found))

    def _set(self, bt: float) -> None:
        self._bt, self._real = bt, time.monotonic()

    def toggle(self) -> None:
        """Stop, or go on; from the end it begins anew."""
        if self.is_over and not self.is_paused:
            self.seek(0.0)
            return
        here = self.bt
        self.is_paused = not self.is_paused
        self._set(here)
        self._wake.set()

    def faster(self, by: int) -> None:
        """Play at the next higher or lower speed."""
        here = self.bt
        place = min(range(len(SPEEDS)), key=lambda index: abs(SPEEDS[index] - self.speed))
        self.speed = SPEEDS[max(0, min(len(SPEEDS) - 1, place + by))]
        self._set(here)

    def seek(self, position_s: float) -> None:
        """Go to a moment, in seconds from the start."""
        here = self.position_s
        there = max(0.0, min(self.length_s, position_s))
        self._set(self.tape.begin_bt + there)
        self._again = self._again or not 0 <= there - here <= _NEAR_S
        self._wake.set()

    def step(self, seconds: float) -> None:
        self.seek(self.position_s + seconds)

    def to_mark(self, direction: int) -> None:
        """Go to the next stage, or to the one before."""
        here = self.position_s
        ahead = [at for at, _ in self.marks if at > here + 0.05]
        behind = [at for at, _ in self.marks if at < here - 1.0]
        self.seek((ahead[0] if ahead else self.length_s) if direction > 0 else (behind[-1] if behind else 0.0))

    # -- the link --

    async def run(self) -> None:
        """Say what the host said, until cancelled."""
        while True:
            if self._again:
                self._again = False
                self._begin()
            self._tell()
            self._wake.clear()
            try:
                # Not wait_for: in 3.11 it may swallow a cancellation that comes together with the wake-up.
                async with asyncio.timeout(_TURN_S):
                    await self._wake.wait()
            except TimeoutError:
                pass

    def _begin(self) -> None:
        self._watched, self._follows, self._told = False, None, ()
        self._rewind()
        bt, offset = self.bt, self.tape.wall_offset
        hello = protocol.Hello(
            v=protocol.PROTOCOL_VERSION, pid=0, python="", boot=self.tape.run.boot, user="", uid=0, node="", bt=bt,
            wall=bt + offset, booted_wall=offset, systemd=False,
        )  # fmt: skip
        self._on_event(LinkUp(hello=hello, rtt_s=0.0, label=self.label))
        self._on_event(BulkUp())

    def _tell(self) -> None:
        bt, tape = self.bt, self.tape
        self._on_event(Rtt(rtt_s=0.0, bt=bt, wall=bt + tape.wall_offset))
        if not self._watched:
            return
        record, gpus, procs = tape.record_at(bt), tape.gpus_at(bt), tape.procs_at(bt)
        before = self._told or (object(), None, None)
        self._told = (record, gpus, procs)
        if record != before[0]:
            self._on_event(AgentSaid(event=protocol.StateEvent(bt=bt, wall=bt + tape.wall_offset, run=record)))
        if procs is not None and procs != before[2]:
            self._on_event(AgentSaid(event=procs))
        if gpus is not None and gpus != before[1]:
            self._on_event(AgentSaid(event=gpus))
        self._tell_log(bt)

    def _tell_log(self, bt: float) -> None:
        follows, tape = self._follows, self.tape
        if follows is None:
            return
        size = tape.log_size_at(bt)
        here = protocol.LogEvent(bt=bt, path=follows.path, state="following", dev=1, inode=1, size=size)
        if not size:
            self._on_event(AgentSaid(event=replace(here, state="empty")))
            return
        while self._offset < size and self._credit > 0:
            at = tape.next_offset(self._offset)
            if at >= size:  # what was written last at this moment is in the part that the tape leaves out
                gone = replace(here, state="unreadable", offset=size, skipped_from=self._offset, detail=_LEFT_OUT)
                self._offset = size
                self._on_event(AgentSaid(event=gone))
                return
            data = tape.read(at, min(size - at, _CHUNK_BYTES, self._credit))
            if not data:
                break
            skipped = self._offset if at > self._offset else None
            event = replace(here, offset=at, n=len(data), skipped_from=skipped)
            self._offset, self._credit = at + len(data), self._credit - len(data)
            self._on_event(AgentSaid(event=event, data=data))
        else:
            self._on_event(AgentSaid(event=replace(here, offset=self._offset)))

    def retry_now(self) -> None:
        """There is nothing to try again."""

    @property
    def has_bulk(self) -> bool:
        return True

    def next_id(self) -> int:
        return next(self._ids)

    async def request(self, operation: Operation, timeout_s: float = 10.0) -> Reply:
        reply, _ = self._answer(operation)
        return reply

    async def bulk_request(self, operation: Operation, timeout_s: float = 10.0) -> tuple[Reply, bytes]:
        return self._answer(operation)

    async def raw_request(self, operation: Operation, timeout_s: float) -> tuple[Reply, bytes]:
        return self._answer(operation)

    def outside_send(self, operation: protocol.Outside) -> bool:
        return False

    def bulk_send(self, operation: protocol.LogCredit) -> None:
        self._credit += operation.bytes
        self._wake.set()

    def _answer(self, operation: Operation) -> tuple[Reply, bytes]:
        bt, tape = self.bt, self.tape
        data: dict[str, Any] = {}
        raw = b""
        match operation:
            case protocol.Watch():
                self._watched = True
                self._wake.set()
            case protocol.Recorder():
                data = {"records": [msgspec.to_builtins(each) for each in tape.records if each.bt <= bt]}
            case protocol.LogRead():
                size = tape.log_size_at(bt)
                raw = tape.read(operation.offset, max(0, min(operation.length, size - operation.offset)))
                data = {"size": size}
            case protocol.LogSample():
                data, raw = self._sampled(operation, tape.log_size_at(bt))
            case protocol.LogFollow():
                size = tape.log_size_at(bt)
                start = operation.offset if operation.offset >= 0 else max(0, size + operation.offset)
                self._follows, self._offset, self._credit = operation, start, operation.credit_bytes
                self._wake.set()
            case _:
                refusal = WireError(reason=str(Reason.READ_ONLY), detail="this is a recording")
                return Reply(re=operation.id, ok=False, error=refusal), b""
        return Reply(re=operation.id, ok=True, data=data, n=len(raw)), raw

    def _sampled(self, operation: protocol.LogSample, size: int) -> tuple[dict[str, Any], bytes]:
        """Return ranges of the log that are spread evenly, as an agent does, without those that are not on the tape."""
        last = operation.last if operation.last >= 0 else size + operation.last
        span = max(0, min(last, size) - operation.first)
        if size <= operation.larger_than or not span:
            return {"offsets": [], "sizes": []}, b""
        wanted = [operation.first + span * index // operation.count for index in range(operation.count)]
        pieces = {offset: piece for offset in wanted if (piece := self.tape.read(offset, operation.length))}
        sizes = [len(piece) for piece in pieces.values()]
        return {"offsets": list(pieces), "sizes": sizes}, b"".join(pieces.values())


async def record(link: Link | Replay, name: str, target: Target, run: RunRecord, now: float) -> Tape:
    """Fetch what a host keeps of a run: its flight recorder, and its log, of a long one both ends.

    Raises: ConsoleError.
    """
    question = requests.recorder(link.next_id(), name, target, run.id)
    reply, _ = await link.raw_request(question, timeout_s=_REQUEST_S)
    records = requests.decode_records(requests.checked(reply, dict), protocol.Growth)
    pieces, size = await _log_of(link, run)
    return Tape(
        target=name,
        made_at=now,
        run=run,
        records=tuple(records),
        log=tuple(pieces),
        log_bytes=size,
        roles=target.gpus.roles,
        expected=target.gpus.expected,
        format=target.metrics.format,
        tokens_per_step=target.metrics.tokens_per_step,
        label=link.label,
    )


async def _log_of(link: Link | Replay, run: RunRecord) -> tuple[list[Piece], int]:
    path = run.log.path if run.log is not None else ""
    if not path:
        return [], 0
    first, size = await _range(link, path, 0, 1)
    if not first and not size:
        return [], 0
    spans = [(0, size)] if size <= _HEAD_BYTES + _TAIL_BYTES else [(0, _HEAD_BYTES), (size - _TAIL_BYTES, size)]
    pieces = []
    for begin, end in spans:
        data = b""
        while begin + len(data) < end:
            at = begin + len(data)
            part, _ = await _range(link, path, at, min(_CHUNK_BYTES, end - at))
            if not part:
                break
            data += part
        pieces.append(Piece(begin, data.decode("latin-1")))
    return pieces, size


async def _range(link: Link | Replay, path: str, offset: int, length: int) -> tuple[bytes, int]:
    operation = protocol.LogRead(id=link.next_id(), path=path, offset=offset, length=length)
    try:
        reply, data = await link.raw_request(operation, timeout_s=_REQUEST_S)
        size = int(requests.checked(reply, dict).get("size", 0))
    except ConsoleError as error:
        if error.exit_code in (Exit.LINK, Exit.ENTRY):
            raise
        return b"", 0  # the log is gone: the rest of the tape is still worth playing
    return data, size


def target_of(tape: Tape) -> Target:
    """Return the target as far as a tape tells of it: what decides how its run is shown."""
    return Target(
        host="local",
        command=tape.run.argv,
        cwd=tape.run.cwd,
        gpus=Gpus(expected=tape.expected, roles=tape.roles),
        metrics=Metrics(format=tape.format, tokens_per_step=tape.tokens_per_step),
    )
