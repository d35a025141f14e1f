"""Everything a face needs to know about one target at one moment."""

from __future__ import annotations

from msgspec import Struct

from console.model.gpus import GpuPanel
from console.model.link import Ages, ContainerView, LinkStatus
from console.model.log import LogStatus
from console.model.progress import Progress
from console.model.run import Lock, LostRestart, Process, Run
from console.model.settings import Changes, PastRun
from console.model.stages import Stage, StageStatus
from console.model.verdict import ReasonView, Verdict


class Snapshot(Struct, frozen=True, kw_only=True):
    """Everything a face needs to know about one target at one moment."""

    schema: int = 1
    target: str
    at: float
    link: LinkStatus
    verdict: Verdict
    stages: tuple[StageStatus, ...]
    """Always the five stages in order."""
    active_stage: Stage | None = None
    run: Run | None = None
    last_known: Verdict | None = None
    """With the link lost: the verdict before that."""
    reason: ReasonView | None = None
    warnings: tuple[ReasonView, ...] = ()
    lost_restart: LostRestart | None = None
    usual_launches: int = 0
    """How many past launches of this kind, the cache cleared or kept, the usual times are from."""
    good: PastRun | None = None
    """The last run before this one that reached stepping, as far as the console knows of it."""
    changes: Changes | None = None
    """After a failure: what differs from `good`."""
    progress: Progress = Progress()
    gpus: GpuPanel = GpuPanel()
    container: ContainerView | None = None
    """None: nobody looks from the host itself, since there is no container or none is wanted."""
    log: LogStatus = LogStatus()
    processes: tuple[Process, ...] = ()
    lock: Lock | None = None
    ages: Ages = Ages()
    operator: str = ""
    read_only: bool = False
    host_started_at: float | None = None
    color: str | None = None
    """The target's accent from the config (`red` marks production)."""

    @property
    def run_id(self) -> str | None:
        return self.run.id if self.run is not None else None

    @property
    def steps_at_stake(self) -> int | None:
        """Steps since the last checkpoint, which a stop now would lose; None where a live run's newest isn't known."""
        if self.run is None or not self.run.alive or self.progress.step is None or self.log.unread:
            return None
        return self.progress.step - (self.progress.checkpoint_step or 0)
