"""`history`: the runs of a target as a table, or as NDJSON for those who poll."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from console.config import Target
from console.engine import Engine
from console.headless import output
from console.headless.interruption import carried_out
from console.headless.session import can_look, deadline_after, first_word, opened, settled
from console.history import words
from console.history.entry import Entry, Runs
from console.model import Change, PastRun
from console.reasons import ConsoleError, Exit, Reason
from console.state.changes import changes

UNREAD_WHY = "its log was not read yet: ask again"
_GIB = 1024.0**3
_OLDER = 40
"""So many rows more are read as are shown: the run that the last one's changes are told from is among them."""
_HEAD = ("RUN", "STARTED", "LAUNCH", "END", "STEPS", "TOK/S", "±", "PEAK", "LOSS", "CHANGED")
_RIGHT = frozenset({"LAUNCH", "STEPS", "TOK/S", "±", "PEAK", "LOSS"})


def run(name: str, target: Target, *, lines: int, since: int | None, timeout: float | None, as_json: bool) -> int:
    """Carry the command out; return its exit code: 0, or the link's where the host could not be asked."""
    return carried_out(_history(name, target, lines, since, timeout, as_json=as_json))


async def _history(
    name: str, target: Target, lines: int, since: int | None, timeout_s: float | None, *, as_json: bool
) -> int:
    deadline = deadline_after(timeout_s)
    async with opened(name, target) as engine:
        failure: ConsoleError | None = None
        try:
            await (first_word if since is not None else settled)(engine, deadline)
            await can_look(engine, deadline)
        except ConsoleError as error:
            failure = error  # what was written down is still there, and no less true than it was
        rows = await engine.archive.runs(lines + _OLDER)
        shown = [row for row in rows.rows[:lines] if since is None or row.seq > since]
        if as_json or since is not None:
            _print_json(engine, rows, shown)
        else:
            for line in table(shown, rows.rows, str(engine.snapshot.verdict), engine.snapshot.run_id):
                output.say(line)
        if left := [row.name or row.id for row in shown if row.id in rows.unread]:
            say_unread(left)
        say_unwritten(engine)
        if failure is not None:
            for line in output.error_lines(failure):
                output.progress(line)
            return failure.exit_code
        return Exit.OK


# -- the table --------------------------------------------------------------------------------------------------------


