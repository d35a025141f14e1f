"""What the keeper wants of the GPUs: the level before the launch, the release after a kill, contexts and peaks.

All sampling happens in gpu.Sampler's disposable child. Only the keeper imports this module.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterable, List, Optional, Set

from . import gpu, gpushare, procfs

GIB = 1 << 30
# What may stay used above the level before: the driver's own bookkeeping after the last context went.
_SLACK_BYTES = 512 << 20
RELEASE_PATIENCE_S = 60.0
# A GPU whose memory can't be attributed and does not move for so long is somebody else's.
_UNMOVED_S = 10.0
_OTHERS_LASTS_S = 5.0

Sample = Dict[str, Any]


class GpuWatch:
    """The keeper's view of the GPUs of one target."""

    def __init__(self, simulated: Optional[str], expected: Optional[int], run_dir: str) -> None:
        self.sampler = gpu.Sampler(simulated)
        self._outlet = gpushare.Outlet(run_dir, simulated)
        self.latest: Optional[Sample] = None
        self.baseline: Dict[int, int] = {}
        """Bytes used per GPU just before the launch."""
        self.peak: Dict[str, int] = {}
        self.visible = ""
        """CUDA_VISIBLE_DEVICES as the run was started with."""
        self._expected = expected
        self._cuda: Dict[str, Any] = {}

    def know(self, sample: Optional[Sample]) -> None:
        """Take a sample that somebody else has just made for the newest, until the first of our own comes."""
        if sample is not None and procfs.boottime() - float(sample.get("bt") or 0.0) < _OTHERS_LASTS_S:
            self.latest = sample

    def start(self) -> None:
        self.sampler.start()

    def close(self) -> None:
        self.sampler.stop()
        self._outlet.close()

    def poll(self) -> Optional[Sample]:
        """Take in a new sample, if one came."""
        sample = self.sampler.poll()
        if sample is not None:
            self.latest = sample
            self._outlet.put(sample, self.sampler.line)
        return sample

    def await_sample(self, after_bt: float, timeout_s: float) -> Optional[Sample]:
        """Return a sample taken after `after_bt`, or None where none comes in time."""
        self.sampler.request()
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            self.poll()
            if self.latest is not None and self.latest["bt"] >= after_bt:
                return self.latest
            time.sleep(0.005)
        return None

    def take_baseline(self, after_bt: float) -> None:
        """Call the newest sample the level before the launch, unless it is older than `after_bt`."""
        if not self.baseline and self.latest is not None and self.latest["bt"] >= after_bt:
            self.baseline = used(self.latest)

    @property
    def complete(self) -> bool:
        return self._cuda.get("complete_bt") is not None

    @property
    def contexts(self) -> List[int]:
        """The GPUs that the run has a context on, as judged last."""
        return list(self._cuda.get("contexts") or ())

    def raise_peaks(self, contexts: Optional[Iterable[int]] = None) -> None:
        """Take the newest sample's use of the run's GPUs for the peaks."""
        ours = set(self.contexts if contexts is None else contexts)
        for each in self.latest["gpus"] if self.latest is not None else ():
            if each["i"] in ours and each.get("used") is not None:
                key = str(each["i"])
                self.peak[key] = max(self.peak.get(key, 0), each["used"])

    def judge(self, tree: Set[int], uvm: Optional[Set[int]]) -> Dict[str, Any]:
        """Return protocol.CudaRecord as a dict for the newest sample and this process tree; also raises the peaks."""
        sample = self.latest
        if sample is None:
            return {"contexts": [], "expected": self._expected, "source": "unknown", "why": "no GPU sample yet"}
        verdict = gpu.judge(sample, tree, uvm, self.baseline or None)
        gpus: List[Dict[str, Any]] = sample["gpus"]
        contexts = verdict["contexts"]
        parts = sorted(
            uuid for each in verdict["gpus"] for uuid, held in each.get("parts", {}).items() if held and uuid
        )
        divided = {each["i"] for each in gpus if each.get("mig")}
        have = len(parts) + sum(index not in divided for index in contexts) if parts else len(contexts)
        named = sum(entry.strip().startswith("MIG-") for entry in self.visible.split(","))
        expected = self._expected if self._expected is not None else (named or len(gpus) or None)
        self.raise_peaks(contexts)
        if parts or named or "have" in self._cuda:
            self._cuda.update(parts=parts, have=have)
        self._cuda.update(contexts=contexts, expected=expected, source=sample["source"], why=sample.get("why", ""))
        if tree:
            self._cuda["untold"] = "" if contexts else verdict["untold"]
        if contexts:
            self._cuda["rule"] = verdict["rule"]
            self._cuda.setdefault("first_bt", sample["bt"])
        if expected and have >= expected:
            self._cuda.setdefault("complete_bt", sample["bt"])
        return dict(self._cuda)


