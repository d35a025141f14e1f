"""The verdicts of a run that is alive: stepping, slow, stalled, silent, NaN. Pure."""

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
    return VerdictFacts(
        word="STEPPING", glyph=look.glyphs.live, role=Role.OK, first=step_facts(snapshot),
        second=queue_and_checkpoint(snapshot), number=words.rate(snapshot.progress.rate.now),
        caption=caption, short_caption=short,
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
    was = progress.rate.steady if progress.rate.steady is not None else progress.rate.now
    return VerdictFacts(
        word="STALLED", glyph=look.glyphs.warn, fill="warn",
        first=(f"{words.whole_duration(silent)} without a step{behind}", alive),
        cause=words.one_line(snapshot.reason.detail) if snapshot.reason else "",
        number="0", caption=f"tok/s  was {words.rate(was)}" if was is not None else "tok/s", short_caption="tok/s",
    )  # fmt: skip


def running(snapshot: Snapshot, look: Look) -> VerdictFacts:
    reason = snapshot.reason or next((w for w in snapshot.warnings if w.severity is not Severity.OK), None)
    return VerdictFacts(
        word="RUNNING", glyph=look.glyphs.live, first=((reason.title,) if reason else ("alive; no step was seen",)),
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
