"""Stage killing: the run that a request names is ended, by its own keeper where one lives, and proved to be gone.

What is half killed is killed to its end, also where a stop comes meanwhile. Only keeper.py imports this module.
"""

from __future__ import annotations

import sys
import time
from typing import Callable, List, NamedTuple, Optional, Set

from . import bounded, files, gpuwatch, journal, kill, procfs, request, transaction
from .transaction import Cancelled, Failed, counted, plural

_MARKS_S = 2.0
_STEP_S = 0.01
_OTHER_STEP_S = 0.003  # between looks at what another keeper has written
# Where nothing was killed, what was used so long ago is the level before the launch.
_LEVEL_S = 2.0
# Beyond its grace another keeper needs SIGKILL's patience and its own exit record.
_OTHER_KEEPER_S = 40.0
# What waits looks up many times a second: after a longer pause than this it knows that it was frozen itself.
_FROZEN_S = 5.0

Ident = request.Ident


class Killed(NamedTuple):
    """The old run is gone."""

    bt: float
    """Since when: what a GPU holds from then on is not of it."""
    was_frozen: bool
    """Whether the container stood still meanwhile."""


class Killing:
    """The old run's end. `meanwhile` is called again and again while it dies: what takes a moment can begin there."""

    def __init__(self, task: transaction.Transaction, meanwhile: Callable[[], None]) -> None:
        self._task, self._asked, self._spec = task, task.asked, task.asked.spec
        self._journal, self._gpus = task.journal, task.gpus
        self._meanwhile = meanwhile
        self._began_bt = self._looked_bt = procfs.boottime()
        self._was_frozen = False

    def kill(self) -> Killed:
        """End what the plan names. Raises: Failed with `survivors`."""
        keeper = self._task.replaced_keeper()
        victims = transaction.living(self._asked.replaces)
        self._task.enter("killing")
        if not victims and keeper is None:
            self._journal.end("killing", "skipped", why="nothing ran")
            return Killed(self._began_bt - _LEVEL_S, self._was_frozen)
        before = self._gpus.await_sample(0.0, 1.0)
        pids = {pid for pid, _ in victims}
        held = _held_bytes(before, pids)
        self._journal.begin("killing", "killing", counted(len(victims), held))
        anonymous = any(procfs.holds_uvm(pid) for pid in pids)
        release = gpuwatch.Release(before, pids, self._task.replaced_baseline(), anonymous)
        proved = keeper is not None and self._stop_by_its_keeper()
        # What its keeper has proved needs no second search, which would read the environment of every process.
        ended = 0 if proved and not transaction.living(victims) else self._kill_by_hand(victims)
        killed_bt = procfs.boottime()
        self._gpus.start()  # unless it runs: nobody may have been there to be told to die
        warning = gpuwatch.await_release(self._gpus, release, self._tell_killing, self._pump_while_killing)
        self._note_freeze()  # on thaw all may be over before the next look
        freed = release.freed_bytes
        number = max(ended, len(victims))
        detail = "%s gone%s%s" % (
            plural(number, "pid"),
            "" if proved and not ended else ", no others found",
            ", %s freed" % gpuwatch.size_text(freed) if freed else "",
        )
        self._journal.end(
            "killing",
            "done",
            counted(number, freed or held),
            detail=detail,
            why=warning,
            reason="gpu_memory_held" if warning else None,
        )
        return Killed(killed_bt, self._was_frozen)

    def _tell_killing(self, text: str) -> None:
        self._journal.live("killing", text)

    def _pump_while_killing(self) -> None:
        self._note_freeze()
        try:
            self._task.pump()
        except Cancelled:
            pass  # what is half killed is killed to its end; the stop takes effect before the spawn

    def _note_freeze(self) -> None:
        now = procfs.boottime()
        self._was_frozen = self._was_frozen or now - self._looked_bt > _FROZEN_S
        self._looked_bt = now

    def _stop_by_its_keeper(self) -> bool:
        """Let the run's own keeper end it, which proves that all are gone; False where it doesn't."""
        asked = self._asked
        other = asked.other_run_dir(asked.replaced_id or "")
        grace_s = float(self._spec.get("grace_s", 20.0))
        name = self._spec.get("stop_signal") or "TERM"
        if not request.send_stop(other, asked.operator, asked.origin, asked.run, name, grace_s):
            return False
        deadline = procfs.boottime() + grace_s + _OTHER_KEEPER_S
        stamp = None
        self._meanwhile()
        while procfs.boottime() < deadline:
            if (files.read_json(other, "exit.json") or {}).get("all_gone"):
                return True
            if self._task.replaced_keeper() is None:
                return bool((files.read_json(other, "exit.json") or {}).get("all_gone"))
            newest = files.stamp(other, journal.NAME)
            if newest != stamp:
                stamp = newest
                text = (files.read_json(other, journal.NAME) or {}).get("stopping_text")
                if text:
                    self._tell_killing(text)
            self._pump_while_killing()
            time.sleep(_OTHER_STEP_S)
        return False

    def _kill_by_hand(self, victims: List[Ident]) -> int:
        """End what still lives of `victims` and their kin; return how many processes that were."""
        alive = set(transaction.living(victims)) | self._marked()
        if not alive:
            return 0
        spared = set(self._task.spared)
        number = kill.signal_number(self._spec.get("stop_signal") or "TERM")
        job = kill.KillJob(kill.Prey(alive, spared), number, float(self._spec.get("grace_s", 20.0)), procfs.boottime())
        while True:
            job.step(procfs.boottime())
            self._meanwhile()
            spared.update(pid for pid in [self._gpus.sampler.pid] if pid is not None)
            if job.done:
                break
            self._tell_killing(job.text)
            self._pump_while_killing()
            time.sleep(_STEP_S)
        if job.survivors:
            raise Failed("killing", "survivors", "survived SIGKILL: %s" % ", ".join(job.survivors))
        return len(job.ended)

    def _marked(self) -> Set[Ident]:
        """What else carries the mark of a run whose keeper is lost, also where it has hopped out of the tree."""
        if self._asked.replaced_id is None:
            return set()
        mark = self._asked.replaced_id
        look = lambda: [  # noqa: E731
            (stat.pid, stat.start)
            for stat in procfs.table().values()
            if stat.pid not in self._task.spared and procfs.environ(stat.pid).get("DFLASH_RUN_ID") == mark
        ]
        try:
            return {(pid, start) for pid, start in bounded.call(look, _MARKS_S)}
        except (bounded.TookTooLong, bounded.ChildFailed) as error:
            print("marks: %r" % error, file=sys.stderr)
            return set()


def _held_bytes(sample: Optional[gpuwatch.Sample], pids: Set[int]) -> int:
    gpus = sample["gpus"] if sample is not None else []
    return sum(size or 0 for each in gpus for pid, size in each.get("procs") or () if pid in pids)
