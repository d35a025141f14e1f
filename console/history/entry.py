"""One run as the ledger keeps it, made from the host's record and from what the console itself observed. Pure.

The record says what the keeper did; that steps were seen, when, and why a run ended the way it did is known to the
console that watched it. What was observed once is not taken back by somebody who did not watch.
"""

from __future__ import annotations

from msgspec import Struct

from console.model import Settings, Stage
from console.protocol import HostStage, RunRecord
from console.reasons import Reason
from console.state.changes import settings_of

CLEARED, KEPT = "cleared", "kept"
LOG_ONLY = "log_only"
_TRANSIT = frozenset({"accepted", "killing", "cache", "spawned"})
_ENDINGS = frozenset({"ended", "stopped", "failed", "interrupted"})


class Achieved(Struct, frozen=True, kw_only=True):
    """What a run came to, as far as somebody saw it."""

    stepped: bool = False
    stepping_s: float | None = None
    launch_s: float | None = None
    first_step_wall: float | None = None
    first_step: int | None = None
    last_step: int | None = None
    total_steps: int | None = None
    steady_tok_s: float | None = None
    steady_mad: float | None = None
    steady_n: int | None = None
    scope: str | None = None
    last_loss: float | None = None
    loss_state: str | None = None
    checkpoint_step: int | None = None
    queue_empty_pct: float | None = None
    queue_full_pct: float | None = None
    peaks: dict[str, int] = {}
    """GPU index -> the most bytes that were used while it lived; JSON in the ledger."""
    failed_stage: str | None = None
    reason: str | None = None
    detail: str = ""


class Observed(Achieved, frozen=True, kw_only=True):
    """What a console saw of one run beyond its record."""

    outcome: str | None = None


class Entry(Achieved, frozen=True, kw_only=True):
    """A row. Field names are the columns; `settings` is JSON there."""

    id: str
    name: str = ""
    operator: str = ""
    origin: str = ""
    note: str = ""
    boot: str = ""
    accepted_wall: float = 0.0
    ended_wall: float | None = None
    state: str = ""
    is_over: bool = False
    cache: str | None = None
    killing_s: float | None = None
    cache_s: float | None = None
    spawned_s: float | None = None
    cuda_s: float | None = None
    is_judged: bool = False
    """A console that watched says how it ended; else the record alone does."""
    outcome: str = "launching"
    """launching | running | failed | ended | finished | stopped | interrupted | host_restarted | log_only"""
    exit_code: int | None = None
    exit_signal: int | None = None
    ended_by: str | None = None
    lived_s: float | None = None
    settings: Settings = Settings()
    log_path: str | None = None
    replaced_id: str | None = None
    replaced_name: str | None = None
    seq: int = 0
    """Of its last change; the ledger counts."""
    annotation: str | None = None
    """The operator's own note; only `Ledger.annotate` writes it."""
    log_size: int | None = None
    log_mtime: float | None = None

    @property
    def is_log_only(self) -> bool:
        """Nothing but its log is known of it."""
        return self.outcome == LOG_ONLY

    @property
    def made_no_step(self) -> bool:
        """It is over, and whoever would have seen a step, the console that watched it or its log, tells of none."""
        looked = self.is_judged or self.failed_stage is not None or bool(self.log_size)
        # That no line of a log was understood does not say that it made no step.
        understood = not self.is_log_only and self.reason != Reason.FORMAT_UNKNOWN
        return self.is_over and not self.stepped and looked and understood

    @property
    def remark(self) -> str:
        """What operators wrote: the newer note, else the one that the run was asked for with."""
        return self.note if self.annotation is None else self.annotation


class Runs(Struct, frozen=True, kw_only=True):
    """The runs that are known, newest first."""

    rows: tuple[Entry, ...] = ()
    seq: int = 0
    """Of the last change among them: ask for what is newer with it."""
    logs_read: bool = True
    """Logs of which no run is known were looked at; until then there may be more."""
    unwritten: str = ""
    """Why what is known beyond these rows could not be noted: the ledger can be read, and not written."""
    unread: frozenset[str] = frozenset()
    """Ids of runs that are over and whose logs and keepers' notes are still to be read: they may have done more than
    their rows tell."""


