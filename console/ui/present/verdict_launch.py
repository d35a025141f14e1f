"""The verdict while a launch is under way: where it is, and how long it will take. Pure."""

from __future__ import annotations

from console.model import Snapshot, Stage, StageState, StageStatus
from console.ui.present import words
from console.ui.present.facts import (
    VerdictFacts,
    active_stage,
    elapsed_s,
    is_stopping,
    launch_began,
)
from console.ui.present.look import Look

_STAGE_WORDS = {
    Stage.KILLING: "KILLING",
    Stage.CACHE: "CLEARING",
    Stage.SPAWNED: "SPAWNED",
    Stage.CUDA: "CUDA",
    Stage.STEPPING: "FIRST STEP",
}


def launching(snapshot: Snapshot, look: Look) -> VerdictFacts:
    stage = active_stage(snapshot)
    if stage is None:
        return VerdictFacts(word="LAUNCHING", glyph=look.glyphs.active, fill="busy", first=("accepted by the keeper",))
    if is_stopping(snapshot):
        return _stopping(snapshot, stage, look)
    word = _STAGE_WORDS[stage.stage]
    if stage.stage is Stage.CUDA and stage.want:
        word = f"CUDA {stage.have or 0}/{stage.want}"
    spent = elapsed_s(stage, snapshot.at)
    usual = f", usually {words.short_duration(stage.usual_s)}" if stage.usual_s is not None else ""
    if stage.state is StageState.LATE and stage.longest_s is not None:
        usual += f", longest {words.short_duration(stage.longest_s)}"
    took = f"{words.whole_duration(spent)}{usual}" if spent is not None else ""
    if stage.state is StageState.LATE or snapshot.reason is not None:
        number, caption = _overdue(stage, spent)
        return VerdictFacts(
            word=word, glyph=look.glyphs.warn, fill="warn", first=(stage.stage.label, took),
            second=_late_facts(snapshot, stage), number=number, caption=caption, short_caption="late" if number else "",
        )  # fmt: skip
    position = list(Stage).index(stage.stage) + 1
    number, caption, short = _estimate(snapshot)
    return VerdictFacts(
        word=word, glyph=look.glyphs.active, fill="busy", first=(f"{stage.stage.label}, stage {position} of 5", took),
        second=_launch_now(snapshot, stage), number=number, caption=caption, short_caption=short,
    )  # fmt: skip


def _stopping(snapshot: Snapshot, stage: StageStatus, look: Look) -> VerdictFacts:
    """A stop is killing and nothing else: no stage 1 of 5, no time to a first step."""
    spent = elapsed_s(stage, snapshot.at)
    late = stage.state is StageState.LATE
    at = f"at step {words.count(snapshot.progress.step)}" if snapshot.progress.step is not None else ""
    number, caption = _overdue(stage, spent) if late else ("", "")
    return VerdictFacts(
        word="STOPPING", glyph=look.glyphs.warn if late else look.glyphs.active, fill="warn" if late else "busy",
        first=("killing", at), second=_late_facts(snapshot, stage) if late else _launch_now(snapshot, stage),
        number=number or (words.tight_duration(spent) if spent is not None else ""),
        caption=caption or "since it was asked to stop", short_caption="late" if late else "so far",
    )  # fmt: skip


def _launch_now(snapshot: Snapshot, stage: StageStatus) -> tuple[str, ...]:
    facts = []
    if snapshot.progress.phase and not is_stopping(snapshot):
        facts.append(f"now: {words.one_line(snapshot.progress.phase)}")
    if stage.missing_parts:
        facts.append(f"no context yet: {words.parts(stage.missing_parts)}")
    elif stage.missing:
        facts.append(f"no context yet: GPU {words.ranges(stage.missing)}")
    if not facts and stage.evidence:
        facts.append(f"now: {words.one_line(stage.evidence)}")
    if not facts and stage.why:
        facts.append(words.one_line(stage.why))
    return tuple(facts)


def _late_facts(snapshot: Snapshot, stage: StageStatus) -> tuple[str, ...]:
    if snapshot.reason is not None and snapshot.reason.detail:
        return (words.one_line(snapshot.reason.detail),)
    facts = []
    if stage.missing_parts:
        facts.append(f"{words.parts(stage.missing_parts)} without a context")
    elif stage.missing:
        facts.append(f"GPU {words.ranges(stage.missing)} hold no context")
    if snapshot.log.grew_at is not None:
        facts.append(f"log silent {words.whole_duration(snapshot.at - snapshot.log.grew_at)}")
    return tuple(facts) or (words.one_line(stage.why or stage.evidence),)


def _overdue(stage: StageStatus, spent: float | None) -> tuple[str, str]:
    if spent is not None and stage.usual_s is not None and spent > stage.usual_s:
        return f"+{words.tight_duration(spent - stage.usual_s)}", "over the usual time"
    if spent is not None and stage.deadline_s is not None and spent > stage.deadline_s:
        return f"+{words.tight_duration(spent - stage.deadline_s)}", "over the deadline"
    return "", ""


def _estimate(snapshot: Snapshot) -> tuple[str, str, str]:
    """Return number, caption and short caption: time to the first step, else the time spent."""
    left = 0.0
    for stage in snapshot.stages:
        if stage.state in (StageState.DONE, StageState.SKIPPED, StageState.UNKNOWN):
            continue  # of what can't be observed no end can be waited for
        if stage.usual_s is None:
            break
        left += max(0.0, stage.usual_s - (elapsed_s(stage, snapshot.at) or 0.0))
    else:
        launches = f" ({words.launches(snapshot.usual_launches)})"
        return f"~{words.tight_duration(left)}", f"to the first step{launches}", "to go"
    began = launch_began(snapshot)
    if began is None:
        return "", "", ""
    return words.tight_duration(snapshot.at - began), "since it was accepted", "so far"