def table(shown: Sequence[Entry], known: Sequence[Entry], verdict: str, live_id: str | None) -> list[str]:
    """Return the rows with their head, each column as wide as it needs; what differs comes last and may be long."""
    rows = [_HEAD, *(_cells(row, known, verdict if row.id == live_id else "") for row in shown)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if head in _RIGHT else cell.ljust(width)
            for head, cell, width in zip(_HEAD, row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _cells(row: Entry, known: Sequence[Entry], verdict: str) -> tuple[str, ...]:
    older = [each for each in known if each.accepted_wall < row.accepted_wall]
    peak = max(row.peaks.values(), default=None)
    spread = row.steady_mad if row.steady_tok_s is not None else None
    loss = row.loss_state if row.loss_state in ("nan", "inf") else _number(row.last_loss, ".4g")
    texts = (
        row.name or "-",
        _started(row),
        output.span(row.launch_s) if row.launch_s is not None else "-",
        words.ending(row, verdict).slugs,
        _steps(row),
        _number(row.steady_tok_s, ".0f"),
        _number(spread, ".0f"),
        f"{peak / _GIB:.1f}" if peak else "-",
        loss,
        "; ".join([*words.changed(row, words.before(row, older)), *([f'"{row.remark}"'] if row.remark else [])]),
    )
    return tuple(output.one_line(text) for text in texts)


def _steps(row: Entry) -> str:
    if row.last_step is not None:
        return str(row.last_step)
    return "0" if row.made_no_step else "-"


def _started(row: Entry) -> str:
    if row.is_log_only and row.lived_s is None:
        return f"before {_local(row.ended_wall)}"
    return _local(row.accepted_wall)


def _local(wall: float | None) -> str:
    return datetime.fromtimestamp(wall).astimezone().strftime("%Y-%m-%d %H:%M") if wall else "?"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


# -- NDJSON -----------------------------------------------------------------------------------------------------------


def _print_json(engine: Engine, runs: Runs, shown: Sequence[Entry]) -> None:
    snapshot = engine.snapshot
    for row in shown:
        verdict = str(snapshot.verdict) if row.id == snapshot.run_id else ""
        older = [each for each in runs.rows if each.accepted_wall < row.accepted_wall]
        output.emit_json(
            {
                "target": snapshot.target,
                **run_json(row, words.before(row, older), verdict, is_unread=row.id in runs.unread),
                "at": output.utc(snapshot.at),
                "data_age_s": output.rounded(snapshot.ages.link),
            }
        )


def say_unread(names: Sequence[str]) -> None:
    """Say on stderr whose logs are still to be read, if any are."""
    if names:
        output.progress(f"{output.one_line(words.not_read(names))}; they {words.MAY_BE_MORE}, ask again")


def say_unwritten(engine: Engine) -> None:
    """Say on stderr where what is known of the runs can't be noted: what was noted before is told all the same."""
    if why := engine.archive.unwritten:
        output.progress(f"not noted, the past is told as it was noted before: {output.one_line(why)}")


def log_read(row: Entry, *, is_unread: bool) -> bool | None:
    """Whether a run's log was read to its end; None where nothing of it was noted yet."""
    return False if is_unread else True if row.log_size is not None else None


def run_json(row: Entry, then: Entry | None, verdict: str = "", *, is_unread: bool = False) -> dict[str, Any]:
    """Return a run as the fields of a JSON object; what is not known is null.

    `is_unread`: it is over, and what its log and its keeper's notes tell beyond what was watched is still to be read.
    """
    end = words.ending(row, verdict)
    peak = max(row.peaks.items(), key=lambda item: item[1], default=None)
    return {
        "run": row.name or None,
        "id": None if row.is_log_only else row.id,
        "seq": row.seq,
        "started_at": None if row.is_log_only and row.lived_s is None else output.utc(row.accepted_wall),
        "ended_at": output.utc(row.ended_wall),
        "operator": row.operator or None,
        "alive": not row.is_over,
        "log_only": row.is_log_only,
        "outcome": verdict or row.outcome,
        "end": end.slugs,
        "stage": row.failed_stage,
        "reason": row.reason,
        "detail": row.detail or None,
        "exit_status": row.exit_code,
        "signal": row.exit_signal,
        "stopped_by": row.ended_by,
        "launch_s": output.rounded(row.launch_s),
        "cache": row.cache,
        "step": row.last_step,
        "total_steps": row.total_steps,
        "tok_s": {"steady": row.steady_tok_s, "mad": row.steady_mad, "n": row.steady_n, "scope": row.scope},
        "peak_bytes": peak[1] if peak else None,
        "peak_gpu": int(peak[0]) if peak else None,
        "loss": row.last_loss if row.loss_state in ("ok", None) else None,
        "loss_state": row.loss_state,
        "checkpoint_step": row.checkpoint_step,
        "log": row.log_path,
        "log_read": log_read(row, is_unread=is_unread),
        "changed": _changed_json(row, then),
        "note": row.remark or None,
        "why": whys(row) | (_unread_whys(row) if is_unread else {}),
    }


def _changed_json(row: Entry, then: Entry | None) -> dict[str, Any] | None:
    if then is None or row.is_log_only:
        return None
    found = changes(PastRun(id=then.id, name=then.name, settings=then.settings), row.settings)
    return {"since": found.since, "since_id": found.since_id, **differences(found.items)}


def differences(items: Sequence[Change]) -> dict[str, Any]:
    """Return changes by kind: env and files by name, argv and cwd whole."""
    fields: dict[str, Any] = {"env": {}, "files": {}}
    for each in items:
        if each.kind in ("env", "file"):
            fields["env" if each.kind == "env" else "files"][each.what] = [each.then, each.now]
        else:
            fields[each.kind] = [each.then, each.now]
    return fields


def _unread_whys(row: Entry) -> dict[str, str]:
    """Say of each `null` of a run whose log is still to be read that it may be told later."""
    lacking = {"tok_s": row.steady_tok_s is None, "step": row.last_step is None, "peak_bytes": not row.peaks}
    return {field: UNREAD_WHY for field, is_lacking in lacking.items() if is_lacking}


def no_steps_why(row: Entry) -> str:
    """Say why the step of a run is not known."""
    if row.is_log_only and row.log_size == 0:
        return "its log is empty"
    if row.is_log_only and row.stepped:
        return "the step lines of its log name no step"
    if row.is_log_only or row.reason == Reason.FORMAT_UNKNOWN:
        return "no line of its log is a step line of a known format"
    return "no step was seen by a console" if row.stepped or not row.is_over else "no step was seen in its log"


def whys(row: Entry) -> dict[str, str]:
    """Say of each `null` that isn't plain from the rest why it is one."""
    found = {}
    if row.is_log_only:
        found["id"] = "only its log is known"
    if row.steady_tok_s is None:
        stated = "no steady step was seen by a console" if not row.is_log_only else "the log states no steady rate"
        found["tok_s"] = stated if row.last_step is not None or not row.is_log_only else no_steps_why(row)
    if row.last_step is None:
        found["step"] = no_steps_why(row)
    if not row.peaks:
        found["peak_bytes"] = "no GPU sample of it is known"
    if row.loss_state in ("nan", "inf"):
        found["loss"] = "the loss is not a number"
    return found