def used(sample: Optional[Sample]) -> Dict[int, int]:
    gpus = sample["gpus"] if sample is not None else []
    return {each["i"]: each["used"] for each in gpus if each.get("used") is not None}


class Release:
    """The wait for memory that dead processes held: `waits_for` what GPU, and what was freed."""

    def __init__(
        self,
        before: Optional[Sample],
        killed: Iterable[int],
        launch_level: Dict[int, int],
        anonymous: bool,
    ) -> None:
        self.before: Dict[int, int] = {}
        self.after: Dict[int, int] = {}
        self._killed, self._launch_level, self._anonymous = set(killed), launch_level, anonymous
        self._levels: Dict[int, Optional[int]] = {}
        self._moved: Dict[int, float] = {}
        self.held(before)

    def held(self, sample: Optional[Sample]) -> None:
        """Take in a sample from before the end: what was held is the most that was seen of it."""
        for index, amount in used(sample).items():
            self.before[index] = max(self.before.get(index, 0), amount)
        for index, level in _levels(sample, self._killed, self._launch_level, self._anonymous).items():
            if level is not None or index not in self._levels:
                self._levels[index] = level

    @property
    def pointless(self) -> bool:
        """Nothing was held, as far as can be told."""
        return not self._levels

    @property
    def freed_bytes(self) -> int:
        return sum(max(0, before - self.after.get(index, before)) for index, before in self.before.items())

    def waits_for(self, sample: Sample, now: float) -> Dict[int, int]:
        """Return bytes by GPU that are still to be released."""
        waiting: Dict[int, int] = {}
        for index, amount in used(sample).items():
            if self.after.get(index) != amount:
                self._moved[index] = now
            self.after[index] = amount
            level = self._levels.get(index)
            if index not in self._levels or amount <= (level if level is not None else GIB) + _SLACK_BYTES:
                continue
            if level is None and now - self._moved[index] > _UNMOVED_S:
                continue
            waiting[index] = amount - (level if level is not None else 0)
        return waiting


def _levels(
    before: Optional[Sample], killed: Set[int], launch_level: Dict[int, int], anonymous: bool
) -> Dict[int, Optional[int]]:
    """Return for each GPU that the killed processes held the bytes it should fall to; None where that is unknown.

    `anonymous`: some of them held nvidia-uvm, so that GPUs whose holders the source can't list may have been theirs.
    """
    levels: Dict[int, Optional[int]] = {}
    for each in before["gpus"] if before is not None else []:
        index, amount, procs = each["i"], each.get("used"), each.get("procs")
        if amount is None:
            continue
        ours = [size for pid, size in procs or () if pid in killed]
        if ours:
            known = [size for size in ours if size is not None]
            level = amount - sum(known) if len(known) == len(ours) else None
            levels[index] = launch_level.get(index, level)
        elif anonymous and not procs and amount > GIB:
            levels[index] = launch_level.get(index)
    return levels


def await_release(watch: GpuWatch, release: Release, tell: Callable[[str], None], pump: Callable[[], None]) -> str:
    """Wait until the memory is back, for a minute at most; return a warning, "" where it is."""
    began = procfs.boottime()
    if release.pointless:
        release.waits_for(watch.await_sample(began, 0.2) or {"gpus": []}, began)
        return ""
    waiting: Dict[int, int] = {}
    while procfs.boottime() - began < RELEASE_PATIENCE_S:
        sample = watch.await_sample(procfs.boottime() - 0.05, 1.0)
        if sample is not None:
            waiting = release.waits_for(sample, procfs.boottime())
            if not waiting:
                return ""
            index = min(waiting)
            tell("waits for GPU %d: %s" % (index, size_text(waiting[index])))
        pump()
        time.sleep(0.1)
    held = ", ".join("GPU %d %s" % (index, size_text(amount)) for index, amount in sorted(waiting.items()))
    return "still used after %d s: %s" % (RELEASE_PATIENCE_S, held or "the GPUs do not answer")


def size_text(size_bytes: int) -> str:
    """Return `574 GiB`, `3.1 GiB`, `41 MiB`, in at most eight cells."""
    amount, unit = float(size_bytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1000 or unit == "TiB":
            break
        amount /= 1024
    return "%.1f %s" % (amount, unit) if amount < 9.95 and unit not in ("B", "KiB") else "%.0f %s" % (amount, unit)
