"""What the helper on the host itself is asked: which container is meant, and which pids the driver names just now."""

from __future__ import annotations

from typing import Protocol

from console import protocol

_MOST_PIDS = 256


class _Way(Protocol):
    def next_id(self) -> int: ...

    def outside_send(self, operation: protocol.Outside) -> bool: ...


class OutsideAsking:
    """Asks anew when what is wanted has changed, at most with each `tick`."""

    def __init__(self, way: _Way) -> None:
        self._way = way
        self._hello: protocol.Hello | None = None
        self._pids: tuple[int, ...] = ()
        self._tree: tuple[protocol.ProcId, ...] = ()
        self._told: object = None

    def came_up(self, hello: protocol.Hello | None) -> None:
        """There is a helper; `hello` is what the agent inside has said."""
        self._hello, self._told = hello, None
        self.tick()

    def went_down(self) -> None:
        self._hello = None

    def gpus_said(self, event: protocol.GpusEvent) -> None:
        pids = {pid for gpu in event.gpus for pid, _ in gpu.procs or ()} if event.source != "simulated" else set()
        self._pids = tuple(sorted(pids))[:_MOST_PIDS]

    def procs_said(self, event: protocol.ProcsEvent) -> None:
        if event.procs:  # those that have just died are the ones that the kernel log may speak of
            self._tree = tuple(protocol.ProcId(pid=each.pid, start=each.start) for each in event.procs)[:_MOST_PIDS]

    def tick(self) -> None:
        hello, wanted = self._hello, (self._pids, self._tree)
        if hello is None or hello.start is None or wanted == self._told:
            return
        operation = protocol.Outside(
            id=self._way.next_id(),
            agent=protocol.ProcId(pid=hello.pid, start=hello.start),
            pid_ns=hello.pid_ns,
            pids=self._pids,
            tree=self._tree,
        )
        if self._way.outside_send(operation):
            self._told = wanted
