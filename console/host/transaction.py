"""A restart or stop as the keeper carries it out: lock, compare-and-swap, killing, clearing cache, spawning.

Each step is journalled before and after. What goes wrong before the first kill is `Refused` (nothing was touched),
later it is `Failed` at a stage. Only keeper.py imports this module.
"""

from __future__ import annotations

import os
import re
import sys
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from . import (
    bounded,
    cache,
    cacheguard,
    discover,
    files,
    gpuwatch,
    journal,
    kill,
    lock,
    naming,
    procfs,
    request,
    spawn,
)

_DISCOVER_S = 10.0
_MARKS_S = 2.0
_STEP_S = 0.01
_OTHER_STEP_S = 0.003  # between looks at what another keeper has written
# The sampler began with the keeper, so mostly its first answer is there by then; a driver that is asleep takes longer.
_BASELINE_S = 1.0
# Where nothing was killed, what was used so long ago is the level before the launch.
_LEVEL_S = 2.0
# Beyond its grace another keeper needs SIGKILL's patience and its own exit record.
_OTHER_KEEPER_S = 40.0
# From the expiry of a request on: the longest that killing and waiting for GPU memory take. Later than that the
# container was frozen in between, and nobody waits for this run any more.
_STALE_S = 300.0
# What waits looks up many times a second: after a longer pause than this it knows that it was frozen itself.
_FROZEN_S = 5.0
_SHORT_SPACE_BYTES = 5 * gpuwatch.GIB

Ident = request.Ident
OpenedLog = spawn.OpenedLog


