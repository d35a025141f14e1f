"""The verdicts of a run that is over: failed, ended, finished, stopped, interrupted, lost with its host. Pure."""

from __future__ import annotations

from console.model import Snapshot, StageState
from console.ui.present import words
from console.ui.present.facts import (
    VerdictFacts,
    exit_words,
    free_fact,
    gpus_caption,
    gpus_in_use,
    queue_and_checkpoint,
    status_words,
)
from console.ui.present.look import Look


def failed(snapshot: Snapshot, look: Look) -> VerdictFacts:
    stage = next((s for s in snapshot.stages if s.state is StageState.FAILED), None)
    at = f"at {stage.stage.label}" if stage is not None else "in launch"
    reason = snapshot.reason
    how = exit_words(snapshot)
    cause = ""
    if reason is not None:
        cause = words.one_line(reason.detail or reason.title)
    elif stage is not None:
        cause = words.one_line(stage.why)
    return VerdictFacts(
        word="FAILED", glyph=look.glyphs.fail, fill="fail", first=(at, how), cause=cause,
        number=gpus_in_use(snapshot), caption=gpus_caption(snapshot), short_caption=gpus_caption(snapshot),
    )  # fmt: skip


def ended(snapshot: Snapshot, look: Look) -> VerdictFacts:
    run, progress = snapshot.run, snapshot.progress
    end = run.exit if run is not None else None
    after = f" after {words.short_duration(end.lived_s)}" if end is not None and end.lived_s is not None else ""
    at = f"at step {words.count(progress.step)}{after}" if progress.step is not None else f"ended{after}"
    reason = snapshot.reason
    # Of a run of before nothing may speak of a failure: nobody noted how it ended, or it ended with 0.
    is_calm = reason is None and (end is None or (end.code is None and end.signal is None) or end.code == 0)
    glyph = look.glyphs.fail if not is_calm else look.glyphs.idle if end is not None else look.glyphs.unknown
    return VerdictFacts(
        word="ENDED", glyph=glyph, fill=None if is_calm else "fail",
        first=(at, status_words(end) if end is not None else "how it ended was not recorded"),
        cause=words.one_line(reason.detail or reason.title) if reason else "",
        number=words.count(progress.step), caption="last step", short_caption="last step",
    )  # fmt: skip


def finished(snapshot: Snapshot, look: Look) -> VerdictFacts:
    progress, end = snapshot.progress, snapshot.run.exit if snapshot.run is not None else None
    total = f" of {words.count(progress.total_steps)}" if progress.total_steps is not None else ""
    return VerdictFacts(
        word="FINISHED", glyph=look.glyphs.idle,
        first=(
            f"{words.count(progress.step)}{total} steps",
            status_words(end) if end is not None else "",
            words.clock(end.at, look.zone, seconds=False) if end is not None and end.at is not None else "",
        ),
        second=(*queue_and_checkpoint(snapshot), free_fact(snapshot)),
        number=words.count(progress.step), caption="steps", short_caption="steps",
    )  # fmt: skip


def stopped(snapshot: Snapshot, look: Look) -> VerdictFacts:
    run = snapshot.run
    end = run.exit if run is not None else None
    by = (end.by if end is not None else None) or (run.stopping_by if run is not None else None)
    who = f"by {by}" if by else "stopped"
    when = f" at {words.clock(end.at, look.zone, seconds=False)}" if end is not None and end.at is not None else ""
    killing = snapshot.stages[0]
    how = run.stopped_how if run is not None else ""
    if not how and killing.state is StageState.DONE:
        how = killing.detail or killing.evidence
    at = f"at step {words.count(snapshot.progress.step)}" if snapshot.progress.step is not None else ""
    return VerdictFacts(
        word="STOPPED",
        glyph=look.glyphs.idle,
        first=(f"{who}{when}", words.one_line(how), at),
        second=(free_fact(snapshot),),
    )


def interrupted(snapshot: Snapshot, look: Look) -> VerdictFacts:
    stage = next((s for s in snapshot.stages if s.state in (StageState.FAILED, StageState.UNKNOWN)), None)
    reason = snapshot.reason
    return VerdictFacts(
        word="INTERRUPTED", glyph=look.glyphs.fail, fill="fail",
        first=("its keeper was lost in the middle of the transaction", f"at {stage.stage.label}" if stage else ""),
        cause=words.one_line(reason.detail) if reason else "",
        number=gpus_in_use(snapshot), caption=gpus_caption(snapshot), short_caption=gpus_caption(snapshot),
    )  # fmt: skip


def host_restarted(snapshot: Snapshot, look: Look) -> VerdictFacts:
    up = (
        f"up since {words.clock(snapshot.host_started_at, look.zone, seconds=False)}"
        if snapshot.host_started_at
        else ""
    )
    gone = f"{words.one_line(snapshot.run.name)} is gone, it did not exit by itself" if snapshot.run is not None else ""
    return VerdictFacts(
        word="HOST RESTARTED", glyph=look.glyphs.fail, fill="fail",
        first=(f"boot id changed{', ' if up else ''}{up}",), second=(gone,),
    )  # fmt: skip
