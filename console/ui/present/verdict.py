"""The verdict: a glyph, a word, at most one number, and two lines of facts; then what is safe and what comes next.

`verdict_facts` says what is to be said, whatever the size; `band` lays it out. Pure.
"""

from __future__ import annotations

from console.model import LinkState, Snapshot, Verdict
from console.ui.present import verdict_end, verdict_launch, verdict_live, words
from console.ui.present.facts import VerdictFacts, free_fact, gpus_caption, gpus_in_use
from console.ui.present.look import VERDICT_WORDS, Look
from console.ui.present.spans import Role


def verdict_facts(snapshot: Snapshot, look: Look) -> VerdictFacts:
    """Return what the screen says first about one snapshot."""
    facts = _TABLE[snapshot.verdict](snapshot, look)
    reason = snapshot.reason
    if reason is not None and facts.fill in ("fail", "warn", "link"):
        facts = _with(facts, safe=facts.safe or words.one_line(reason.safe))
    if reason is not None and (facts.fill in ("fail", "warn", "link") or facts.role is Role.WARN):
        facts = _with(facts, next=facts.next or _lines(reason.next))
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
    chips += [f"! {warning.brief}" for warning in snapshot.warnings if warning.brief]
    return tuple(chips)


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
    frozen = snapshot.verdict is Verdict.FROZEN
    if frozen and snapshot.reason is not None:
        safe = f"{snapshot.reason.safe}."
    following = "c tries again." if link.state is LinkState.REFUSED else "c retries now."
    return VerdictFacts(
        word="FROZEN" if frozen else "NO LINK" if never else "LINK LOST", glyph=look.glyphs.unknown, fill="link",
        first=(why, retry), second=last if last else ("nothing was heard of this host yet",),
        number=words.tight_duration(snapshot.at - link.last_word_at) if link.last_word_at is not None else "",
        caption="" if never else "since the last word", short_caption="" if never else "old", safe=safe,
        next=_lines(snapshot.reason.next) if snapshot.reason and snapshot.reason.next
        else (following if never else f"{following} Everything below is as old as it says.",),
    )  # fmt: skip


def _retry(snapshot: Snapshot) -> str:
    link = snapshot.link
    if snapshot.verdict is Verdict.FROZEN and link.retry_at is None:
        return "goes on by itself once it is thawed"
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
        word="IDLE", glyph=look.glyphs.idle, first=("nothing runs", last), second=(free_fact(snapshot),),
        number=gpus_in_use(snapshot), caption=gpus_caption(snapshot), short_caption=gpus_caption(snapshot),
    )  # fmt: skip


_TABLE = {
    Verdict.NO_WORD: _no_word,
    Verdict.IDLE: _idle,
    Verdict.LAUNCHING: verdict_launch.launching,
    Verdict.STEPPING: verdict_live.stepping,
    Verdict.RUNNING: verdict_live.running,
    Verdict.SLOW: verdict_live.slow,
    Verdict.STALLED: verdict_live.stalled,
    Verdict.NAN: verdict_live.nan,
    Verdict.SPIKE: verdict_live.spike,
    Verdict.SUSPENDED: verdict_live.suspended,
    Verdict.NOT_EXITED: verdict_live.not_exited,
    Verdict.FAILED: verdict_end.failed,
    Verdict.ENDED: verdict_end.ended,
    Verdict.FINISHED: verdict_end.finished,
    Verdict.STOPPED: verdict_end.stopped,
    Verdict.INTERRUPTED: verdict_end.interrupted,
    Verdict.LINK_LOST: _link_lost,
    Verdict.FROZEN: _link_lost,
    Verdict.HOST_RESTARTED: verdict_end.host_restarted,
}
