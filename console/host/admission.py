"""Whether a request may be carried out at all: lock, expiry, compare-and-swap, paths.

Nothing is touched here but the lock, so whatever is wrong is `Refused`. Only keeper.py imports this module.
"""

from __future__ import annotations

import os
import sys
from typing import List, Set, Tuple

from . import bounded, cacheguard, discover, files, journal, lock, naming, procfs, request, spawn, transaction
from .transaction import Refused

_DISCOVER_S = 10.0

Ident = request.Ident


class Admission:
    """The first look of a transaction at the world."""

    def __init__(self, task: transaction.Transaction) -> None:
        self._task, self._asked, self._spec = task, task.asked, task.asked.spec

    def take(self) -> None:
        """Take the lock and make sure that the world is the plan's. Raises: Refused."""
        asked = self._asked
        self._acquire()
        self._refuse_expired()
        self._compare()
        if asked.action == "restart":
            self._check_paths()
        self._refuse_expired()  # looking took its time, and a container can be frozen at any moment
        self._task.journal.set(state="accepted")
        # In this order: an agent that gives up withdraws first and then looks for our word, so one sees the other.
        if request.is_withdrawn(asked):
            raise Refused("keeper_not_started", "the request was withdrawn: its first word took too long")

    def _refuse_expired(self) -> None:
        asked = self._asked
        if asked.boot != procfs.boot_identity() or procfs.boottime() > asked.expires_bt:
            raise Refused("request_expired", "the request was valid until %.0f s ago" % self._task.late_s)

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
        if not self._task.lock.try_acquire(holder):
            other = lock.read_holder(self._task.lock.path) or {}
            words = "%s from %s has been at it for %.0f s: %s %s, %s" % (
                other.get("operator") or "somebody",
                other.get("origin") or "somewhere",
                procfs.boottime() - other.get("since_bt", procfs.boottime()),
                other.get("action") or "a restart",
                other.get("name", ""),
                other.get("stage") or "stage unknown",
            )
            raise Refused("restart_under_way", words)

    def _compare(self) -> None:
        """Refuse what was started since the plan was made; that something has ended since does no harm."""
        named = set(transaction.living(self._asked.replaces))
        unnamed = [(main, words) for main, words in self._others() if main not in named]
        planned = self._planned_pids() if unnamed else set()
        for main, words in unnamed:
            if main[0] not in planned:
                raise Refused("plan_changed", "not in the plan: %s" % words)
        if self._asked.action == "stop" and not transaction.living(self._asked.replaces):
            raise Refused("nothing_runs", "what the plan named has ended by itself")

    def _planned_pids(self) -> Set[int]:
        stats = procfs.table()
        named = set(transaction.living(self._asked.replaces))
        keeper = self._task.replaced_keeper()
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
                match, self._task.spared, naming.log_glob(self._spec["log"]), self._spec.get("cwd") or ""
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
                why = cacheguard.refusal(path, self._task.precious)
                if why:
                    raise Refused("cache_refused", "%s %s" % (path, why))


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
