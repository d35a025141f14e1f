"""What this host is like for a console: facts that hold whatever is to be run, each looked at with a time limit.

`examine` returns the data of a WireExamination. Touches nothing but a probe file in the state directory. Runs in a
child of the agent (questions.py).
"""

from __future__ import annotations

import collections
import glob
import os
import platform
import stat
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import bounded, gpu, gpusource, logout, naming, plan, preflight, procfs, records, startkeeper

Finding = Dict[str, Any]
Spec = Dict[str, Any]

FACT_S = 3.0
GPUS_S = 12.0
"""nvidia-smi on a cold driver takes some seconds, and a wedged one for ever."""
_MAX_LOGS = 10_000
_OWN_START = "start it with restart: its keeper is a service of its own"


def examine(spec: Spec, state: str) -> Dict[str, Any]:
    """Look at everything and return {"findings": [...], "log": path or None}."""
    findings = [
        *_timed("host.python", _python, FACT_S),
        *_timed("host.killuser", _killuser, FACT_S + FACT_S),
        *_timed("host.systemd", _systemd, FACT_S),
    ]
    run = _bounded_or({"pids": [], "uvm": [], "log": None}, lambda: _run(spec, state), FACT_S)
    sample = _bounded_or({"source": "none", "why": f"no answer in {GPUS_S:g} s"}, lambda: _sample(spec), GPUS_S)
    world = preflight.World(spec, "", {}, state, sample, gpu.judge(sample, run["pids"], run["uvm"]), run["pids"])
    findings += _timed("gpu.nvml", lambda: _gpus(world), FACT_S)
    findings += _timed("gpu.foreign", lambda: _foreign(world), FACT_S)
    findings += _timed("state.dir", lambda: _state_dir(world), FACT_S)
    return {"findings": findings, "log": run["log"] or _bounded_or(None, lambda: _newest_log(spec), FACT_S)}


def _timed(name: str, look: Callable[[], Any], timeout_s: float) -> List[Finding]:
    """Return one finding, or several of the same id; what hangs or fails is a warning."""
    began = time.monotonic()
    try:
        answer = bounded.call(look, timeout_s)
    except bounded.TookTooLong:
        answer = _finding("warn", f"no answer in {timeout_s:g} s")
    except bounded.ChildFailed as failure:
        answer = _finding("warn", f"could not be looked at: {failure}")
    found = answer if isinstance(answer, list) else [answer]
    return [dict(each, id=name, took_s=time.monotonic() - began) for each in found]


def _bounded_or(otherwise: Any, look: Callable[[], Any], timeout_s: float) -> Any:
    try:
        return bounded.call(look, timeout_s)
    except (bounded.TookTooLong, bounded.ChildFailed):
        return otherwise


def _finding(state: str, detail: str, reason: Optional[str] = None, next_: str = "") -> Finding:
    return {"state": state, "detail": detail, "reason": reason, "next": next_}


# -- the host ---------------------------------------------------------------------------------------------------------


def _python() -> Finding:
    return _finding("ok", f"{startkeeper.python()} {platform.python_version()}")


def _killuser() -> Finding:
    if not logout.has_systemd():
        return _finding("ok", "no systemd: nobody ends processes at logout")
    logind = logout.ask()
    told = f"{logind.source} KillUserProcesses={ {True: 'yes', False: 'no', None: '?'}[logind.kills] }"
    if logind.kills is False:
        return _finding("ok", told)
    if os.geteuid() == 0 and logind.spares_root:
        return _finding("ok", f"{told}, which spares root")
    linger = f"as root: loginctl enable-linger {startkeeper.user_name()}"
    if logind.kills is None:
        return _finding("warn", "logind does not say whether it ends processes at logout", "dies_at_logout", linger)
    if startkeeper.has_system_manager() or startkeeper.has_user_manager():
        told = f"{told}: runs started by hand die at logout"
        return _finding("warn", told, "dies_at_logout", _OWN_START)
    return _finding("refuse", f"{told}: every run dies at logout", "dies_at_logout", linger)


def _systemd() -> Finding:
    if startkeeper.has_system_manager():
        return _finding("ok", "a system manager answers: keepers become services of their own")
    if startkeeper.has_user_manager():
        return _finding("ok", "a user manager answers and lingers: keepers become user services")
    if not logout.has_systemd():
        return _finding("ok", "no systemd: keepers become daemons of their own session")
    return _finding("ok" if os.geteuid() else "warn", "systemd does not start services for us: keepers become daemons")


def _state_dir(world: preflight.World) -> Finding:
    check = preflight.state_dir(world)
    if check["state"] != "ok":
        return _finding(check["state"], check["detail"], check["reason"])
    mode = stat.S_IMODE(os.stat(world.state).st_mode)
    space = os.statvfs(world.state)
    free = preflight.size(space.f_bavail * space.f_frsize)
    return _finding("ok", f"{world.state}  {mode:04o}, {free} free")


# -- GPUs -------------------------------------------------------------------------------------------------------------

_SOURCES = {
    "nvml": "by NVML (module sent along)",
    "nvidia-smi": "by nvidia-smi",
    "simulated": "simulated",
}


def _sample(spec: Spec) -> Dict[str, Any]:
    return gpusource.Sources((spec.get("gpus") or {}).get("simulated"), lambda call: None).sample()


def _gpus(world: preflight.World) -> Finding:
    check, sample = preflight.gpus(world), world.sample
    if check["state"] != "ok":
        why = sample.get("why") or ""
        told = check["detail"] + (f"; {why}" if why and why not in check["detail"] else "")
        return _finding(check["state"], told, check["reason"])
    kinds = collections.Counter(each.get("name") or "unnamed GPU" for each in sample["gpus"])
    told = ", ".join(f"{count} x {name}" for name, count in kinds.items())
    driver = f", driver {sample['driver']}" if sample.get("driver") else ""
    why = f"; {sample['why']}" if sample.get("why") else ""
    return _finding("ok", f"{told}{driver}, {_SOURCES.get(sample['source'], sample['source'])}{why}")


def _foreign(world: preflight.World) -> List[Finding]:
    checks = preflight.gpu_memory(world)
    if not checks:
        return [_finding("unknown", "no GPU can be seen, so nor can who holds its memory")]
    return [_finding(each["state"], each["detail"], each["reason"]) for each in checks]


# -- the run and its log ----------------------------------------------------------------------------------------------


def _run(spec: Spec, state: str) -> Dict[str, Any]:
    """What runs here now, and where it logs."""
    runs = records.Runs(state, spec["target"], procfs.boot_identity())
    runs.refresh()
    known = runs.all()
    replaced = plan.Replaced(spec, records.live(known))
    record = replaced.record or records.current(known)
    log = ((record or {}).get("log") or {}).get("path")
    if replaced.hand and replaced.record is None:
        log = (replaced.hand[0].get("log") or {}).get("path") or log
    return {"pids": sorted(replaced.pids), "uvm": sorted(replaced.uvm_pids), "log": log}


def _newest_log(spec: Spec) -> Optional[str]:
    """The youngest file that the log template could have made."""
    found: List[Tuple[float, str]] = []
    for path in glob.iglob(naming.log_glob(spec["log"])):
        try:
            status = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            found.append((status.st_mtime, path))
        if len(found) >= _MAX_LOGS:
            break
    return max(found)[1] if found else None
