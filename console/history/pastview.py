"""A run of before as a snapshot: what its ledger row, its curves and its host's record say of it, as of its end.

So every screen can show it as it shows the live one. What nobody noted is unknown, and no advice is given: the run is
over. Pure.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from console.history.comparing import SAMPLED_SHARE
from console.history.entry import Entry, stage_of_launch
from console.history.samples import Curves
from console.history.words import before
from console.model import (
    Ages,
    Changes,
    ExitStatus,
    Fact,
    Gpu,
    GpuPanel,
    LogStatus,
    PastRun,
    Progress,
    Rate,
    ReasonView,
    Run,
    Severity,
    Snapshot,
    Stage,
    StageState,
    StageStatus,
    Verdict,
)
from console.protocol import HostStage, RunRecord
from console.reasons import reason_of
from console.state.changes import changes
from console.state.digest import Bucket, Digest
from console.state.formatrules import Scope
from console.state.reasonview import view
from console.state.series import Series
from console.state.stages import STAGES
from console.state.verdict import FAILURES

_VERDICTS: Final = {
    "stopped": Verdict.STOPPED,
    "finished": Verdict.FINISHED,
    "failed": Verdict.FAILED,
    "interrupted": Verdict.INTERRUPTED,
    "host_restarted": Verdict.HOST_RESTARTED,
}
_RECORDED: Final = {"done": StageState.DONE, "skipped": StageState.SKIPPED, "failed": StageState.FAILED}
_GAP_WIDTHS: Final = 4.0
"""A hole of so many usual distances between buckets is one in which nobody watched."""


def past_snapshot(
    entry: Entry,
    live: Snapshot,
    *,
    curves: Curves = Curves(),  # noqa: B008 - frozen
    older: Sequence[Entry] = (),
    record: RunRecord | None = None,
    log: LogStatus = LogStatus(),  # noqa: B008 - frozen
) -> Snapshot:
    """Return the run as it was at its end. `live`: of the target now; `older`: the runs before it, newest first."""
    verdict = _VERDICTS.get(entry.outcome, Verdict.ENDED)
    ended_at = _ended_at(entry, curves, live)
    age_s = max(0.0, live.at - ended_at)
    return Snapshot(
        target=live.target,
        at=ended_at,
        link=replace(live.link, last_word_at=ended_at if live.link.last_word_at is not None else None),
        verdict=verdict,
        stages=_stages(entry, record, live),
        run=_run(entry, record, live),
        reason=_reason(entry),
        changes=_changes(entry, older) if verdict in FAILURES else None,
        progress=_progress(entry, ended_at, live),
        gpus=_gpus(entry, live),
        log=log,
        ages=Ages(link=live.ages.link, log=age_s, gpu=age_s, process=age_s),
        operator=live.operator,
        read_only=live.read_only,
        color=live.color,
    )


def _at(wall: float | None, live: Snapshot) -> float | None:
    """A time of the host's wall clock on the console's."""
    return None if wall is None else wall - (live.link.clock_offset_s or 0.0)


def first_step_at(entry: Entry, live: Snapshot) -> float | None:
    """When it made its first step; where nobody noted that, its launch stands for it."""
    return _at(entry.first_step_wall if entry.first_step_wall is not None else entry.accepted_wall or None, live)


def _ended_at(entry: Entry, curves: Curves, live: Snapshot) -> float:
    """When it ended, else when it was last heard of."""
    if (ended := _at(entry.ended_wall, live)) is not None:
        return min(ended, live.at)
    first = first_step_at(entry, live)
    if first is None:
        return live.at
    lasted = [digest.middle_s(digest.buckets[-1]) for digest in curves.digests.values() if digest.buckets]
    return min(first + max(lasted, default=entry.lived_s or 0.0), live.at)


def _run(entry: Entry, record: RunRecord | None, live: Snapshot) -> Run:
    recorded = (entry.exit_code, entry.exit_signal, entry.ended_by, entry.lived_s)
    end = None
    if not entry.is_log_only and any(value is not None for value in recorded):
        end = ExitStatus(
            code=entry.exit_code, signal=entry.exit_signal, at=_at(entry.ended_wall, live),
            lived_s=entry.lived_s, by=entry.ended_by,
        )  # fmt: skip
    return Run(
        id=entry.id,
        name=entry.name or entry.id,
        alive=False,
        argv=entry.settings.argv,
        cwd=entry.settings.cwd,
        log_path=entry.log_path,
        operator=entry.operator,
        accepted_at=_at(entry.accepted_wall or None, live),
        launch_s=entry.launch_s,
        replaced=entry.replaced_name or entry.replaced_id,
        exit=end,
        stopped_how=_stopped_how(record),
    )


def _stopped_how(record: RunRecord | None) -> str:
    stop = record.stages.get(Stage.KILLING) if record is not None and record.launch_killing is not None else None
    return (stop.detail or stop.evidence) if stop is not None else ""


def _reason(entry: Entry) -> ReasonView | None:
    if entry.reason is None:
        return None
    noted = (Fact(label="noted", text=entry.detail, severity=Severity.ERROR),) if entry.detail else ()
    return view(reason_of(entry.reason), detail=entry.detail, facts=noted, safe="", next_=())


def _changes(entry: Entry, older: Sequence[Entry]) -> Changes | None:
    then = before(entry, older)
    if then is None or entry.is_log_only:
        return None
    return changes(PastRun(id=then.id, name=then.name or then.id, settings=then.settings, stepped=True), entry.settings)


def _progress(entry: Entry, ended_at: float, live: Snapshot) -> Progress:
    is_bad = entry.loss_state not in (None, "ok")
    return Progress(
        step=entry.last_step,
        total_steps=entry.total_steps,
        first_step_at=first_step_at(entry, live) if entry.stepped else None,
        last_step_at=ended_at if entry.stepped else None,
        loss=entry.last_loss,
        loss_state=entry.loss_state if is_bad else None,
        rate=Rate(
            steady=entry.steady_tok_s, mad=entry.steady_mad, n=entry.steady_n or 0, scope=entry.scope,
            last=entry.steady_tok_s,
        ),
        checkpoint_step=entry.checkpoint_step,
    )  # fmt: skip


def _gpus(entry: Entry, live: Snapshot) -> GpuPanel:
    """What is kept of its GPUs is how much of each it used at most."""
    known = {gpu.index: gpu for gpu in live.gpus.gpus}
    gpus: list[Gpu] = []
    for index in sorted(int(index) for index in entry.peaks if index.isdigit()):
        now = known.get(index, Gpu(index=index))
        gpus.append(
            Gpu(
                index=index, cuda_index=now.cuda_index, name=now.name, uuid=now.uuid, role=now.role,
                total_bytes=now.total_bytes, peak_bytes=entry.peaks[str(index)],
                owner_why="of a past run only the peaks are kept",
            )
        )  # fmt: skip
    why = "" if gpus else "nothing was kept of the GPUs of this run"
    return GpuPanel(source=live.gpus.source if gpus else "unknown", why=why, gpus=tuple(gpus), is_kept=True)


def with_last_gpus(past: Snapshot, rows: Sequence[Sequence[int | None]], held: Sequence[int], at: float) -> Snapshot:
    """Return the run with the last sample of its GPUs as its keeper noted it: index, bytes, percent, mW, degrees."""
    panel = past.gpus
    known = {gpu.index: gpu for gpu in panel.gpus}
    gpus = dict(known)
    for row in rows:
        index, used, util, power_mw, heat = (*row, *[None] * 5)[:5]
        if index is None or index not in held:
            continue
        gpus[index] = replace(
            known.get(index, Gpu(index=index)), used_bytes=used, util_pct=util, temperature_c=heat,
            power_w=power_mw / 1000 if power_mw is not None else None, owner="run", context=True, owner_why="",
        )  # fmt: skip
    contexts = tuple(sorted(held))
    return replace(
        past,
        gpus=replace(
            panel, gpus=tuple(gpus[index] for index in sorted(gpus)), contexts=contexts, why="", at=min(at, past.at)
        ),
    )


# -- stages -----------------------------------------------------------------------------------------------------------


def _stages(entry: Entry, record: RunRecord | None, live: Snapshot) -> tuple[StageStatus, ...]:
    took = {
        Stage.KILLING: entry.killing_s,
        Stage.CACHE: entry.cache_s,
        Stage.SPAWNED: entry.spawned_s,
        Stage.CUDA: entry.cuda_s,
        Stage.STEPPING: entry.stepping_s,
    }
    found: list[StageStatus] = []
    over = False
    ended_at = _seen_at(entry, live)
    for stage in STAGES:
        noted = stage_of_launch(record, stage) if record is not None else None
        state = StageState.NOT_REACHED if over else _state(entry, stage, took[stage], noted)
        over = over or state is StageState.FAILED
        noted_at = _at(noted.ended_wall, live) if noted is not None else None
        found.append(
            StageStatus(
                stage=stage,
                state=state,
                took_s=took[stage] if state is StageState.DONE else None,
                ended_at=None if over else noted_at if noted_at is not None else ended_at.get(stage),
                evidence=noted.evidence if noted is not None else "",
                detail=noted.detail if noted is not None else "",
                why=noted.why if noted is not None else "",
                reason=entry.reason if state is StageState.FAILED else None,
                noted=noted is not None,
            )
        )
    return tuple(found)


def _seen_at(entry: Entry, live: Snapshot) -> dict[Stage, float]:
    """When the stages ended that consoles see and keepers don't note: back from the first step."""
    found: dict[Stage, float] = {}
    at = _at(entry.first_step_wall, live)
    for stage, took_s in (
        (Stage.STEPPING, entry.stepping_s),
        (Stage.CUDA, entry.cuda_s),
        (Stage.SPAWNED, entry.spawned_s),
    ):
        if at is None:
            break
        found[stage] = at
        at = at - took_s if took_s is not None else None
    return found


