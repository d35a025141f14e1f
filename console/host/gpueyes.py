"""The agent's GPU samples: the newest of the shown run's keeper while it lives and tells, else of a child of its own.

Both are whole samples with the moment at which they were taken, so that nobody behind this can tell which it was. Only
watcher.py imports this module.
"""

from __future__ import annotations

import time
from typing import List, Optional

from . import gpu, gpushare, procfs

KEEPER_S = 1.0
"""A keeper samples at this interval; who wants to see more often asks the driver itself."""
FRESH_S = 2.5
"""An older sample of the keeper's is none: it hangs, was stopped, or its driver does not answer."""
_SMI_FRESH_S = 5.5  # nvidia-smi is asked every three seconds, and may take one
_AFTER_S = 0.08  # the keeper looks at its run before it takes a sample in: a look too early costs more than a late one
_RETRY_S = 0.1
_SLACK_S = 0.2


class GpuEyes:
    """`follow` says whose keeper to listen to; `poll` never blocks; `fds` and `due` are for the loop."""

    def __init__(self, simulated: Optional[str], interval_s: float) -> None:
        self._own = gpu.Sampler(simulated)
        self._own.set_interval(interval_s)
        self._simulated, self._interval_s = simulated, interval_s
        self._run_dir: Optional[str] = None
        self._look_at = time.monotonic()
        self._taken_bt = self._told_bt = float("-inf")
        self._fresh_s = FRESH_S

    def follow(self, run_dir: Optional[str]) -> None:
        """Listen to the keeper of the run in this directory; None: there is none that lives."""
        if self._interval_s < KEEPER_S:
            run_dir = None
        if run_dir == self._run_dir:
            return
        self._run_dir, self._look_at = run_dir, time.monotonic()
        if run_dir is None:
            self._taken_bt = float("-inf")  # not of a keeper that gives way to another: its last one is still fresh

    def fds(self) -> List[int]:
        return [self._own.fileno()] if self._own.fileno() >= 0 else []

    def due(self) -> float:
        """When to poll again at the latest, on the monotonic clock, whatever the descriptors say."""
        return self._look_at

    def poll(self) -> Optional[gpu.Sample]:
        """Return a sample that is newer than the last one, or None."""
        if time.monotonic() >= self._look_at:
            sample = self._look()
            if sample is not None:
                return sample
        stuck = self._own.stuck()  # which also reaps the child that was ended when the keeper came
        if procfs.boottime() - self._taken_bt <= self._fresh_s:
            return None
        # A child that hangs in the driver and can't be killed is not given company.
        if self._own.pid is None and not stuck:
            self._own.start()
        return self._told(self._own.poll())

    def close(self) -> None:
        self._own.stop()

    def _look(self) -> Optional[gpu.Sample]:
        now, bt = time.monotonic(), procfs.boottime()
        if self._run_dir is None:
            self._look_at = float("inf")  # until there is one to follow
            return None
        self._look_at = now + _RETRY_S
        sample = gpushare.take(self._run_dir, self._simulated)
        if sample is None:
            return None
        fresh_s = _SMI_FRESH_S if sample.get("source") == "nvidia-smi" else FRESH_S
        if not self._taken_bt < sample["bt"] <= bt or bt - sample["bt"] > fresh_s:
            return None
        self._taken_bt, self._fresh_s = sample["bt"], fresh_s
        self._look_at = now + max(_RETRY_S, sample["bt"] + KEEPER_S + _AFTER_S - bt)
        self._own.stop()
        return self._told(sample)

    def _told(self, sample: Optional[gpu.Sample]) -> Optional[gpu.Sample]:
        """Pass on what is due: the keeper's come once a second, whatever is asked for."""
        if sample is None or sample["bt"] <= self._told_bt:
            return None
        if sample["bt"] - self._told_bt < self._interval_s - _SLACK_S and self._interval_s > KEEPER_S:
            return None
        self._told_bt = sample["bt"]
        return sample
