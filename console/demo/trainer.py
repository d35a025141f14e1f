"""A simulated trainer: prints what a real one prints and holds simulated GPUs, without any GPU.

One self-contained file for Python 3.8 and later with the standard library only, so that it can be copied into a
container as train_dflash_pipeline.py. It starts one real, sleeping process per GPU (a "rank"), writes the state of the
simulated GPUs to --gpu-state (format: gpustate.py, beside this file) and can be told to go wrong by --fault.
It imports nothing of ours. Every option can also be given as an environment variable: --load-time is
DFLASH_SIM_LOAD_TIME.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import math
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Iterator, NamedTuple, NoReturn

GIB = 1 << 30
DRIVER = "550.90.07"
GPU_NAME = "NVIDIA H200"
TOTAL_BYTES = 150_121_480_192
BASE_BYTES = GIB // 2  # what the driver itself holds on a GPU that nobody uses
IDLE_POWER_MW = 77_000
SPIN_POWER_MW = 128_000  # a collective that waits: busy to the driver, cold to the power meter
LIMIT_MW = 700_000
STEADY_TOK_S = 21_500.0
STATE_PERIOD_S = 0.5
SHARDS = 12
KERNELS = 24
FAULTS_AT_START = (
    *("exit-at-once", "exit-zero", "traceback", "oom-load", "cuda-hang", "no-cuda", "ignore-term"),
    "download-stall",
)
FAULTS_WHILE_RUNNING = (
    *("nan", "stall", "stall-idle", "sigkill", "buffered", "slow"),
    *("spike", "starve", "recompile", "suspend", "linger", "elsewhere"),
)
SLOWED = {"slow": 0.83, "recompile": 0.83, "starve": 0.6}
OWN_LOG = "own_output.log"
DEFAULT_AFTER_STEPS = 20


class Terminated(BaseException):
    """SIGTERM or SIGINT arrived; carries the signal number."""


class Ended(Exception):
    """The simulated run is over; carries its exit status."""


# ---------------------------------------------------------------------------------------------------- GPU state file


def start_ticks(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot, or None where it is dead or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


class Gpu:
    """What one simulated GPU shows at the moment."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.holders: dict[int, tuple[int, int | None]] = {}  # pid -> used bytes, start ticks
        self.rest()

    def rest(self) -> None:
        self.set(util=0, memutil=0, power_mw=IDLE_POWER_MW + 300 * self.index, temp=38, sm_mhz=345)

    def set(self, util: int, memutil: int, power_mw: int, temp: int, sm_mhz: int) -> None:
        self.util, self.memutil, self.power_mw, self.temp, self.sm_mhz = util, memutil, power_mw, temp, sm_mhz

    def line(self, others: dict[int, str], held_until: float | None) -> str:
        procs = [f"{pid}:{used}" + (f":{ticks}" if ticks else "") for pid, (used, ticks) in self.holders.items()]
        procs += others.values()
        used_bytes = BASE_BYTES + sum(int(entry.split(":")[1]) for entry in procs)
        held = "" if held_until is None else f" held_until={held_until:.3f}"
        return (
            f'gpu {self.index} uuid=GPU-sim-{self.index} name="{GPU_NAME}" total={TOTAL_BYTES} used={used_bytes} '
            f"util={self.util} memutil={self.memutil} power_mw={self.power_mw} limit_mw={LIMIT_MW} temp={self.temp} "
            f"sm_mhz={self.sm_mhz} mem_mhz=2619 procs={','.join(procs)}{held}"
        )


class GpuState:
    """The file that stands for the driver: rewritten as a whole, so a reader never sees half of it.

    Lines of others (fail, hang, comments, GPUs that are not ours) and living processes of others are carried over.
    """

    def __init__(self, path: str | None, gpus: list[Gpu], release_delay_s: float) -> None:
        self.path, self.gpus, self.release_delay_s = path, gpus, release_delay_s
        self.written_at = -math.inf

    def _others(self, text: str) -> tuple[list[str], dict[int, dict[int, str]]]:
        ours = {gpu.index for gpu in self.gpus}
        lines: list[str] = []
        procs: dict[int, dict[int, str]] = {}
        for line in text.splitlines():
            gpu = re.match(r"gpu (\d+) .*?\bprocs=(\S*)", line)
            if not gpu or int(gpu.group(1)) not in ours:
                lines.append(line)
                continue
            for entry in filter(None, gpu.group(2).split(",")):
                pid, _, *rest = entry.split(":")
                ticks = start_ticks(int(pid))
                if ticks is not None and (not rest or int(rest[0]) == ticks):
                    procs.setdefault(int(gpu.group(1)), {})[int(pid)] = entry
        return lines, procs

    def write(self, former: tuple[int, ...] = ()) -> None:
        """Write the file; `former` names pids of ours that no longer hold anything."""
        if self.path is None:
            return
        try:
            with open(self.path, encoding="utf-8") as current:
                lines, procs = self._others(current.read())
        except FileNotFoundError:
            lines, procs = [], {}
        if not any(line.startswith("driver ") for line in lines):
            lines.insert(0, f"driver {DRIVER}")
        held_until = time.time() + self.release_delay_s if self.release_delay_s else None
        for gpu in self.gpus:
            others = {
                pid: entry
                for pid, entry in procs.get(gpu.index, {}).items()
                if pid not in gpu.holders and pid not in former
            }
            lines.append(gpu.line(others, held_until if gpu.holders else None))
        temporary = f"{self.path}.{os.getpid()}.tmp"
        with open(temporary, "w", encoding="utf-8") as new:
            new.write("\n".join(lines) + "\n")
        os.replace(temporary, self.path)
        self.written_at = time.monotonic()

    def refresh(self) -> None:
        if time.monotonic() - self.written_at >= STATE_PERIOD_S:
            with contextlib.suppress(OSError):  # a full disk ends a log, not the driver
                self.write()

    def release(self) -> None:
        """Everything of ours is dead: give the memory back, at once or (by held_until) after the delay."""
        former = tuple(pid for gpu in self.gpus for pid in gpu.holders)
        for gpu in self.gpus:
            gpu.rest()
            if not self.release_delay_s:
                gpu.holders.clear()
        with contextlib.suppress(OSError):
            self.write(former)


def write_idle(path: str, count: int = 8) -> None:
    """Write the state of GPUs that nobody uses: what a host shows before the first run."""
    GpuState(path, [Gpu(index) for index in range(count)], 0.0).write()


# -------------------------------------------------------------------------------------------------------------- ranks


def run_rank(fd: int, uvm_path: str, orphan: bool, ignore_term: bool) -> None:
    """Be one rank: sleep, open the device when told to, end with the parent unless `orphan`."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN if ignore_term else signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
    parent = socket.socket(fileno=fd)
    while parent.recv(1):
        answer = b"+"
        if uvm_path:
            try:
                os.open(uvm_path, os.O_RDWR | os.O_CLOEXEC)  # held open until we die, as CUDA does
            except OSError:
                answer = b"-"
        parent.send(answer)
    while orphan:
        signal.pause()


class Rank:
    """The parent's side of one rank."""

    def __init__(self, pid: int, sock: socket.socket) -> None:
        self.pid, self.sock = pid, sock
        self.ticks = start_ticks(pid)

    def open_context(self) -> bool:
        """Return whether the rank could open the device."""
        self.sock.settimeout(10.0)
        try:
            self.sock.send(b"c")
            return self.sock.recv(1) == b"+"
        except OSError:
            return False


def start_rank(options: Any, others: list[Rank], ignore_term: bool) -> Rank:
    ours, theirs = socket.socketpair()
    if options.workers == "spawn":
        call = f"['run_rank']({theirs.fileno()}, {options.open_uvm!r}, {options.orphans}, {ignore_term})"
        code = "import os, runpy; runpy.run_path(os.environ['DFLASH_SIM_MAIN'])" + call
        argv = [sys.executable, "-c", code, "--multiprocessing-fork"]
        env = dict(os.environ, DFLASH_SIM_MAIN=os.path.abspath(__file__))
        child = subprocess.Popen(argv, pass_fds=[theirs.fileno()], env=env, stdin=subprocess.DEVNULL)
        theirs.close()
        child.returncode = 0  # reaped by wait_dead below, not by Popen's destructor
        return Rank(child.pid, ours)
    # A signal between fork and the child's own handlers must not run the parent's cleanup in the child.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    pid = os.fork()
    if pid == 0:
        try:
            for rank in others:
                rank.sock.close()
            ours.close()
            run_rank(theirs.detach(), options.open_uvm, options.orphans, ignore_term)
        finally:
            os._exit(0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
    theirs.close()
    return Rank(pid, ours)


def wait_dead(block: bool = False) -> Iterator[tuple[int, int]]:
    """Yield pid and wait status of children that have ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, 0 if block else os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status


# ------------------------------------------------------------------------------------------------------- what it says


class Step(NamedTuple):
    """One training step, before any format has been chosen."""

    step: int
    total: int
    loss: float
    acc: float
    lr: float
    grad_norm: float
    tok_s: float
    took_s: float
    queue_ready: int


def clock() -> str:
    return time.strftime("[%H:%M:%S]")


def bar(title: str, done: int, total: int, elapsed_s: float, first: int = 0) -> str:
    """Return one frame of a progress bar as tqdm draws it; `first` was done before the clock started."""
    eighths = done * 80 // total
    filled = "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
    left, rate = "?", "?it/s"
    if done > first:
        each_s = max(elapsed_s, 1e-6) / (done - first)
        left = minutes(each_s * (total - done))
        rate = f"{each_s:5.2f}s/it" if each_s >= 1 else f"{1 / each_s:5.2f}it/s"
    return f"{title}{done * 100 / total:3.0f}%|{filled:<10}| {done}/{total} [{minutes(elapsed_s)}<{left}, {rate}]"


def minutes(seconds: float) -> str:
    whole = int(seconds)
    hours = f"{whole // 3600}:" if whole >= 3600 else ""
    return f"{hours}{whole // 60 % 60:02d}:{whole % 60:02d}"


def glog(text: str, pid: int, where: str) -> str:
    now = time.time()
    stamp = time.strftime("W%m%d %H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1e6):06d}"
    return f"{stamp} {pid} {where}] {text}"


def dflash_step(s: Step) -> str:
    return (
        f"{clock()} step {s.step}/{s.total} | loss {s.loss:.4f} | acc {s.acc:.3f} | lr {s.lr:.2e} | "
        f"tok/s {s.tok_s:,.0f} | hs_queue min_ready={s.queue_ready} max_depth=16"
    )


def megatron_step(s: Step) -> str:
    bad = math.isnan(s.loss)
    loss = "" if bad else f" lm loss: {s.loss:.6E} |"  # the real one drops the field when the loss is NaN
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1e6):06d}"
    return (
        f" [{stamp}] iteration {s.step:8d}/{s.total:8d} | consumed samples: {s.step * 16:12d} | "
        f"elapsed time per iteration (ms): {16 * 4096 / s.tok_s * 1000:.1f} | learning rate: {s.lr:.6E} | "
        f"global batch size: {16:5d} |{loss} loss scale: 1.0 | grad norm: {s.grad_norm:.3f} | "
        f"number of skipped iterations: {0:3d} | number of nan iterations: {int(bad):3d} |"
    )


def titan(text: str) -> str:
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
    return f"[titan] {stamp},{int(now % 1 * 1000):03d} - root - INFO - {text}"


def torchtitan_step(s: Step) -> str:
    return titan(
        f"step: {s.step:2d}  loss: {s.loss:8.5f}  grad_norm: {s.grad_norm:7.4f}  memory: 71.20GiB(50.93%)  "
        f"tps: {s.tok_s / 8:,.0f}  tflops: {s.tok_s / 52:,.2f}  mfu: {s.tok_s / 516:.2f}%"
    )


def hf_step(s: Step) -> str:
    numbers = f"'grad_norm': {s.grad_norm!r}, 'learning_rate': {s.lr!r}, 'epoch': {s.step / s.total:.2f}"
    return f"{{'loss': {s.loss:.4f}, {numbers}}}"


STEP_LINES = {"dflash": dflash_step, "megatron": megatron_step, "torchtitan": torchtitan_step, "hf": hf_step}


def rank_traceback(rank: int, frames: list[tuple[int, str, str]], error: str) -> str:
    name = os.path.abspath(sys.argv[0])
    lines = ["Traceback (most recent call last):"]
    for number, function, code in frames:
        lines += [f'  File "{name}", line {number}, in {function}', f"    {code}"]
    prefix = f"[rank{rank}]: " if rank >= 0 else ""
    return "\n".join(prefix + line for line in [*lines, error])


# ---------------------------------------------------------------------------------------------------------- the run


class Fault:
    """Which fault is on: from --fault, or from --fault-file, which may appear, change and go while we run."""

    def __init__(self, given: str, path: str) -> None:
        self.path = path
        self.given = given
        self._text: str | None = None
        self.name = ""
        self.arg: float | None = None
        self.after_steps = 0
        self.struck = False

    def refresh(self, steps_done: int) -> None:
        text = self.given
        if self.path:
            with contextlib.suppress(OSError), open(self.path, encoding="utf-8") as file:
                text = file.read().strip() or text
        if text == self._text:
            return
        self._text, self.struck = text, False
        self.name, _, arg = text.partition(":")
        try:
            self.arg = float(arg) if arg else None
        except ValueError:
            self.arg = None
        default = DEFAULT_AFTER_STEPS if steps_done == 0 else 0
        self.after_steps = steps_done + int(default if self.arg is None else self.arg)

    def at_start(self, name: str) -> bool:
        return self.name == name

    def on(self, name: str, steps_done: int) -> bool:
        return self.name == name and steps_done >= self.after_steps

    def once(self, name: str, steps_done: int) -> bool:
        """Whether this fault strikes now, for the first time since it was asked for."""
        if self.struck or not self.on(name, steps_done):
            return False
        self.struck = True
        return True


class Trainer:
    """The whole simulated run, single-threaded: every wait goes through `pause`, which keeps the GPUs up to date."""

    def __init__(self, options: Any) -> None:
        self.options = options
        self.dice = random.Random(options.seed)
        self.gpus = [Gpu(index) for index in range(options.gpus)]
        self.state = GpuState(options.gpu_state or None, self.gpus, options.release_delay)
        self.fault = Fault(options.fault, options.fault_file)
        self.ranks: list[Rank] = []
        self.steps_done = 0
        self.unwritten: list[str] = []
        self.own_log = -1

    # -- saying and waiting

    def say(self, text: str, end: str = "\n") -> None:
        if self.fault.name == "buffered":
            self.unwritten.append(text + end)
            del self.unwritten[:-10_000]
            return
        data = (text + end).encode()
        while data:
            data = data[os.write(self.output(), data) :]

    def output(self) -> int:
        """Return where words go: to stdout, or (elsewhere) into a file of our own."""
        if not self.fault.on("elsewhere", self.steps_done):
            return 1
        if self.own_log < 0:
            self.own_log = os.open(OWN_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        return self.own_log

    def pause(self, seconds: float) -> None:
        """Wait for simulated seconds; raises Ended where a rank has died meanwhile."""
        deadline = time.monotonic() + seconds / self.options.speed
        while True:
            self.fault.refresh(self.steps_done)
            self.state.refresh()
            for pid, status in wait_dead():
                self.rank_died(pid, status)
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return
            time.sleep(min(left_s, STATE_PERIOD_S))

    def rank_died(self, pid: int, status: int) -> NoReturn:
        time.sleep(0.3)  # whoever killed the rank may be about to signal us, too: then that is the end to report
        rank = next((i for i, rank in enumerate(self.ranks) if rank.pid == pid), -1)
        how = f"signal {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else "exit code 0"
        self.fail(
            -1,
            [(1502, "<module>", "main()"), (1466, "main", "context.join()")],
            f"torch.multiprocessing.spawn.ProcessExitedException: process {rank} terminated with {how}",
        )

    def fail(self, rank: int, frames: list[tuple[int, str, str]], error: str) -> NoReturn:
        self.say(rank_traceback(rank, frames, error))
        raise Ended(1)

    # -- GPUs

    def is_target(self, index: int) -> bool:
        return bool(index < self.options.targets)

    def hold(self, index: int, used_bytes: float) -> None:
        rank = self.ranks[index]
        self.gpus[index].holders[rank.pid] = (int(used_bytes), rank.ticks)

    def open_context(self, index: int) -> None:
        if not self.ranks[index].open_context():
            self.fail(
                index,
                [(388, "init_device", "torch.cuda.set_device(rank)")],
                "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment",
            )
        self.hold(index, 0.6 * GIB)
        self.gpus[index].set(util=12, memutil=3, power_mw=131_000, temp=40, sm_mhz=1755)
        self.state.write()

    def load_memory(self, part: float) -> None:
        """Show the memory of every context after `part` (0 to 1) of the load."""
        for gpu in self.gpus:
            if not gpu.holders:
                continue
            target = self.is_target(gpu.index)
            self.hold(gpu.index, (0.6 + part * (70.1 if target else 46.0)) * GIB)
            gpu.set(
                util=self.dice.randint(30, 36) if target else 12,
                memutil=9,
                power_mw=self.dice.randint(168_000, 181_000) if target else 131_000,
                temp=39,
                sm_mhz=1755,
            )

    def work(self) -> None:
        """Show GPUs that compute."""
        for gpu in self.gpus:
            target = self.is_target(gpu.index)
            if gpu.index < len(self.ranks):
                self.hold(gpu.index, ((70.7 if target else 117.9) + 0.1 * (gpu.index % 3)) * GIB)
                gpu.set(
                    util=self.dice.randint(94, 98) if target else self.dice.randint(83, 89),
                    memutil=41,
                    power_mw=self.dice.randint(584_000, 614_000) if target else self.dice.randint(538_000, 556_000),
                    temp=self.dice.randint(61, 69),
                    sm_mhz=1755,
                )

    def stand(self, util: int, power_mw: int) -> None:
        for gpu in self.gpus:
            if gpu.holders:
                gpu.set(util=util, memutil=0, power_mw=power_mw + self.dice.randint(0, 3000), temp=45, sm_mhz=1755)

    # -- phases

    def greet(self) -> None:
        o = self.options
        targets, drafters = list(range(o.targets)), list(range(o.targets, o.targets + o.drafters))
        if o.format == "dflash":
            roles = f"target={targets} drafter={drafters}".replace(", ", ",")
            self.say(f"{clock()} roles: {roles}  seq_len=4096 batch=8")
        elif o.format == "megatron":
            self.say(
                "------------------------ arguments ------------------------\n"
                "  global_batch_size ............................... 16\n"
                "  seq_length ...................................... 4096\n"
                "-------------------- end of arguments ---------------------"
            )
        elif o.format == "torchtitan":
            self.say(titan("CUDA capacity: NVIDIA H200 with 139.81GiB memory"))
        else:
            self.say(f"***** Running training *****\n  Total optimization steps = {o.steps:,}")

    def fail_early(self) -> None:
        """The faults that strike before any model is loaded."""
        if self.fault.at_start("exit-at-once"):
            self.pause((0.3 if self.fault.arg is None else self.fault.arg) * self.options.speed)
            self.fail(
                -1,
                [(31, "<module>", "from dflash.kernels import fused_fc")],
                "ModuleNotFoundError: No module named 'dflash.kernels'",
            )
        if self.fault.at_start("exit-zero"):
            self.pause(0.3 * self.options.speed)
            self.say(f"{clock()} resume: already at step {self.options.steps}/{self.options.steps}, nothing to do")
            raise Ended(0)
        if self.fault.at_start("no-cuda"):
            self.pause(self.options.load_time * 0.1)
            self.say(
                "UserWarning: CUDA initialization: Found no NVIDIA driver on your system. "
                "Setting the available devices to be zero."
            )
            self.fail(
                -1,
                [(1502, "<module>", "main()"), (1431, "main", "torch.cuda.set_device(0)")],
                "RuntimeError: No CUDA GPUs are available",
            )

    def load(self) -> None:
        o = self.options
        self.say(glog("Setting OMP_NUM_THREADS=1 for each process", os.getpid(), "torch/distributed/run.py:774"))
        started = time.monotonic()
        for _ in range(o.targets + o.drafters):
            self.ranks.append(start_rank(o, self.ranks, self.fault.at_start("ignore-term")))
        limit = len(self.ranks)
        if self.fault.at_start("download-stall"):
            self.download()
        if self.fault.at_start("cuda-hang"):
            limit = max(0, limit - 2) if self.fault.arg is None else int(self.fault.arg)
        # Context i opens before shard opening[i]: targets at once, drafters one by one, the last ones late.
        opening = [0 if self.is_target(i) else min(SHARDS, 4 + 3 * (i - o.targets)) for i in range(len(self.ranks))]
        for shard in range(SHARDS + 1):
            for index, when in enumerate(opening):
                if when == shard and index < limit:
                    self.open_context(index)
                    what = (
                        "loading Qwen3.5-27B (bf16) from /models/target"
                        if self.is_target(index)
                        else ("building 5-layer drafter, split_fc_layers=1")
                    )
                    role = "target" if self.is_target(index) else "drafter"
                    self.say(("\n" if shard else "") + f"{clock()} {role} {index}: {what}")
            self.load_memory(shard / SHARDS)
            self.say("\r" + bar("Loading checkpoint shards: ", shard, SHARDS, time.monotonic() - started), end="")
            if shard == 5:
                self.fail_loading()
            if shard < SHARDS:
                self.pause(o.load_time / SHARDS)
        self.say("")
        if o.compile_cache:
            compile_kernels(o.compile_cache)
        while any(not gpu.holders for gpu in self.gpus[: len(self.ranks)]):
            self.pause(0.5 * o.speed)  # cuda-hang: the rest never come

    def download(self) -> NoReturn:
        """Fetch the model, until the other side falls silent for ever."""
        for done, text in enumerate(("00:00<?, ?B/s", "00:02<00:05, 412MB/s", "01:15<?, 0.00B/s")):
            percent, have = 21 * done, ("0.00", "0.61G", "1.22G")[done]
            drawn = f"{percent:3d}%|{'█' * (percent // 10):<10}| {have}/2.90G [{text}]"
            self.say(f"\rmodel-00001-of-00012.safetensors: {drawn}", end="")
            self.pause(0.5 * self.options.speed)
        while True:
            self.pause(STATE_PERIOD_S * self.options.speed)

    def fail_loading(self) -> None:
        if self.fault.at_start("traceback"):
            self.say("")
            self.fail(
                1,
                [(1466, "main", "model.load_state_dict(shard)"), (902, "load_state_dict", "self._check(keys)")],
                'RuntimeError: Error(s) in loading state_dict for DFlashDrafter: Missing key(s): "fc.4.weight"',
            )
        if self.fault.at_start("oom-load"):
            index = min(int(self.fault.arg or 0), len(self.ranks) - 1)
            self.hold(index, TOTAL_BYTES - BASE_BYTES - 0.9 * GIB)
            self.state.write()
            self.pause(STATE_PERIOD_S * 2 * self.options.speed)
            self.say("")
            self.fail(
                index,
                [(1466, "main", "model.to(device)"), (640, "to", "param.data = param.data.to(device)")],
                f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.37 GiB. GPU {index} has a total "
                f"capacity of {TOTAL_BYTES / GIB:.2f} GiB of which 921.50 MiB is free.",
            )

    def step_forever(self) -> None:
        o = self.options
        step, since_checkpoint, started = o.start_step, 99, time.monotonic()
        if o.format == "torchtitan":
            self.say(titan(f"Training starts at step {step + 1}"))
        while step < o.steps:
            self.strike()
            step += 1
            record = self.measure(step, since_checkpoint)
            self.work()
            if self.steps_done == 0:
                self.state.written_at = -math.inf  # the first step line must not run ahead of what the GPUs show
            self.pause(record.took_s)
            self.say_step(record, time.monotonic() - started)
            self.steps_done += 1
            since_checkpoint += 1
            if o.ckpt_every and step % o.ckpt_every == 0:
                self.checkpoint(step)
                since_checkpoint = 0
        self.say(("\n" if o.format == "hf" else "") + "Training completed")

    def strike(self) -> None:
        """The faults that strike between two steps."""
        while self.fault.on("stall", self.steps_done):
            self.stand(100, SPIN_POWER_MW)
            self.pause(STATE_PERIOD_S * self.options.speed)
        while self.fault.on("stall-idle", self.steps_done):
            self.stand(0, IDLE_POWER_MW)
            self.pause(STATE_PERIOD_S * self.options.speed)
        if self.fault.on("sigkill", self.steps_done):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault.once("suspend", self.steps_done):
            self.stand(100, SPIN_POWER_MW)
            self.state.write()
            os.kill(os.getpid(), signal.SIGSTOP)
        if self.fault.once("recompile", self.steps_done):
            self.say(glog("[0/8] torch._dynamo hit config.recompile_limit (8)", os.getpid(), "convert_frame.py:906"))
        if self.fault.on("linger", self.steps_done):
            self.linger()

    def linger(self) -> NoReturn:
        """Say that it is done, and never exit."""
        self.say(f"Early stopping triggered after {self.steps_done} steps: no improvement")
        self.say("wandb: Waiting for W&B process to finish")
        self.stand(0, IDLE_POWER_MW)
        while True:
            self.pause(STATE_PERIOD_S * self.options.speed)

    def measure(self, step: int, since_checkpoint: int) -> Step:
        total, gauss = self.options.steps, self.dice.gauss
        warmth = 1 - 0.3 * math.exp(-self.steps_done / 12)  # within 0.5 % of steady after 50 steps
        dip = 0.82 if since_checkpoint == 0 else 0.94 if since_checkpoint == 1 else 1.0
        slow = SLOWED.get(self.fault.name, 1.0) if self.fault.on(self.fault.name, self.steps_done) else 1.0
        speed = warmth * dip * slow * (1 + max(-0.02, min(0.02, gauss(0, 0.004))))
        bad = self.fault.on("nan", self.steps_done)
        up = 3.2 if self.fault.on("spike", self.steps_done) else 1.0
        starved = self.fault.on("starve", self.steps_done)
        wave = math.sin(step / 9.0) + 0.3 * gauss(0, 1)
        return Step(
            step=step,
            total=total,
            loss=math.nan if bad else up * (1.19 + 2.81 * math.exp(-step / 2400) + gauss(0, 0.003)),
            acc=0.0 if bad else max(0.0, 0.55 - 0.5 * math.exp(-step / 2400) + gauss(0, 0.0008)),
            lr=6.5e-4 * min(1.0, step / 2400) * (0.55 + 0.45 * math.cos(math.pi * step / total)),
            grad_norm=math.nan if bad else abs(0.41 + gauss(0, 0.03)),
            tok_s=STEADY_TOK_S * speed,
            took_s=self.options.step_time / speed,
            queue_ready=0 if starved else max(5, min(16, round(10.5 + 5.5 * wave))),
        )

    def say_step(self, record: Step, elapsed_s: float) -> None:
        if self.options.format == "hf":
            if record.step % 10 == 0:
                self.say("\r" + " " * 79 + "\r" + hf_step(record))
            self.say("\r" + bar("", record.step, record.total, elapsed_s, self.options.start_step), end="")
            return
        self.say(STEP_LINES[self.options.format](record))
        if self.options.format != "dflash":
            return
        if self.options.drafters and self.dice.random() < 0.12:
            drafter = self.options.targets + self.dice.randrange(self.options.drafters)
            loss, rate = record.loss + self.dice.gauss(0, 0.002), record.tok_s / 3000
            self.say(f"[drafter {drafter}] step {record.step} local_loss {loss:.4f} {rate:.1f}K tok/s")
        if self.dice.random() < 0.02:
            size = self.dice.randint(2, 7)
            self.say(
                glog(
                    f"[{size}/8] recompile: cache_size {size} of 8",
                    self.ranks[0].pid if self.ranks else 0,
                    "torch/_dynamo/convert_frame.py:1551",
                )
            )

    def checkpoint(self, step: int) -> None:
        out, kind = self.options.out, self.options.format
        started = time.monotonic()
        if kind == "megatron":
            self.say(f"saving checkpoint at iteration {step:7d} to {out} in torch_dist format")
        elif kind == "torchtitan":
            self.say(titan("Saving the checkpoint (or staging if async is enabled)."))
        elif kind == "hf":
            self.say(f"\nSaving model checkpoint to {out}/checkpoint-{step}")
        self.stand(5, 190_000)
        self.pause(3 * self.options.step_time)
        took_s = time.monotonic() - started
        if kind == "dflash":
            self.say(f"Checkpoint saved at step {step} → {out}/step_{step} (41.2 GiB, {took_s:.1f} s)")
        elif kind == "megatron":
            self.say(f"  successfully saved checkpoint from iteration {step:7d} to {out}")
        elif kind == "torchtitan":
            self.say(titan(f"Finished saving the checkpoint in {took_s:.2f} seconds."))

    # -- beginning and end

    def run(self) -> int:
        """Return the exit status; dies by the same signal where one ended it."""
        self.fault.refresh(0)
        if self.fault.at_start("ignore-term"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        else:
            signal.signal(signal.SIGTERM, on_signal)
        signal.signal(signal.SIGINT, on_signal)
        status, ended_by = 1, 0
        try:
            self.state.write()
            self.greet()
            self.fail_early()
            self.load()
            self.step_forever()
            status = 0
        except Ended as end:
            status = end.args[0]
        except Terminated as end:
            ended_by = end.args[0]
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self.end_ranks()
            self.state.release()
        if ended_by:
            signal.signal(ended_by, signal.SIG_DFL)
            os.kill(os.getpid(), ended_by)
        if self.unwritten:
            os.write(1, "".join(self.unwritten).encode())
        return status

    def end_ranks(self) -> None:
        for rank in self.ranks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rank.pid, signal.SIGKILL)
        for _ in wait_dead(block=True):
            pass


def compile_kernels(folder: str) -> None:
    """Leave what a compiler leaves behind: the next start finds a cache to keep or to clear."""
    for index in range(KERNELS):
        part = os.path.join(folder, f"fx{index:02d}")
        os.makedirs(part, exist_ok=True)
        with open(os.path.join(part, "kernel.so"), "wb") as file:
            file.write(bytes(64 * 1024))


def on_signal(number: int, _frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise Terminated(number)


def parse_options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A simulated trainer on simulated GPUs.", allow_abbrev=False)

    def option(name: str, default: Any, kind: Any = str, **more: Any) -> None:
        from_env = os.environ.get("DFLASH_SIM_" + name.replace("-", "_").upper())
        parser.add_argument(f"--{name}", default=default if from_env is None else from_env, type=kind, **more)

    uvm = "/dev/nvidia-uvm"
    option("gpus", 8, int, help="simulated GPUs of the machine")
    option("targets", None, int, help="GPUs with a target model, from GPU 0 on (default: what drafters leave)")
    option(
        "drafters", None, int, help="GPUs with a drafter, after the targets (default: 3, or fewer on a small machine)"
    )
    option("step-time", 2.0, float, help="seconds of a steady step")
    option("load-time", 6.0, float, help="seconds until the first step begins")
    option("steps", 60_000, int, help="number of the last step; then exit 0")
    option("start-step", 0, int, help="resume after this step")
    option("speed", 1.0, float, help="divide every duration by this")
    option("ckpt-every", 200, int, help="steps between checkpoints; 0: none")
    option("out", "/workspace/ckpt/dflash", help="directory that checkpoint lines name; nothing is written there")
    option("compile-cache", "", help="directory in which compiled kernels are left; '': none")
    option("seed", 1, int)
    option("format", "dflash", choices=sorted(STEP_LINES))
    option("fault", "", help="NAME[:ARG], one of: " + ", ".join(FAULTS_AT_START + FAULTS_WHILE_RUNNING))
    option("fault-file", "", help="file that holds NAME[:ARG] while that fault is wanted; watched while running")
    option("gpu-state", "", help="state file of the simulated GPUs")
    option("release-delay", 0.0, float, help="seconds for which memory stays used after the end")
    option(
        "open-uvm", uvm if os.path.exists(uvm) else "", help="file that each rank with a context holds open; '': none"
    )
    option("workers", "fork", choices=["fork", "spawn"], help="spawn: the ranks' command lines don't name this script")
    parser.add_argument("--orphans", action="store_true", help="ranks outlive a killed trainer")
    parser.add_argument("--idle", action="store_true", help="write the state of idle GPUs to --gpu-state and exit")
    options = parser.parse_args(argv)
    if options.drafters is None:
        options.drafters = min(3, options.gpus // 2) if options.targets is None else options.gpus - options.targets
    if options.targets is None:
        options.targets = options.gpus - options.drafters
    if min(options.targets, options.drafters) < 0 or options.targets + options.drafters > options.gpus:
        parser.error("--targets and --drafters need more GPUs than --gpus gives")
    if options.speed <= 0:
        parser.error("--speed must be above 0")
    if options.fault and options.fault.partition(":")[0] not in FAULTS_AT_START + FAULTS_WHILE_RUNNING:
        parser.error(f"unknown fault {options.fault!r}")
    return options


def main(argv: list[str]) -> int:
    options = parse_options(argv)
    if options.idle:
        write_idle(options.gpu_state, options.gpus)
        return 0
    try:
        return Trainer(options).run()
    except OSError as error:
        if error.errno in (errno.EPIPE, errno.ENOSPC):
            return 1
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
