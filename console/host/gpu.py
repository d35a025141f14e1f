"""GPU samples without risk to the caller, and the judgement whose memory a GPU holds.

`Sampler` asks the driver in a disposable child (a wedged driver puts whoever asks into state D, `fuser -k /dev/nvidia*`
kills whoever holds it open), and names the call that does not return. `judge` applies the rules by which a context is
told to be the run's. Agent and keeper use both; nothing here signals anything but the child.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import mmap
import os
import select
import signal
import time
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from . import procfs

Sample = Dict[str, Any]

HUNG_S = 5.0
"""Silence beyond the interval after which a call is named as hung."""
KILL_S = 15.0
_DIES_S = 1.0
GIB = 1 << 30
# What an idle GPU may show as used: the driver's own reserve on an H200 is about 0.6 GiB by NVML's first call.
FREE_BYTES = GIB
CONTEXT_RISE_BYTES = 200 << 20
"""A CUDA context takes some 300-500 MiB before the first tensor."""

_NAME = b"dflash-gpu"
_CRUMB_BYTES = 64
_PR_SET_NAME = 15


class Sampler:
    """Samples at an interval or on request in a child of its own; `poll` never blocks."""

    def __init__(self, simulated: Optional[str] = None) -> None:
        self.pid: Optional[int] = None
        self.line: Optional[bytes] = None
        """The sample that `poll` returned last as the child wrote it; None where it is not the child's."""
        self._simulated = simulated
        self._interval_s = 1.0
        self._out = self._commands = -1
        self._crumb = mmap.mmap(-1, _CRUMB_BYTES)
        self._buffer = b""
        self._heard = time.monotonic()
        self._said_hung = 0.0
        self._stuck: List[int] = []
        self._retry_at: Optional[float] = None
        self._retry_s = 5.0
        self._ended_at = self._said_stuck = 0.0
        self._why = ""
        self._last: Sample = {"source": "unknown", "driver": ""}

    def fileno(self) -> int:
        """Return the pipe to select on; -1 while no child runs. It changes when a child is replaced."""
        return self._out

    def start(self) -> None:
        """Fork the child, unless one runs."""
        if self.pid is not None:
            return
        self._out, child_out = os.pipe()
        child_in, self._commands = os.pipe()
        os.set_blocking(self._out, False)
        os.set_blocking(self._commands, False)
        pid = os.fork()
        if pid == 0:
            _live_as_child(child_in, child_out, self._simulated, self._interval_s, self._crumb)
        os.close(child_in)
        os.close(child_out)
        self.pid, self._buffer, self._retry_at, self._why = pid, b"", None, ""
        self._heard, self._said_hung = time.monotonic(), 0.0

    def set_interval(self, seconds: float) -> None:
        self._interval_s = max(0.05, seconds)
        self._command(f"i{self._interval_s}\n".encode("ascii"))

    def request(self) -> None:
        """Ask for a sample now; `poll` returns it when it is there."""
        self._command(b"s\n")

    def poll(self) -> Optional[Sample]:
        """Return the newest sample since the last call, or None. To be called when readable and about once a second.

        A driver that does not answer yields a sample without GPUs whose `why` names the call.
        """
        if self.pid is None:
            self._maybe_restart()
            return self._watch_stuck()
        newest = self._read()
        if newest is not None:
            self._heard, self._said_hung, self._retry_s, self._last = time.monotonic(), 0.0, 5.0, newest
            return newest
        return self._watch_silence()

    def stop(self) -> None:
        """End the child without waiting for it. One in state D is left behind; `stuck` names it."""
        if self.pid is None:
            return
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._stuck.append(self.pid)
        self.pid = None
        for fd in (self._out, self._commands):
            os.close(fd)
        self._out = self._commands = -1
        self.stuck()

    def stuck(self) -> List[int]:
        """Reap what has ended and return the killed children that are still there."""
        self._stuck = [pid for pid in self._stuck if not _reaped(pid)]
        return list(self._stuck)

    def _command(self, line: bytes) -> None:
        if self._commands >= 0:
            try:
                os.write(self._commands, line)
            except OSError:
                pass  # a full or broken pipe: the child is hung or gone, which poll notices

    def _read(self) -> Optional[Sample]:
        while True:
            try:
                chunk = os.read(self._out, 1 << 18)
            except BlockingIOError:
                break
            if not chunk:
                self._give_up("the GPU sampler ended")
                break
            self._buffer += chunk
        lines = self._buffer.split(b"\n")
        self._buffer = lines.pop()
        for line in reversed(lines):
            try:
                sample = json.loads(line.decode("utf-8"))
            except ValueError:
                continue
            if isinstance(sample, dict):
                self.line = line
                return sample
        return None

    def _watch_silence(self) -> Optional[Sample]:
        silent_s = time.monotonic() - self._heard - self._interval_s
        if self.pid is None or silent_s < HUNG_S or time.monotonic() - self._said_hung < 1.0:
            return None
        self._said_hung, self.line = time.monotonic(), None
        call = bytes(self._crumb[:]).rstrip(b"\0").decode("ascii", "replace") or "the GPU sampler"
        why = f"{call} has not answered for {silent_s + self._interval_s:.0f} s"
        if silent_s >= KILL_S:
            self._give_up(why)
        return self._without_gpus(why)

    def _watch_stuck(self) -> Optional[Sample]:
        """Say of a killed child that is still there that it hangs in the driver, once it has had the time to die."""
        now = time.monotonic()
        if not self._why or now - self._ended_at < _DIES_S or now - self._said_stuck < 1.0 or not self.stuck():
            return None
        self._said_stuck, self.line = now, None
        pids = ", ".join(map(str, self._stuck))
        return self._without_gpus(f"{self._why}; sampler pid {pids} can't be killed (stuck in the driver)")

    def _without_gpus(self, why: str) -> Sample:
        last = self._last
        return {"bt": _boottime(), "source": last["source"], "why": why, "driver": last["driver"], "gpus": []}

    def _give_up(self, why: str) -> None:
        self.stop()
        self._why, self._ended_at = why, time.monotonic()
        self._retry_at = time.monotonic() + self._retry_s
        self._retry_s = min(120.0, self._retry_s * 2)

    def _maybe_restart(self) -> None:
        # While a killed child hangs in the driver, another one would only hang beside it.
        if self._retry_at is not None and time.monotonic() >= self._retry_at and not self.stuck():
            self.start()


