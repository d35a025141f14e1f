"""First contact with a run that was started by hand: what was found, what can't be known, what one may do. Pure."""

from __future__ import annotations

from console.model import Process, Snapshot
from console.ui.present import words
from console.ui.present.facts import program
from console.ui.present.look import Look
from console.ui.present.processes import command_words
from console.ui.present.spans import BLANK, Line, Role, Span, View, cells, clip_line, dim, faint, strong, width_of, wrap

_MARGIN, _LABEL = 2, 9


def needs_first_contact(snapshot: Snapshot) -> bool:
    run = snapshot.run
    return run is not None and run.by_hand and bool(run.alive)


def contact_page(snapshot: Snapshot, width: int, look: Look, *, may_act: bool, may_write: bool = False) -> View:
    """Return the page that stands in place of the overview until somebody presses `w`."""
    run = snapshot.run
    if run is None:
        return ()
    main = next((p for p in snapshot.processes if p.pid == run.pid), None)
    view: list[Line] = [BLANK, (Span("  "), strong(f"A run started by hand is on {snapshot.target}."))]
    match_word = _matched(run.argv, main)
    found: Line = (Span("  Found by its argument "), strong(match_word), Span("."))
    untouched = " Nothing was touched."
    beside = width_of(found) + cells(untouched) <= width
    view += [(*found, Span(untouched))] if beside else [clip_line(found, width), (Span(f" {untouched}"),)]
    view.append(BLANK)
    argv = main.argv if main is not None and main.argv else run.argv
    pid = str(run.pid) if run.pid is not None else words.UNKNOWN
    view += _row("pid", pid, command_words(argv, width - 2 * _MARGIN - _LABEL - 2 - cells(pid)), width)
    view += _row("age", _age(snapshot, main), _parentage(snapshot, main), width)
    log = snapshot.log
    size = f"{words.size(log.size_bytes)}, " if log.size_bytes is not None else ""
    view += _row(
        "log", words.one_line(log.path or run.log_path or words.UNKNOWN), f"{size}from file descriptor 1", width
    )
    view += _row("format", *_format(snapshot), width)
    view += _row("GPUs", *_gpus(snapshot), width)
    view += _warned("end", "?", "its exit status can not be known: no keeper started it", width)
    if run.session:
        view += _warned("danger", "!", f"it lives in {words.one_line(run.session)} and may die at logout", width)
    view.append(BLANK)
    view += _key("w", "watch it (plots, log, GPUs; nothing is changed)", width)
    if may_act:
        view += _key("r", "restart it under a keeper; the plan is shown first", width)
    if may_write:
        view += _key("i", "write this target into the config file: command, directory, log, GPUs as found", width)
    return tuple(view)


def _row(label: str, fact: str, detail: str, width: int) -> list[Line]:
    """A fact, and what is known of it beside it where that fits as a whole, else below."""
    room = width - 2 * _MARGIN - _LABEL
    rows: list[Line] = [(_head(label if index == 0 else ""), Span(text)) for index, text in enumerate(wrap(fact, room))]
    if detail and width_of(rows[-1]) + 2 + cells(detail) <= width - _MARGIN:
        rows[-1] = (*rows[-1], dim(f"  {detail}"))
    elif detail:
        rows += [(_head(""), dim(text)) for text in wrap(detail, room)]
    return rows


def _warned(label: str, mark: str, text: str, width: int) -> list[Line]:
    return [
        (_head(label if index == 0 else ""), Span(f"{mark if index == 0 else ' '}  ", Role.WARN, True), dim(part))
        for index, part in enumerate(wrap(text, width - 2 * _MARGIN - _LABEL - 3))
    ]


def _key(key: str, text: str, width: int) -> list[Line]:
    rows = wrap(text, width - 2 * _MARGIN - 3)
    return [(strong(f"  {key if index == 0 else ' '}"), Span(f"  {part}")) for index, part in enumerate(rows)]


def _head(label: str) -> Span:
    return faint(f"{' ' * _MARGIN}{label}".ljust(_MARGIN + _LABEL))


def _matched(argv: tuple[str, ...], main: Process | None) -> str:
    return program(main.argv if main is not None and main.argv else argv)


def _age(snapshot: Snapshot, main: Process | None) -> str:
    if main is not None and main.age_s is not None:
        return words.short_duration(main.age_s)
    run = snapshot.run
    if run is not None and run.spawned_at is not None:
        return words.short_duration(snapshot.at - run.spawned_at)
    return words.UNKNOWN


def _parentage(snapshot: Snapshot, main: Process | None) -> str:
    if main is None or main.parent is None:
        return ""
    parent = next((p for p in snapshot.processes if p.pid == main.parent), None)
    by = program(parent.argv) if parent is not None else "a process"
    return f"started by {by} (pid {main.parent})"


def _format(snapshot: Snapshot) -> tuple[str, str]:
    progress = snapshot.progress
    if progress.format is None:
        return words.UNKNOWN, f"{words.plural(progress.lines_seen, 'line')} seen, none is a known step line"
    share = 100 * progress.lines_understood / progress.lines_seen if progress.lines_seen else None
    return progress.format, f"{share:.0f} % of lines understood" if share is not None else ""


def _gpus(snapshot: Snapshot) -> tuple[str, str]:
    gpus = snapshot.gpus.gpus
    if not gpus:
        return ("none" if snapshot.gpus.source == "none" else words.UNKNOWN), words.one_line(snapshot.gpus.why)
    mine = [gpu for gpu in gpus if gpu.owner == "run"]
    used = [gpu.used_bytes for gpu in mine if gpu.used_bytes is not None]
    others = sum(gpu.owner == "other" for gpu in gpus)
    whose = "all of this run" if not others else f"{words.plural(others, 'GPU')} with other owners"
    return f"{len(mine)}/{len(gpus)}", f"{words.whole_gib(sum(used))} GiB, {whose}" if used else whose
