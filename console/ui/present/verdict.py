"""The verdict: a glyph, a word, at most one number, and two lines of facts; then what is safe and what comes next.

`verdict_facts` says what is to be said, whatever the size; `draw` lays it out. Pure.
"""

from __future__ import annotations

import os.path

from msgspec import Struct

from console.model import ExitStatus, LinkState, Severity, Snapshot, Stage, StageState, StageStatus, Verdict
from console.ui.present import words
from console.ui.present.look import VERDICT_WORDS, Look
from console.ui.present.spans import Role


class VerdictFacts(Struct, frozen=True, kw_only=True):
    """What the verdict says, before any layout."""

    word: str
    glyph: str
    role: Role = Role.TEXT
    fill: str | None = None
    """`fail`, `warn`, `busy`, `link`, or None for calm."""
    name: str = ""
    chips: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    second: tuple[str, ...] = ()
    cause: str = ""
    """The first-cause line: stands in place of `second`, wraps and is never cut."""
    number: str = ""
    caption: str = ""
    short_caption: str = ""
    safe: str = ""
    next: tuple[str, ...] = ()


_STAGE_WORDS = {
    Stage.KILLING: "KILLING",
    Stage.CACHE: "CLEARING",
    Stage.SPAWNED: "SPAWNED",
    Stage.CUDA: "CUDA",
    Stage.STEPPING: "FIRST STEP",
}
_INTERPRETERS = ("python", "bash", "sh", "dash", "zsh", "env", "torchrun", "nohup", "stdbuf")


def verdict_facts(snapshot: Snapshot, look: Look) -> VerdictFacts:
    """Return what the screen says first about one snapshot."""
    facts = _TABLE[snapshot.verdict](snapshot, look)
    reason = snapshot.reason
    if facts.fill in ("fail", "warn", "link") and reason is not None:
        facts = _with(facts, safe=facts.safe or words.one_line(reason.safe), next=facts.next or _lines(reason.next))
    return _with(facts, name=_name(snapshot), chips=_chips(snapshot))


def _with(facts: VerdictFacts, **changes: object) -> VerdictFacts:
    return VerdictFacts(**{name: changes.get(name, getattr(facts, name)) for name in facts.__struct_fields__})  # type: ignore[arg-type]