def _reaped(pid: int) -> bool:
    try:
        done, _ = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True  # a keeper that reaps everything was first
    return done == pid


def _boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _live_as_child(commands: int, out: int, simulated: Optional[str], interval_s: float, crumb: mmap.mmap) -> None:
    try:
        _become_small(commands, out)
        _sample_forever(commands, out, simulated, interval_s, crumb)
    except BaseException:  # noqa: BLE001  # nothing of the parent's stack may run in the child
        pass
    finally:
        os._exit(0)


def _become_small(commands: int, out: int) -> None:
    """Drop everything that was the parent's: its lock, log and FIFO must be free when it closes them."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for fd in [int(name) for name in os.listdir("/proc/self/fd")]:
        if fd > 2 and fd not in (commands, out):
            try:
                os.close(fd)
            except OSError:
                pass
    fcntl.fcntl(commands, fcntl.F_SETFL, fcntl.fcntl(commands, fcntl.F_GETFL) | os.O_NONBLOCK)
    try:
        ctypes.CDLL(None).prctl(_PR_SET_NAME, ctypes.c_char_p(_NAME), 0, 0, 0)
    except (OSError, AttributeError):
        pass


def _sample_forever(commands: int, out: int, simulated: Optional[str], interval_s: float, crumb: mmap.mmap) -> None:
    crumbs: Dict[str, bytes] = {}

    def told(call: str) -> None:
        if call not in crumbs:
            crumbs[call] = call.encode("ascii", "replace")[: _CRUMB_BYTES - 1].ljust(_CRUMB_BYTES, b"\0")
        crumb[:] = crumbs[call]

    from . import gpusource  # what it needs of the standard library takes a keeper 20 ms: here nobody waits for it

    sources, in_json = gpusource.Sources(simulated, told), json.JSONEncoder(separators=(",", ":")).encode
    while True:
        began = time.monotonic()
        signal.alarm(60)  # should the parent be gone while a call hangs: end, unless in state D
        answer = sources.sample()
        signal.alarm(0)
        told("")
        answer["bt"] = _boottime()
        os.write(out, in_json(answer).encode("ascii") + b"\n")
        # nvidia-smi takes up to a second of CPU on eight GPUs
        pause_s = max(interval_s, 3.0) if answer["source"] == "nvidia-smi" else interval_s
        while True:
            left_s = began + pause_s - time.monotonic()
            if left_s <= 0 or not select.select([commands], [], [], left_s)[0]:
                break
            words = os.read(commands, 4096)
            if not words:
                return
            lines = words.split(b"\n")
            intervals = [line for line in lines if line.startswith(b"i")]
            if intervals:
                interval_s = pause_s = float(intervals[-1][1:])
            if b"s" in lines:
                break


def judge(
    sample: Sample,
    tree_pids: Iterable[int],
    uvm_pids: Optional[Iterable[int]],
    baseline_used: Optional[Dict[int, int]] = None,
    lists_all: Optional[bool] = None,
) -> Dict[str, Any]:
    """Return {"contexts": [GPU indices], "rule", "gpus": [{"i", "context", "owner", "why"}]} for a run's process tree.

    "untold" is why contexts can't be told; then `context` is None, and that `contexts` is empty says nothing.
    A GPU that is divided also has "parts": {UUID of each MIG instance: whether the run has a context on it}.

    `uvm_pids`: processes of the tree that hold /dev/nvidia-uvm; None where that can't be told. `baseline_used`: bytes
    used per GPU before the launch. `lists_all`: whether the driver's list holds everybody's processes; None: as far as
    that shows from here. Rules in order: "simulated", "nvml pid in tree", "uvm + memory rise".
    """
    tree = set(tree_pids)
    uvm = None if uvm_pids is None else set(uvm_pids) & tree
    gpus: List[Dict[str, Any]] = sample.get("gpus") or []
    if sample.get("source") == "simulated":
        rule, held = "simulated", {gpu["i"] for gpu in gpus if pids(gpu) & tree}
    else:
        rule, held = "nvml pid in tree", {gpu["i"] for gpu in gpus if uvm and pids(gpu) & uvm}
        if not held and uvm and baseline_used is not None:
            rule, held = "uvm + memory rise", {gpu["i"] for gpu in gpus if _rose(gpu, baseline_used)}
    is_simulated, lists_ours = sample.get("source") == "simulated", _listing_is_ours(gpus, tree)
    is_blind = uvm == set() and lists_ours and not is_simulated and not os.path.exists(procfs.UVM)
    told = is_simulated or (
        uvm is not None and not is_blind and (not uvm or bool(held) or baseline_used is not None or lists_ours)
    )
    doubt = "" if told or is_blind else _UNREADABLE if uvm is None else _OTHER_NAMESPACE
    untold = _NO_UVM if is_blind else doubt
    if lists_all is None:
        lists_all = sample.get("source") == "simulated" or procfs.pid_namespace_here() == _OUTERMOST
    judged = []
    for gpu in gpus:
        # By a pid alone a GPU is neither surely ours nor surely another's.
        owner, why = _owner(gpu, gpu["i"] in held, _NO_UVM if is_blind and pids(gpu) & tree else doubt, lists_all)
        if owner == "run":
            why = _more_than_ours(gpu, tree)
        answer = {"i": gpu["i"], "context": gpu["i"] in held if told else None, "owner": owner, "why": why}
        if gpu.get("mig"):
            answer["parts"] = {
                part["uuid"]: bool(_listed(part) & (uvm or set())) if told else None for part in gpu["mig"]
            }
        judged.append(answer)
    return {"contexts": sorted(held), "rule": rule if held else "", "untold": untold, "gpus": judged}


_UNREADABLE = "the open files of the run's processes may not be read"
_NO_UVM = "the driver lists a pid of the run's, but there is no /dev/nvidia-uvm here that would prove it"
_OTHER_NAMESPACE = "the driver's pids are not of this container, and the use before the launch is not known"
_ZOMBIE = "no process of this host: a dead context"
_UNLISTED = "the driver can't list processes here"
_MAY_LEAVE_OUT = "the driver lists nobody on it, and may leave out whoever is outside of this container"
_OUTERMOST = "pid:[4026531836]"
"""The pid namespace of the host itself (PROC_PID_INIT_INO): the driver translates and filters pids for all others."""
MORE_BYTES = 2 * GIB
"""So much beyond what the run's processes hold is no bookkeeping of the driver's."""


def pids(gpu: Dict[str, Any]) -> Set[int]:
    """Whoever is on a GPU or on a part of it: of a divided one the driver may list them by part alone."""
    return _listed(gpu).union(*map(_listed, gpu.get("mig") or ()))


def _listed(device: Dict[str, Any]) -> Set[int]:
    return {proc[0] for proc in device.get("procs") or ()}


def _listing_is_ours(gpus: List[Dict[str, Any]], tree: Set[int]) -> bool:
    """Whether the source's pids are of our namespace: some GPU lists a process of the tree."""
    return any(pids(gpu) & tree for gpu in gpus)


