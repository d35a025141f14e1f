"""What a run hangs in, told by looking: nothing of it is signalled, stopped or traced.

`report` returns the text. Reading /proc of a wedged process can hang, so that every look is a child with a time limit
(`bounded`), and all looks together have one, too: what matters most comes first. py-spy is asked with --nonblocking: it
then reads the process's memory and doesn't stop it. Runs in a child of the agent (questions.py).
"""

from __future__ import annotations

import functools
import json
import os
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, TypeVar

from . import bounded, files, gpusource, hanging, logtail, plan, procfs, pyspy, records, scrub, tree
from .replies import Refused

Spec = Dict[str, Any]
Key = TypeVar("Key")

CAP_BYTES = 4 << 20
LOOK_S = 2.0
ALONE_S = 0.5
"""For one of many, once one of them has hung."""
FIND_S = 8.0
GPUS_S = 12.0
TOTAL_S = 75.0
"""After this what is left is named as not looked at."""
MAX_PROCESSES = 256
KERNEL_LINES = 300
LOG_BYTES = 64 * 1024


class Report:
    """The text so far, within a size and a time."""

    def __init__(self) -> None:
        self.parts: List[str] = []
        self._deadline = time.monotonic() + TOTAL_S

    def section(self, title: str) -> None:
        self.parts.append(f"\n== {title} ==")

    def say(self, text: str) -> None:
        self.parts.append(text)

    def look(self, what: str, function: Callable[[], Any], timeout_s: float = LOOK_S) -> Any:
        """Return what the function returns; None after saying why there is nothing."""
        value, why = self._ask(function, timeout_s)
        if why:
            self.say(f"{what}: {why}")
        return value

    def look_at_all(self, keys: Sequence[Key], function: Callable[[Key], Any], timeout_s: float = LOOK_S) -> List[Any]:
        """Return the function's value a key, or None: in one child where none of them hangs, else in a child each."""
        whole, why = self._ask(lambda: [function(key) for key in keys], timeout_s)
        if not why:
            found: List[Any] = whole
            return found
        return [self._ask(functools.partial(function, key), ALONE_S)[0] for key in keys]

    def _ask(self, function: Callable[[], Any], timeout_s: float) -> Tuple[Any, str]:
        limit_s = min(timeout_s, self._deadline - time.monotonic())
        if limit_s <= 0:
            return None, f"not looked at, {TOTAL_S:g} s are over"
        try:
            return bounded.call(function, limit_s), ""
        except bounded.TookTooLong:
            return None, f"no answer in {limit_s:g} s"
        except bounded.ChildFailed as failure:
            return None, str(failure)

    def text(self) -> str:
        return "\n".join(self.parts) + "\n"


def report(spec: Spec, state: str) -> Dict[str, Any]:
    """Return {"text", "run", "name", "processes"}. Raises: Refused (nothing_runs)."""
    found = Report()
    record = found.look("records", lambda: _record(state, spec["target"]), FIND_S)
    pids = _pids(found, spec, record)
    if not pids:
        raise Refused("nothing_runs", "no process of a run is there to be looked at")
    table = procfs.table()
    order = _as_tree({pid: table[pid] for pid in pids if pid in table})
    secrets = _secrets(found, pids)
    _say_host(found)
    _say_tree(found, order)
    _say_python(found, [stat.pid for stat, _ in order])
    _say_gpus(found, spec)
    _say_kernel(found)
    _say_log(found, record, order)
    _say_records(found, state, spec["target"], record)
    _say_processes(found, [stat for stat, _ in order[:MAX_PROCESSES]])
    text = _capped(scrub.scrub(found.text(), secrets))
    name = (record or {}).get("name") or ""
    return {"text": text, "run": (record or {}).get("id"), "name": name, "processes": len(order)}


# -- who --------------------------------------------------------------------------------------------------------------


def _record(state: str, target: str) -> Optional[Dict[str, Any]]:
    runs = records.Runs(state, target, procfs.boot_identity())
    runs.refresh()
    known = runs.all()
    return records.live(known) or records.current(known)


def _pids(found: Report, spec: Spec, record: Optional[Dict[str, Any]]) -> Set[int]:
    """Return the processes of the live run, by identity; those started by hand too, as a plan would find them."""
    live = record if record and record["alive"] else None
    pids = set(tree.pids_of(live, procfs.table())) if live else set()
    # Reads every command line on the host, so that one wedged process makes it hang: the own tree is known without.
    by_plan = found.look("runs started by hand", lambda: sorted(plan.Replaced(spec, live).pids), FIND_S)
    return pids | set(by_plan or ())


def _as_tree(stats: procfs.Table) -> List[Tuple[procfs.Stat, int]]:
    """Return processes with their depth, parents before children, the oldest first."""
    ordered: List[Tuple[procfs.Stat, int]] = []

    below: Dict[int, List[procfs.Stat]] = {}
    for stat in sorted(stats.values(), key=lambda each: each.start):
        below.setdefault(stat.ppid if stat.ppid in stats else 0, []).append(stat)
    todo = [(stat, 0) for stat in reversed(below.get(0, []))]
    while todo:
        stat, depth = todo.pop()
        ordered.append((stat, depth))
        todo += [(child, depth + 1) for child in reversed(below.get(stat.pid, []))]
    return ordered


def _secrets(found: Report, pids: Set[int]) -> List[str]:
    environments = found.look_at_all(sorted(pids)[:MAX_PROCESSES], procfs.environ)
    return scrub.values_of([env for env in environments if env])


# -- what -------------------------------------------------------------------------------------------------------------


