"""`formats`: what is recognised in a log, line by line, and which format won; without a file, the formats there are."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from console import formatfile
from console.bounded import given_up
from console.headless import output
from console.reasons import ConsoleError, Exit, Reason
from console.state.formatrules import Format, FormatError, Kind, meant_groups
from console.state.formats import FORMATS
from console.state.recognise import Recogniser, Row, Verdict

_CHUNK_BYTES = 1 << 18
_TEXT_CHARS = 72
_COUNTS = re.compile(r"\b(?:step|iter(?:ation)?|it|update|batch)s?\b\W{0,4}\d", re.IGNORECASE)
"""What a step line of an unknown format looks like."""


def run(file: str | None, *, chosen: str, tokens_per_step: int | None, as_json: bool) -> int:
    """Carry the command out; return its exit code."""
    if file is None:
        return _table(as_json=as_json)
    try:
        fmt = formatfile.resolve(chosen)
        recogniser = Recogniser(fmt, tokens_per_step)
    except FormatError as exc:
        raise ConsoleError(Reason.CONFIG, f"--format: {exc}", Exit.USAGE) from exc
    if not as_json:
        output.say(f"{'LINE':>7} {'KIND':6} {'STEP':>9} {'LOSS':>10} {'TOK/S':>10} {'SCOPE':10} {'FORMAT':15} TEXT")
    nearest: Row | None = None
    for row in _rows(file, recogniser):
        _say(row, as_json=as_json)
        if nearest is None and row.kind is Kind.OTHER and _COUNTS.search(row.text):
            nearest = row
    verdict = recogniser.verdict()
    _conclude(verdict, [*_hints(fmt), *(_near(nearest) if not verdict.steps else ())], as_json=as_json)
    return Exit.OK


def _rows(file: str, recogniser: Recogniser) -> Iterator[Row]:
    with _opened(file) as log:
        while data := log.read1(_CHUNK_BYTES):  # of a pipe: what is there
            yield from recogniser.feed(data)
    yield from recogniser.end()


def _opened(file: str) -> io.BufferedIOBase:
    return cast(io.BufferedIOBase, sys.stdin.buffer) if file == "-" else Path(file).open("rb")


def _hints(fmt: str | Format) -> Iterator[str]:
    """Say what is odd about a format of one's own."""
    if isinstance(fmt, str):
        return
    for rule in fmt.rules:
        for name, meant in meant_groups(rule.head.compiled().groupindex).items():
            if name in fmt.aliases or name in fmt.rates:
                continue
            yield f"the group {name} is a figure of its own; {meant} is perhaps meant"
    if (source := given_up(fmt)) is not None:
        yield (
            f"lines are not read by {source} any more: it takes too long on some; "
            "write it without a repeat inside of a repeat"
        )


def _near(row: Row | None) -> Iterator[str]:
    """Name the line that looks most like a step line where none was one."""
    if row is not None:
        text = output.one_line(row.text)[:_TEXT_CHARS]
        yield f"line {row.line} looks like a step line: {text}; teach it with --format '...(?P<step>\\d+)...'"


def _say(row: Row, *, as_json: bool) -> None:
    if as_json:
        output.emit_json(
            {
                "line": row.line,
                "kind": row.kind,
                "step": row.step,
                "loss": row.loss,
                "tok_s": row.tok_s,
                "rate": row.rate,
                "scope": row.scope,
                "format": row.format,
                "at_step": row.at_step,
                "total_steps": row.total_steps,
                "loss_state": row.loss_state,
                "lr": row.lr,
                "grad_norm": row.grad_norm,
                "queue": row.queue_min,
                "queue_depth": row.queue_max,
                "eta_s": row.eta_s,
                "extra": row.extra,
            }
        )
        return
    loss = row.loss_state if row.loss is None and row.loss_state else _number(row.loss)
    text = output.one_line(row.text)[:_TEXT_CHARS]
    output.say(
        f"{row.line:>7} {row.kind:6} {_number(row.step):>9} {loss:>10} {_number(row.rate):>10} "
        f"{row.scope or '-':10} {row.format or '-':15} {text}".rstrip()
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.9g}"


def _conclude(verdict: Verdict, hints: list[str], *, as_json: bool) -> None:
    if as_json:
        output.emit_json(
            {
                "line": None,
                "kind": "verdict",
                "format": verdict.format,
                "why": verdict.why,
                "lines": verdict.lines,
                "understood": verdict.understood,
                "steps": verdict.steps,
                "counts": verdict.counts,
                "hints": hints,
            }
        )
        return
    output.say(
        f"format {verdict.format or 'unknown'}: {verdict.why} "
        f"({verdict.understood:,} of {verdict.lines:,} lines understood)"
    )
    for hint in hints:
        output.say(f"hint: {output.one_line(hint)}")


def _table(*, as_json: bool) -> int:
    if as_json:
        for fmt in FORMATS:
            output.emit_json(_described(fmt))
        return Exit.OK
    width = max(len(fmt.name) for fmt in FORMATS)
    output.say(f"{'FORMAT':{width}}  TRAINER · tokens/s")
    for fmt in FORMATS:
        output.say(f"{fmt.name:{width}}  {fmt.title} · {_rate_words(fmt)}")
    return Exit.OK


def _described(fmt: Format) -> dict[str, Any]:
    return {"format": fmt.name, "title": fmt.title, "rates": dict(fmt.rates), "derived": fmt.derives or None}


def _rate_words(fmt: Format) -> str:
    stated = [f"{key} ({scope.replace('_', ' ')})" for key, scope in fmt.rates.items()]
    derived = [f"derived: {fmt.derives}"] if fmt.derives else []
    return "; ".join([", ".join(stated), *derived] if stated else derived) or "none"
