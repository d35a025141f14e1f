"""What a waiting command line makes of a snapshot: reached, not yet, or never, with its exit code. Pure."""

from __future__ import annotations

from msgspec import Struct

from console.model import OUT_OF_REACH, LinkState, Run, Snapshot, Stage, StageState, StageStatus, Verdict
from console.reasons import Exit, Reason, link_exit_code, reason_of

WANTED_STAGES = {"spawned": Stage.SPAWNED, "cuda": Stage.CUDA, "stepping": Stage.STEPPING}

_FAILED_CODES = {
    Stage.KILLING: Exit.FAILED_KILLING,
    Stage.CACHE: Exit.FAILED_CACHE,
    Stage.SPAWNED: Exit.FAILED_SPAWNED,
    Stage.CUDA: Exit.FAILED_CUDA,
    Stage.STEPPING: Exit.FAILED_STEPPING,
}
_SICK = frozenset({Verdict.SLOW, Verdict.STALLED, Verdict.NAN, Verdict.SPIKE, Verdict.SUSPENDED, Verdict.NOT_EXITED})
_RUNS = _SICK | {Verdict.LAUNCHING, Verdict.STEPPING, Verdict.RUNNING}
_CONDITIONS = {Reason.QUEUE_STARVED: "starved", Reason.RECOMPILE_LIMIT: "recompiles"}


STEADY_S = 600.0
"""So long a run must have made steps before its rate is called steady."""
STEADY_MAD = 0.03
_STEADY_SHARE = 0.95  # the window moves on while the newest step is on its way
_MANY = 1000  # of a quick trainer the newest steps alone are kept
_PROVING_S = 65.0
"""So long a keeper may take after the end of its run to tell what the stop came to: beyond its wait for GPU memory."""


class Outcome(Struct, frozen=True, kw_only=True):
    outcome: str
    """`pending`, `late`, `reached`, `failed`, `ended`, `replaced`, `stopped`, `link` or `nothing`."""
    word: str
    """First word of the line: `OK`, `PENDING`, `LATE`, `FAILED`, `ENDED`, `REPLACED`, `LINK`, `NOTHING`."""
    where: str = ""
    """Second word: a stage, what was wanted."""
    exit_code: Exit = Exit.OK
    """For an outcome that isn't settled: the code if the time is up now."""
    settled: bool = True
    """No further waiting changes it."""
    stage: StageStatus | None = None


def judge(snapshot: Snapshot, wanted: str, *, run_id: str | None = None, since: float | None = None) -> Outcome:
    """Judge whether `wanted` (accepted, spawned, cuda, stepping, exit, free) is reached.

    `run_id`: of this run only. `since`: when that run was asked for; a run accepted earlier isn't its replacement, it
    is only still shown.
    """
    run = snapshot.run
    if snapshot.link.state is LinkState.REFUSED:
        return _link(snapshot, settled=True)
    if snapshot.verdict in OUT_OF_REACH | {Verdict.NO_WORD}:
        return _link(snapshot, settled=False)
    if run is None:
        return _nothing(wanted, run_id, since)
    if run_id is not None and run.id != run_id:
        if since is not None and (run.accepted_at is None or run.accepted_at < since):
            return _pending(snapshot)
        return Outcome(outcome="replaced", word="REPLACED", where=f"by {run.name}", exit_code=Exit.REPLACED)
    if wanted in ("exit", "free"):
        return _gone(snapshot, run, wanted)
    if wanted == "accepted":
        return _ok(snapshot, wanted)
    return _stage(snapshot, run, wanted)


def _nothing(wanted: str, run_id: str | None, since: float | None) -> Outcome:
    if wanted in ("exit", "free") and run_id is None:
        return Outcome(outcome="reached", word="OK", where=wanted)
    if since is not None:
        return Outcome(outcome="pending", word="PENDING", exit_code=Exit.TIMEOUT, settled=False)
    return Outcome(outcome="nothing", word="NOTHING", where="runs", exit_code=Exit.NOTHING_RUNS)


