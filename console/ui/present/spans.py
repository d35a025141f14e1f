"""Styled text without a terminal: spans with a colour role, and the few operations on lines of them.

Widths are terminal cells. A role says what a text means; the stylesheets say how it looks. Pure; imports nothing of
ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size


class Role(StrEnum):
    """What a piece of text means; one component class `role--…` each."""

    TEXT = "text"
    STRONG = "strong"
    DIM = "dim"
    FAINT = "faint"
    RULE = "rule"
    OK = "ok"
    WARN = "warn"
    ERROR = "error"
    BUSY = "busy"
    TARGET = "target"
    DRAFTER = "drafter"
    ON_FILL = "on-fill"
    KEEP = "keep"  # the button that changes nothing
    DANGER = "danger"  # the button that acts
    OFF = "off"  # a button that waits
    MATCH = "match"  # a search hit


class Span(NamedTuple):
    text: str
    role: Role = Role.TEXT
    bold: bool = False


Line = tuple[Span, ...]
View = tuple[Line, ...]

BLANK: Line = ()


def strong(text: str) -> Span:
    return Span(text, Role.STRONG, True)


def dim(text: str) -> Span:
    return Span(text, Role.DIM)


def faint(text: str) -> Span:
    return Span(text, Role.FAINT)


@lru_cache(maxsize=4096)
def cells(text: str) -> int:
    """Return how many terminal cells a text takes."""
    return cell_len(text)


def width_of(line: Iterable[Span]) -> int:
    return sum(cells(span.text) for span in line)


def text_of(line: Iterable[Span]) -> str:
    return "".join(span.text for span in line)


def as_text(view: Iterable[Line]) -> str:
    """Return a view as plain text, one row a line, for tests and for the clipboard."""
    return "\n".join(text_of(line).rstrip() for line in view)


def clip(text: str, width: int, mark: str = "…") -> str:
    """Cut free text to a width, ending in a mark. Only for free text: never for a number, a unit or an age."""
    if cells(text) <= width:
        return text
    if width <= 0:
        return ""
    return set_cell_size(text, width - cells(mark)).rstrip() + mark if width > cells(mark) else mark[:width]


def cut(line: Iterable[Span], width: int) -> Line:
    """Cut a line of free text to a width."""
    kept: list[Span] = []
    for span in line:
        room = width - width_of(kept)
        if cells(span.text) > room:
            return (*kept, span._replace(text=clip(span.text, room)))
        kept.append(span)
    return tuple(kept)


def keep_end(text: str, width: int) -> str:
    """Drop words from the start until the rest fits: the numbers stand at the end of what a run says it does."""
    while cells(text) > width and " " in text:
        text = text.partition(" ")[2]
    return clip(text, width)


def clip_path(path: str, width: int, mark: str = "…") -> str:
    """Take folders out of the middle of a path until it fits: how it begins and its name tell it from others."""
    if cells(path) <= width:
        return path
    parts = path.split("/")
    for lead in ("/".join(parts[:2]) + "/", ""):
        for first in range(2, len(parts)):
            text = f"{lead}{mark}/{'/'.join(parts[first:])}"
            if cells(text) <= width:
                return text
    kept = path[-max(0, width - cells(mark)) :] if width > cells(mark) else ""
    while cells(kept) > width - cells(mark) > 0:
        kept = kept[1:]
    return f"{mark}{kept}" if width >= cells(mark) else ""


def clip_line(line: Sequence[Span], width: int, mark: str = "…") -> Line:
    """Cut a line of spans to a width, ending in a mark where something was cut."""
    if width_of(line) <= width:
        return tuple(line)
    out: list[Span] = []
    left = width
    for index, span in enumerate(line):
        size = cells(span.text)
        rest = any(other.text.strip() for other in line[index + 1 :])
        if size < left or (size == left and not rest):
            out.append(span)
            left -= size
            continue
        out.append(span._replace(text=clip(span.text + ("x" if rest else ""), left, mark)))
        break
    return tuple(out)


def pad(line: Sequence[Span], width: int, role: Role = Role.TEXT) -> Line:
    """Fill a line with blanks up to a width."""
    missing = width - width_of(line)
    return (*line, Span(" " * missing, role)) if missing > 0 else tuple(line)


def spread(left: Sequence[Span], right: Sequence[Span], width: int, *, gap: int = 2) -> Line:
    """Put one part at the left and one at the right edge; the right one goes when both don't fit."""
    free = width - width_of(left) - width_of(right)
    if not right or free < gap:
        return tuple(left)
    return (*left, Span(" " * free), *right)


def whole_facts(facts: Sequence[str], width: int, joint: str = " · ") -> str:
    """Join as many facts as fit, dropping whole ones from the end; a fact is never cut.

    The first fact may stand alone beyond the width: the caller wraps or clips it.
    """
    kept = [fact for fact in facts if fact]
    while len(kept) > 1 and cells(joint.join(kept)) > width:
        kept.pop()
    return joint.join(kept)


def wrap_facts(facts: Sequence[str], width: int, joint: str = ", ", *, first_less: int = 0) -> list[str]:
    """Join facts into as many rows as they need; a row ends between two facts, within one only where it is too long.

    The first row is narrower by `first_less`.
    """
    rows: list[str] = []
    row = ""
    tail = joint.rstrip() if joint.startswith(",") else ""
    for fact in facts:
        candidate = f"{row}{joint}{fact}" if row else fact
        if cells(candidate + tail) <= width - (0 if rows else first_less):
            row = candidate
            continue
        if row:
            rows.append(row + tail)
        *whole, row = wrap(fact, width - (0 if rows else first_less))
        rows += whole
    return [*rows, row] if row else rows


def whole_spans(groups: Sequence[Sequence[Span]], width: int, joint: Sequence[Span] = ()) -> Line:
    """Join groups of spans, dropping whole groups from the end until they fit."""
    kept = [tuple(group) for group in groups if group]
    while kept:
        line: list[Span] = []
        for index, group in enumerate(kept):
            line.extend(joint if index else ())
            line.extend(group)
        if width_of(line) <= width:
            return tuple(line)
        kept.pop()
    return ()


def wrap(text: str, width: int) -> list[str]:
    """Wrap at blanks, and within words only where a word is longer than a row; nothing is lost but blanks at breaks."""
    if cells(text) <= width and not text.startswith(" "):
        return [text]
    rows: list[str] = []
    row = ""
    for word in text.split(" "):
        candidate = f"{row} {word}" if row else word
        if cells(candidate) <= width:
            row = candidate
            continue
        if row:
            rows.append(row)
        row = word
        while cells(row) > width > 0:
            head = set_cell_size(row, width).rstrip(" ") or row[:1]
            rows.append(head)
            row = row[len(head) :]
    if row or not rows:
        rows.append(row)
    return rows
