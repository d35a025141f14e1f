"""What a restart or a stop would do here, before anything is touched: the WirePlan.

Runs in a child of the agent (background.Job), since it reads what can hang and starts small programs. Touches nothing.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from . import (
    cacheguard,
    digest,
    discover,
    files,
    fingerprints,
    gpu,
    gpusource,
    lock,
    loginenv,
    naming,
    preflight,
    procfs,
    records,
    secretenv,
    spawn,
    tree,
)

Spec = Dict[str, Any]

COUNT_S = 0.3
"""For counting all caches together: the figures become lower bounds after that."""
HIDDEN = "(hidden)"


class NothingRuns(Exception):
    """A stop was asked for and there is nothing to stop."""


def make(
    spec: Spec, action: str, state: str, sample: Optional[Dict[str, Any]], compare_to: Optional[str] = None
) -> Dict[str, Any]:
    """Return the WirePlan. `sample`: the newest GPU sample, None to take one here. Raises: NothingRuns.

    `compare_to`: the run that the differences are told from; where it is None or gone, the last one.
    """
    runs = records.Runs(state, spec["target"], procfs.boot_identity())
    runs.refresh()
    known = runs.all()
    record = records.live(known)
    if action == "stop":  # a launch can be stopped before it has a process
        record = next(filter(records.is_under_way, known), record)
    replaced = Replaced(spec, record)
    if action == "stop" and not replaced.processes and not (record and records.is_under_way(record)):
        raise NothingRuns(f"nothing of {spec['target']} runs")
    sample = sample or _sample(spec)
    judged = gpu.judge(sample, replaced.pids, replaced.uvm_pids)
    plan: Dict[str, Any] = {
        "action": action,
        "replaces": replaced.processes,
        "replaced_id": replaced.record["id"] if replaced.record else None,
        "replaced_name": replaced.name,
        "by_hand": bool(replaced.hand) and replaced.record is None,
        "bystanders": discover.bystanders(spec.get("match") or (), replaced.pids) if spec.get("match") else [],
        "gpu_bytes": _gpu_bytes(sample, judged, replaced.pids),
        "lock": lock.read_holder(files.lock_path(state, spec["target"])),
    }
    plan["bystanders"] = [each for each in plan["bystanders"] if not _is_ours(each)]
    scripts: fingerprints.Scripts = {}
    log_path, env, login_why = "", dict(os.environ), ""
    if action == "restart":
        name, log_path = naming.choose(spec["name"], spec["log"], [each.get("name", "") for each in known])
        scripts = fingerprints.scripts_of(spec, [each["argv"] for each in replaced.processes])
        env, login_why = _environment(spec)
        last = next((each for each in known if each["id"] == compare_to), None) or records.current(known)
        plan.update(name=name, argv=list(spec["command"]), cwd=spec["cwd"], log_path=log_path)
        plan.update(caches=_caches(spec, log_path, state))
        plan.update(_env_changes(spec, last, state))
        plan.update(_command_changes(spec, last))
        plan["files_changed"] = fingerprints.changes(((last or {}).get("_request") or {}).get("scripts"), scripts)
    world = preflight.World(spec, log_path, env, state, sample, judged, sorted(replaced.pids), login_why)
    plan["checks"] = preflight.checks(world, action)
    plan["plan_id"] = plan_id(plan, spec, replaced.mains, scripts)
    return plan


class Replaced:
    """The processes that the plan is about: our own live run's tree, and runs that were started by hand."""

    def __init__(self, spec: Spec, record: Optional[records.Record]) -> None:
        self.record = record
        table = procfs.table()
        own = tree.pids_of(record, table) if record else set()
        keeper = {record["keeper"]["pid"]} if record and record["keeper_alive"] else set()
        self.hand: List[Dict[str, Any]] = (
            discover.find_runs(
                spec.get("match") or (),
                exclude_pids=own | keeper | procfs.descendants(keeper, table),
                log_glob=naming.log_glob(spec["log"]),
                cwd=spec.get("cwd") or "",
            )
            if spec.get("match")
            else []
        )
        by_hand = {each["pid"] for run in self.hand for each in run["pids"]}
        self.pids: Set[int] = {pid for pid in own | by_hand if pid in table and not procfs.is_gone(table[pid])}
        self.uvm_pids = {pid for pid in self.pids if procfs.holds_uvm(pid)}
        self.processes = [self._process(table[pid]) for pid in sorted(self.pids, key=lambda each: table[each].start)]
        self.mains = self._mains()

    @property
    def name(self) -> Optional[str]:
        if self.record is not None:
            name: Optional[str] = self.record.get("name")
            return name or None
        return _log_name(self.hand[0]) if self.hand else None

    def _process(self, stat: procfs.Stat) -> Dict[str, Any]:
        return dict(discover.wire_process(stat, procfs.argv(stat.pid)), uvm=stat.pid in self.uvm_pids)

    def _mains(self) -> List[List[int]]:
        mains = [[run["main"]["pid"], run["main"]["start"]] for run in self.hand]
        if self.record is not None and self.record.get("main"):
            mains.append([self.record["main"]["pid"], self.record["main"]["start"]])
        return sorted(mains)


