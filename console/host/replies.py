"""Answers to operations: one reply each, a refusal with a reason of the catalogue, warnings on the side.

Only the agent's parts import this module; what the fields mean is in console/protocol.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

from . import procfs, wire

Operation = Dict[str, Any]


class Refused(Exception):
    """An operation that is answered with an error of the catalogue."""

    def __init__(self, reason: str, detail: str = "", data: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(detail)
        self.reason, self.data = reason, data or {}


class Replies:
    """Puts answers into the outbox."""

    def __init__(self, out: wire.Outbox) -> None:
        self._out = out

    def reply(self, operation_id: int, data: Dict[str, Any], raw: bytes = b"") -> None:
        answer = {"re": operation_id, "ok": True, "data": data}
        self._out.put(dict(answer, n=len(raw)) if raw else answer, raw)

    def refuse(self, operation_id: int, reason: str, detail: str, data: Optional[Dict[str, Any]] = None) -> None:
        error = {"reason": reason, "detail": detail, "data": data or {}}
        self._out.put({"re": operation_id, "ok": False, "error": error})

    def warn(self, reason: str, detail: str) -> None:
        self._out.offer({"ev": "warn", "bt": procfs.boottime(), "reason": reason, "detail": detail})
