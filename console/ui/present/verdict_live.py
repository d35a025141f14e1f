"""The verdicts of a run that is alive: stepping, or what is the matter with it. Pure."""

from __future__ import annotations

from console.model import Severity, Snapshot
from console.ui.present import words
from console.ui.present.facts import (
    VerdictFacts,
    bound_words,
    queue_and_checkpoint,
    rate_caption,
    step_facts,
)
from console.ui.present.look import Look
from console.ui.present.spans import Role


def stepping(snapshot: Snapshot, look: Look) -> VerdictFacts:
    caption, short = rate_caption(snapshot)
    reason = snapshot.reason
    return VerdictFacts(
        word="STEPPING", glyph=look.glyphs.warn if reason else look.glyphs.live, role=Role.WARN if reason else Role.OK,
        first=step_facts(snapshot), second=queue_and_checkpoint(snapshot),
        cause=words.one_line(reason.detail or reason.title) if reason else "",
        number=words.rate(snapshot.progress.rate.now), caption=caption, short_caption=short,
    )  # fmt: skip


def slow(snapshot: Snapshot, look: Look) -> VerdictFacts:
    rate = snapshot.progress.rate
    caption, short = rate_caption(snapshot)
    under = ""
    if rate.delta_pct is not None:
        under = f"{abs(rate.delta_pct):.0f} % under {rate.baseline_name or 'the baseline'}"
    queue = snapshot.progress.queue
    second = queue_and_checkpoint(snapshot)
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


def stalled(snapshot: Snapshot, look: Look) -> VerdictFacts:
    progress = snapshot.progress
    silent = snapshot.at - progress.last_step_at if progress.last_step_at is not None else None
    usual = []
    if progress.usual_step_s is not None:
        usual.append(f"usual {words.duration(progress.usual_step_s)}")
    if progress.stall_budget_s is not None:
        usual.append(f"budget {words.span(progress.stall_budget_s)}")
    behind = f" ({', '.join(usual)})" if usual else ""
    alive = "process alive" if snapshot.run is not None and snapshot.run.alive else ""
    return VerdictFacts(
        word="STALLED", glyph=look.glyphs.warn, fill="warn",
        first=(f"{words.whole_duration(silent)} without a step{behind}", alive),
        cause=words.one_line(snapshot.reason.detail) if snapshot.reason else "",
        number="0", caption=_was(snapshot), short_caption="tok/s",
    )  # fmt: skip


def _was(snapshot: Snapshot) -> str:
    """`tok/s  was 21.5K`, beside the 0 of a run that stands."""
    rate = snapshot.progress.rate
    was = rate.steady if rate.steady is not None else rate.last
    return f"tok/s  was {words.rate(was)}" if was is not None else "tok/s"


def suspended(snapshot: Snapshot, look: Look) -> VerdictFacts:
    return _standing(snapshot, look, "SUSPENDED", number="0", caption=_was(snapshot), short="tok/s")


def not_exited(snapshot: Snapshot, look: Look) -> VerdictFacts:
    step = snapshot.progress.step
    return _standing(snapshot, look, "NOT EXITED", number=words.count(step), caption="last step", short="last step")


def _standing(snapshot: Snapshot, look: Look, word: str, *, number: str, caption: str, short: str) -> VerdictFacts:
    reason = snapshot.reason
    return VerdictFacts(
        word=word, glyph=look.glyphs.warn, fill="warn", first=(reason.title,) if reason else (),
        cause=words.one_line(reason.detail) if reason else "", number=number, caption=caption, short_caption=short,
    )  # fmt: skip


def spike(snapshot: Snapshot, look: Look) -> VerdictFacts:
    return VerdictFacts(
        word="LOSS SPIKE", glyph=look.glyphs.warn, fill="warn", first=step_facts(snapshot)[:2],
        cause=words.one_line(snapshot.reason.detail) if snapshot.reason else "",
        number=words.loss(snapshot.progress.loss), caption="loss now", short_caption="loss",
    )  # fmt: skip


def running(snapshot: Snapshot, look: Look) -> VerdictFacts:
    reason = snapshot.reason or next((w for w in snapshot.warnings if w.severity is not Severity.OK), None)
    needs_you = snapshot.reason is not None and snapshot.reason.severity is not Severity.INFO
    unseen = "alive; no step was seen" if snapshot.log.caught_up else "alive; its log is being read"
    return VerdictFacts(
        word="RUNNING", glyph=look.glyphs.warn if needs_you else look.glyphs.live,
        role=Role.WARN if needs_you else Role.TEXT, first=((reason.title,) if reason else (unseen,)),
        cause=words.one_line(reason.detail) if reason else "", number="?", caption="tok/s", short_caption="tok/s",
    )  # fmt: skip


def nan(snapshot: Snapshot, look: Look) -> VerdictFacts:
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