def _rose(gpu: Dict[str, Any], baseline_used: Dict[int, int]) -> bool:
    used, before = gpu.get("used"), baseline_used.get(gpu["i"])
    return used is not None and before is not None and used - before > CONTEXT_RISE_BYTES


def _more_than_ours(gpu: Dict[str, Any], tree: Set[int]) -> str:
    """Say how much of a GPU of the run's is held by nobody who is listed; "" where that isn't much or isn't known."""
    used, procs = gpu.get("used"), gpu.get("procs") or ()
    amounts = [amount for _, amount in procs]
    if used is None or not any(pid in tree for pid, _ in procs) or None in amounts:
        return ""
    more = used - sum(amounts)
    if more < MORE_BYTES:
        return ""
    return "%.1f GiB more in use than its processes hold, and nobody else is listed" % (more / GIB)


def _owner(gpu: Dict[str, Any], ours: bool, doubt: str, lists_all: bool) -> Tuple[str, str]:
    """Return whose the memory of a GPU is, and why that can't be told or proven."""
    if ours:
        return "run", ""
    used, procs = gpu.get("used"), gpu.get("procs")
    if pids(gpu):
        return ("unknown", doubt) if doubt else ("other", "")
    if used is None:
        return "unknown", "its use is not told"
    if used < FREE_BYTES:
        return "free", ""
    if procs is None:
        return "unknown", _UNLISTED
    return ("nobody", _ZOMBIE) if lists_all else ("unknown", _MAY_LEAVE_OUT)
