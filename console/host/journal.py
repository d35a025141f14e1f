"""status.json: what the keeper intends, does and has done, written before and after each step.

An agent that finds it and a dead keeper knows between which steps the keeper was lost. Only the keeper imports this.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Dict, Optional

from . import files, procfs, recorder

NAME = "status.json"
RESERVED_BYTES = 32768


class Journal:
    """The status of one run as a dict with the field names of protocol.RunRecord, saved at each change."""

    def __init__(self, run_dir: str, first: Dict[str, Any], record: recorder.Recorder) -> None:
        self.status = dict(first, stages={})
        self._run_dir = run_dir
        self._record = record
        self._written: Optional[Dict[str, Any]] = None
        files.reserve(run_dir, NAME, RESERVED_BYTES)

    def set(self, **changes: Any) -> None:
        """Change fields and save, if anything is different."""
        self.status.update(changes)
        self.save()

    def save(self) -> None:
        if self._written == self.status:
            return
        try:
            files.write_json(self._run_dir, NAME, self.status)
        except OSError as error:
            # The transaction is worth more than its journal: a disk that fills up must not leave it half-done.
            print("status.json: %s" % error, file=sys.stderr)
            return
        self._written = _copied(self.status)

    def begin(self, stage: str, state: str, evidence: str = "", detail: str = "") -> None:
        """Journal the intent: the run is in `state` from now on, `stage` is active."""
        self.status["state"] = state
        self._stage(stage)["state"] = "active"
        self._stage(stage).update(_at("began"), evidence=evidence, detail=detail)
        self.save()
        self._record.stage(stage, "active", detail or evidence)

    def live(self, stage: str, evidence: str) -> None:
        """Show how an active stage goes on; not recorded."""
        self._stage(stage)["evidence"] = evidence
        self.save()

    def end(self, stage: str, state: str, evidence: str = "", **more: Any) -> None:
        """Journal the outcome: `state` is done, skipped or failed; `more` are detail, why and reason."""
        entry = self._stage(stage)
        entry.setdefault("began_wall", time.time())
        entry.setdefault("began_bt", procfs.boottime())
        entry.update(_at("ended"), state=state, evidence=evidence, **more)
        self.save()
        self._record.stage(stage, state, more.get("detail") or more.get("why") or evidence)

    def _stage(self, name: str) -> Dict[str, Any]:
        entry: Dict[str, Any] = self.status["stages"].setdefault(name, {"state": "active"})
        return entry


def _at(prefix: str) -> Dict[str, float]:
    return {prefix + "_wall": round(time.time(), 3), prefix + "_bt": round(procfs.boottime(), 3)}


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(inner) for name, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value
