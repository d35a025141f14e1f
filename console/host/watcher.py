"""Watching one target: its runs, processes and GPUs, told as events whenever something changes.

Eyes only: nothing is written and nobody signalled. `Watcher` owns the samplers and is stepped by the agent's loop; what
can hang (command lines of all processes) is asked in a child. Only agent.py imports this module.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from . import (
    background,
    cudaenv,
    discover,
    files,
    gpu,
    gpueyes,
    holders,
    lock,
    naming,
    newcomers,
    notify,
    otherfile,
    procfs,
    records,
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
HAND_S = 2.0
HAND_AT_MOST_S = 30.0
"""Discovery is repeated after this in any case: not everything that makes a run of a process shows from outside."""
HAND_TIMEOUT_S = 5.0
_HAND_PAUSE_S = 0.2

Ident = Tuple[int, int]


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
        self._holders = holders.Holders()
        self._cuda_env = cudaenv.CudaEnv()
        self._peak: Dict[int, int] = {}
        self._whose: Any = None
        self._live: Optional[records.Record] = None
        self._hand: List[Dict[str, Any]] = []
        self._hand_job: Optional[background.Job] = None
        self._hand_known = not self.spec.get("match")
        self._newcomers = newcomers.Newcomers()
        self._ears = notify.Ears()
        self._pidfds: Dict[int, Ident] = {}
        self._watched: Set[Ident] = set()
        self._without_pidfd: Set[Ident] = set()
        self._told: Any = None
        self._told_older: Any = None
        self._dirty = True
        now = time.monotonic()
        self._alert_until, self._changed_at, self._holder_at, self._looked_at = 0.0, now, now, 0.0
        self._holder: Optional[Dict[str, Any]] = None
        self._look_at = self._thorough_at = self._procs_at = self._hand_at = self._hand_latest = now

    # -- for the loop ---------------------------------------------------------------------------------------------

    def fds(self) -> List[int]:
        jobs = [self._hand_job.fd if self._hand_job else -1, self._other.fd]
        return [*self._pidfds, *self._gpus.fds(), *(fd for fd in jobs if fd >= 0), *self._ears.fds()]

    def due(self) -> float:
        """When to step again at the latest, on the monotonic clock."""
        looks = min(self._look_at, self._gpus.due())
        return min(looks, self._procs_at) if self._hand_known else looks

    def step(self, ready: Set[int]) -> None:
        now = time.monotonic()
        for fd in [fd for fd in self._pidfds if fd in ready]:
            self._forget_pidfd(fd)
            self._alarm(now)
        self._take_hand(now)
        if self._ears.ring(ready):
            self._look_at = min(self._look_at, self._looked_at + LOOK_S)
        if now >= self._look_at or self._dirty:
            self._look_around(now)
        came = self._poll_gpus()
        # Both at once where they nearly coincide: each message wakes five processes up on its way to the screen.
        if self._hand_known and now >= self._procs_at - (self.interval_s / 2 if came else 0.0):
            # After a sample of the GPUs a little later than the next one, which is to take them along.
            self._procs_at = now + self.interval_s * (1.15 if came else 1.0)
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
        if self._hand_job:
            self._hand_job.close()
        self._cuda_env.close()
        self._other.close()
        for fd in self._pidfds:
            os.close(fd)
        self._pidfds = {}

    def _alarm(self, now: float) -> None:
        self._dirty, self._alert_until, self._changed_at = True, now + ALERT_FOR_S, now
        self._hand_at = min(self._hand_at, now + _HAND_PAUSE_S)

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
        died = [each for each in self._without_pidfd if not procfs.is_alive(*each)]
        if died:
            self._alarm(now)
        if changed:
            self._changed_at = now
            self._hand_at = min(self._hand_at, now + _HAND_PAUSE_S)
        holder = self._who_holds(now, changed or self._dirty)
        if not (changed or thorough or died or self._dirty or holder != (self._told or {}).get("lock")):
            return
        self._gpus.follow(self._keeper_dir())
        self._start_discovery(now)
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
            return THOROUGH_S
        return CALM_LOOK_S if now - self._changed_at > CALM_AFTER_S and self._holder is None else LOOK_S

    def _who_holds(self, now: float, changed: bool) -> Optional[Dict[str, Any]]:
        if changed or now >= self._holder_at:
            self._holder_at = now + CALM_LOOK_S
            self._holder = lock.read_holder(self._lock_path)
        return self._holder

    def _tell_state(self, holder: Optional[Dict[str, Any]]) -> None:
        """Send the state if it is another one than was told last. Not before it is known what was started by hand."""
        if not self._hand_known:
            return
        found = self._runs.newest()
        current = records.current(found)
        self._live = records.live(found)
        self._hand = not_ours(self._hand, found)
        self._watch_processes(found)
        if current is not None:
            current = dict(current, stopping=current.get("stopping") or _stopping(found, current))
        current_id = current["id"] if current is not None else None
        before = [each for each in found if each["id"] != current_id and each["state"] != ""]
        hand = self._living_hand()
        state: Dict[str, Any] = {"run": records.wire(current), "hand": hand, "lock": holder}
        news = dict(state, hand=[_ageless(run) for run in hand])
        told_older = (self._runs.changes, [(each["id"], each["alive"], each["state"]) for each in before])
        self._dirty = False
        if news == self._told and told_older == self._told_older:
            return
        event: Event = {"ev": "state", "bt": procfs.boottime(), "wall": time.time(), **state}
        if told_older != self._told_older:
            event["last"] = [records.wire(each) for each in before[: records.MAX_OLDER]]
        if self._send(event):
            self._told, self._told_older = news, told_older
        else:
            self._dirty = True

    def _watch_processes(self, found: List[records.Record]) -> None:
        """Hold a pidfd of each process whose death is news."""
        wanted: Set[Ident] = set()
        for record in found:
            if record["keeper_alive"]:
                wanted.add((record["keeper"]["pid"], record["keeper"]["start"]))
            if record["main_alive"]:
                wanted.add((record["main"]["pid"], record["main"]["start"]))
        wanted |= {(each["pid"], each["start"]) for run in self._hand for each in [run["main"], *run["pids"][:32]]}
        for fd in [fd for fd, ident in self._pidfds.items() if ident not in wanted]:
            self._forget_pidfd(fd)
        self._without_pidfd &= wanted
        for ident in wanted - self._watched:
            try:
                pidfd = procfs.pidfd_of(*ident)
            except OSError:
                self._without_pidfd.add(ident)
                continue
            if pidfd is None:
                self._dirty = True  # died just now
            else:
                self._pidfds[pidfd] = ident
                self._watched.add(ident)

    def _forget_pidfd(self, fd: int) -> None:
        self._watched.discard(self._pidfds.pop(fd))
        os.close(fd)

    # -- runs that were started by hand ---------------------------------------------------------------------------

    def _start_discovery(self, now: float) -> None:
        if self._hand_job or not self.spec.get("match") or now < self._hand_at:
            return
        self._hand_at = now + HAND_S
        accounted = self._look.pids if self._live is not None and self._look is not None else set()
        anybody = self._newcomers.may_be_runs(now, accounted)
        whole = not self._hand_known or now >= self._hand_latest
        if not anybody and not whole:
            return
        # Of a run that is known already the newcomer may be kin, which its command line alone does not tell.
        ask = None if whole or self._hand else self._newcomers.possible
        if whole:
            self._hand_latest = now + HAND_AT_MOST_S
        ours = [record for record in self._runs.newest() if record["keeper_alive"] or record["main_alive"]]
        self._hand_job = background.Job(lambda: find_by_hand(self.spec, ours, ask), HAND_TIMEOUT_S)

    def _take_hand(self, now: float) -> None:
        job = self._hand_job
        if job is None or not job.advance():
            return
        self._hand_job = None
        if job.error:
            detail = f"the processes could not be looked through: discovery {job.error}"
            self._offer({"ev": "warn", "bt": procfs.boottime(), "reason": "unknown", "detail": detail})
            self._hand_latest = time.monotonic()  # whom it was about was not seen: all are looked at next
        elif job.result is None:
            return  # nobody of a run among those who are new: all is as it was
        else:
            self._hand = job.result
        self._hand_known = True
        self._dirty = True
        self._look_at = now

    def _living_hand(self) -> List[Dict[str, Any]]:
        living = []
        for run in self._hand:
            pids = [each for each in run["pids"] if procfs.is_alive(each["pid"], each["start"])]
            if pids:
                living.append(dict(run, pids=pids))
        return living

    # -- processes and GPUs ---------------------------------------------------------------------------------------

    def _sample_processes(self) -> None:
        whose = self._live["id"] if self._live else tuple(sorted(run["main"]["pid"] for run in self._hand))
        if whose != self._whose:
            self._whose, self._peak = whose, {}
            self._tree.forget()
            self._other.close()
            self._other = otherfile.OtherFile()
        self._look = self._tree.look(self._live, self._hand)
        self._other.look(self._look.pids, (self._live or (self._hand[0] if self._hand else {})).get("log"))
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
        event = {"ev": "gpus", **{key: sample.get(key) or "" for key in ("source", "why", "driver")}}
        event.update(bt=sample["bt"], cuda_env=self._cuda_env.of(self._with_context(sample)), **self._judged(sample))
        self._offer(event)

    def _judged(self, sample: Dict[str, Any]) -> Dict[str, Any]:
        look = self._look
        assert look is not None
        verdict = gpu.judge(sample, look.pids, look.uvm_pids, self._baseline())
        by_index = {each["i"]: each for each in verdict["gpus"]}
        cuda = (self._live or {}).get("cuda") or {}
        kept = set(cuda.get("contexts") or ())  # what the keeper has seen: it knows the level before the launch
        answers = []
        for each in sample.get("gpus") or ():
            index = each["i"]
            judged = by_index[index]
            if index in kept and not judged["context"] and judged["owner"] != "other":
                judged = {
                    "context": True,
                    "owner": "run" if judged["owner"] in ("nobody", "unknown") else judged["owner"],
                }
            # What is not told is left out: nine of ten messages are of this kind, eight GPUs each.
            told = {key: value for key, value in each.items() if value is not None}
            if judged.get("parts"):
                told["mig"] = [dict(part, context=judged["parts"].get(part["uuid"])) for part in each["mig"]]
            told.update(context=judged["context"], owner=judged["owner"], owner_why=judged.get("why", ""))
            others = self._holders.others(each.get("procs"), look.pids, simulated=sample["source"] == "simulated")
            if others:
                told["others"] = others
            told["peak"] = self._raise_peak(index, each.get("used"), judged["owner"])
            answers.append(told)
        return {"rule": verdict["rule"] or (cuda.get("rule", "") if kept else ""), "gpus": answers}

    def _with_context(self, sample: Dict[str, Any]) -> List[Ident]:
        """The run's processes that use a GPU, as far as that can be told."""
        look = self._look
        assert look is not None
        users = set(look.uvm_pids or ())
        if sample["source"] == "simulated":
            users = {proc[0] for each in sample["gpus"] for proc in each.get("procs") or ()}
        return [(each["pid"], each["start"]) for each in look.procs if each["pid"] in users]

    def _baseline(self) -> Optional[Dict[int, int]]:
        """Bytes used before the launch, as the keeper noted them; None for runs that nobody saw begin."""
        status = (self._live or {}).get("_status") or {}
        noted = status.get("gpu_baseline")
        return {int(index): used for index, used in noted.items()} if isinstance(noted, dict) and noted else None

    def _raise_peak(self, index: int, used: Optional[int], owner: str) -> Optional[int]:
        known = [self._peak.get(index), ((self._live or {}).get("gpu_peak") or {}).get(str(index))]
        if owner == "run":
            known.append(used)
        numbers = [each for each in known if each is not None]
        if not numbers:
            return None
        self._peak[index] = max(numbers)
        return self._peak[index]


