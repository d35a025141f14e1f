"""Requests on their way to a keeper: the run directory is made, the keeper started, its first word answered.

Only the agent imports this module. What the keeper does then is its own.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Optional

from . import background, files, fingerprints, loader, procfs, records, startkeeper
from .replies import Operation, Refused, Replies

# Not in the first second of a connection, which belongs to the screen.
_COMPILE_AFTER_S = 1.0
_COMPILE_S = 30.0
# What a cache held when its plan was made is what is cleared a moment later, near enough to be told.
_COUNT_LASTS_S = 300.0


class Launches:
    """Keepers that are being started for one console."""

    def __init__(self, replies: Replies, expect_change: Callable[[], None]) -> None:
        """`expect_change`: told when the run directories are about to change."""
        self._replies, self._expect_change = replies, expect_change
        self._starts: Dict[int, startkeeper.Start] = {}
        self._caches: List[Dict[str, Any]] = []
        self._counted_bt = float("-inf")

    @property
    def under_way(self) -> bool:
        return bool(self._starts)

    def note_plan(self, plan: Dict[str, Any]) -> None:
        """Keep what a plan has counted of the caches, so that the keeper that carries it out need not."""
        self._caches, self._counted_bt = plan.get("caches") or [], procfs.boottime()

    def _counted(self) -> Dict[str, Any]:
        if procfs.boottime() - self._counted_bt > _COUNT_LASTS_S:
            return {}
        return {each["path"]: [each["bytes"], bool(each["partial"])] for each in self._caches if "bytes" in each}

    def execute(
        self, operation: Operation, state: str, sample: Optional[Dict[str, Any]] = None
    ) -> Optional[Dict[str, Any]]:
        """Start the keeper of a request. `sample`: the newest of the GPUs, which spares it the wait for a first."""
        spec, run, action = operation["spec"], operation["request"], operation["action"]
        if not startkeeper.is_run_id(run) or action not in ("restart", "stop"):
            raise Refused("protocol", f"no such request: {action} {str(run)[:80]}")
        boot = procfs.boot_identity()
        replaced = self._record(state, spec["target"], operation.get("replaced_id"))
        if action == "stop" and not os.path.isdir(files.run_dir(state, spec["target"], run)):
            self._must_run(operation, replaced)
            if replaced is not None and replaced["keeper_alive"]:
                return self._stop_own(state, operation, replaced)
        directory = startkeeper.make_run_dir(state, spec["target"], run)
        resent = directory is None
        directory = directory or files.run_dir(state, spec["target"], run)

        def read() -> Optional[Dict[str, Any]]:
            return records.load(directory, boot)

        unit = None
        if resent and startkeeper.is_taken(directory):
            pass  # its keeper has a word to say, or has said it
        elif not resent or not startkeeper.is_asked(directory):
            known = {
                "replaced_name": replaced.get("name") if replaced else None,
                "gpu_sample": sample,
                "cache_sizes": self._counted(),
                "scripts": fingerprints.scripts_of(spec, [procfs.argv(each["pid"]) for each in operation["replaces"]]),
            }
            startkeeper.write_request(directory, operation, known)
            unit = startkeeper.unit_name(spec["target"], run)
        else:
            # The agent that made the directory was lost before it started a keeper, or has just done so: of two
            # keepers one carries the request out.
            unit = startkeeper.unit_name(spec["target"], run)
        if unit is not None:
            startkeeper.write_program(directory)
        self._starts[operation["id"]] = startkeeper.Start(directory, read, unit)
        return None

    def _record(self, state: str, target: str, run: Optional[str]) -> Optional[records.Record]:
        if run is None or not startkeeper.is_run_id(run):
            return None
        return records.load(files.run_dir(state, target, run), procfs.boot_identity())

    def _must_run(self, operation: Operation, replaced: Optional[records.Record]) -> None:
        """Raises: Refused unless something of what is to be stopped still lives."""
        if replaced is not None and (replaced["alive"] or records.is_under_way(replaced)):
            return
        if any(procfs.is_alive(each["pid"], each["start"]) for each in operation.get("replaces") or ()):
            return
        raise Refused("nothing_runs", "what was to be stopped is gone already")

    def _stop_own(self, state: str, operation: Operation, replaced: records.Record) -> Dict[str, Any]:
        startkeeper.ask_to_stop(files.run_dir(state, replaced["target"], replaced["id"]), operation)
        self._expect_change()
        return _taken(replaced)

    def step(self) -> None:
        """Answer those whose keeper has said its first word, or will not."""
        for operation_id, start in list(self._starts.items()):
            if not start.advance():
                continue
            del self._starts[operation_id]
            self._expect_change()
            for note in start.notes:
                self._replies.warn("keeper_not_started", note)
            record, error = start.record, start.error
            if error is not None:
                self._replies.refuse(operation_id, error.reason, str(error))
            elif record is not None and record["state"] == "refused":
                data = {"run": record["id"]}
                reason, detail = record.get("reason") or "unknown", record.get("detail") or ""
                self._replies.refuse(operation_id, reason, detail, data)
            elif record is not None:
                self._replies.reply(operation_id, _taken(record))


class Compiling:
    """Has the keeper's modules compiled while nobody waits, so that the next keeper starts sooner."""

    def __init__(self) -> None:
        self._job: Optional[background.Job] = None
        self._at = float("inf")
        self._wanted = bool(loader.pack)

    def soon(self) -> None:
        """A console watches: it may ask for a keeper some day."""
        self._at = min(self._at, time.monotonic() + _COMPILE_AFTER_S)

    def now(self) -> None:
        """A plan is being made: a keeper may be wanted next."""
        self._at = min(self._at, time.monotonic())

    def jobs(self) -> List[background.Job]:
        return [self._job] if self._job else []

    def step(self) -> None:
        if self._job is None:
            if self._wanted and time.monotonic() >= self._at:
                self._wanted = False
                self._job = background.Job(loader.compile_all, _COMPILE_S)
            return
        if self._job.advance():
            loader.keep_compiled(str(self._job.result or ""))
            self._job = None


def _taken(record: records.Record) -> Dict[str, Any]:
    return {
        "run": record["id"],
        "name": record.get("name", ""),
        "keeper": record.get("keeper"),
        "state": record["state"],
    }
