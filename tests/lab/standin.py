"""A stand-in for the operators' run: /root/run.sh and a train.py that takes a step ten times a second."""

from tests.lab.containers import Container

_TRAIN = """import itertools, os, time
if os.path.exists("/dev/nvidia-uvm"):
    context = open("/dev/nvidia-uvm")
for step in itertools.count(1):
    print(f"step {step} | loss {10 / step:.4f} | 14500 tok/s", flush=True)
    time.sleep(0.1)
"""
_RUN = """#!/bin/bash
cd /root && python3 /root/train.py
"""


def install(container: Container) -> None:
    """Put the run into `container`, where the operators' lines expect it."""
    container.write("/root/train.py", _TRAIN)
    container.write("/root/run.sh", _RUN, mode=0o755)
