"""The values that every part of the console shares: stages, verdicts, GPUs, plans and the snapshot.

Only frozen, serialisable structs live here, one room for each panel or dialog, and no behaviour beyond trivial
derivations. Anybody may import this package, always from here; of ours it imports `console.severity` alone. Times
named `*_at` are Unix seconds (UTC) on the console's clock; durations end in `_s`, sizes in `_bytes`. Absent is
`None`, never 0.
"""

from __future__ import annotations

from console.model.gpus import Gpu, GpuHolder, GpuNote, GpuPanel, GpuPart, GpuTrouble
from console.model.link import Ages, ContainerView, LinkState, LinkStatus
from console.model.log import LogState, LogStatus
from console.model.plan import Accepted, CachePlan, Check, CheckState, Diagnosis, Overrides, Plan
from console.model.progress import Progress, Queue, Rate
from console.model.run import ExitStatus, Lock, LostRestart, Process, Run
from console.model.settings import Change, Changes, PastRun, Script, Settings
from console.model.snapshot import Snapshot
from console.model.stages import Stage, StageState, StageStatus
from console.model.verdict import OUT_OF_REACH, Fact, ReasonView, Verdict
from console.severity import Severity

__all__ = [
    "OUT_OF_REACH",
    "Accepted",
    "Ages",
    "CachePlan",
    "Change",
    "Changes",
    "Check",
    "CheckState",
    "ContainerView",
    "Diagnosis",
    "ExitStatus",
    "Fact",
    "Gpu",
    "GpuHolder",
    "GpuNote",
    "GpuPanel",
    "GpuPart",
    "GpuTrouble",
    "LinkState",
    "LinkStatus",
    "Lock",
    "LogState",
    "LogStatus",
    "LostRestart",
    "Overrides",
    "PastRun",
    "Plan",
    "Process",
    "Progress",
    "Queue",
    "Rate",
    "ReasonView",
    "Run",
    "Script",
    "Settings",
    "Severity",
    "Snapshot",
    "Stage",
    "StageState",
    "StageStatus",
    "Verdict",
]