def _lines(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(words.one_line(text) for text in texts)


def _name(snapshot: Snapshot) -> str:
    return words.one_line(snapshot.run.name) if snapshot.run is not None else snapshot.target


def _chips(snapshot: Snapshot) -> tuple[str, ...]:
    run = snapshot.run
    chips: list[str] = []
    if run is not None and run.stopping_by and run.alive:
        chips.append(f"{run.stopping_by} stops it")
    if run is not None and run.by_hand:
        chips.append("started by hand")
    elif run is not None and run.keeper_alive is False and run.alive:
        chips.append("! no keeper: its exit status can not be recorded any more")
    if snapshot.lock is not None and not snapshot.lock.mine and snapshot.verdict is Verdict.LAUNCHING:
        chips.append(f"by {snapshot.lock.operator}")
    return tuple(chips)


# --- one function a verdict ------------------------------------------------------------------------------------------


def _no_word(snapshot: Snapshot, look: Look) -> VerdictFacts:
    link = snapshot.link
    where = words.one_line(link.label)
    if link.state is LinkState.UP:
        return VerdictFacts(
            word="NO WORD YET", glyph=look.glyphs.unknown, role=Role.DIM,
            first=(f"connected to {where}" if where else "connected",), second=("waiting for the host's first report",),
        )  # fmt: skip
    attempt = f"attempt {link.attempt}" if link.attempt > 1 else ""
    return VerdictFacts(
        word="CONNECTING", glyph=look.glyphs.unknown, role=Role.DIM,
        first=(f"to {where}" if where else "to the host", attempt),
        second=("nothing is known of the run yet",), cause=words.one_line(link.detail),
    )  # fmt: skip


def _link_lost(snapshot: Snapshot, look: Look) -> VerdictFacts:
    link = snapshot.link
    never = link.last_word_at is None
    why = words.one_line(link.detail) or (snapshot.reason.title if snapshot.reason else "the host does not answer")
    retry = _retry(snapshot)
    known = snapshot.last_known
    last: tuple[str, ...] = ()
    if known is not None and not never:
        last = (f"last known: {VERDICT_WORDS[known]}", *_progress_facts(snapshot))
    safe = "the run does not need this link; a restart under way goes on by itself."
    following = "c tries again." if link.state is LinkState.REFUSED else "c retries now."
    return VerdictFacts(
        word="NO LINK" if never else "LINK LOST", glyph=look.glyphs.unknown, fill="link",
        first=(why, retry), second=last if last else ("nothing was heard of this host yet",),
        number=words.tight_duration(snapshot.at - link.last_word_at) if link.last_word_at is not None else "",
        caption="" if never else "since the last word", short_caption="" if never else "old", safe=safe,
        next=_lines(snapshot.reason.next) if snapshot.reason and snapshot.reason.next
        else (following if never else f"{following} Everything below is as old as it says.",),
    )  # fmt: skip


def _retry(snapshot: Snapshot) -> str:
    link = snapshot.link
    if link.state is LinkState.REFUSED:
        return "not retried by itself"
    if link.retry_at is None:
        return f"attempt {link.attempt} now" if link.attempt else "retrying"
    return f"attempt {max(1, link.attempt)} in {words.whole_duration(link.retry_at - snapshot.at)}"


def _progress_facts(snapshot: Snapshot) -> tuple[str, ...]:
    progress = snapshot.progress
    facts = []
    if progress.step is not None:
        facts.append(f"step {words.count(progress.step)}")
    if progress.rate.now is not None:
        facts.append(f"{words.rate(progress.rate.now)} tok/s")
    return tuple(facts)


def _idle(snapshot: Snapshot, look: Look) -> VerdictFacts:
    run = snapshot.run
    last = ""
    if run is not None:
        end = run.exit
        how = f", stopped by {end.by}" if end is not None and end.by else ""
        when = f" {words.clock(end.at, look.zone, seconds=False)}" if end is not None and end.at else ""
        last = f"last: {words.one_line(run.name)}{how}{when}"
    return VerdictFacts(
        word="IDLE", glyph=look.glyphs.idle, first=("nothing runs", last), second=(_free_fact(snapshot),),
        number=_gpus_in_use(snapshot), caption="GPUs in use", short_caption="GPUs in use",
    )  # fmt: skip


def _launching(snapshot: Snapshot, look: Look) -> VerdictFacts:
    stage = active_stage(snapshot)
    if stage is None:
        return VerdictFacts(word="LAUNCHING", glyph=look.glyphs.active, fill="busy", first=("accepted by the keeper",))
    word = _STAGE_WORDS[stage.stage]
    if stage.stage is Stage.CUDA and stage.want:
        word = f"CUDA {stage.have or 0}/{stage.want}"
    spent = elapsed_s(stage, snapshot.at)
    usual = f", usually {words.short_duration(stage.usual_s)}" if stage.usual_s is not None else ""
    took = f"{words.whole_duration(spent)}{usual}" if spent is not None else ""
    if stage.state is StageState.LATE:
        number, caption = _overdue(stage, spent)
        return VerdictFacts(
            word=word, glyph=look.glyphs.warn, fill="warn", first=(stage.stage.label, took),
            second=_late_facts(snapshot, stage), number=number, caption=caption, short_caption="late",
        )  # fmt: skip
    position = list(Stage).index(stage.stage) + 1
    number, caption, short = _estimate(snapshot)
    return VerdictFacts(
        word=word, glyph=look.glyphs.active, fill="busy", first=(f"{stage.stage.label}, stage {position} of 5", took),
        second=_launch_now(snapshot, stage), number=number, caption=caption, short_caption=short,
    )  # fmt: skip


def _launch_now(snapshot: Snapshot, stage: StageStatus) -> tuple[str, ...]:
    facts = []
    if snapshot.progress.phase:
        facts.append(f"now: {words.one_line(snapshot.progress.phase)}")
    if stage.missing:
        facts.append(f"no context yet: GPU {words.gpu_list(stage.missing)}")
    if not facts and stage.evidence:
        facts.append(f"now: {words.one_line(stage.evidence)}")
    if not facts and stage.why:
        facts.append(words.one_line(stage.why))
    return tuple(facts)


def _late_facts(snapshot: Snapshot, stage: StageStatus) -> tuple[str, ...]:
    if snapshot.reason is not None and snapshot.reason.detail:
        return (words.one_line(snapshot.reason.detail),)
    facts = []
    if stage.missing:
        facts.append(f"GPU {words.gpu_list(stage.missing)} hold no context")
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
        if stage.state in (StageState.DONE, StageState.SKIPPED):
            continue
        if stage.usual_s is None:
            break
        left += max(0.0, stage.usual_s - (elapsed_s(stage, snapshot.at) or 0.0))
    else:
        return f"~{words.tight_duration(left)}", "to the first step", "to go"
    began = launch_began(snapshot)
    if began is None:
        return "", "", ""
    return words.tight_duration(snapshot.at - began), "since it was accepted", "so far"


def _stepping(snapshot: Snapshot, look: Look) -> VerdictFacts:
    caption, short = _rate_caption(snapshot)
    return VerdictFacts(
        word="STEPPING", glyph=look.glyphs.live, role=Role.OK, first=_step_facts(snapshot),
        second=_queue_and_checkpoint(snapshot), number=words.rate(snapshot.progress.rate.now),
        caption=caption, short_caption=short,
    )  # fmt: skip


def _step_facts(snapshot: Snapshot) -> tuple[str, ...]:
    progress = snapshot.progress
    facts = [f"step {words.count(progress.step)}"]
    if progress.first_step_at is not None:
        facts.append(f"{words.short_duration(snapshot.at - progress.first_step_at)} since the first step")
    if progress.loss is not None:
        facts.append(f"loss {words.loss(progress.loss)}")
    return tuple(facts)


def _queue_and_checkpoint(snapshot: Snapshot) -> tuple[str, ...]:
    progress = snapshot.progress
    facts = []
    if progress.queue is not None:
        low = progress.queue.lowest if progress.queue.lowest is not None else progress.queue.min_ready
        depth = progress.queue.max_depth
        facts.append(f"queue {words.number(low)}" + (f" of {words.number(depth)}" if depth is not None else ""))
    if progress.checkpoint_step is not None:
        ago = ""
        if progress.checkpoint_at is not None:
            ago = f", {words.short_duration(snapshot.at - progress.checkpoint_at)} ago"
        facts.append(f"checkpoint {words.count(progress.checkpoint_step)}{ago}")
    return tuple(facts)


def _rate_caption(snapshot: Snapshot) -> tuple[str, str]:
    rate = snapshot.progress.rate
    scope = {"per_device": " per GPU", "rank": " of one rank"}.get(rate.scope or "", "")
    unit = f"tok/s{scope}"
    change = words.percent_change(rate.delta_pct)
    if not change:
        return unit, unit
    against = f" vs {rate.baseline_name}" if rate.baseline_name else " vs baseline"
    return f"{unit}  {change}{against}", f"{unit} {change}"


def _slow(snapshot: Snapshot, look: Look) -> VerdictFacts:
    rate = snapshot.progress.rate
    caption, short = _rate_caption(snapshot)
    under = ""
    if rate.delta_pct is not None:
        under = f"{abs(rate.delta_pct):.0f} % under {rate.baseline_name or 'the baseline'}"
    queue = snapshot.progress.queue
    second = _queue_and_checkpoint(snapshot)
    if queue is not None and queue.bound != "balanced":
        depth = f" of {words.number(queue.max_depth)}" if queue.max_depth is not None else ""
        second = (f"queue {words.number(queue.min_ready)}{depth}: {bound_words(queue.bound)}",)
    detail = words.one_line(snapshot.reason.detail) if snapshot.reason else ""
    first = (
        (detail,) if detail else (f"{words.rate(rate.now)} tok/s", under, f"step {words.count(snapshot.progress.step)}")
    )
    return VerdictFacts(
        word="SLOW", glyph=look.glyphs.warn, role=Role.WARN, first=first, second=second,
        number=words.rate(rate.now), caption=caption, short_caption=short,
    )  # fmt: skip


def bound_words(bound: str) -> str:
    return {"targets": "drafters wait for targets", "drafters": "targets wait for drafters"}.get(bound, bound)


def _stalled(snapshot: Snapshot, look: Look) -> VerdictFacts:
    progress = snapshot.progress
    silent = snapshot.at - progress.last_step_at if progress.last_step_at is not None else None
    usual = []
    if progress.usual_step_s is not None:
        usual.append(f"usual {words.duration(progress.usual_step_s)}")
    if progress.stall_budget_s is not None:
        usual.append(f"budget {words.span(progress.stall_budget_s)}")
    behind = f" ({', '.join(usual)})" if usual else ""
    alive = "process alive" if snapshot.run is not None and snapshot.run.alive else ""
    was = progress.rate.steady if progress.rate.steady is not None else progress.rate.now
    return VerdictFacts(
        word="STALLED", glyph=look.glyphs.warn, fill="warn",
        first=(f"{words.whole_duration(silent)} without a step{behind}", alive),
        cause=words.one_line(snapshot.reason.detail) if snapshot.reason else "",
        number="0", caption=f"tok/s  was {words.rate(was)}" if was is not None else "tok/s", short_caption="tok/s",
    )  # fmt: skip


def _running(snapshot: Snapshot, look: Look) -> VerdictFacts:
    reason = snapshot.reason or next((w for w in snapshot.warnings if w.severity is not Severity.OK), None)
    return VerdictFacts(
        word="RUNNING", glyph=look.glyphs.live, first=((reason.title,) if reason else ("alive; no step was seen",)),
        cause=words.one_line(reason.detail) if reason else "", number="?", caption="tok/s", short_caption="tok/s",
    )  # fmt: skip


def _nan(snapshot: Snapshot, look: Look) -> VerdictFacts:
    progress = snapshot.progress
    alive = snapshot.run is not None and snapshot.run.alive
    second = []
    if progress.last_good_step is not None:
        second.append(f"last good {words.loss(progress.last_good_loss)} at {words.count(progress.last_good_step)}")
    if progress.checkpoint_step is not None and progress.bad_since_step is not None:
        side = "before" if progress.checkpoint_step < progress.bad_since_step else "after"
        second.append(f"checkpoint {words.count(progress.checkpoint_step)} is {side} it")
    return VerdictFacts(
        word="NAN LOSS", glyph=look.glyphs.fail, fill="fail",
        first=(f"loss is NaN since step {words.count(progress.bad_since_step)}", "still running" if alive else ""),
        second=tuple(second), number=words.count(progress.bad_since_step), caption="first bad step",
        short_caption="first bad step",
    )  # fmt: skip


def _failed(snapshot: Snapshot, look: Look) -> VerdictFacts:
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
        number=_gpus_in_use(snapshot), caption="GPUs in use", short_caption="GPUs in use",
    )  # fmt: skip


