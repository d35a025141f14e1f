"""exit.json: how the run ended, written before the log is synced since people wait for it.

Written once when the verdict is known, with `all_gone` false where stragglers live, and again when nobody is left.
Field names of protocol.ExitRecord, plus `main`, `trainer` and `rusage`. Only the keeper imports this module.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Dict, Optional

from . import files, procfs

if TYPE_CHECKING:
    import resource

    from . import oom, runtree

NAME = "exit.json"


def reserve(run_dir: str) -> None:
    """Preallocate it while the disk has room: the log may fill it up later."""
    files.reserve(run_dir, NAME)


def write(run_dir: str, record: Dict[str, Any]) -> None:
    try:
        files.write_json(run_dir, NAME, record)
    except OSError as error:
        print("exit.json: %s" % error, file=sys.stderr)


def of_run(
    tree: runtree.RunTree,
    end: runtree.Reaped,
    spawned_bt: float,
    stopped_by: Optional[Dict[str, Any]],
    memory: oom.OomWatch,
    all_gone: bool,
) -> Dict[str, Any]:
    """Return the record of a run that was executed."""
    word, evidence = memory.verdict()
    return {
        "code": end.code,
        "signal": end.signal,
        "ended_wall": round(time.time() - (procfs.boottime() - end.bt), 3),
        "ended_bt": round(end.bt, 3),
        "lived_s": round(end.bt - spawned_bt, 3),
        "by": (stopped_by or {}).get("operator"),
        "by_request": (stopped_by or {}).get("request"),
        "oom": word,
        "oom_detail": evidence,
        "all_gone": all_gone,
        "stragglers": [] if all_gone else tree.names(),
        "exec_errno": None,
        "main": _ended(tree.main, tree.main_end()),
        "trainer": _ended(tree.trainer, tree.trainer_end()),
        "rusage": _rusage(end.rusage),
    }


def of_failed_exec(number: Optional[int]) -> Dict[str, Any]:
    """Return the record of a command that could not be executed."""
    return {
        "code": None,
        "signal": None,
        "ended_wall": round(time.time(), 3),
        "ended_bt": round(procfs.boottime(), 3),
        "lived_s": None,
        "by": None,
        "by_request": None,
        "oom": "no",
        "oom_detail": "nothing was executed",
        "all_gone": True,
        "stragglers": [],
        "exec_errno": number,
    }


def in_words(record: Dict[str, Any]) -> str:
    if record["signal"] is not None:
        return "signal %d" % record["signal"]
    return "exit status %s" % record["code"]


def _ended(ident: Optional[runtree.Ident], end: Optional[runtree.Reaped]) -> Optional[Dict[str, Any]]:
    if ident is None:
        return None
    known = {"code": end.code, "signal": end.signal} if end is not None else {"code": None, "signal": None}
    return dict(known, pid=ident[0], start=ident[1])


def _rusage(usage: resource.struct_rusage) -> Dict[str, Any]:
    return {
        "user_s": round(usage.ru_utime, 3),
        "sys_s": round(usage.ru_stime, 3),
        "max_rss_bytes": usage.ru_maxrss * 1024,
        "major_faults": usage.ru_majflt,
        "blocks_in": usage.ru_inblock,
        "blocks_out": usage.ru_oublock,
    }
