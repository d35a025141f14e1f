"""One line of the log pane: a gutter whose mark says what it is, and its text, wrapped or clipped. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, assert_never

from console.state.linekind import LineKind
from console.state.lines import RawLine
from console.state.logbuffer import EntryKind
from console.ui.logviewport import Shown
from console.ui.present.look import Glyphs
from console.ui.present.spans import Line, Role, Span, clip
from console.ui.present.words import one_line
from console.ui.present.wrapping import line_at

_STAMP = re.compile(r"^\[(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d(?:[.,]\d+)?\] ")


class LineLook(NamedTuple):
    """How lines are shown just now."""

    glyphs: Glyphs
    width: int
    """Cells of a line, with its gutter."""
    narrow: bool = False
    stale: bool = False
    wraps_at: int | None = None
    """Cells after which long lines go on below; None: they are clipped."""
    shift: int = 0
    """Letters by which lines were moved to the left."""
    hits: Callable[[str], list[tuple[int, int]]] | None = None
    """Tells where in a text hits stand; None while none are marked."""


def log_line(shown: Shown, kind: LineKind, look: LineLook, *, is_cursor: bool) -> Line:
    """Return one line of the pane; only the first of a wrapped row has a mark."""
    entry, text, glyphs = shown.row.entry, shown.row.text, look.glyphs
    match entry.kind:
        case EntryKind.MARK:
            return _line(glyphs.mark, text, Role.BUSY, look, bold=True)
        case EntryKind.GAP | EntryKind.NOTE | EntryKind.ANEW:
            return _line(" ", text, Role.FAINT, look)
        case EntryKind.LINE:
            pass
        case _:
            assert_never(entry.kind)
    mark, role, bold = _looks_of(kind, look)
    if look.wraps_at is not None:
        text = line_at(text, shown.line, look.wraps_at)
        mark = mark if shown.line == 0 else " "
    return _line(mark, text, role, look, bold=bold, is_cursor=is_cursor)


def live_line(live: RawLine, look: LineLook) -> Line:
    """Return the line that is being written."""
    return _line(look.glyphs.bar if live.cr else " ", live.text, Role.TEXT, look, mark_role=Role.BUSY)


def blank_gutter(*, narrow: bool) -> str:
    """Return what stands before a text without a mark."""
    return "  " if narrow else "   "


def text_room(width: int, *, narrow: bool) -> int:
    """Return how many cells of a line are its text's."""
    return width - len(blank_gutter(narrow=narrow)) - (0 if narrow else 1)


def _looks_of(kind: LineKind, look: LineLook) -> tuple[str, Role, bool]:
    """Return mark, role and boldness of a line of the file."""
    match kind:
        case LineKind.ERROR:
            return look.glyphs.bad, Role.ERROR, True
        case LineKind.WARNING:
            return "!", Role.WARN, False
        case LineKind.CHECKPOINT:
            return look.glyphs.checkpoint, Role.OK, False
        case LineKind.STEP:
            return " ", Role.DIM, False
        case LineKind.PLAIN:
            return " ", Role.TEXT if not look.stale else Role.DIM, False
        case _:
            assert_never(kind)


def _line(
    mark: str,
    text: str,
    role: Role,
    look: LineLook,
    *,
    mark_role: Role | None = None,
    bold: bool = False,
    is_cursor: bool = False,
) -> Line:
    if look.narrow and look.wraps_at is None:
        text = _STAMP.sub("", text, count=1)
    shown = clip(one_line(text)[look.shift :], text_room(look.width, narrow=look.narrow))
    gutter = Span(f"{blank_gutter(narrow=look.narrow)[:-2]}{mark} ", mark_role or role, True)
    if look.hits is not None:
        return (gutter, *_with_hits(shown, look.hits(shown), role, bold))
    return (gutter, Span(shown, Role.MATCH if is_cursor else role, bold))


def _with_hits(text: str, hits: list[tuple[int, int]], role: Role, bold: bool) -> list[Span]:
    spans, at = [], 0
    for start, end in hits:
        spans += [Span(text[at:start], role, bold), Span(text[start:end], Role.MATCH, bold)]
        at = end
    return [*spans, Span(text[at:], role, bold)]
