"""The title of the log pane and the sentences that stand in it while no line does. Pure."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from typing import NamedTuple

from console.model import OUT_OF_REACH, LogState, Snapshot, Verdict
from console.ui.present import words
from console.ui.present.frame import age_span, title
from console.ui.present.look import Look
from console.ui.present.spans import Line, Role, Span, cells, clip_path, dim, faint

PERIOD_S = 2.0
# A step line that is late by less than this is nothing to mention.
_SILENT_S = 60.0
# So long the title says that the file was truncated or replaced.
_MISHAP_S = 600.0
_FOLLOWS = "f follows"
_FURNITURE = 14
"""Cells of a title that are neither its first fact nor what stands on the right."""


class LogShown(NamedTuple):
    """What of a log is on the screen, for the title to say."""

    following: bool = True
    unseen: int = 0
    search: str = ""
    trouble: str = ""
    filter: str = ""
    hidden_steps: int | None = None
    """None: step lines are not hidden."""
    other: str | None = None
    """Path of the log that is shown in place of the followed one."""
    offset: int | None = None
    size_bytes: int = 0
    line: int | None = None
    marked: bool = False
    skipped_bytes: int = 0
    """Of a flood: what came too fast to be shown."""


def log_title(snapshot: Snapshot, width: int, look: Look, shown: LogShown, *, narrow: bool) -> Line:
    """`── log  /workspace/x.log  412 MiB ───── following · live ──`."""
    log = snapshot.log
    margin = (0, 0) if narrow else (1, 1)
    facts: list[Sequence[Span]] = []
    right = _other(shown) if shown.other is not None else _right(snapshot, look, shown)
    said = _said(shown)
    if said and shown.offset is not None:
        right = _beside(said[0], right, shown, width - sum(margin) - _FURNITURE)
    facts += [(span,) for span in said]  # first: what was asked for is what is looked for here
    whole_path = shown.other or log.path
    size_bytes = shown.size_bytes if shown.other is not None else log.size_bytes
    size = words.size(size_bytes) if size_bytes is not None else ""
    odd, short = ([], []) if shown.other is not None else _of_the_file(snapshot, look)
    path = words.one_line(os.path.basename(whole_path) if narrow or said else whole_path) if whole_path else ""

    def furniture(size: str, odd: Sequence[Span]) -> int:
        beside = sum(cells(span.text) + 2 for span in (*said, *odd))
        return 17 + sum(margin) + cells(size) + cells(right.text) + beside

    # The whole name is worth more than the size, and that something is odd about the file more than all that is said.
    ways = [(size, odd), ("", odd), ("", short)]
    size, odd = next((way for way in ways if cells(path) + furniture(*way) <= width), ways[-1])
    named = [(dim(clip_path(path, max(12, width - furniture(size, odd)))),)] if path else []
    sized = [(faint(size),)] if size else []
    oddly = [(span,) for span in odd]
    facts += [*oddly, *named] if odd is short else [*named, *sized, *oddly]
    return title("log", facts, right, width, look, margin=margin)


def _said(shown: LogShown) -> list[Span]:
    """Return what the operator asked for and is told, by worth."""
    said = []
    if shown.search:
        said.append(Span(words.one_line(shown.search), Role.BUSY))
    if shown.trouble:
        said.append(Span(words.one_line(shown.trouble), Role.WARN, True))
    if shown.filter:
        said.append(Span(f"only /{words.one_line(shown.filter)}/", Role.BUSY))
    if shown.hidden_steps is not None:
        said.append(Span(f"{words.plural(shown.hidden_steps, 'step line')} hidden", Role.BUSY))
    if shown.skipped_bytes:
        said.append(Span(f"{words.size(shown.skipped_bytes)} skipped", Role.BUSY))
    if shown.marked:
        said.append(Span("marked: y copies, > saves", Role.BUSY))
    return said


def _of_the_file(snapshot: Snapshot, look: Look) -> tuple[list[Span], list[Span]]:
    """Return what is odd about the file itself, and the same in a word each for a narrow title.

    What a file is that is not followed as usual stands on the right in any case.
    """
    log = snapshot.log
    odd, short = [], []
    if log.mishap is not None and log.mishap_at is not None and snapshot.at - log.mishap_at < _MISHAP_S:
        odd.append(Span(f"{log.mishap.value} {words.clock(log.mishap_at, look.zone)}", Role.WARN))
        short.append(Span(log.mishap.value, Role.WARN))
    if log.filesystem:
        odd.append(Span(f"on {log.filesystem}", Role.WARN))
        short.append(odd[-1])
    if log.detail and log.state in (LogState.FOLLOWING, LogState.DELETED, LogState.UNREADABLE):
        detail = words.one_line(log.detail)
        odd.append(faint(detail))
        if log.state is LogState.FOLLOWING:
            short.append(faint(detail.split()[0].rstrip(":")))
    return odd, short


def _place(shown: LogShown) -> str:
    """Return where the top of the pane stands: by line where that is known, else by byte."""
    if shown.offset is None:
        return ""
    place = f"line {shown.line:,}" if shown.line is not None else f"byte {shown.offset:,}"
    return f"{place} · {100 * shown.offset // max(1, shown.size_bytes)} %"


def _beside(asked: Span, right: Span, shown: LogShown, room: int) -> Span:
    """Leave room for what was asked for: what `f` does, and the place at last, can be said elsewhere."""
    place = _place(shown)
    rest = right.text.removeprefix(place).removeprefix(" · ")
    ways = [right.text, place, place.partition(" · ")[2]] if rest == _FOLLOWS else [right.text, rest]
    text = next((way for way in ways if cells(asked.text) + cells(way) <= room), ways[-1])
    return Span(text, right.role, right.bold)


def _other(shown: LogShown) -> Span:
    place = _place(shown)
    return Span(f"{place} · another log, esc goes back" if place else "another log, esc goes back", Role.WARN, True)


def _right(snapshot: Snapshot, look: Look, shown: LogShown) -> Span:
    log, following, unseen = snapshot.log, shown.following, shown.unseen
    lost = snapshot.verdict in OUT_OF_REACH
    place = _place(shown)
    if not following and unseen > 0:
        new = f"{look.glyphs.more} {unseen:,} new {'line' if unseen == 1 else 'lines'}  f"
        return Span(f"{place} · {new}" if place else new, Role.BUSY, True)
    if not following and place:
        return Span(f"{place} · {_FOLLOWS}", Role.BUSY)
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
    if run is not None and run.alive is False:
        return faint("ended")
    silent = snapshot.at - log.grew_at if log.grew_at is not None else None
    if silent is not None and silent > _SILENT_S:
        return Span(f"silent {words.whole_duration(silent)}", Role.WARN, True)
    age = age_span(snapshot.ages.log, PERIOD_S)
    word = "following" if following else "not following, f"
    return Span(f"{word} · {age.text}", age.role, age.bold)


def nothing_let_through(only: str, hidden_steps: int) -> str:
    """What stands in the pane while a filter, or that step lines are hidden, leaves none of the lines that are here."""
    name = words.one_line(only)
    if hidden_steps:
        return f"all lines here{f' that match /{name}/' if name else ''} are step lines, which are hidden"
    return f"no line here matches /{name}/"


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