class Refused(Exception):
    """Nothing was touched."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class Failed(Exception):
    """A stage failed; what was done before stays done."""

    def __init__(self, stage: str, reason: str, detail: str, number: Optional[int] = None) -> None:
        super().__init__(detail)
        self.stage = stage
        self.reason = reason
        self.detail = detail
        self.number = number


class Cancelled(Exception):
    """A stop arrived before anything was spawned."""


class Spawned(NamedTuple):
    main: Ident
    log: spawn.OpenedLog
    bt: float


class Transaction:
    """One request on its way. `pump` is called while it waits, and raises Cancelled where a stop has come.

    `meanwhile` is called once while the old run dies: for what takes a moment and is needed later.
    """

    def __init__(
        self,
        asked: request.Request,
        written: journal.Journal,
        gpus: gpuwatch.GpuWatch,
        target_lock: lock.TargetLock,
        pump: Callable[[], None],
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        self._asked = asked
        self._spec = asked.spec
        self._journal = written
        self._gpus = gpus
        self._lock = target_lock
        self._pump = pump
        self._told_meanwhile = meanwhile
        self._deleter: Optional[cache.Deleter] = None
        self._killed_bt = self._looked_bt = procfs.boottime()
        self._was_frozen = False
        self._spared = {os.getpid()} | set(procfs.ancestors(os.getpid()))

    def close(self) -> None:
        """End what was made in advance and is not needed."""
        if self._deleter is not None:
            self._deleter.close()

    # -- before anything is touched --

    def take(self) -> None:
        """Take the lock and make sure that the world is the plan's. Raises: Refused."""
        asked = self._asked
        self._acquire()
        self._refuse_expired()
        self._compare()
        if asked.action == "restart":
            self._check_paths()
        self._refuse_expired()  # looking took its time, and a container can be frozen at any moment
        self._journal.set(state="accepted")
        # In this order: an agent that gives up withdraws first and then looks for our word, so one sees the other.
        if request.is_withdrawn(asked):
            raise Refused("keeper_not_started", "the request was withdrawn: its first word took too long")

    def _refuse_expired(self) -> None:
        asked = self._asked
        if asked.boot != procfs.boot_identity() or procfs.boottime() > asked.expires_bt:
            raise Refused("request_expired", "the request was valid until %.0f s ago" % self._late_s())

    def _acquire(self) -> None:
        asked = self._asked
        holder = {
            "operator": asked.operator,
            "origin": asked.origin,
            "run": asked.run,
            "name": asked.name,
            "stage": "accepted",
            "since_wall": asked.accepted_wall,
            "since_bt": asked.accepted_bt,
            "action": asked.action,
            "pid": os.getpid(),
        }
        if not self._lock.try_acquire(holder):
            other = lock.read_holder(self._lock.path) or {}
            words = "%s from %s has been at it for %.0f s: %s %s, %s" % (
                other.get("operator") or "somebody",
                other.get("origin") or "somewhere",
                procfs.boottime() - other.get("since_bt", procfs.boottime()),
                other.get("action") or "a restart",
                other.get("name", ""),
                other.get("stage") or "stage unknown",
            )
            raise Refused("restart_under_way", words)

    def _late_s(self) -> float:
        return max(0.0, procfs.boottime() - self._asked.expires_bt)

    def _compare(self) -> None:
        """Refuse what was started since the plan was made; that something has ended since does no harm."""
        named = set(self._alive(self._asked.replaces))
        unnamed = [(main, words) for main, words in self._others() if main not in named]
        planned = self._planned_pids() if unnamed else set()
        for main, words in unnamed:
            if main[0] not in planned:
                raise Refused("plan_changed", "not in the plan: %s" % words)
        if self._asked.action == "stop" and not self._alive(self._asked.replaces):
            raise Refused("nothing_runs", "what the plan named has ended by itself")

    def _planned_pids(self) -> Set[int]:
        stats = procfs.table()
        named = set(self._alive(self._asked.replaces))
        keeper = self._replaced_keeper()
        roots = {pid for pid, _ in named} | ({keeper[0]} if keeper is not None else set())
        return roots | procfs.descendants(roots, stats)

    def _others(self) -> List[Tuple[Ident, str]]:
        """Return every run alive here: other keepers' and those started by hand."""
        found = [
            (main, "run %s, pid %d" % (name, main[0]))
            for name, main in _living_runs(os.path.dirname(self._asked.run_dir))
            if name != os.path.basename(self._asked.run_dir)
        ]
        match = self._spec.get("match") or []
        if match:
            look = lambda: discover.find_runs(  # noqa: E731
                match, self._spared, naming.log_glob(self._spec["log"]), self._spec.get("cwd") or ""
            )
            try:
                for run in bounded.call(look, _DISCOVER_S):
                    main = (run["main"]["pid"], run["main"]["start"])
                    found.append((main, "pid %d, %s" % (main[0], " ".join(run["argv"]))))
            except (bounded.TookTooLong, bounded.ChildFailed) as error:
                # A wedged process hangs whoever reads its command line; the plan's own list still is by pid and start.
                print("discovery: %r" % error, file=sys.stderr)
        return found

    def _check_paths(self) -> None:
        """What would fail after the kill and can be seen before it."""
        asked, spec = self._asked, self._spec
        if os.path.lexists(asked.log_path):
            raise Refused("plan_changed", "%s exists by now" % asked.log_path)
        if not os.path.isdir(spec["cwd"]):
            raise Refused("cwd_missing", spec["cwd"])
        command = os.path.join(spec["cwd"], spec["command"][0])
        if "/" in spec["command"][0] and not os.access(command, os.X_OK):
            number = 2 if not os.path.exists(command) else 13
            raise Refused(*spawn.explain(number, command))
        if not spec.get("keep_cache"):
            for path in spec.get("caches") or ():
                why = cacheguard.refusal(path, self._precious())
                if why:
                    raise Refused("cache_refused", "%s %s" % (path, why))

    def _precious(self) -> List[str]:
        asked = self._asked
        command = asked.spec["command"][0] if asked.spec.get("command") else ""
        return [asked.spec.get("cwd") or "", asked.log_path, asked.state_dir, command]

    # -- killing --

    def kill(self) -> None:
        """End what the plan names. Raises: Failed with `survivors`."""
        asked = self._asked
        keeper = self._replaced_keeper()
        victims = self._alive(asked.replaces)
        if not victims and keeper is None:
            self._stage("killing")
            self._journal.end("killing", "skipped", why="nothing ran")
            self._killed_bt -= _LEVEL_S
            return
        self._stage("killing")
        before = self._gpus.await_sample(0.0, 1.0)
        pids = {pid for pid, _ in victims}
        held = _held_bytes(before, pids)
        self._journal.begin("killing", "killing", counted(len(victims), held))
        anonymous = any(procfs.holds_uvm(pid) for pid in pids)
        release = gpuwatch.Release(before, pids, self._replaced_baseline(), anonymous)
        proved = keeper is not None and self._stop_by_its_keeper()
        # What its keeper has proved needs no second search, which would read the environment of every process.
        ended = 0 if proved and not self._alive(victims) else self._kill_by_hand(victims)
        self._killed_bt = procfs.boottime()
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

    def _meanwhile(self) -> None:
        """The old run has been told to die: what takes a moment and is needed once it is dead begins."""
        if self._asked.action == "restart" and self._deleter is None and self._clears:
            self._deleter = cache.Deleter()
        self._told_meanwhile()

    @property
    def _clears(self) -> bool:
        return bool(self._spec.get("caches")) and not self._spec.get("keep_cache")

    def _tell_killing(self, text: str) -> None:
        self._journal.live("killing", text)

    def _pump_while_killing(self) -> None:
        self._note_freeze()
        try:
            self._pump()
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
            if self._replaced_keeper() is None:
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
        alive = set(self._alive(victims)) | self._marked()
        if not alive:
            return 0
        spared = set(self._spared)
        number = kill.signal_number(self._spec.get("stop_signal") or "TERM")
        job = kill.KillJob(kill.Prey(alive, spared), number, float(self._spec.get("grace_s", 20.0)), procfs.boottime())
        while True:
            job.step(procfs.boottime())
            self._meanwhile()  # nothing the second time
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
            if stat.pid not in self._spared and procfs.environ(stat.pid).get("DFLASH_RUN_ID") == mark
        ]
        try:
            return {(pid, start) for pid, start in bounded.call(look, _MARKS_S)}
        except (bounded.TookTooLong, bounded.ChildFailed) as error:
            print("marks: %r" % error, file=sys.stderr)
            return set()

    def _alive(self, idents: List[Ident]) -> List[Ident]:
        return [ident for ident in idents if procfs.is_alive(*ident)]

    def _replaced_keeper(self) -> Optional[Ident]:
        """The keeper of the run to replace, if it lives."""
        if self._asked.replaced_id is None:
            return None
        status = files.read_json(self._asked.other_run_dir(self._asked.replaced_id), journal.NAME) or {}
        keeper = status.get("keeper")
        if not keeper or status.get("boot") != self._asked.boot:
            return None
        ident = (keeper["pid"], keeper["start"])
        return ident if procfs.is_alive(*ident) else None

    def _replaced_baseline(self) -> Dict[int, int]:
        if self._asked.replaced_id is None:
            return {}
        status = files.read_json(self._asked.other_run_dir(self._asked.replaced_id), journal.NAME) or {}
        return {int(index): amount for index, amount in (status.get("gpu_baseline") or {}).items()}

    # -- clearing the cache --

    def clear(self) -> None:
        """Set the caches aside and have them deleted later. Raises: Failed."""
        caches = list(self._spec.get("caches") or ())
        self._stage("cache")
        if not self._clears:
            self._journal.end("cache", "skipped", why="kept (c)" if caches else "no cache configured")
            return
        self._journal.begin("cache", "cache", detail=", ".join(caches))
        aside: List[cache.SetAside] = []
        leftovers = [trash for path in caches for trash in cache.left_behind(path)]
        try:
            for path in caches:
                moved = cache.set_aside(path, self._precious(), (self._asked.cache_sizes or {}).get(path))
                if moved is not None:
                    aside.append(moved)
        except cache.CacheError as error:
            raise Failed("cache", error.reason, error.detail) from error
        finally:
            self._delete(leftovers + [each.trash for each in aside if each.trash])
        if not aside:
            self._journal.end("cache", "skipped", why="nothing to clear")
            return
        size = gpuwatch.size_text(sum(each.size_bytes for each in aside))
        more = "> " if any(each.partial for each in aside) else ""
        self._journal.end(
            "cache",
            "done",
            # In 17 cells: of a lower bound nobody needs the tenths.
            "%s%s set aside" % (more.strip(), size if not more else re.sub(r"\.\d", "", size)),
            detail="%s%s set aside, being deleted: %s" % (more, size, ", ".join(each.path for each in aside)),
        )

    def _delete(self, trashes: List[str]) -> None:
        # A rename frees no space: where it is short, the deletion must not wait for idle time.
        short = any(_free_bytes(os.path.dirname(trash)) < self._wanted_bytes() for trash in trashes)
        if trashes:
            self._deleter = self._deleter or cache.Deleter()
            self._deleter.delete(trashes, urgent=short)
        self.close()

    def _wanted_bytes(self) -> float:
        wanted_gib = (self._spec.get("preflight") or {}).get("free_gib")
        return wanted_gib * gpuwatch.GIB if wanted_gib else _SHORT_SPACE_BYTES

    # -- spawning --

    def spawn(self, env: Dict[str, str], oom_score_adj: str) -> Spawned:
        """Execute the command with its output on a fresh log. Raises: Failed, Cancelled."""
        asked = self._asked
        self._pump()
        self._refuse_stale()
        self._stage("spawned")
        self._journal.begin("spawned", "spawned")
        self._take_baseline()
        try:
            opened = spawn.open_log(asked.log_path)
            note = lambda pid: self._note_main(pid, opened)  # noqa: E731
            pid = spawn.spawn(self._spec["command"], self._spec["cwd"], env, opened, oom_score_adj, note)
        except spawn.SpawnError as error:
            self._journal.status["main"] = self._journal.status["spawned_bt"] = None
            raise Failed("spawned", error.reason, error.detail, error.number) from error
        stat = procfs.read_stat(pid)
        return Spawned((pid, stat.start if stat is not None else 0), opened, procfs.boottime())

    def _take_baseline(self) -> None:
        """Note what is used before the launch; later a quick run may hold memory already. None in time: unknown."""
        self._gpus.poll()
        if self._gpus.latest is None or self._gpus.latest["bt"] < self._killed_bt:
            self._gpus.await_sample(self._killed_bt, _BASELINE_S)
        self._gpus.take_baseline(self._killed_bt)
        if self._gpus.baseline:
            self._journal.status["gpu_baseline"] = {str(index): used for index, used in self._gpus.baseline.items()}

    def _refuse_stale(self) -> None:
        """A container that was frozen for a backup must not start on thaw what nobody waits for any more."""
        late_s = self._late_s()
        if late_s > _STALE_S or (late_s > 0.0 and self._was_frozen):
            how = ", frozen meanwhile" if self._was_frozen else ""
            raise Failed("spawned", "request_expired", "expired %.0f s ago, while at it%s" % (late_s, how))

    def _note_main(self, pid: int, log: OpenedLog) -> None:
        """Journal who will be the run, before it is: see spawn."""
        stat = procfs.read_stat(pid)
        self._journal.set(
            main={"pid": pid, "start": stat.start if stat is not None else 0},
            spawned_bt=procfs.boottime(),
            log={"path": log.path, "dev": log.dev, "inode": log.inode},
        )

    def _stage(self, name: str) -> None:
        self._lock.update(stage=name)


def _living_runs(runs_dir: str) -> List[Tuple[str, Ident]]:
    """Return (directory name, main process) of every run of a keeper whose main process lives."""
    boot = procfs.boot_identity()
    found = []
    for name in sorted(os.listdir(runs_dir)):
        status = files.read_json(os.path.join(runs_dir, name), journal.NAME) or {}
        main = status.get("main")
        if main and status.get("boot") == boot and procfs.is_alive(main["pid"], main["start"]):
            found.append((name, (main["pid"], main["start"])))
    return found


def _held_bytes(sample: Optional[gpuwatch.Sample], pids: Set[int]) -> int:
    gpus = sample["gpus"] if sample is not None else []
    return sum(size or 0 for each in gpus for pid, size in each.get("procs") or () if pid in pids)


def counted(number: int, size_bytes: int) -> str:
    words = plural(number, "pid")
    return "%s, %s" % (words, gpuwatch.size_text(size_bytes)) if size_bytes else words


def plural(number: int, noun: str) -> str:
    return "%d %s" % (number, noun if number == 1 else noun + "s")


def _free_bytes(directory: str) -> int:
    try:
        found = os.statvfs(directory)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize
