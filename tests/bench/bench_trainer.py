"""A trainer that does nothing but write: lines that carry their number and time, at a rate, in a known step format.

It does to its log what it is told through a FIFO (`--words`), one word a line: `bar`, `tracebacks`, `burst BYTES`,
`copytruncate`, `rotate`.

Runs alone (standard library only) as the command of a run. Told by SIGTERM it notes when that came and ends after
`--dies-s`. What it notes goes to `--notes` as `WORD MONOTONIC_SECONDS` lines.
"""

from __future__ import annotations

import argparse
import os
import signal
import time

GPUS = 8
_LINE = "step {step}/9000000 | loss {loss:.4f} | tok/s 21,500 | n={number} t={at:.6f}"
_PLAIN = "INFO worker 3: prefetched batch, queue depth 12 of 16, waited 0.3 ms\n"
MIDDLE_TOK_S = 43_000
_BLOCK_RECORDS = 128
_BLOCK_BYTES = 1 << 20
_SLICE_S = 0.01
_TRACE = (
    "[rank{rank}]: Traceback (most recent call last):\n"
    '[rank{rank}]:   File "/root/train.py", line 812, in step\n'
    "[rank{rank}]:     loss = model(batch)\n"
    "[rank{rank}]: RuntimeError: a batch was skipped: shape [4, 4096]\n"
)


class Notes:
    def __init__(self, path: str) -> None:
        self._path = path

    def add(self, word: str) -> None:
        if self._path:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(f"{word} {time.monotonic():.6f}\n")


class Words:
    """What is to be done to the log between two lines."""

    def __init__(self, path: str) -> None:
        self._fifo = os.open(path, os.O_RDWR | os.O_NONBLOCK) if path else None
        self._waiting = b""

    def obey(self) -> None:
        if self._fifo is None:
            return
        try:
            self._waiting += os.read(self._fifo, 4096)
        except BlockingIOError:
            pass
        while b"\n" in self._waiting:
            line, self._waiting = self._waiting.split(b"\n", 1)
            word, _, number = line.decode().partition(" ")
            _do(word, number)


def _do(word: str, number: str) -> None:
    path = os.readlink("/proc/self/fd/1")
    if word == "bar":
        for done in range(201):
            bar = "#" * (done // 10)
            say(f"\rLoading checkpoint shards: {done // 2:3d}%|{bar:20}| {done}/200 [00:01<00:01, 99it/s]".encode())
        say(b"\n")
    elif word == "tracebacks":
        say("".join(_TRACE.format(rank=rank) for rank in range(GPUS)).encode())
    elif word == "burst":
        block = (_PLAIN * 15_000).encode()
        for _ in range(int(number) // len(block)):
            say(block)
    elif word == "copytruncate":
        os.ftruncate(1, 0)  # where it is not opened for appending, NULs fill what was before
    elif word == "rotate":
        os.rename(path, path + ".1")
        fresh = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(fresh, 1)
        os.close(fresh)


def say(text: bytes) -> None:
    """Write all of it: a full disk raises, and a signal cuts a write short."""
    data = memoryview(text)
    while data:
        data = data[os.write(1, data) :]


def hold_gpus(path: str) -> None:
    """Say in the simulated GPUs' state file (console/demo/gpustate.py) that this process has a context on each."""
    with open("/proc/self/stat", "rb") as stat:
        start = int(stat.read().rpartition(b")")[2].split()[19])
    lines = ["driver 550.90.07"]
    for index in range(GPUS):
        lines.append(
            f'gpu {index} uuid=GPU-sim-{index} name="NVIDIA H200" total=150121480192 used=76985741824 util=97 '
            "memutil=41 power_mw=612000 limit_mw=700000 temp=61 sm_mhz=1755 mem_mhz=2619 "
            f"procs={os.getpid()}:76448870912:{start}"
        )
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    os.rename(path + ".new", path)


def text_of(step: int, number: int) -> str:
    return _LINE.format(step=step, loss=1.0 + 1.0 / (step + 1), number=number, at=time.monotonic()) + "\n"


def fill(size_bytes: int, step: int) -> int:
    """Write a log of that size at once: a step line, then six plain ones, again and again; return the last step.

    A tenth of it, in the middle, is at `MIDDLE_TOK_S`: only who has looked there can draw it.
    """
    record = _LINE.replace("{step}", "%d").format(loss=1.5, number=-1, at=time.monotonic()) + "\n" + _PLAIN * 6
    block = record * _BLOCK_RECORDS
    middle = block.replace("21,500", f"{MIDDLE_TOK_S:,}")
    written = 0
    while written < size_bytes:
        steps = tuple(range(step + 1, step + 1 + _BLOCK_RECORDS))
        data = ((middle if 0.45 <= written / size_bytes < 0.55 else block) % steps).encode()
        say(data)
        written += len(data)
        step = steps[-1]
    return step


def write_on(lines_per_s: float, bytes_per_s: float, step: int, words: Words) -> None:
    """Write lines evenly at a rate; with a rate of bytes, plain lines in between make up for the rest."""
    number, began, sent = 0, time.monotonic(), 0
    filler = (b"x" * 199 + b"\n") * (_BLOCK_BYTES // 200)
    while True:
        elapsed = time.monotonic() - began
        while number < elapsed * lines_per_s:
            number += 1
            step += 1
            say(text_of(step, number).encode())
        words.obey()
        lacking = int(elapsed * bytes_per_s) - sent
        if lacking > 0:
            whole = min(lacking, len(filler)) // 200 * 200
            sent += os.write(1, filler[:whole]) if whole else 0
        due = min(_SLICE_S, (number + 1) / lines_per_s - elapsed) if lines_per_s else _SLICE_S
        time.sleep(max(0.0005, due))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines-per-s", type=float, default=2.0)
    parser.add_argument("--bytes-per-s", type=float, default=0.0)
    parser.add_argument("--fill-bytes", type=int, default=0)
    parser.add_argument("--dies-s", type=float, default=0.0)
    parser.add_argument("--notes", default="")
    parser.add_argument("--gpu-state", default="")
    parser.add_argument("--words", default="")
    options = parser.parse_args()
    notes = Notes(options.notes)
    notes.add("began")

    def end(number: int, frame: object) -> None:
        notes.add("term")
        time.sleep(options.dies_s)
        notes.add("end")
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    if options.gpu_state:
        hold_gpus(options.gpu_state)
    step = fill(options.fill_bytes, 0)
    notes.add("filled")
    write_on(options.lines_per_s, options.bytes_per_s, step, Words(options.words))


if __name__ == "__main__":
    main()
