"""`explain`: the verdict on any log file, from its bytes and, where known, how its process ended. Needs no host."""

from __future__ import annotations

import os
import sys
from collections import deque
from typing import IO, Any, Final

from console.headless import output
from console.reasons import CATALOGUE, Entry, Exit, Reason
from console.state.judging import SIGNAL_NUMBERS, Ended, signal_name
from console.state.postmortem import Evidence, Finding, Piece, examine

HEAD_BYTES: Final = 256 * 1024
"""Settings and headers stand at the start."""
TAIL_BYTES: Final = 2 * 1024 * 1024
"""The end, the first cause and the steps before them; a log of any size costs no more memory than this."""
COUNTED_BYTES: Final = 256 * 1024 * 1024
"""Up to here the lines left out are counted, at about a second per gigabyte."""
_BLOCK: Final = 512 * 1024
_MAX_TEXT: Final = 400
_WIDEST_SLUG: Final = max(len(reason) for reason in Reason)


def run(path: str, *, exit_status: int | None, signal: str | None, as_json: bool) -> int:
    """Carry the command out; return its exit code."""
    ended = ended_from(exit_status, signal)
    if path == "-":
        pieces = _pieces_of_stream(sys.stdin.buffer)
    else:
        with open(path, "rb") as file:
            pieces = _pieces_of_file(file)
    found = examine(pieces, ended)
    if as_json:
        output.emit_json(_fields(found, ended, path))
    else:
        for line in _lines(found, ended):
            output.say(line)
    return Exit.OK


def list_all(*, as_json: bool) -> int:
    """Print the catalogue: slug, severity, title."""
    if as_json:
        reasons = [
            {"reason": str(slug), "severity": str(e.severity), "title": e.title} for slug, e in CATALOGUE.items()
        ]
        output.emit_json({"reasons": reasons, "exit_code": int(Exit.OK)})
        return Exit.OK
    for slug, entry in CATALOGUE.items():
        output.say(f"{slug:<{_WIDEST_SLUG}}  {entry.severity:<7}  {entry.title}")
    return Exit.OK


def signal_number(text: str) -> int | None:
    """Return the number of `SIGKILL`, `kill` or `9`; None where there is no such signal."""
    word = text.strip().upper()
    if word.lstrip("-").isdigit():
        number = abs(int(word))
        return number if 0 < number < 65 else None
    return SIGNAL_NUMBERS.get(word if word.startswith("SIG") else f"SIG{word}")


def ended_from(exit_status: int | None, signal: str | None) -> Ended:
    """Return how it ended; a negative status is a signal, as Python writes it."""
    number = signal_number(signal) if signal is not None else None
    if exit_status is not None and exit_status < 0:
        number, exit_status = number if number is not None else -exit_status, None
    return Ended(code=exit_status, signal=number, may_live=exit_status is None and number is None)


# -- reading ----------------------------------------------------------------------------------------------------------


def _pieces_of_file(file: IO[bytes]) -> list[Piece]:
    if not file.seekable():
        return _pieces_of_stream(file)
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size <= HEAD_BYTES + TAIL_BYTES:
        return [Piece(0, file.read(size))]
    head = file.read(HEAD_BYTES)
    at = size - TAIL_BYTES
    lines = head.count(b"\n") + _count_lines(file, at - HEAD_BYTES) if size <= COUNTED_BYTES else None
    file.seek(at)
    return [Piece(0, head), Piece(at, file.read(TAIL_BYTES), lines)]


def _count_lines(file: IO[bytes], left: int) -> int:
    lines = 0
    while left > 0 and (block := file.read(min(_BLOCK, left))):
        lines += block.count(b"\n")
        left -= len(block)
    return lines


def _pieces_of_stream(stream: IO[bytes]) -> list[Piece]:
    """Read to the end, keeping the start and as many of the last blocks as the tail holds."""
    head = stream.read(HEAD_BYTES)
    blocks: deque[bytes] = deque()
    kept, at, lines = 0, len(head), head.count(b"\n")
    while block := stream.read(_BLOCK):
        blocks.append(block)
        kept += len(block)
        while kept - len(blocks[0]) >= TAIL_BYTES:
            gone = blocks.popleft()
            kept, at, lines = kept - len(gone), at + len(gone), lines + gone.count(b"\n")
    return [Piece(0, head), Piece(at, b"".join(blocks), lines)] if blocks else [Piece(0, head)]


# -- writing ----------------------------------------------------------------------------------------------------------


def _entry(found: Finding) -> Entry:
    return CATALOGUE[found.reason if found.reason is not None else Reason.RUNNING_OK]


def _fields(found: Finding, ended: Ended, path: str) -> dict[str, Any]:
    entry = _entry(found)
    return {
        "file": path,
        "reason": str(found.reason) if found.reason is not None else None,
        "title": entry.title,
        "severity": str(entry.severity),
        "meaning": entry.meaning,
        "detail": _cut(found.detail),
        "evidence": [{"line": each.line, "text": _cut(each.text)} for each in found.evidence],
        "safe": entry.safe,
        "next": output.advice(entry.next),
        "step": found.step,
        "total_steps": found.total_steps,
        "status": ended.code,
        "signal": ended.signal,
        "exit_code": int(Exit.OK),
    }


def _lines(found: Finding, ended: Ended) -> list[str]:
    entry = _entry(found)
    slug = str(found.reason) if found.reason is not None else "ok"
    lines = [f"{slug}: {entry.title}", f"  {entry.meaning}"]
    lines += [_evidence_line(each) for each in found.evidence[:3]]
    lines.append(f"  ended: {_end_words(ended)}")
    lines.append(f"  safe: {entry.safe}")
    lines.append(f"  next: {'; or: '.join(output.advice(entry.next))}")
    return lines


def _evidence_line(evidence: Evidence) -> str:
    where = f"line {evidence.line}" if evidence.line is not None else "near the end"
    return f"  {where}: {_cut(evidence.text)}"


def _end_words(ended: Ended) -> str:
    if ended.signal is not None:
        return signal_name(ended.signal)
    if ended.code is None:
        return "not told; by the log alone"
    by_signal = f" ({signal_name(ended.by_signal)})" if ended.by_signal is not None else ""
    return f"exit status {ended.code}{by_signal}"


def _cut(text: str) -> str:
    text = output.one_line(text.strip())
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"