def find_by_hand(
    spec: Dict[str, Any], ours: List[records.Record], newcomers_only: Optional[Set[int]] = None
) -> Optional[List[Dict[str, Any]]]:
    """Return HandRun dicts of everything that matches and is not below a keeper or main process of `ours`.

    `newcomers_only`: look no further, and return None, unless one of these may be of a run.
    """
    log_glob = naming.log_glob(spec["log"])
    match = spec.get("match") or ()
    if newcomers_only is not None and not discover.may_be_of_a_run(newcomers_only, match, log_glob):
        return None
    stats = procfs.table()
    roots = {record[key]["pid"] for record in ours for key in ("keeper", "main") if record[key + "_alive"]}
    return discover.find_runs(
        match,
        exclude_pids=roots | procfs.descendants(roots, stats),
        log_glob=log_glob,
        cwd=spec.get("cwd") or "",
    )


def not_ours(hand: List[Dict[str, Any]], found: List[records.Record]) -> List[Dict[str, Any]]:
    """Return the runs that are not below a keeper or main process of ours.

    Discovery takes its time: a run that a keeper has spawned meanwhile may be among what it found.
    """
    roots = {record[key]["pid"] for record in found for key in ("keeper", "main") if record[key + "_alive"]}
    return [run for run in hand if not roots & {run["main"]["pid"], *procfs.ancestors(run["main"]["pid"])}]


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