def is_launch(record: RunRecord) -> bool:
    """Whether a keeper has taken it as a launch: stops are no runs, and what was refused touched nothing."""
    return record.action == "restart" and record.state not in ("", "refused")


def entry(record: RunRecord, observed: Observed | None = None) -> Entry:
    """Return a record's row."""
    seen = observed or Observed()
    end = record.exit
    failed = next((name for name, stage in record.stages.items() if stage.state == "failed"), None)
    return Entry(
        id=record.id,
        name=record.name,
        operator=record.operator,
        origin=record.origin,
        note=record.note,
        boot=record.boot,
        accepted_wall=record.accepted_wall,
        ended_wall=end.ended_wall if end is not None else None,
        state=record.state,
        is_over=end is not None or record.state in _ENDINGS,
        cache=cache_kind(record),
        killing_s=_took_s(stage_of_launch(record, Stage.KILLING)),
        cache_s=_took_s(record.stages.get(Stage.CACHE)),
        spawned_s=_took_s(record.stages.get(Stage.SPAWNED)),
        cuda_s=_cuda_s(record),
        stepping_s=seen.stepping_s,
        stepped=seen.stepped,
        launch_s=seen.launch_s,
        first_step_wall=seen.first_step_wall,
        last_step=seen.last_step,
        is_judged=seen.outcome is not None,
        outcome=seen.outcome or _outcome(record),
        failed_stage=seen.failed_stage or failed,
        reason=seen.reason or record.reason,
        detail=seen.detail or record.detail,
        exit_code=end.code if end is not None else None,
        exit_signal=end.signal if end is not None else None,
        ended_by=end.by if end is not None else None,
        lived_s=end.lived_s if end is not None else None,
        settings=settings_of(record),
        log_path=record.log.path if record.log is not None else None,
        replaced_id=record.replaced_id,
        replaced_name=record.replaced_name,
        first_step=seen.first_step,
        total_steps=seen.total_steps,
        steady_tok_s=seen.steady_tok_s,
        steady_mad=seen.steady_mad,
        steady_n=seen.steady_n,
        scope=seen.scope,
        last_loss=seen.last_loss,
        loss_state=seen.loss_state,
        checkpoint_step=seen.checkpoint_step,
        queue_empty_pct=seen.queue_empty_pct,
        queue_full_pct=seen.queue_full_pct,
        peaks=_higher(record.gpu_peak, seen.peaks),
    )


def _higher(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    return {index: max(a.get(index, 0), b.get(index, 0)) for index in sorted(a.keys() | b.keys())}


def cache_kind(record: RunRecord) -> str | None:
    """Return `cleared` or `kept`. Nothing there to clear is a start without a cache, too."""
    stage = record.stages.get(Stage.CACHE)
    if stage is not None and stage.state == "done":
        return CLEARED
    if record.keep_cache is not None:
        return KEPT if record.keep_cache else CLEARED
    if stage is not None and stage.state == "skipped":  # a record that doesn't say what was asked for
        return CLEARED if stage.why == "nothing to clear" else KEPT
    return None


def stage_of_launch(record: RunRecord, stage: Stage) -> HostStage | None:
    """Return what the keeper noted of a stage of the launch; of a run that was stopped, killing is its own end."""
    if stage is Stage.KILLING and record.launch_killing is not None:
        return record.launch_killing
    return record.stages.get(stage)


def _took_s(stage: HostStage | None) -> float | None:
    if stage is None or stage.state != "done" or stage.began_bt is None or stage.ended_bt is None:
        return None
    return max(0.0, stage.ended_bt - stage.began_bt)


def _cuda_s(record: RunRecord) -> float | None:
    """From spawned to the last context, as the rail counts it."""
    spawned = record.stages.get(Stage.SPAWNED)
    complete = record.cuda.complete_bt if record.cuda is not None else None
    if complete is None or spawned is None or spawned.state != "done" or spawned.ended_bt is None:
        return None
    return max(0.0, complete - spawned.ended_bt)


def _outcome(record: RunRecord) -> str:
    end = record.exit
    if record.state in ("failed", "interrupted", "stopped"):
        return record.state
    if end is not None:
        return "stopped" if end.by else "ended"
    if record.state == "ended":
        return "ended"
    return "launching" if record.state in _TRANSIT else "running"