def _stage(snapshot: Snapshot, run: Run, wanted: str) -> Outcome:
    stage = WANTED_STAGES.get(wanted, Stage.STEPPING)
    status = _status(snapshot, stage)
    is_over = snapshot.verdict not in _RUNS
    if not is_over and _is_reached(status) and not _is_open_before(snapshot, stage):
        return _ok(snapshot, wanted, status)
    if not is_over:
        return _pending(snapshot)
    match snapshot.verdict:
        case Verdict.STOPPED:
            by = run.exit.by if run.exit is not None and run.exit.by else run.operator
            where = f"stopped by {by}" if by else "stopped"
            return Outcome(
                outcome="stopped", word="REPLACED", where=where, exit_code=Exit.REPLACED, stage=_last(snapshot)
            )
        case Verdict.ENDED | Verdict.FINISHED:
            return Outcome(outcome="ended", word="ENDED", where=_how(snapshot), exit_code=Exit.ENDED, stage=status)
        case Verdict.HOST_RESTARTED if _status(snapshot, Stage.STEPPING).state is StageState.DONE:
            return Outcome(outcome="ended", word="ENDED", where="stepping", exit_code=Exit.ENDED, stage=status)
        case _:
            return _failed(snapshot)


def _is_reached(status: StageStatus) -> bool:
    """Proved, or not needed; what can't be known is never reached."""
    return status.state in (StageState.DONE, StageState.SKIPPED)


def _is_open_before(snapshot: Snapshot, stage: Stage) -> bool:
    """Whether an earlier stage still waits for its proof: quick first steps can be read before the spawn is proven."""
    earlier = snapshot.stages[: list(Stage).index(stage)]
    return any(s.state in (StageState.PENDING, StageState.ACTIVE, StageState.LATE) for s in earlier)


def _how(snapshot: Snapshot) -> str:
    return "finished" if snapshot.verdict is Verdict.FINISHED else "stepping"


def _gone(snapshot: Snapshot, run: Run, wanted: str) -> Outcome:
    if snapshot.verdict in _RUNS or run.alive:
        return _pending(snapshot)
    if wanted == "free" and (any(gpu.owner == "run" for gpu in snapshot.gpus.gpus) or _is_being_proven(snapshot, run)):
        return _pending(snapshot)
    killing = _status(snapshot, Stage.KILLING)
    if killing.state is StageState.FAILED and run.exit is None:
        return _failed(snapshot)  # a stop that did not succeed
    return _ok(snapshot, wanted, _last(snapshot))


def _is_being_proven(snapshot: Snapshot, run: Run) -> bool:
    """Whether its keeper is still about to tell what was killed and freed: the exit record comes before that."""
    if snapshot.verdict is not Verdict.STOPPED or not run.keeper_alive or run.exit is None or run.exit.at is None:
        return False
    return snapshot.at - run.exit.at < _PROVING_S


def _ok(snapshot: Snapshot, wanted: str, status: StageStatus | None = None) -> Outcome:
    return Outcome(outcome="reached", word="OK", where=wanted, stage=status or _last(snapshot))


def _pending(snapshot: Snapshot) -> Outcome:
    status = _current(snapshot)
    where = str(status.stage) if status is not None else ""
    if status is not None and status.stage is Stage.CUDA and status.want:
        where += f" {status.have or 0}/{status.want}"
    late = status is not None and status.state is StageState.LATE
    return Outcome(
        outcome="late" if late else "pending",
        word="LATE" if late else "PENDING",
        where=where,
        exit_code=Exit.TIMEOUT,
        settled=False,
        stage=status,
    )


def _failed(snapshot: Snapshot) -> Outcome:
    status = _broken(snapshot)
    return Outcome(
        outcome="failed",
        word="FAILED",
        where=str(status.stage),
        exit_code=_FAILED_CODES[status.stage],
        stage=status,
    )


def _link(snapshot: Snapshot, *, settled: bool) -> Outcome:
    return Outcome(
        outcome="link",
        word="LINK",
        where=snapshot.link.reason or "",
        exit_code=link_exit_code(reason_of(snapshot.link.reason)),
        settled=settled,
        stage=_current(snapshot),
    )


def _status(snapshot: Snapshot, stage: Stage) -> StageStatus:
    return next(status for status in snapshot.stages if status.stage is stage)


def _current(snapshot: Snapshot) -> StageStatus | None:
    if snapshot.active_stage is not None:
        return _status(snapshot, snapshot.active_stage)
    return next((s for s in snapshot.stages if s.state in (StageState.ACTIVE, StageState.LATE)), None)