def exit_words(snapshot: Snapshot) -> str:
    """`run.sh ended 0.2 s after exec, exit status 126`, or nothing where no exit was recorded."""
    run = snapshot.run
    if run is None or run.exit is None:
        return ""
    lived = f" {words.duration(run.exit.lived_s)} after exec" if run.exit.lived_s is not None else ""
    return f"{program(run.argv)} ended{lived}, {status_words(run.exit)}"


def status_words(end: ExitStatus) -> str:
    if end.signal is not None:
        sender = f"sent by {end.by}" if end.by else "sender unknown"
        return f"signal {end.signal}, {sender}"
    return f"exit status {end.code}" if end.code is not None else "exit status unknown"


def program(argv: tuple[str, ...]) -> str:
    """The word by which people call a command: `run.sh` of `bash /root/run.sh`."""
    names = [os.path.basename(arg) for arg in argv if arg and not arg.startswith("-")]
    for name in names:
        if not name.startswith(_INTERPRETERS):
            return words.one_line(name)
    return words.one_line(names[0]) if names else "the run"


def _ended(snapshot: Snapshot, look: Look) -> VerdictFacts:
    run, progress = snapshot.run, snapshot.progress
    end = run.exit if run is not None else None
    after = f" after {words.short_duration(end.lived_s)}" if end is not None and end.lived_s is not None else ""
    at = f"at step {words.count(progress.step)}{after}" if progress.step is not None else f"ended{after}"
    reason = snapshot.reason
    return VerdictFacts(
        word="ENDED", glyph=look.glyphs.fail, fill="fail",
        first=(at, status_words(end) if end is not None else "how it ended was not recorded"),
        cause=words.one_line(reason.detail or reason.title) if reason else "",
        number=words.count(progress.step), caption="last step", short_caption="last step",
    )  # fmt: skip


