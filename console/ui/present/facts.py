"""What verdicts are made of: the value, and the facts that several of them share. Pure."""

from __future__ import annotations

import os.path

from msgspec import Struct

from console.model import ExitStatus, Queue, Snapshot, StageState, StageStatus, Verdict
from console.state.series import WINDOW_S
from console.ui.present import words
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


def active_stage(snapshot: Snapshot) -> StageStatus | None:
    """The stage that a launch is in now."""
    if snapshot.active_stage is not None:
        return next((s for s in snapshot.stages if s.stage is snapshot.active_stage), None)
    return next((s for s in snapshot.stages if s.state in (StageState.ACTIVE, StageState.LATE)), None)


_UNENDED = (StageState.ACTIVE, StageState.LATE, StageState.UNKNOWN)


def elapsed_s(stage: StageStatus, now: float) -> float | None:
    """Time that a stage took or has taken so far; None before it began, and where nobody saw when it ended."""
    if stage.took_s is not None:
        return max(0.0, stage.took_s)
    ended_at = stage.ended_at
    if ended_at is None and stage.state in _UNENDED:
        ended_at = now
    if stage.began_at is None or ended_at is None:
        return None
    return max(0.0, ended_at - stage.began_at)


def known_at(snapshot: Snapshot) -> float:
    """When the host was last heard: that what began before a lost link has gone on since is not known."""
    last = snapshot.link.last_word_at
    return min(snapshot.at, last) if snapshot.verdict is Verdict.LINK_LOST and last is not None else snapshot.at


def is_stopping(snapshot: Snapshot) -> bool:
    """Whether what goes on is a stop: nothing will be started behind the killing."""
    return snapshot.verdict is Verdict.LAUNCHING and snapshot.run is not None and snapshot.run.stopping_by is not None


def launch_began(snapshot: Snapshot) -> float | None:
    if snapshot.run is not None and snapshot.run.accepted_at is not None:
        return snapshot.run.accepted_at
    return next((s.began_at for s in snapshot.stages if s.began_at is not None), None)


def step_facts(snapshot: Snapshot) -> tuple[str, ...]:
    progress = snapshot.progress
    facts = [f"step {words.count(progress.step)}"]
    if progress.first_step_at is not None:
        facts.append(f"{words.short_duration(snapshot.at - progress.first_step_at)} since the first step")
    if progress.loss is not None:
        facts.append(f"loss {words.loss(progress.loss)}")
    return tuple(facts)


def queue_and_checkpoint(snapshot: Snapshot) -> tuple[str, ...]:
    progress = snapshot.progress
    facts = []
    if progress.queue is not None:
        facts.append(f"queue {_queue_range(progress.queue)}")
    if progress.checkpoint_step is not None:
        ago = ""
        if progress.checkpoint_at is not None:
            ago = f", {words.short_duration(snapshot.at - progress.checkpoint_at)} ago"
        facts.append(f"checkpoint {words.count(progress.checkpoint_step)}{ago}")
    return tuple(facts)


def _queue_range(queue: Queue) -> str:
    """`6–16 of 16`: between what the queue was in the last 10 minutes."""
    low = queue.lowest if queue.lowest is not None else queue.min_ready
    high = queue.highest if queue.highest is not None else queue.min_ready
    span = words.number(low) if low == high else f"{words.number(low)}–{words.number(high)}"
    return span + (f" of {words.number(queue.max_depth)}" if queue.max_depth is not None else "")


def pace(snapshot: Snapshot) -> tuple[str, ...]:
    """`queue 6–16 of 16`, `never empty, never full for 10 min`, `balanced: neither side waits`."""
    queue = snapshot.progress.queue
    if queue is None:
        return ()
    facts = [f"queue {_queue_range(queue)}"]
    if queue.empty_pct is not None and queue.full_pct is not None:
        shares = ", ".join((_share("empty", queue.empty_pct), _share("full", queue.full_pct)))
        facts.append(f"{shares} {'for' if 'never' in shares else 'of'} {_watched(snapshot)}")
    balanced = "balanced: neither side waits"
    return (*facts, balanced if queue.bound == "balanced" else bound_words(queue.bound))


def _watched(snapshot: Snapshot) -> str:
    """How long the queue's figures are of: 10 minutes, or all the time from the first step to the run's end."""
    first_at = snapshot.progress.first_step_at
    ended_at = snapshot.run.exit.at if snapshot.run is not None and snapshot.run.exit is not None else None
    until = min(known_at(snapshot), ended_at) if ended_at is not None else known_at(snapshot)
    since_s = until - first_at if first_at is not None else WINDOW_S
    return "10 min" if since_s >= WINDOW_S else words.whole_duration(max(0.0, since_s))


def _share(word: str, percent: float) -> str:
    return f"never {word}" if percent == 0 else f"{word} {percent:.0f} %"


def rate_caption(snapshot: Snapshot) -> tuple[str, str]:
    rate = snapshot.progress.rate
    scope = {"per_device": " per GPU", "rank": " of one rank"}.get(rate.scope or "", "")
    unit = f"tok/s{scope}"
    change = words.percent_change(rate.delta_pct)
    if not change:
        return unit, unit
    against = f" vs {rate.baseline_name}" if rate.baseline_name else " vs baseline"
    return f"{unit}  {change}{against}", f"{unit} {change}"


def bound_words(bound: str) -> str:
    return {"targets": "drafters wait for targets", "drafters": "targets wait for drafters"}.get(bound, bound)


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


_INTERPRETERS = ("python", "bash", "sh", "dash", "zsh", "env", "torchrun", "nohup", "stdbuf")


def program(argv: tuple[str, ...]) -> str:
    """The word by which people call a command: `run.sh` of `bash /root/run.sh`."""
    names = [os.path.basename(arg) for arg in argv if arg and not arg.startswith("-")]
    for name in names:
        if not name.startswith(_INTERPRETERS):
            return words.one_line(name)
    return words.one_line(names[0]) if names else "the run"


def gpus_in_use(snapshot: Snapshot) -> str:
    gpus = snapshot.gpus.gpus
    if not gpus:
        return "" if snapshot.gpus.source == "none" else words.UNKNOWN
    if any(gpu.owner == "unknown" for gpu in gpus) or _sampled_before_the_end(snapshot):
        return f"?/{len(gpus)}"
    return f"{sum(gpu.owner != 'free' for gpu in gpus)}/{len(gpus)}"


def gpus_caption(snapshot: Snapshot) -> str:
    return "GPUs in use" if gpus_in_use(snapshot) else ""


def _sampled_before_the_end(snapshot: Snapshot) -> bool:
    """Whether the GPUs were last looked at before the run ended: its memory is still in those figures."""
    run, sampled_at = snapshot.run, snapshot.gpus.at
    ended_at = run.exit.at if run is not None and run.exit is not None else None
    return ended_at is not None and sampled_at is not None and sampled_at < ended_at


def free_fact(snapshot: Snapshot) -> str:
    gpus = snapshot.gpus.gpus
    if not gpus:
        return "no GPU was seen" if snapshot.gpus.source == "none" else ""
    if _sampled_before_the_end(snapshot) or any(gpu.owner == "unknown" for gpu in gpus):
        return ""
    free = sum(gpu.owner == "free" for gpu in gpus)
    return f"{free}/{len(gpus)} GPUs free"