def _last(snapshot: Snapshot) -> StageStatus:
    """The last stage that was reached, else the first."""
    done = [status for status in snapshot.stages if status.state is StageState.DONE]
    return done[-1] if done else snapshot.stages[0]


def _broken(snapshot: Snapshot) -> StageStatus:
    """The stage that an end without steps is put down to."""
    for states in (
        (StageState.FAILED,),
        (StageState.UNKNOWN, StageState.NOT_REACHED, StageState.PENDING, StageState.ACTIVE, StageState.LATE),
    ):
        if (found := next((s for s in snapshot.stages if s.state in states), None)) is not None:
            return found
    return snapshot.stages[-1]


# -- status -----------------------------------------------------------------------------------------------------------


def check_exit_code(snapshot: Snapshot) -> Exit:
    """Exit code of `status --check`: 0 only for a run of which nothing is known to be the matter."""
    match snapshot.verdict:
        case Verdict.LINK_LOST | Verdict.FROZEN | Verdict.NO_WORD:
            return link_exit_code(reason_of(snapshot.link.reason))
        case Verdict.IDLE | Verdict.STOPPED | Verdict.FINISHED:
            return Exit.NOTHING_RUNS
        case Verdict.FAILED | Verdict.INTERRUPTED:
            return _FAILED_CODES[_broken(snapshot).stage]
        case Verdict.ENDED | Verdict.HOST_RESTARTED:
            return Exit.ENDED
        case verdict if verdict in _SICK or snapshot.reason is not None or health_word(snapshot) == "late":
            return Exit.UNHEALTHY
        case Verdict.RUNNING if not snapshot.log.caught_up:
            return Exit.UNHEALTHY  # its log is still being read: that it is well isn't known
        case _:
            return Exit.OK


def health_word(snapshot: Snapshot) -> str:
    """`ok`, or what is the matter, in one word.

    `slow`, `starved`, `recompiles`, `spike`, `nan`, `stalled`, `suspended`, `not_exited`, `unseen` (its steps can't be
    read), `launching`, `late`, `downloading`; `none` (nothing runs) or `unknown`.
    """
    match snapshot.verdict:
        case Verdict.STEPPING:
            return _CONDITIONS.get(reason_of(snapshot.reason.slug), "ok") if snapshot.reason is not None else "ok"
        case verdict if verdict in _SICK:
            return str(verdict)
        case Verdict.RUNNING:
            return "unseen"
        case Verdict.LAUNCHING if snapshot.reason is not None and snapshot.reason.slug == Reason.DOWNLOAD_STALL:
            return "downloading"
        case Verdict.LAUNCHING:
            return "late" if any(status.state is StageState.LATE for status in snapshot.stages) else "launching"
        case Verdict.LINK_LOST | Verdict.FROZEN | Verdict.NO_WORD:
            return "unknown"
        case _:
            return "none"


def is_steady(snapshot: Snapshot) -> bool:
    """Whether the rate of a run may be compared: 10 minutes of steps whose MAD is under 3 % of their median."""
    rate, first_at = snapshot.progress.rate, snapshot.progress.first_step_at
    if not rate.steady or rate.mad is None or rate.covered_s is None:
        return False
    is_covered = rate.covered_s >= _STEADY_SHARE * STEADY_S or (
        rate.n >= _MANY and first_at is not None and snapshot.at - first_at >= STEADY_S
    )
    return is_covered and rate.mad < STEADY_MAD * rate.steady


def towards_steady(snapshot: Snapshot) -> str:
    """Return what is still missing: `4m10s of 10m`, or `MAD 4.1 % of 3 %`."""
    rate, first_at = snapshot.progress.rate, snapshot.progress.first_step_at
    covered_s = rate.covered_s or 0.0
    if rate.n >= _MANY and first_at is not None:
        covered_s = snapshot.at - first_at
    if covered_s < _STEADY_SHARE * STEADY_S:
        return f"{covered_s / 60:.1f} of 10 min"
    share = rate.mad / rate.steady if rate.steady and rate.mad is not None else None
    return f"MAD {share:.1%}, wanted below {STEADY_MAD:.0%}" if share is not None else "no rate is known"
