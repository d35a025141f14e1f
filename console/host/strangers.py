"""Runs that nobody of ours has started: looked for when somebody new came who may be one, and now and then in any case.

Reading command lines can hang on a wedged process, so others read them: `cat` those of who is new, and where one may be
of a run, a child of ours those of all. Only watcher.py imports this module.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Optional, Set

from . import background, cmdlines, discover, naming, newcomers, procfs, records

LOOK_S = 2.0
WHOLE_S = 30.0
"""Discovery is repeated after this in any case: not everything that makes a run of a process shows from outside."""
TIMEOUT_S = 5.0
_PAUSE_S = 0.2

Run = Dict[str, Any]


class Strangers:
    """What runs beside our own runs. `fd` is for the loop; `take` what has come before `start` looks again."""

    def __init__(self, spec: Dict[str, Any]) -> None:
        self.runs: List[Run] = []
        """HandRun dicts as of the last look."""
        self.known = not spec.get("match")
        """Whether they were looked for at all."""
        self.trouble = ""
        """Why the look that `take` has just taken in failed."""
        self._spec = spec
        self._asked: Optional[cmdlines.CommandLines] = None
        self._job: Optional[background.Job] = None
        self._log_glob = naming.log_glob(spec["log"]) if spec.get("match") else ""
        self._newcomers = newcomers.Newcomers()
        self._newest: Callable[[], List[records.Record]] = list
        self._next_at = self._whole_at = time.monotonic()

    @property
    def fd(self) -> int:
        """To be selected on; -1 while nothing is looked for."""
        work = self._asked or self._job
        return work.fd if work is not None else -1

    def soon(self, now: float) -> None:
        """Something has changed: look again in a moment, for who may have come with it."""
        self._next_at = min(self._next_at, now + _PAUSE_S)

    def start(self, now: float, accounted: Set[int], newest: Callable[[], List[records.Record]]) -> None:
        """Look, if it is time and somebody new may be a run. `accounted`: processes of runs that are known.

        `newest`: asked for our own runs, below which no stranger is.
        """
        if self._asked is not None or self._job is not None or not self._spec.get("match") or now < self._next_at:
            return
        self._next_at = now + LOOK_S
        anybody = self._newcomers.may_be_runs(now, accounted)
        whole = not self.known or now >= self._whole_at
        if not anybody and not whole:
            return
        self._newest = newest
        if whole:
            self._whole_at = now + WHOLE_S
        # Of a run that is known already the newcomer may be kin, which its command line alone does not tell.
        if whole or self.runs or not self._ask(self._newcomers.possible):
            self._look()

    def _ask(self, pids: Set[int]) -> bool:
        try:
            self._asked = cmdlines.CommandLines(pids, TIMEOUT_S)
        except OSError:
            return False  # a host without `cat`, or one that can't start anybody
        return True

    def _look(self) -> None:
        ours = [record for record in self._newest() if record["keeper_alive"] or record["main_alive"]]
        self._job = background.Job(lambda: find_by_hand(self._spec, self._log_glob, ours), TIMEOUT_S)

    def take(self) -> bool:
        """Take in what was found, or `trouble`; return whether there is anything to tell."""
        self.trouble = ""
        if self._asked is not None:
            return self._take_answer(self._asked)
        job = self._job
        if job is None or not job.advance():
            return False
        self._job = None
        if job.error:
            self._fail(job.error)
        else:
            self.runs = job.result
        self.known = True
        return True

    def _take_answer(self, asked: cmdlines.CommandLines) -> bool:
        """Look through all where one who is new may be of a run; else all is as it was."""
        if not asked.advance():
            return False
        self._asked = None
        if asked.error:
            self._fail(asked.error)
            return True
        if discover.may_be_of_a_run(asked.of, self._spec.get("match") or (), self._log_glob):
            self._look()
        return False

    def _fail(self, error: str) -> None:
        self.trouble = f"the processes could not be looked through: discovery {error}"
        self._whole_at = time.monotonic()  # whom it was about was not seen: all are looked at next

    def leave_out(self, ours: List[records.Record]) -> None:
        """Drop what turned out to be our own: a look takes its time, and a keeper may have spawned it meanwhile."""
        self.runs = not_ours(self.runs, ours)

    def living(self) -> List[Run]:
        """Return the runs with those of their processes that live now."""
        living = []
        for run in self.runs:
            pids = [each for each in run["pids"] if procfs.is_alive(each["pid"], each["start"])]
            if pids:
                living.append(dict(run, pids=pids))
        return living

    def close(self) -> None:
        for work in (self._asked, self._job):
            if work is not None:
                work.close()


def find_by_hand(spec: Dict[str, Any], log_glob: str, ours: List[records.Record]) -> List[Run]:
    """Return HandRun dicts of everything that matches and is not below a keeper or main process of `ours`."""
    stats = procfs.table()
    roots = {record[key]["pid"] for record in ours for key in ("keeper", "main") if record[key + "_alive"]}
    return discover.find_runs(
        spec.get("match") or (),
        exclude_pids=roots | procfs.descendants(roots, stats),
        log_glob=log_glob,
        cwd=spec.get("cwd") or "",
    )


def not_ours(hand: List[Run], found: List[records.Record]) -> List[Run]:
    """Return the runs that are not below a keeper or main process of ours."""
    roots = {record[key]["pid"] for record in found for key in ("keeper", "main") if record[key + "_alive"]}
    return [run for run in hand if not roots & {run["main"]["pid"], *procfs.ancestors(run["main"]["pid"])}]
