"""First contact with a run that was started by hand: what was found, what can't be known, what one may do. Pure."""

from __future__ import annotations

from console.model import Process, Snapshot
from console.ui.present import words
from console.ui.present.facts import program
from console.ui.present.look import Look
from console.ui.present.spans import BLANK, Line, Role, Span, View, clip, dim, faint, strong, wrap

_LABEL = 9


def needs_first_contact(snapshot: Snapshot) -> bool:
    run = snapshot.run
    return run is not None and run.by_hand and bool(run.alive)


def contact_page(snapshot: Snapshot, width: int, look: Look, *, may_act: bool) -> View:
    """Return the page that stands in place of the overview until somebody presses `w`."""
    run = snapshot.run
    if run is None:
        return ()
    main = next((p for p in snapshot.processes if p.pid == run.pid), None)
    view: list[Line] = [BLANK, (Span("  "), strong(f"A run started by hand is on {snapshot.target}."))]
    match_word = _matched(run.argv, main)
    view.append((Span("  Found by its argument "), strong(match_word), Span(". Nothing was touched.")))
    view.append(BLANK)
    argv = " ".join(main.argv if main is not None and main.argv else run.argv)
    view += _row("pid", str(run.pid) if run.pid is not None else words.UNKNOWN, words.one_line(argv), width)
    view += _row("age", _age(snapshot, main), _parentage(snapshot, main), width)
    log = snapshot.log
    size = f"{words.size(log.size_bytes)}, " if log.size_bytes is not None else ""
    view += _row(
        "log", words.one_line(log.path or run.log_path or words.UNKNOWN), f"{size}from file descriptor 1", width
    )
    view += _row("format", *_format(snapshot), width)
    view += _row("GPUs", *_gpus(snapshot), width)
    view.append(_warned("end", "?", "its exit status can not be known: no keeper started it", width))
    if run.session:
        view.append(_warned("danger", "!", f"it lives in {words.one_line(run.session)} and may die at logout", width))
    view.append(BLANK)
    view.append((strong("  w"), Span("  watch it (plots, log, GPUs; nothing is changed)")))
    if may_act:
        view.append((strong("  r"), Span("  restart it under a keeper; the plan is shown first")))
    return tuple(view)


def _row(label: str, fact: str, detail: str, width: int) -> list[Line]:
    room = width - 2 - _LABEL - 2
    rows: list[Line] = []
    for index, text in enumerate(wrap(fact, room)):
        head = faint(f"  {label if index == 0 else ''}".ljust(_LABEL + 2))
        rows.append((head, Span(text)))
    left = room - len(rows[-1][1].text) - 2
    if detail and left >= 12:
        rows[-1] = (*rows[-1], dim(f"  {clip(detail, left)}"))
    return rows


def _warned(label: str, mark: str, text: str, width: int) -> Line:
    return (
        faint(f"  {label}".ljust(_LABEL + 2)),
        Span(f"{mark}  ", Role.WARN, True),
        dim(clip(text, width - _LABEL - 6)),
    )


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
