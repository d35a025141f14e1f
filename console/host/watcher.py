"""Watching one target: its runs, processes and GPUs, told as events whenever something changes.

Eyes only: nothing is written and nobody signalled. `Watcher` owns the samplers and is stepped by the agent's loop; what
can hang (command lines of all processes) is asked in a child. Only agent.py imports this module.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Optional, Set

from . import (
    deathwatch,
    files,
    gpueyes,
    gpuowners,
    lock,
    notify,
    otherfile,
    procfs,
    records,
    strangers,
    tree,
)

Event = Dict[str, Any]

# 20 looks a second while something goes on: a stage is told within 50 ms. Deaths don't wait for a look (pidfds).
LOOK_S = 0.05
CALM_LOOK_S = 0.2
CALM_AFTER_S = 30.0
# For a while after a death: the keeper's exit record follows within milliseconds, and it decides what the screen says.
ALERT_LOOK_S = 0.005
ALERT_FOR_S = 0.5
THOROUGH_S = 2.0
# What is due soon is done along with a sample, and then a moment later than the next one that is to take it along.
_EARLY_S, _LATE_S = 1.0, 0.15
_JUST_NOW = 0.1
"""Of an interval: so fresh a look at the processes does beside a sample."""


class Watcher:
    """Everything that a Watch operation asks for. `fds` and `due` are for the loop, `step` does what is due."""

    def __init__(
        self, operation: Dict[str, Any], send: Callable[[Event], bool], offer: Callable[[Event], bool]
    ) -> None:
        """`send` takes an event that must arrive and says whether there is room; `offer` may drop it."""
        self.spec: Dict[str, Any] = operation["spec"]
        self.state = files.state_root(operation.get("state_dir"))
        self.interval_s = max(0.1, float(operation.get("interval_s") or 1.0))
        self.simulated = (self.spec.get("gpus") or {}).get("simulated")
        self.sample: Optional[Dict[str, Any]] = None
        self._untold: Optional[Dict[str, Any]] = None
        self._send, self._offer = send, offer
        self._runs = records.Runs(self.state, self.spec["target"], procfs.boot_identity())
        self._lock_path = files.lock_path(self.state, self.spec["target"])
        self._tree = tree.Sampler()
        self._look: Optional[tree.Look] = None
        self._other = otherfile.OtherFile()
        self._gpus = gpueyes.GpuEyes(self.simulated, self.interval_s)
        self._owners = gpuowners.GpuOwners()
        self._whose: Any = None
        self._live: Optional[records.Record] = None
        self._strangers = strangers.Strangers(self.spec)
        self._ears = notify.Ears()
        self._deaths = deathwatch.DeathWatch()
        self._told: Any = None
        self._told_older: Any = None
        self._dirty = True
        now = time.monotonic()
        self._alert_until, self._changed_at, self._holder_at, self._looked_at = 0.0, now, now, 0.0
        self._holder: Optional[Dict[str, Any]] = None
        self._look_at = self._thorough_at = self._procs_at = now

    # -- for the loop ---------------------------------------------------------------------------------------------

    def fds(self) -> List[int]:
        jobs = [self._strangers.fd, self._other.fd]
        return [*self._deaths.fds(), *self._gpus.fds(), *(fd for fd in jobs if fd >= 0), *self._ears.fds()]

    def due(self) -> float:
        """When to step again at the latest, on the monotonic clock."""
        looks = min(self._look_at, self._gpus.due())
        return min(looks, self._procs_at) if self._strangers.known else looks

    def step(self, ready: Set[int]) -> None:
        now = time.monotonic()
        if self._deaths.heard(ready):
            self._alarm(now)
        self._take_strangers(now)
        if self._ears.ring(ready):
            self._look_at = min(self._look_at, self._looked_at + LOOK_S)
        # Along with a sample, if one is due, rather than in between: to be woken up costs as much as to look.
        slack_s = _EARLY_S if now >= self._gpus.due() else 0.0
        if now >= self._look_at - slack_s or self._dirty:
            self._look_around(now)
        came = self._poll_gpus()
        # Both at once: each message wakes five processes up on its way to the screen.
        early_s = self.interval_s * (1.0 - _JUST_NOW) if came else 0.0
        if self._strangers.known:
            is_time = now >= self._procs_at - early_s
            if is_time or came:
                self._procs_at = now + self.interval_s * (1.0 + _LATE_S if came else 1.0)
            if is_time:
                self._sample_processes()
        if self._other.advance() and self._look is not None:
            self._tell_processes(self._look)
        self._tell_gpus()

    def expect_change(self) -> None:
        """Something was just started or stopped from here: look closely for a moment."""
        self._alarm(time.monotonic())

    def close(self) -> None:
        self._gpus.close()
        self._ears.close()
        self._strangers.close()
        self._owners.close()
        self._other.close()
        self._deaths.close()

    def _alarm(self, now: float) -> None:
        self._dirty, self._alert_until, self._changed_at = True, now + ALERT_FOR_S, now
        self._strangers.soon(now)

    # -- runs -----------------------------------------------------------------------------------------------------

    def _look_around(self, now: float) -> None:
        told = self._ears.listen(self._listened())
        self._looked_at = now
        thorough = now >= self._thorough_at
        changed = self._runs.refresh(thorough=thorough)
        self._ears.found(changed, complete=not changed)
        # What is new is not listened to yet: that takes another look.
        self._look_at = now + self._pause_s(now, told and not changed)
        if thorough:
            self._thorough_at = now + THOROUGH_S
        died = self._deaths.missed()
        if died:
            self._alarm(now)
        if changed:
            self._changed_at = now
            self._strangers.soon(now)
        holder = self._who_holds(now, changed or self._dirty)
        if not (changed or thorough or died or self._dirty or holder != (self._told or {}).get("lock")):
            return
        self._gpus.follow(self._keeper_dir())
        accounted = self._look.pids if self._live is not None and self._look is not None else set()
        self._strangers.start(now, accounted, self._runs.newest)
        self._tell_state(holder)

    def _keeper_dir(self) -> Optional[str]:
        """Where the newest keeper that lives leaves its samples: a target's keepers all look at the same GPUs."""
        living = (record["id"] for record in self._runs.newest() if record["keeper_alive"])
        return next((os.path.join(self._runs.directory, files.safe_name(run)) for run in living), None)

    def _listened(self) -> Dict[str, int]:
        """Where something changes when a keeper says something: the latest runs, new ones, the lock."""
        latest = dict.fromkeys(self._runs.latest(), notify.ENTRIES)
        wanted = {_nearest(self._runs.directory): notify.ENTRIES, **latest}
        lock_path = _nearest(self._lock_path)
        wanted.setdefault(lock_path, notify.FILE if lock_path == self._lock_path else notify.ENTRIES)
        return wanted

    def _pause_s(self, now: float, told: bool) -> float:
        if now < self._alert_until:
            return ALERT_LOOK_S
        if told and not self._ears.deaf:
            return THOROUGH_S + (_LATE_S if now >= self._gpus.due() else 0.0)
        return CALM_LOOK_S if now - self._changed_at > CALM_AFTER_S and self._holder is None else LOOK_S

    def _who_holds(self, now: float, changed: bool) -> Optional[Dict[str, Any]]:
        if changed or now >= self._holder_at:
            self._holder_at = now + CALM_LOOK_S
            self._holder = lock.read_holder(self._lock_path)
        return self._holder

    def _tell_state(self, holder: Optional[Dict[str, Any]]) -> None:
        """Send the state if it is another one than was told last. Not before it is known what was started by hand."""
        if not self._strangers.known:
            return
        found = self._runs.newest()
        current = records.current(found)
        self._live = records.live(found)
        self._strangers.leave_out(found)
        hand = self._strangers.living()
        died = self._deaths.watch(deathwatch.whose_death_is_news(found, hand))
        if current is not None:
            current = dict(current, stopping=current.get("stopping") or _stopping(found, current))
        current_id = current["id"] if current is not None else None
        before = [each for each in found if each["id"] != current_id and each["state"] != ""]
        state: Dict[str, Any] = {"run": records.wire(current), "hand": hand, "lock": holder}
        news = dict(state, hand=[_ageless(run) for run in hand])
        told_older = (self._runs.changes, [(each["id"], each["alive"], each["state"]) for each in before])
        self._dirty = died
        if died:
            # Between being read and being watched: what was read is out of date already.
            self._look_at = min(self._look_at, time.monotonic() + LOOK_S)
        if news == self._told and told_older == self._told_older:
            return
        event: Event = {"ev": "state", "bt": procfs.boottime(), "wall": time.time(), **state}
        if told_older != self._told_older:
            event["last"] = [records.wire(each) for each in before[: records.MAX_OLDER]]
        if self._send(event):
            self._told, self._told_older = news, told_older
        else:
            self._dirty = True

    def _take_strangers(self, now: float) -> None:
        if self._strangers.take():
            if self._strangers.trouble:
                detail = self._strangers.trouble
                self._offer({"ev": "warn", "bt": procfs.boottime(), "reason": "unknown", "detail": detail})
            self._dirty = True
            self._look_at = now

    # -- processes and GPUs ---------------------------------------------------------------------------------------

    def _sample_processes(self) -> None:
        hand = self._strangers.runs
        whose = self._live["id"] if self._live else tuple(sorted(run["main"]["pid"] for run in hand))
        if whose != self._whose:
            self._whose = whose
            self._owners.forget()
            self._tree.forget()
            self._other.close()
            self._other = otherfile.OtherFile()
        self._look = self._tree.look(self._live, hand)
        watched = self._live or (hand[0] if hand else {})
        self._other.look(self._look.pids, watched.get("log"), (watched.get("main") or {}).get("pid"))
        self._tell_processes(self._look)

    def _tell_processes(self, look: tree.Look) -> None:
        event: Event = {"ev": "procs", "bt": procfs.boottime(), "procs": look.procs, "cpu_cores": look.cpu_cores}
        if self._other.found is not None:
            event["writes"], event["writes_pid"] = self._other.found
        self._offer(event)

    def _poll_gpus(self) -> bool:
        sample = self._gpus.poll()
        if sample is not None:
            self.sample = self._untold = sample
        return sample is not None

    def _tell_gpus(self) -> None:
        sample = self._untold
        if sample is None or self._look is None:
            return  # without the run's processes its own memory would be called somebody else's
        self._untold = None
        self._offer(self._owners.event(sample, self._look, self._live))


def _nearest(path: str) -> str:
    """Return `path`, or where it is missing the directory in which it or what leads to it will appear."""
    while not os.path.exists(path) and path != "/":
        path = os.path.dirname(path) or "/"
    return path


def _stopping(found: List[records.Record], run: records.Record) -> Optional[str]:
    """Return the operator of a transaction under way that replaces or stops `run`."""
    for record in found:
        if record.get("replaced_id") == run["id"] and record["keeper_alive"] and record["state"] in records.IN_TRANSIT:
            return record.get("operator") or "somebody"
    return None


def _ageless(run: Dict[str, Any]) -> Dict[str, Any]:
    return {key: value for key, value in run.items() if key != "age_s"}
