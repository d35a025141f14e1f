"""The row that says where a recording is: moment, speed, how far, its stages. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from console.ui.present import words
from console.ui.present.look import Look
from console.ui.present.spans import Line, Role, Span, cells, dim, faint, strong

_KEYS = (("space", "pause"), ("( )", "10 s"), ("- +", "speed"), ("{ }", "stage"))


def play_bar(
    at: float,
    position_s: float,
    length_s: float,
    speed: float,
    marks: Sequence[tuple[float, str]],
    width: int,
    look: Look,
    *,
    is_paused: bool,
) -> Line:
    """`REPLAY 14:31:59  1m 12s of 2h 14m  x8  k━━c━s━━━C───E  space pause`: exactly one row."""
    state = Span(" PAUSED " if is_paused else " REPLAY ", Role.BUSY, True)
    length = words.whole_duration(length_s)
    here = f"{words.whole_duration(position_s)} of {length}"
    head = [state, strong(f" {words.clock(at, look.zone)}"), dim(f"  {here}"), dim(f"  ×{speed:g}"), Span("  ")]
    used = sum(cells(span.text) for span in head)
    keys: list[Span] = []
    for key, label in _KEYS:
        more = [Span("  "), strong(key), dim(f" {'go on' if is_paused and label == 'pause' else label}")]
        if used + sum(cells(span.text) for span in (*keys, *more)) + 24 > width:
            break
        keys += more
    room = width - used - sum(cells(span.text) for span in keys) - 1
    if room < 8:
        return tuple(head)
    return (*head, *_track(position_s, length_s, marks, room, look), *keys)


def _track(
    position_s: float, length_s: float, marks: Sequence[tuple[float, str]], width: int, look: Look
) -> list[Span]:
    """Return the way so far and the way to go, a letter where each stage began (`E`: the end)."""

    def place(at: float) -> int:
        return min(width - 1, int(at / max(length_s, 1e-9) * width))

    letters = {place(at): ("E" if name == "end" else "C" if name == "cuda" else name[0]) for at, name in marks}
    done = place(position_s)
    track: list[Span] = []
    for cell in range(width):
        if cell in letters:
            track.append(Span(letters[cell], Role.STRONG if cell <= done else Role.DIM, cell <= done))
        else:
            track.append(Span(look.glyphs.used, Role.BUSY) if cell <= done else faint(look.glyphs.free))
    return track