def plan_id(plan: Dict[str, Any], spec: Spec, mains: Iterable[List[int]], scripts: fingerprints.Scripts) -> str:
    """Hash what must not have changed when the plan is carried out.

    Of the processes to replace these are the main ones: data loaders come and go within a healthy run.
    """
    content = {
        "action": plan["action"],
        "replaces": sorted(mains),
        "replaced_id": plan["replaced_id"],
        "argv": plan.get("argv", []),
        "cwd": plan.get("cwd", ""),
        "name": plan.get("name", ""),
        "log": plan.get("log_path", ""),
        "env": spec.get("env") or {},
        "unset": sorted(spec.get("unset") or ()),
        "caches": [] if spec.get("keep_cache") else sorted(spec.get("caches") or ()),
        "stop": [spec.get("stop_signal", "TERM"), spec.get("grace_s", 20.0)],
        "scripts": {path: [each["sha256"], each["mode"]] for path, each in scripts.items()},
    }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return digest.sha256(canonical)[:8]


def _is_ours(process: Dict[str, Any]) -> bool:
    return bool(process["argv"]) and process["argv"][0].startswith(tree.OURS)


def _log_name(run: Dict[str, Any]) -> Optional[str]:
    path = (run.get("log") or {}).get("path", "")
    return os.path.splitext(os.path.basename(path))[0] or None


def _sample(spec: Spec) -> Dict[str, Any]:
    return gpusource.Sources((spec.get("gpus") or {}).get("simulated"), lambda call: None).sample()


def _gpu_bytes(sample: Dict[str, Any], judged: Dict[str, Any], pids: Set[int]) -> Optional[int]:
    """What the processes hold by their own listing; where the pids are not ours to see, what their GPUs use."""
    listed = [used for each in sample.get("gpus") or () for pid, used in each.get("procs") or () if pid in pids]
    if not any(used is not None for used in listed):
        listed = [each.get("used") for each in sample.get("gpus") or () if each["i"] in judged["contexts"]]
    known: List[int] = [used for used in listed if used is not None]
    return sum(known) if known else None


def _environment(spec: Spec) -> Tuple[Dict[str, str], str]:
    login = loginenv.LoginEnv()
    env = login.get()
    cwd = spec.get("cwd") or "/"
    return spawn.run_environment(env, spec.get("env") or {}, spec.get("unset") or (), cwd, "preflight"), login.why


def _env_changes(spec: Spec, last: Optional[records.Record], state: str) -> Dict[str, Any]:
    """Compare what the config declares now with what the last run's did; secret-looking values are never sent."""
    if last is None:
        return {"env_changed": {}, "env_same": 0}
    try:
        key = secretenv.state_key(state)
    except OSError:
        key = b""
    then, now = secretenv.masked(last.get("env") or {}, key), secretenv.masked(spec.get("env") or {}, key)
    changed: Dict[str, Tuple[Optional[str], Optional[str]]] = {}
    for name in sorted(set(then) | set(now)):
        if then.get(name) != now.get(name):
            changed[name] = (_shown(name, then.get(name)), _shown(name, now.get(name)))
    return {"env_changed": changed, "env_same": len(set(then) | set(now)) - len(changed)}


def _command_changes(spec: Spec, last: Optional[records.Record]) -> Dict[str, Any]:
    if last is None:
        return {}
    found: Dict[str, Any] = {"since_id": last["id"], "since_name": last.get("name", "")}
    if list(last.get("argv") or ()) != list(spec["command"]):
        found["argv_before"] = list(last.get("argv") or ())
    if last.get("cwd") != spec["cwd"]:
        found["cwd_before"] = last.get("cwd")
    return found


def _shown(name: str, value: Optional[str]) -> Optional[str]:
    return HIDDEN if value is not None and secretenv.is_secret(name) else value


# -- caches -----------------------------------------------------------------------------------------------------------


def _caches(spec: Spec, log_path: str, state: str) -> List[Dict[str, Any]]:
    precious = [spec.get("cwd") or "", log_path, state, *list(spec.get("command") or ())[:1]]
    deadline = time.monotonic() + COUNT_S
    answers = []
    for path in spec.get("caches") or ():
        answer: Dict[str, Any] = {"path": path, "exists": os.path.lexists(path)}
        answer["refused"] = cacheguard.refusal(path, precious)
        if answer["exists"] and answer["refused"] is None:
            answer.update(count(path, deadline))
        answers.append(answer)
    return answers


def count(path: str, deadline: float) -> Dict[str, Any]:
    """Return {"bytes", "files", "partial"}; disk blocks of everything beneath `path`, until `deadline` (monotonic)."""
    total, number, todo = 0, 0, [path]
    while todo:
        folder = todo.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                        continue
                    number += 1
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if number % 256 == 0 and time.monotonic() > deadline:
                        return {"bytes": total, "files": number, "partial": True}
        except OSError:
            continue
        if time.monotonic() > deadline and todo:
            return {"bytes": total, "files": number, "partial": True}
    return {"bytes": total, "files": number, "partial": False}
