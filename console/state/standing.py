"""A run that stands for a reason that can be named: suspended, waiting for a download, or finished and not exited.

Each judge returns its finding or None; it is gone as soon as its facts are. Pure.
"""

from __future__ import annotations

from console.model import Fact, Severity
from console.reasons import Reason
from console.state import gpuwork, stall, texts
from console.state.condition import Condition, Health
from console.state.finished import still_waits
from console.state.hostword import has_spawned
from console.state.target import TargetState

TRACED_S = 10.0
"""py-spy and gdb hold a process for moments; only one that is held for longer is suspended."""
STALE_S = 10.0
"""Processes are sampled once a second: what is older says nothing of now."""
EXIT_S = 120.0
"""Saving, uploads and the teardown of eight ranks take their time behind the last step."""
DOWNLOAD_S = 60.0
CALM_CORES = 0.5
"""A process that computes beside a download does something else."""
_MAX_PIDS = 12

_WARNING = Severity.WARNING


# -- suspended ---------------------------------------------------------------------------------------------------------


def suspended(state: TargetState, now: float) -> Health | None:
    """Processes that are stopped by a signal; ones that a debugger holds, when it holds them for long.

    A process of the run other than its main one may be stopped while the steps go on: then that is no matter.
    """
    procs, subject = state.procs, state.subject
    if not procs.stopped or procs.stopped_since_at is None or procs.at is None or now - procs.at > STALE_S:
        return None
    if subject is None or not has_spawned(state):
        return None
    last, since = state.training.last_step_at, procs.stopped_since_at
    if last is not None and last > since + 1.0:
        return None
    main = subject.main
    is_main = main is not None and any((each.pid, each.start) == (main.pid, main.start) for each in procs.stopped)
    if not is_main and state.training.step is not None and not stall.is_overdue(state, now):
        return None
    traced = all(each.state == "t" for each in procs.stopped)
    if traced and now - since < TRACED_S:
        return None
    return _suspended(state, now, traced=traced)


def _suspended(state: TargetState, now: float, *, traced: bool) -> Health:
    procs = state.procs
    stopped = procs.stopped
    for_s = now - procs.stopped_since_at if procs.stop_was_seen and procs.stopped_since_at is not None else None
    pids = " ".join(str(each.pid) for each in stopped[:_MAX_PIDS])
    who = f"pid {pids}" if len(stopped) == 1 else f"{len(stopped)} processes"
    how = "held by a debugger (state t)" if traced else "stopped by a signal (state T: SIGSTOP or Ctrl-Z)"
    step, silent = state.training.step, stall.silent_s(state, now)
    where = f"at step {texts.count(step)}" if step is not None else ""
    if for_s is None and silent is not None:
        where += f", no step for {texts.span(silent)}"
    facts = [
        Fact(label="process", text=f"{each.pid} state {each.state}  {_command(each.argv)}", severity=_WARNING)
        for each in stopped[:3]
    ]
    facts.append(Fact(label="GPUs", text=gpuwork.words(state, gpuwork.work(state, now))))
    more = " ..." if len(stopped) > _MAX_PIDS else ""
    go_on = f"kill -CONT {pids}{more} on the host lets it go on"
    return Health(
        condition=Condition.SUSPENDED,
        reason=Reason.SUSPENDED,
        detail=texts.joined(f"{who} {how}{f' for {texts.span(for_s)}' if for_s is not None else ''}", where),
        facts=tuple(facts),
        brief=f"suspended {texts.span(for_s)}" if for_s is not None else "suspended",
        next=("detach the debugger, or end it",) if traced else (go_on,),
    )


def _command(argv: tuple[str, ...]) -> str:
    text = " ".join(argv)
    return text if len(text) <= 60 else text[:59] + "…"


# -- finished, and still there -----------------------------------------------------------------------------------------


def not_exited(state: TargetState, now: float) -> Health | None:
    """The log's last word is that it is done, and for minutes nothing has come behind that."""
    log, steps = state.log, state.training
    if log.done is None:
        return None
    since = log.grew_at if log.grew_at is not None else log.done_at
    if since is None or now - since < EXIT_S or gpuwork.works_surely(state, now):
        return None
    at = next((i for i, line in enumerate(log.tail) if line.offset == log.done.offset), None)
    waits = still_waits(log.tail, at) if at is not None else None
    facts = [Fact(label="log", text=log.done.text.strip(), severity=_WARNING)]
    if waits is not None:
        facts.append(Fact(label="then", text=waits.text.strip()))
    held = sum(bool(gpu.context) for gpu in state.gpus.event.gpus) if state.gpus.event is not None else 0
    if held:
        facts.append(Fact(label="GPUs", text=f"{held} contexts are still held", severity=_WARNING))
    total = f" of {texts.count(steps.total_steps)}" if steps.total_steps is not None else ""
    detail = texts.joined(
        f"done at step {texts.count(steps.step)}{total}", f"the process is still there after {texts.span(now - since)}"
    )
    return Health(
        condition=Condition.NOT_EXITED,
        reason=Reason.FINISHED_NOT_EXITED,
        detail=detail,
        facts=(*facts, *stall.cpu_fact(state)),
        brief=f"not exited {texts.span(now - since)}",
    )


# -- a download that stands --------------------------------------------------------------------------------------------


def downloading(state: TargetState, now: float) -> Health | None:
    """The newest line shows a download that doesn't move: by its own figures, or since the log is silent."""
    download = state.log.download
    if download is None or state.link.log_lost is not None:
        return None
    if state.training.step is not None and not stall.is_overdue(state, now):
        return None
    silence = stall.log_silence_s(state, now)
    if not download.stands and (silence is None or silence < DOWNLOAD_S):
        return None
    cores = state.procs.event.cpu_cores if state.procs.event is not None else None
    if gpuwork.works_surely(state, now) or (cores is not None and cores > CALM_CORES):
        return None
    silent = f"nothing new for {texts.span(silence)}" if silence is not None and silence >= 2 else ""
    return Health(
        condition=Condition.DOWNLOADING,
        reason=Reason.DOWNLOAD_STALL,
        detail=texts.joined(download.progress, silent),
        facts=(
            Fact(label="log, last line", text=download.line.text.strip(), severity=_WARNING),
            *stall.run_facts(state, now),
        ),
        brief="download stands",
    )