def _finished(snapshot: Snapshot, look: Look) -> VerdictFacts:
    progress, end = snapshot.progress, snapshot.run.exit if snapshot.run is not None else None
    total = f" of {words.count(progress.total_steps)}" if progress.total_steps is not None else ""
    return VerdictFacts(
        word="FINISHED", glyph=look.glyphs.idle,
        first=(
            f"{words.count(progress.step)}{total} steps",
            status_words(end) if end is not None else "",
            words.clock(end.at, look.zone, seconds=False) if end is not None and end.at is not None else "",
        ),
        second=(*_queue_and_checkpoint(snapshot), _free_fact(snapshot)),
        number=words.count(progress.step), caption="steps", short_caption="steps",
    )  # fmt: skip


def _stopped(snapshot: Snapshot, look: Look) -> VerdictFacts:
    run = snapshot.run
    end = run.exit if run is not None else None
    by = (end.by if end is not None else None) or (run.stopping_by if run is not None else None)
    who = f"by {by}" if by else "stopped"
    when = f" at {words.clock(end.at, look.zone, seconds=False)}" if end is not None and end.at is not None else ""
    killing = snapshot.stages[0]
    how = words.one_line(killing.detail or killing.evidence) if killing.state is StageState.DONE else ""
    at = f"at step {words.count(snapshot.progress.step)}" if snapshot.progress.step is not None else ""
    return VerdictFacts(
        word="STOPPED", glyph=look.glyphs.idle, first=(f"{who}{when}", how, at), second=(_free_fact(snapshot),)
    )