def _say_host(found: Report) -> None:
    found.section("host")
    name = os.uname()
    found.say(f"{name.nodename}  {name.sysname} {name.release}  boot {procfs.boot_identity()}")
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    found.say(f"{stamp}  up {procfs.boottime():.0f} s  load {_first_line('/proc/loadavg')}")
    paths = ("/proc/meminfo", "/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory")
    for path, lines in zip(paths, found.look_at_all(paths, functools.partial(hanging.lines_of, count=5))):
        found.say("\n".join(f"{path}: {line}" for line in lines or ("not readable here",)))


def _say_tree(found: Report, order: List[Tuple[procfs.Stat, int]]) -> None:
    found.section(f"processes ({len(order)})")
    found.say("     pid state    cpu s   rss MiB  thr  sleeps in                 command")
    shown = order[:MAX_PROCESSES]
    pids = [stat.pid for stat, _ in shown]
    channels, commands = found.look_at_all(pids, hanging.wchan), found.look_at_all(pids, procfs.argv)
    for (stat, depth), channel, command in zip(shown, channels, commands):
        words = " ".join(command or ())[:300] or f"[{stat.comm}]" + ("" if command is not None else "  (hangs)")
        cpu_s = (stat.utime + stat.stime) / procfs.TICKS_PER_S
        found.say(
            f"{stat.pid:>8} {stat.state:^5} {cpu_s:>8.1f} {stat.rss_bytes >> 20:>9} {stat.threads:>4}"
            f"  {channel or '?':<24}  {'  ' * depth}{words}"
        )
    if len(order) > MAX_PROCESSES:
        found.say(f"and {len(order) - MAX_PROCESSES} more")


def _say_python(found: Report, pids: List[int]) -> None:
    found.section("Python stacks")
    program = found.look("py-spy", lambda: pyspy.find(pids))
    if not program:
        found.say("py-spy is not on this host's PATH nor beside the run's Python: no Python stacks")
        return
    wanted = [pid for pid, is_python in zip(pids, found.look_at_all(pids, pyspy.is_python)) if is_python]
    for pid, said in pyspy.dump(program, wanted):
        found.say(f"-- py-spy dump --nonblocking --pid {pid}\n{said}")
    if len(wanted) > pyspy.MAX_PROCESSES:
        found.say(f"and {len(wanted) - pyspy.MAX_PROCESSES} more Python processes, not asked")


def _say_processes(found: Report, stats: List[procfs.Stat]) -> None:
    environments: Dict[str, int] = {}
    for stat in stats:
        found.section(f"pid {stat.pid} {stat.comm}")
        titles = [title for title, _ in hanging.LOOKS]
        for title, lines in zip(titles, found.look_at_all(titles, functools.partial(hanging.look, stat.pid))):
            if lines is None:
                found.say(f"{title}: not known, the look at it hangs or fails")
            elif title == "environment" and lines:
                first = environments.setdefault("\n".join(lines), stat.pid)
                found.say(_titled(title, lines) if first == stat.pid else f"{title}: as that of pid {first}")
            elif lines:
                found.say(_titled(title, lines))


def _titled(title: str, lines: List[str]) -> str:
    return f"{title}: {lines[0]}" if len(lines) == 1 else f"{title}:\n  " + "\n  ".join(lines)


def _say_gpus(found: Report, spec: Spec) -> None:
    found.section("GPUs")
    simulated = (spec.get("gpus") or {}).get("simulated")
    sample = found.look("GPUs", lambda: gpusource.Sources(simulated, lambda call: None).sample(), GPUS_S)
    if not sample:
        return
    found.say(f"source {sample['source']}  driver {sample.get('driver') or '?'}  {sample.get('why') or ''}".rstrip())
    for each in sample.get("gpus") or ():
        found.say(json.dumps(each))


def _say_kernel(found: Report) -> None:
    found.section("kernel log, the end")
    lines = found.look("kernel log", lambda: hanging.kernel_log(KERNEL_LINES), LOOK_S * 2)
    if lines is not None:
        found.say("\n".join(lines) or "empty")


def _say_log(found: Report, record: Optional[Dict[str, Any]], order: List[Tuple[procfs.Stat, int]]) -> None:
    found.section("log, the end")
    paths = [((record or {}).get("log") or {}).get("path")]
    paths += [procfs.fd_target(stat.pid, 1) for stat, _ in order]
    path = next((each for each in paths if each and each.startswith("/") and not each.startswith("/dev/")), None)
    if path is None:
        found.say("no log is known")
        return
    tail = found.look(path, lambda: _tail(path), LOOK_S * 2)
    if tail is not None:
        found.say(f"{path}\n{tail}")


def _tail(path: str) -> str:
    _, size = logtail.read_range(path, 0, 0)
    data, _ = logtail.read_range(path, max(0, size - LOG_BYTES), LOG_BYTES)
    text = data.decode("utf-8", "replace")
    return text if size <= LOG_BYTES else text.partition("\n")[2]


def _say_records(found: Report, state: str, target: str, record: Optional[Dict[str, Any]]) -> None:
    if record is None:
        return
    directory = files.run_dir(state, target, record["id"])
    names = ("status.json", "run.json", "exit.json")
    for name, content in zip(names, found.look_at_all(names, functools.partial(files.read_json, directory))):
        if content:
            found.section(name)
            found.say(json.dumps(content, indent=1, sort_keys=True))


def _first_line(path: str) -> str:
    return (hanging.lines_of(path, 1) or ["?"])[0]


def _capped(text: str) -> str:
    raw = text.encode("utf-8", "replace")
    if len(raw) <= CAP_BYTES:
        return text
    told = f"\n[cut: {len(raw)} bytes, of which the first {CAP_BYTES} are kept]\n"
    return raw[: CAP_BYTES - 200].decode("utf-8", "ignore") + told
