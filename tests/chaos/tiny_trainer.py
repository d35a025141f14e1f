"""A trainer of a few milliseconds: one GPU, ten steps a second; it bears witness of its own life in two files.

Run as `python -ISu train_dflash_pipeline.py`. `alive.lock` is held for as long as it lives: a second run at the same
time says so in `witness`, however short the moment was. `witness` gets a line for each start: `start RUN PID`. While
there is a file `hold` it takes no step.
"""

import fcntl
import os
import signal
import time
import zlib

HOME = os.path.dirname(os.path.abspath(__file__))
GIB = 1 << 30


def note(words: str) -> None:
    with open(os.path.join(HOME, "witness"), "a") as file:
        file.write(words + "\n")


def hold_gpu() -> None:
    procs = f"{os.getpid()}:{40 * GIB}"
    line = f'gpu 0 uuid=GPU-sim-0 name="NVIDIA H200" total={140 * GIB} used={40 * GIB} util=90 procs={procs}\n'
    with open(os.path.join(HOME, "gpus.new"), "w") as file:
        file.write("driver 550.90.07\n" + line)
    os.rename(os.path.join(HOME, "gpus.new"), os.path.join(HOME, "gpus"))


def main() -> None:
    run = os.environ["DFLASH_RUN_ID"]
    note(f"start {run} {os.getpid()}")
    lock = os.open(os.path.join(HOME, "alive.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        note(f"two {run} {os.getpid()}")
    # Some die at once, some take their time over it: by the run's id, so that the same run does the same again.
    dying_s = zlib.crc32(run.encode()) % 4 * 0.1

    def die(_number: int, _frame: object) -> None:
        time.sleep(dying_s)
        os._exit(143)

    signal.signal(signal.SIGTERM, die)
    print("loading", flush=True)
    time.sleep(0.1)
    hold_gpu()
    time.sleep(0.1)
    while os.path.exists(os.path.join(HOME, "hold")):
        time.sleep(0.02)
    for step in range(1, 1_000_000):
        print(f"step {step}/1000000 | loss 2.5000 | 21000 tok/s", flush=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