def _interrupted(snapshot: Snapshot, look: Look) -> VerdictFacts:
    stage = next((s for s in snapshot.stages if s.state in (StageState.FAILED, StageState.UNKNOWN)), None)
    reason = snapshot.reason
    return VerdictFacts(
        word="INTERRUPTED", glyph=look.glyphs.fail, fill="fail",
        first=("its keeper was lost in the middle of the transaction", f"at {stage.stage.label}" if stage else ""),
        cause=words.one_line(reason.detail) if reason else "",
        number=_gpus_in_use(snapshot), caption="GPUs in use", short_caption="GPUs in use",
    )  # fmt: skip


def _host_restarted(snapshot: Snapshot, look: Look) -> VerdictFacts:
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


_TABLE = {
    Verdict.NO_WORD: _no_word,
    Verdict.IDLE: _idle,
    Verdict.LAUNCHING: _launching,
    Verdict.STEPPING: _stepping,
    Verdict.RUNNING: _running,
    Verdict.SLOW: _slow,
    Verdict.STALLED: _stalled,
    Verdict.NAN: _nan,
    Verdict.FAILED: _failed,
    Verdict.ENDED: _ended,
    Verdict.FINISHED: _finished,
    Verdict.STOPPED: _stopped,
    Verdict.INTERRUPTED: _interrupted,
    Verdict.LINK_LOST: _link_lost,
    Verdict.HOST_RESTARTED: _host_restarted,
}

# --- shared with the rail and the launch panel -----------------------------------------------------------------------


def active_stage(snapshot: Snapshot) -> StageStatus | None:
    """The stage that a launch is in now."""
    if snapshot.active_stage is not None:
        return next((s for s in snapshot.stages if s.stage is snapshot.active_stage), None)
    return next((s for s in snapshot.stages if s.state in (StageState.ACTIVE, StageState.LATE)), None)


def elapsed_s(stage: StageStatus, now: float) -> float | None:
    """Time that a stage took or has taken so far; None before it began."""
    if stage.took_s is not None:
        return max(0.0, stage.took_s)
    if stage.began_at is None:
        return None
    return max(0.0, (stage.ended_at if stage.ended_at is not None else now) - stage.began_at)


def launch_began(snapshot: Snapshot) -> float | None:
    if snapshot.run is not None and snapshot.run.accepted_at is not None:
        return snapshot.run.accepted_at
    return next((s.began_at for s in snapshot.stages if s.began_at is not None), None)


def _gpus_in_use(snapshot: Snapshot) -> str:
    gpus = snapshot.gpus.gpus
    if not gpus:
        return ""
    if any(gpu.owner == "unknown" for gpu in gpus):
        return f"?/{len(gpus)}"
    return f"{sum(gpu.owner != 'free' for gpu in gpus)}/{len(gpus)}"


def _free_fact(snapshot: Snapshot) -> str:
    gpus = snapshot.gpus.gpus
    if not gpus:
        return "no GPU was seen" if snapshot.gpus.source == "none" else ""
    free = sum(gpu.owner == "free" for gpu in gpus)
    return f"{free}/{len(gpus)} GPUs free"
