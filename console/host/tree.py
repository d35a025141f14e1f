"""The process tree of the run, sampled: who belongs to it, what each uses, which ones hold a CUDA driver open.

Reading only. Our own helpers under a keeper (GPU sampler, deletion) are never part of a run. Only the agent uses this.
"""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from . import census, discover, procfs, uvm

OURS = "dflash-"
"""Command names of our own processes begin with this."""

# Looking for new members costs the most: each second while a launch grows, then less and less.
_NEW_S, _YOUNG_S = 60.0, 600.0
_YOUNG_LOOK_S, _OLD_LOOK_S = 3.0, 10.0

Key = Tuple[int, int]


class Look(NamedTuple):
    """One sample of a tree."""

    procs: List[Dict[str, Any]]
    cpu_cores: Optional[float]
    pids: Set[int]
    uvm_pids: Optional[Set[int]]
    """None where the descriptors of some process of the tree may not be read: then nobody knows."""


def pids_of(record: Dict[str, Any], stats: procfs.Table) -> Set[int]:
    """Return the tree of one of our runs: below its keeper, else (keeper lost) its main process and below."""
    main = record.get("main")
    if record.get("keeper_alive"):
        return without_ours(procfs.descendants([record["keeper"]["pid"]], stats), stats)
    if record.get("main_alive") and main:
        return {main["pid"]} | procfs.descendants([main["pid"]], stats)
    return set()


def without_ours(pids: Set[int], stats: procfs.Table) -> Set[int]:
    helpers = {pid for pid in pids if stats[pid].comm.startswith(OURS)}
    return pids - helpers - procfs.descendants(helpers, stats)


class Sampler:
    """Samples one tree again and again; `forget` when another run takes its place."""

    def __init__(self) -> None:
        self._census = census.Census()
        self._began = self._full_at = float("-inf")
        self._uvm = uvm.Holders()
        self._uvm_at = float("-inf")
        self._argv: Dict[Tuple[int, int, str], List[str]] = {}
        self._cpu: Dict[Key, Tuple[float, int]] = {}

    def forget(self) -> None:
        self.__init__()  # type: ignore[misc]

    def look(self, record: Optional[Dict[str, Any]], hand: List[Dict[str, Any]]) -> Look:
        """Sample the tree of `record`, or of the hand-started runs where there is none."""
        now = time.monotonic()
        if record is None and not hand:
            self.forget()
            return Look([], None, set(), set())
        if self._began == float("-inf"):
            self._began = now
        stats = self._stats(record, hand, now)
        live = {pid: stat for pid, stat in stats.items() if not (stat.state == "Z" and stat.threads <= 1)}
        holders = self._holders(live, now)
        procs, cores = [], 0.0
        for pid in sorted(live, key=lambda each: live[each].start):
            process = discover.wire_process(live[pid], self._argv_of(live[pid]))
            process["uvm"] = pid in holders
            process["cpu_pct"] = self._cpu_pct(live[pid], now)
            cores += (process["cpu_pct"] or 0.0) / 100
            procs.append(process)
        self._prune(live)
        return Look(procs, round(cores, 2) if procs else None, set(live), holders if _may_read(live) else None)

    def _stats(self, record: Optional[Dict[str, Any]], hand: Iterable[Dict[str, Any]], now: float) -> procfs.Table:
        age_s = now - self._began
        pause_s = 0.0 if age_s < _NEW_S else _YOUNG_LOOK_S if age_s < _YOUNG_S else _OLD_LOOK_S
        if now - self._full_at < pause_s and len(self._census):
            found = self._census.again()
            if len(found) == len(self._census):
                return found
        self._full_at = now

        def members(table: procfs.Table) -> Set[int]:
            if record is not None:
                return pids_of(record, table)
            mains = {pid for run in hand for pid in _same(run["pids"], table)}
            return mains | procfs.descendants(mains, table)

        # Kin of a run that is found later was a stranger until then.
        named = {each["pid"] for run in hand for each in run["pids"]} if record is None else set()
        return self._census.take(members, now, named)

    def _holders(self, stats: procfs.Table, now: float) -> Set[int]:
        again = now - self._began < _NEW_S or now - self._uvm_at >= _OLD_LOOK_S
        if again:
            self._uvm_at = now
        return self._uvm.among(stats, again)

    def _argv_of(self, stat: procfs.Stat) -> List[str]:
        # The command name is part of the key since exec changes both.
        key = (stat.pid, stat.start, stat.comm)
        if key not in self._argv or procfs.age_s(stat) < 3.0:
            self._argv[key] = procfs.argv(stat.pid)
        return self._argv[key]

    def _cpu_pct(self, stat: procfs.Stat, now: float) -> Optional[float]:
        key, ticks = (stat.pid, stat.start), stat.utime + stat.stime
        before = self._cpu.get(key)
        self._cpu[key] = (now, ticks)
        if before is None or now <= before[0]:
            return None
        return round(100.0 * (ticks - before[1]) / procfs.TICKS_PER_S / (now - before[0]), 1)

    def _prune(self, stats: procfs.Table) -> None:
        keys = {(stat.pid, stat.start) for stat in stats.values()}
        self._cpu = {key: value for key, value in self._cpu.items() if key in keys}
        self._argv = {key: value for key, value in self._argv.items() if key[:2] in keys}


def _may_read(stats: procfs.Table) -> bool:
    return os.geteuid() == 0 or all(procfs.owner_uid(pid) in (os.geteuid(), None) for pid in stats)


def _same(idents: Iterable[Dict[str, Any]], stats: procfs.Table) -> List[int]:
    return [each["pid"] for each in idents if each["pid"] in stats and stats[each["pid"]].start == each["start"]]
