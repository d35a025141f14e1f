"""A trainer that does to its log what it is told, one word a line, through a FIFO: `soak_trainer.py FIFO GPU_STATE`.

It makes fifty steps a second all the while. Words: `bar`, `tracebacks`, `burst BYTES`, `copytruncate`, `rotate`. Runs
alone (standard library only) as the command of a run.
"""

import os
import signal
import sys
import time

GPUS = 8
_TRACE = (
    "[rank{rank}]: Traceback (most recent call last):\n"
    '[rank{rank}]:   File "/root/train.py", line 812, in step\n'
    "[rank{rank}]:     loss = model(batch)\n"
    "[rank{rank}]: RuntimeError: a batch was skipped: shape [4, 4096]\n"
)


def hold_gpus(path: str) -> None:
    with open("/proc/self/stat", "rb") as stat:
        start = int(stat.read().rpartition(b")")[2].split()[19])
    lines = ["driver 550.90.07"]
    for index in range(GPUS):
        lines.append(
            f'gpu {index} uuid=GPU-sim-{index} name="NVIDIA H200" total=150121480192 used=76985741824 util=97 '
            f"power_mw=612000 temp=61 sm_mhz=1755 procs={os.getpid()}:76448870912:{start}"
        )
    with open(path + ".new", "w") as file:
        file.write("\n".join(lines) + "\n")
    os.rename(path + ".new", path)


def say(text: str) -> None:
    data = memoryview(text.encode())
    while data:
        data = data[os.write(1, data) :]


def do(word: str, number: str) -> None:
    path = os.readlink("/proc/self/fd/1")
    if word == "bar":
        for done in range(201):
            bar = "#" * (done // 10)
            say(f"\rLoading checkpoint shards: {done // 2:3d}%|{bar:20}| {done}/200 [00:01<00:01, 99it/s]")
        say("\n")
    elif word == "tracebacks":
        say("".join(_TRACE.format(rank=rank) for rank in range(GPUS)))
    elif word == "burst":
        line = "INFO worker 3: prefetched batch, queue depth 12 of 16, waited 0.3 ms\n"
        say(line * (int(number) // len(line)))  # at once: whoever reads it meanwhile is left behind for certain
    elif word == "copytruncate":
        os.ftruncate(1, 0)  # where it is not opened for appending, NULs fill what was before
    elif word == "rotate":
        os.rename(path, path + ".1")
        fresh = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(fresh, 1)
        os.close(fresh)


def main() -> None:
    fifo = os.open(sys.argv[1], os.O_RDWR | os.O_NONBLOCK)
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(143))
    hold_gpus(sys.argv[2])
    waiting = b""
    for step in range(1, 1_000_000):
        say(f"step {step}/1000000 | loss {1 + 1 / step:.4f} | grad norm 0.41 | tok/s {21_000 + step % 900}\n")
        try:
            waiting += os.read(fifo, 4096)
        except BlockingIOError:
            pass
        while b"\n" in waiting:
            line, waiting = waiting.split(b"\n", 1)
            word, _, number = line.decode().partition(" ")
            do(word, number)
        time.sleep(0.02)


if __name__ == "__main__":
    main()
