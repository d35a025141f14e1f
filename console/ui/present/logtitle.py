"""The title of the log pane and the sentences that stand in it while there is no line. Pure."""

from __future__ import annotations

import os.path
from collections.abc import Sequence

from console.model import LogState, Snapshot, Verdict
from console.ui.present import words
from console.ui.present.frame import age_span, title
from console.ui.present.look import Look
from console.ui.present.spans import Line, Role, Span, cells, clip, dim, faint

PERIOD_S = 2.0
# A step line that is late by less than this is nothing to mention.
_SILENT_S = 60.0


def log_title(
    snapshot: Snapshot, width: int, look: Look, *, following: bool, unseen: int, narrow: bool, search: str = ""
) -> Line:
    """`── log  /workspace/x.log  412 MiB ───── following · live ──`."""
    log = snapshot.log
    margin = (0, 0) if narrow else (1, 1)
    facts: list[Sequence[Span]] = []
    right = _right(snapshot, look, following, unseen)
    size = words.size(log.size_bytes) if log.size_bytes is not None else ""
    if log.path:
        path = words.one_line(os.path.basename(log.path) if narrow else log.path)
        furniture = 17 + sum(margin) + cells(size) + cells(right.text)
        facts.append((dim(clip(path, max(12, width - furniture))),))
    if size:
        facts.append((faint(size),))
    if search:
        facts.append((Span(f"/{words.one_line(search)}", Role.BUSY),))
    return title("log", facts, right, width, look, margin=margin)


def _right(snapshot: Snapshot, look: Look, following: bool, unseen: int) -> Span:
    log = snapshot.log
    lost = snapshot.verdict is Verdict.LINK_LOST
    if not following and unseen > 0:
        return Span(f"{look.glyphs.more} {unseen:,} new {'line' if unseen == 1 else 'lines'}  f", Role.BUSY, True)
    if lost:
        return age_span(snapshot.ages.link, PERIOD_S, stale=True)
    run = snapshot.run
    if run is not None and run.alive is False and run.exit is not None and run.exit.at is not None:
        return faint(f"ended {words.clock(run.exit.at, look.zone)}")
    if log.lost is not None:
        age = age_span(snapshot.ages.log, PERIOD_S, stale=True)
        return Span(f"log connection lost · {age.text}", Role.WARN, True)
    match log.state:
        case LogState.TRUNCATED | LogState.ROTATED | LogState.DELETED | LogState.UNREADABLE:
            return Span(log.state.value, Role.WARN, True)
        case LogState.MISSING:
            return Span("not there yet", Role.WARN)
        case LogState.NONE | LogState.UNKNOWN:
            return faint("not known")
        case LogState.EMPTY | LogState.FOLLOWING:
            pass
    silent = snapshot.at - log.grew_at if log.grew_at is not None else None
    if silent is not None and silent > _SILENT_S:
        return Span(f"silent {words.whole_duration(silent)}", Role.WARN, True)
    age = age_span(snapshot.ages.log, PERIOD_S)
    word = "following" if following else "not following, f"
    return Span(f"{word} · {age.text}", age.role, age.bold)


def empty_log(snapshot: Snapshot) -> str:
    """What stands in the pane while it has no line."""
    log = snapshot.log
    path = words.one_line(log.path or "")
    if log.lost is not None:
        return f"the log's connection is lost: {words.one_line(log.lost)}"
    match log.state:
        case LogState.MISSING:
            return f"log not there yet: {path}" + (f" ({words.one_line(log.detail)})" if log.detail else "")
        case LogState.EMPTY:
            since = snapshot.run.spawned_at if snapshot.run is not None else None
            age = f" for {words.whole_duration(snapshot.at - since)}" if since is not None else ""
            busy = any((gpu.util_pct or 0) > 0 for gpu in snapshot.gpus.gpus)
            return f"0 B{age}" + (" · GPUs work: buffered?" if busy else "")
        case LogState.UNREADABLE | LogState.DELETED:
            return words.one_line(log.detail) or f"the log is {log.state.value}"
        case LogState.NONE:
            return words.one_line(log.detail) or "no log is known for this run"
        case LogState.FOLLOWING | LogState.TRUNCATED | LogState.ROTATED:
            return "no line yet"
        case LogState.UNKNOWN:
            if snapshot.verdict in (Verdict.IDLE, Verdict.NO_WORD) or snapshot.run is None:
                return "no run, no log"
            return "the log was not looked at yet"
