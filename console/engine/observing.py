"""What a snapshot proves of its run beyond the keeper's record, for the ledger. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from console.history.entry import Observed
from console.model import Progress, Snapshot, Stage, StageState, Verdict

_OVER = frozenset(
    {
        Verdict.FAILED,
        Verdict.ENDED,
        Verdict.FINISHED,
        Verdict.STOPPED,
        Verdict.INTERRUPTED,
        Verdict.HOST_RESTARTED,
    }
)
_PROGRESS = (
    "last_step", "total_steps", "steady_tok_s", "steady_mad", "steady_n", "scope", "last_loss", "checkpoint_step",
    "queue_empty_pct", "queue_full_pct", "peaks",
)  # fmt: skip
"""What goes on changing while all is well."""


def observed(snapshot: Snapshot) -> Observed:
    """Return what a snapshot proves of its run beyond the keeper's record.

    Nothing of how far it came while its log is still being read: the row would fall back behind what is known.
    """
    run, progress = snapshot.run, snapshot.progress if not snapshot.log.unread else Progress()
    rate, queue = progress.rate, progress.queue
    alive = run is not None and run.alive is True
    stages = {status.stage: status for status in snapshot.stages}
    stepping = stages.get(Stage.STEPPING)
    stepped = stepping is not None and stepping.state is StageState.DONE
    failed = next((status.stage for status in snapshot.stages if status.state is StageState.FAILED), None)
    over = snapshot.verdict in _OVER
    reason = snapshot.reason if over else None
    first_at = progress.first_step_at if stepped else None
    return Observed(
        stepped=stepped,
        stepping_s=stepping.took_s if stepping is not None and stepped else None,
        launch_s=run.launch_s if run is not None else None,
        first_step_wall=None if first_at is None else first_at + (snapshot.link.clock_offset_s or 0.0),
        last_step=progress.step if stepped else None,
        total_steps=progress.total_steps,
        # Of a run that is over the last 10 minutes would lead into nothing; what was noted while it lived stays.
        steady_tok_s=rate.steady if alive else None,
        steady_mad=rate.mad if alive and rate.steady is not None else None,
        steady_n=rate.n if alive and rate.steady is not None else None,
        scope=rate.scope,
        last_loss=progress.loss,
        loss_state=progress.loss_state or ("ok" if progress.loss is not None else None),
        checkpoint_step=progress.checkpoint_step,
        queue_empty_pct=queue.empty_pct if queue is not None and alive else None,
        queue_full_pct=queue.full_pct if queue is not None and alive else None,
        peaks={str(gpu.index): gpu.peak_bytes for gpu in snapshot.gpus.gpus if gpu.peak_bytes and gpu.owner == "run"},
        outcome=str(snapshot.verdict) if over else None,
        failed_stage=str(failed) if failed is not None and over else None,
        reason=reason.slug if reason is not None else None,
        detail=reason.detail if reason is not None else "",
    )


def is_progress_alone(before: Observed, now: Observed) -> bool:
    """Whether nothing but numbers has changed that change all the time."""
    return replace(now, **{name: getattr(before, name) for name in _PROGRESS}) == before
