"""Questions that take a while or may hang, answered by a child each: what a plan would do, what the host is like,
what a run hangs in, what stands far up in a log.

Only the agent imports this module.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List

from . import background
from .replies import Refused, Replies

Answer = Dict[str, Any]


class Questions:
    """Jobs whose result answers an operation."""

    def __init__(self, replies: Replies) -> None:
        self._replies = replies
        self._jobs: Dict[int, background.Job] = {}
        self._names: Dict[int, str] = {}
        self._heard: Dict[int, Callable[[Answer], None]] = {}

    def jobs(self) -> List[background.Job]:
        return list(self._jobs.values())

    def put(
        self,
        operation_id: int,
        name: str,
        work: Callable[[], Answer],
        timeout_s: float,
        heard: Callable[[Answer], None] = lambda data: None,
    ) -> None:
        """Answer the operation with what `work` returns: `text` or `raw` (as Latin-1) as raw bytes, the rest as data.

        `work` runs in a child; a Refused that it raises is answered as such. `heard` is told the data.
        """

        def answer() -> Answer:
            try:
                return {"data": work()}
            except Refused as refusal:
                return {"reason": refusal.reason, "detail": str(refusal)}

        self._names[operation_id], self._heard[operation_id] = name, heard
        self._jobs[operation_id] = background.Job(answer, timeout_s)

    def step(self) -> None:
        """Answer those that are over."""
        for operation_id, job in list(self._jobs.items()):
            if not job.advance():
                continue
            del self._jobs[operation_id]
            name, heard = self._names.pop(operation_id), self._heard.pop(operation_id)
            answer = job.result or {}
            if "data" in answer:
                text, raw = answer["data"].pop("text", ""), answer["data"].pop("raw", "")
                data = str(text).encode("utf-8", "replace") or str(raw).encode("latin-1")
                self._replies.reply(operation_id, answer["data"], data)
                heard(answer["data"])
            else:
                reason = answer.get("reason", "unknown")
                self._replies.refuse(operation_id, reason, answer.get("detail") or f"the {name} {job.error}")
