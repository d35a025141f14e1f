"""`metrics`: the curves of a run for other tools, as one JSON object or as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

from console.config import Target
from console.engine import Engine
from console.headless import output
from console.headless.history import UNREAD_WHY, log_read, no_steps_why, say_unread, say_unwritten, whys
from console.headless.interruption import carried_out
from console.headless.session import can_look, deadline_after, opened, settled
from console.history.entry import Entry
from console.history.samples import Curves
from console.reasons import ConsoleError, Exit, Reason
from console.state.digest import Digest

_UNITS = {"tok_s": "tokens/s", "memory": "bytes", "busy": "percent", "power": "watts"}
_COLUMNS = ("run", "metric", "since_first_step_s", "at", "step", "n", "mean", "low", "high")


def run(name: str, target: Target, *, which: str | None, timeout: float | None, form: str) -> int:
    """Carry the command out; return its exit code."""
    return carried_out(_metrics(name, target, which, timeout, form))


async def _metrics(name: str, target: Target, which: str | None, timeout_s: float | None, form: str) -> int:
    deadline = deadline_after(timeout_s)
    async with opened(name, target) as engine:
        try:
            await settled(engine, deadline)
            await can_look(engine, deadline)
        except ConsoleError:
            if which is None:
                raise  # of a run of before the ledger knows all that there is
        wanted = which or engine.snapshot.run_id
        if wanted is None:
            raise ConsoleError(Reason.NOTHING_RUNS, "no run of ours is known on this target", Exit.NOTHING_RUNS)
        row, curves = await engine.archive.run(wanted)
        is_unread = row.id in engine.archive.unread
        match form:
            case "json":
                output.emit_json(_object(engine, row, curves, is_unread=is_unread))
            case "csv":
                _write_csv(row, curves)
            case _:
                for line in _table(row, curves):
                    output.say(line)
        say_unread([row.name or row.id] if is_unread else [])
        say_unwritten(engine)
        return Exit.OK


def _at(row: Entry, since_s: float) -> str | None:
    return output.utc(row.first_step_wall + since_s) if row.first_step_wall is not None else None


def _object(engine: Engine, row: Entry, curves: Curves, *, is_unread: bool) -> dict[str, Any]:
    lacking = {name: why for name, why in whys(row).items() if name in ("id", "tok_s")}
    if is_unread:
        lacking |= {name: UNREAD_WHY for name in ("tok_s",) if name in lacking}
    if not curves.digests:
        lacking["series"] = UNREAD_WHY if is_unread else _no_curve(row)
    return {
        "target": engine.name,
        "run": row.name or None,
        "id": None if row.is_log_only else row.id,
        "first_step_at": output.utc(row.first_step_wall),
        "tok_s": {"steady": row.steady_tok_s, "mad": row.steady_mad, "n": row.steady_n, "scope": row.scope},
        "log_read": log_read(row, is_unread=is_unread),
        "series": {name: _series(name, digest) for name, digest in curves.digests.items()},
        "why": lacking,
        "at": output.utc(engine.now()),
        "data_age_s": output.rounded(engine.snapshot.ages.link),
    }


def _no_curve(row: Entry) -> str:
    if row.is_log_only and row.last_step is None:
        return no_steps_why(row)
    return "no curve of it is kept: it was not watched, or had to make room"


def _series(name: str, digest: Digest) -> dict[str, Any]:
    return {
        "unit": _UNITS.get(name.partition(":")[0]),
        "width_s": digest.width_s,
        "columns": ["since_first_step_s", "step", "n", "mean", "low", "high"],
        "points": [
            [digest.middle_s(each), each.step, each.n, _short(each.mean), _short(each.low), _short(each.high)]
            for each in digest.buckets
        ],
    }


def _short(value: float) -> float:
    return float(f"{value:.7g}")


def _write_csv(row: Entry, curves: Curves) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for name, digest in curves.digests.items():
        for each in digest.buckets:
            since_s = digest.middle_s(each)
            numbers = [_short(value) for value in (each.mean, each.low, each.high)]
            step = each.step if each.step is not None else ""
            writer.writerow([row.name, name, since_s, _at(row, since_s) or "", step, each.n, *numbers])
    output.say(text.getvalue().removesuffix("\n"))


def _table(row: Entry, curves: Curves) -> list[str]:
    if not curves.digests:
        return [f"{output.one_line(row.name or row.id)}: {_no_curve(row)}"]
    rows: list[tuple[str, ...]] = [("METRIC", "POINTS", "FIRST", "LAST", "LOWEST", "HIGHEST")]
    for name, digest in curves.digests.items():
        first, last = digest.buckets[0], digest.buckets[-1]
        low, high = (min(b.low for b in digest.buckets), max(b.high for b in digest.buckets))
        rows.append((name, str(digest.count), *(f"{value:.6g}" for value in (first.mean, last.mean, low, high))))
    widths = [max(len(each[column]) for each in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(each, widths, strict=True))
        )
        for each in rows
    ]
