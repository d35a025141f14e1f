"""How to draw: the glyphs of the terminal, the operator's zone. Chosen once at start. Pure."""

from __future__ import annotations

from datetime import tzinfo
from typing import NamedTuple

from console.model import StageState, Verdict


class Glyphs(NamedTuple):
    """Every non-ASCII sign that stands for something; `--ascii` swaps the set."""

    ok: str = "✓"
    active: str = "▶"
    pending: str = "○"
    warn: str = "!"
    fail: str = "✗"
    skip: str = "–"
    none: str = "·"
    unknown: str = "?"
    live: str = "●"
    idle: str = "■"
    used: str = "━"
    free: str = "─"
    peak: str = "╎"
    usual: str = "┈"
    rule: str = "─"
    awaited: str = "…"
    cursor: str = "›"
    checkpoint: str = "◆"
    restart: str = "↻"
    mark: str = "▌"
    bar: str = "↻"
    bad: str = "✗"
    """One cell wide in every set, unlike `fail`."""
    below: str = "▾"
    above: str = "▴"
    more: str = "▼"
    axis: str = "│"
    tick: str = "┤"
    corner: str = "└"
    floor: str = "─"
    floor_tick: str = "┬"
    spark: str = "▁▂▃▄▅▆▇█"
    ascii: bool = False


UNICODE = Glyphs()
ASCII = Glyphs(
    ok="[x]",
    active="[>]",
    pending="[ ]",
    warn="[!]",
    fail="[!]",
    skip="[-]",
    none="[ ]",
    unknown="[?]",
    live="*",
    idle="#",
    used="#",
    free="-",
    peak="|",
    usual=".",
    rule="-",
    awaited=".",
    cursor=">",
    checkpoint="*",
    restart="R",
    mark="|",
    bar="@",
    bad="x",
    below="v",
    above="^",
    more="v",
    axis="|",
    tick="+",
    corner="+",
    floor="-",
    floor_tick="+",
    spark=".:-=+*#%",
    ascii=True,
)

# What may still stand in sentences, one cell for one cell.
_TO_ASCII = str.maketrans(
    {
        "·": "|",
        "–": "-",
        "−": "-",
        "…": "~",
        "→": ">",
        "±": "+",
        "└": "`",
        "│": "|",
        "─": "-",
        "━": "#",
        "°": " ",
        "═": "=",
        "✓": "+",
        "✗": "x",
        "●": "*",
        "■": "#",
        "▶": ">",
        "○": "o",
        "▼": "v",
        "◆": "*",
        "↻": "@",
        "╎": "|",
        "┈": ".",
        "█": "#",
        "▓": "#",
        "▒": "=",
        "░": ".",
        "▉": "#",
        "▊": "#",
        "▋": "#",
        "▌": "|",
        "▍": "|",
        "▎": "|",
        "▏": "|",
        "•": "*",
        "“": '"',
        "”": '"',
        "’": "'",
        "↑": "^",
        "↓": "v",
        "←": "<",
    }
)


def to_ascii(text: str) -> str:
    """Return a text of the same width with ASCII in place of every other sign."""
    if text.isascii():
        return text
    return "".join(char if char.isascii() else "?" for char in text.translate(_TO_ASCII))


class Look(NamedTuple):
    """What the presentation needs to know of the terminal and its operator."""

    glyphs: Glyphs = UNICODE
    zone: tzinfo | None = None


VERDICT_WORDS: dict[Verdict, str] = {
    Verdict.NO_WORD: "NO WORD YET",
    Verdict.IDLE: "IDLE",
    Verdict.LAUNCHING: "LAUNCHING",
    Verdict.STEPPING: "STEPPING",
    Verdict.RUNNING: "RUNNING",
    Verdict.SLOW: "SLOW",
    Verdict.STALLED: "STALLED",
    Verdict.NAN: "NAN LOSS",
    Verdict.SPIKE: "LOSS SPIKE",
    Verdict.SUSPENDED: "SUSPENDED",
    Verdict.NOT_EXITED: "NOT EXITED",
    Verdict.FAILED: "FAILED",
    Verdict.ENDED: "ENDED",
    Verdict.FINISHED: "FINISHED",
    Verdict.STOPPED: "STOPPED",
    Verdict.INTERRUPTED: "INTERRUPTED",
    Verdict.LINK_LOST: "LINK LOST",
    Verdict.FROZEN: "FROZEN",
    Verdict.HOST_RESTARTED: "HOST RESTARTED",
}

STANDS = frozenset({Verdict.STALLED, Verdict.SUSPENDED, Verdict.NOT_EXITED})
"""A run that is alive and makes no step: its last rate is none of now."""


def stage_glyph(state: StageState, glyphs: Glyphs) -> str:
    match state:
        case StageState.PENDING:
            return glyphs.pending
        case StageState.ACTIVE:
            return glyphs.active
        case StageState.LATE:
            return glyphs.warn
        case StageState.DONE:
            return glyphs.ok
        case StageState.SKIPPED:
            return glyphs.skip
        case StageState.FAILED:
            return glyphs.fail
        case StageState.NOT_REACHED:
            return glyphs.none
        case StageState.UNKNOWN:
            return glyphs.unknown
