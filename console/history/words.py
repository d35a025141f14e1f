"""How a run of the ledger ended, and what was changed for it, in words: the same for the command line and the screens.

Pure.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from console.catalogue import ENTRIES
from console.history.entry import CLEARED, KEPT, Entry
from console.model import Change, PastRun, Stage
from console.state.changes import changes

MAY_BE_MORE: Final = "may have done more than is told"


class Sign(StrEnum):
    LIVE = "live"
    WARN = "warn"
    BUSY = "busy"
    DONE = "done"
    BAD = "bad"
    UNKNOWN = "unknown"


class Ending(Struct, frozen=True):
    """`slugs` for scripts, `text` for people; neither is ever empty."""

    sign: Sign
    slugs: str
    text: str


_LIVE = {
    "stepping": Sign.LIVE,
    "running": Sign.LIVE,
    "launching": Sign.BUSY,
    "slow": Sign.WARN,
    "stalled": Sign.WARN,
    "suspended": Sign.WARN,
    "spike": Sign.WARN,
    "not_exited": Sign.WARN,
    "nan": Sign.BAD,
    "link_lost": Sign.UNKNOWN,
    "frozen": Sign.UNKNOWN,
    "no_word": Sign.UNKNOWN,
}
_LIVE_WORDS = {
    "link_lost": "not known now",
    "frozen": "frozen with its container",
    "no_word": "not known now",
    "nan": "NaN loss",
    "spike": "loss spike",
    "not_exited": "not exited",
}
_BROKEN = {"nan_loss": "NaN loss"}


def ending(entry: Entry, verdict: str = "", me: str = "") -> Ending:
    """Return what became of a run. `verdict`: the word on it now, where it lives; `me`: the operator who looks."""
    if not entry.is_over:
        word = verdict or entry.outcome
        text = _LIVE_WORDS.get(word, word)
        return Ending(_LIVE.get(word, Sign.UNKNOWN), word, text)
    match entry.outcome:
        case "log_only":
            return Ending(Sign.UNKNOWN, "log only", "log only")
        case "stopped":
            by = entry.ended_by
            who = "you" if by and by == me else by
            return Ending(Sign.DONE, f"stopped by {by}" if by else "stopped", f"stopped by {who}" if who else "stopped")
        case "finished":
            return Ending(Sign.DONE, "finished", "finished")
        case "failed":
            return _failed(entry)
        case "host_restarted":
            return Ending(Sign.BAD, "host_restarted", "host restarted")
        case "interrupted":
            return Ending(Sign.BAD, "interrupted", "its keeper was lost")
        case _:
            return _ended(entry)


def _failed(entry: Entry) -> Ending:
    stage = entry.failed_stage or ""
    how = _how(entry)
    slugs = " ".join(filter(None, ["failed", stage, entry.reason if not how else "", how]))
    label = {stage.value: stage.label for stage in Stage}.get(stage, stage)
    return Ending(Sign.BAD, slugs, f"{label or 'failed'}: {how or _title(entry) or 'reason not known'}")


def _ended(entry: Entry) -> Ending:
    """Ended after stepping, or so the record says; a reason that the log gave says more than a status."""
    if entry.reason in (None, "exit_status") or (title := _title(entry)) is None:
        if entry.exit_code == 0:
            return Ending(Sign.DONE, "ended exit 0", "ended, exit 0")
        how = _how(entry) or "unknown"
        return Ending(Sign.BAD if how != "unknown" else Sign.UNKNOWN, f"ended {how}", f"ended: {how}")
    at = f" at step {entry.last_step}" if entry.last_step is not None else ""
    step = f", step {entry.last_step:,}" if entry.last_step is not None and entry.reason in _BROKEN else ""
    return Ending(Sign.BAD, f"{entry.reason}{at}", f"{_BROKEN.get(entry.reason or '', title)}{step}")


def _how(entry: Entry) -> str:
    if entry.exit_signal is not None:
        return f"signal {entry.exit_signal}"
    return f"exit {entry.exit_code}" if entry.exit_code is not None else ""


def _title(entry: Entry) -> str | None:
    found = ENTRIES.get(entry.reason or "")
    return found.title if found is not None else None


# -- what was changed -------------------------------------------------------------------------------------------------


def before(entry: Entry, older: Sequence[Entry]) -> Entry | None:
    """Return the run to tell the changes from: of the older ones, newest first, the first that reached stepping."""
    return next((each for each in older if each.stepped and each.id != entry.id and not each.is_log_only), None)


def changed(entry: Entry, then: Entry | None) -> list[str]:
    """Return what differs from a run of before, a few words each, the likeliest to matter first."""
    if then is None or entry.is_log_only:
        return []
    good = PastRun(id=then.id, name=then.name, settings=then.settings)
    found = [_change(each) for each in changes(good, entry.settings).items]
    if {entry.cache, then.cache} == {CLEARED, KEPT}:
        found.append(f"cache {entry.cache}")
    return list(dict.fromkeys(found))


def _change(change: Change) -> str:
    match change.kind:
        case "env":
            return f"env {change.what} {_value(change.then)}->{_value(change.now)}"
        case "argv":
            return f"args {arguments(change.then or '', change.now or '')}"
        case "cwd":
            return f"cwd {_value(change.then)}->{_value(change.now)}"
        case _:
            name = change.what.rpartition("/")[2]
            return f"{name} {change.then}->{change.now}" if (change.then or "").startswith("mode ") else name


def arguments(then: str, now: str) -> str:
    """Return how one command line became another: `batch 6->8`, `+--fast`, `-5`; the whole where much has changed."""
    old, new = shlex.split(then), shlex.split(now)
    parts = []
    for kind, a, b, c, d in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        gone, came = " ".join(old[a:b]), " ".join(new[c:d])
        name = old[a - 1].lstrip("-") + " " if a and old[a - 1].startswith("-") and gone and came else ""
        if gone and came:
            parts.append(_replaced(gone, came, name))
        else:
            parts.append(f"+{came}" if came else f"-{gone}")
    return ", ".join(parts)


def _replaced(gone: str, came: str, name: str) -> str:
    """`--batch=6` and `--batch=8` share what stands before the sign."""
    key, sign, value = gone.partition("=")
    other, _, now = came.partition("=")
    if sign and key == other:
        return f"{key.lstrip('-')} {value}->{now}"
    return f"{name}{gone}->{came}"


def _value(value: str | None) -> str:
    return "(unset)" if value is None else value


def not_read(names: Sequence[str]) -> str:
    """Say of runs that are over whose logs, or keepers' notes, are still to be read; empty where there are none."""
    if not names:
        return ""
    return f"not read yet: the logs of {', '.join(names)}"