def _state(entry: Entry, stage: Stage, took_s: float | None, noted: HostStage | None) -> StageState:
    if entry.failed_stage == stage:
        return StageState.FAILED
    if noted is not None and noted.state in _RECORDED:
        return _RECORDED[noted.state]
    if took_s is not None or (stage is Stage.STEPPING and entry.stepped):
        return StageState.DONE
    return StageState.UNKNOWN


# -- curves -----------------------------------------------------------------------------------------------------------


def past_series(entry: Entry, curves: Curves, live: Snapshot) -> Mapping[str, Series]:
    """Return the curves of the steps as series, in the names that a live run's have."""
    first = first_step_at(entry, live)
    if first is None:
        return {}
    scope = next((str(each) for each in Scope if each == entry.scope), None)
    return {
        name: _series(curves.digests[name], first, scope if name == "tok_s" else None, is_sampled=entry.is_log_only)
        for name in ("tok_s", "loss", "queue")
        if name in curves.digests and curves.digests[name].buckets
    }


def _series(digest: Digest, first_at: float, scope: str | None, *, is_sampled: bool) -> Series:
    """Draw of each bucket the lowest and the highest: a dip of one step is still seen.

    `is_sampled`: of a log that was read in places, which are joined.
    """
    series = Series(finds_silence=False)
    buckets = digest.buckets
    steps = sorted(b.index - a.index for a, b in itertools.pairwise(buckets))
    hole = _GAP_WIDTHS * (steps[len(steps) // 2] if steps else 1)
    if is_sampled and buckets:
        hole = max(hole, SAMPLED_SHARE * (buckets[-1].index + 1))
    last: Bucket | None = None
    for bucket in buckets:
        if last is not None and bucket.index - last.index > hole:
            series.gap()
        at = first_at + digest.middle_s(bucket)
        for value in (bucket.low, bucket.high) if bucket.n > 1 else (bucket.mean,):
            series.add(at, value, bucket.step, scope)
        last = bucket
    return series
