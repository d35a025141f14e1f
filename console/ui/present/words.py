"""Numbers, durations, sizes and clock times in the words of the screens.

`?` is not known, `–` is not applicable, `~` an estimate. Absent is never 0. Pure.
"""

from __future__ import annotations

import math
from datetime import datetime, tzinfo

from console.state.texts import UNKNOWN, count, duration, gib, parts, ranges, rate, size, span

__all__ = ["UNKNOWN", "count", "duration", "gib", "parts", "ranges", "rate", "size", "span"]

NOT_APPLICABLE = "–"
MINUS = "−"

_GIB = 1024.0**3


def short_duration(seconds: float | None) -> str:
    """`0 s`, `0.8 s`, `12 s`, `1m 52s`: for rows where every cell counts."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    seconds = max(0.0, seconds)
    if seconds < 0.095:
        return "0 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    return _long(seconds)


def whole_duration(seconds: float | None) -> str:
    """`42 s`, `6m 12s`: what is counted in whole seconds."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    seconds = max(0.0, seconds)
    return f"{int(seconds)} s" if seconds < 60 else _long(math.floor(seconds))


def tight_duration(seconds: float | None) -> str:
    """`42s`, `2m40s`, `3h05m`: the big number, without blanks."""
    return whole_duration(seconds).replace(" ", "")


def _long(seconds: float) -> str:
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600}h"


def age(seconds: float | None) -> str:
    """`12 s old`, `4 min old`, `3 h old`."""
    if seconds is None or not math.isfinite(seconds):
        return "never seen"
    seconds = max(0.0, seconds)
    if seconds < 60:
        return f"{int(seconds)} s old"
    if seconds < 3600:
        return f"{int(seconds // 60)} min old"
    if seconds < 86400:
        return f"{int(seconds // 3600)} h old"
    return f"{int(seconds // 86400)} d old"


def round_rate(value: float) -> str:
    """`20K`: a rate on an axis, where values are round."""
    text = rate(value)
    return text[:-3] + text[-1] if text[-3:-1] == ".0" else text


def spread_of(mad: float | None, per_second: float | None) -> str:
    """A MAD in the unit of the rate that it belongs to: `±0.2` and `±0.03` beside `21.4K`, `±3` beside `112`."""
    if mad is None or per_second is None or not math.isfinite(mad):
        return ""
    units = (("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))
    unit = next((size for mark, size in units if rate(per_second).endswith(mark)), 1.0)
    if not mad:
        return "±0"
    if unit == 1.0:
        return f"±{mad:.0f}" if mad >= 1 else f"±{mad:.1g}"
    return f"±{mad / unit:.{1 if mad / unit >= 0.05 else 2}f}"


def number(value: float | None) -> str:
    """A queue depth or the like: `6`, `5.5`."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def loss(value: float | None) -> str:
    """`1.192`; `4.50e-07` and `4.50e+08` where three decimals would say nothing or far too much."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:.3f}" if not value or 0.001 <= abs(value) < 1e6 else f"{value:.2e}"


def loss_difference(value: float) -> str:
    """`+0.013`, `−0.052`, with a sign."""
    text = loss(abs(value))
    return f"{MINUS if value < 0 and float(text) else '+'}{text}"


def percent_change(value: float | None) -> str:
    """`+2.1 %` or `−17 %`, with a sign."""
    if value is None or not math.isfinite(value):
        return ""
    text = f"{abs(value):.1f}" if abs(value) < 9.95 else f"{abs(value):.0f}"
    return f"{MINUS if value < 0 and float(text) else '+'}{text} %"


def whole_gib(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value / _GIB:.0f}"


def clock(at: float | None, zone: tzinfo | None, *, seconds: bool = True) -> str:
    """A moment in the operator's zone: `14:34:06` or `14:34`."""
    if at is None or not math.isfinite(at):
        return UNKNOWN
    try:
        return datetime.fromtimestamp(at, zone).strftime("%H:%M:%S" if seconds else "%H:%M")
    except (OverflowError, OSError, ValueError):
        return UNKNOWN


def day_and_clock(at: float | None, zone: tzinfo | None) -> str:
    """A moment that may be long ago: `2026-08-20 12:18`."""
    if at is None or not math.isfinite(at):
        return UNKNOWN
    try:
        return datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return UNKNOWN


def plural(n: int, noun: str) -> str:
    """`1 pid`, `2 pids`, `2 processes`."""
    if n == 1:
        return f"1 {noun}"
    return f"{n:,} {noun}es" if noun.endswith("s") else f"{n:,} {noun}s"


def launches(n: int) -> str:
    return "1 launch" if n == 1 else f"{n:,} launches"


def one_line(text: str) -> str:
    """Free text on one row: control characters become visible, line breaks blanks."""
    if text.isprintable():  # nearly all: nothing of what follows would change it
        return text
    out = []
    for char in text:
        code = ord(char)
        if char in "\n\t\r":
            out.append(" ")
        elif code < 0x20:
            out.append(chr(0x2400 + code))
        elif code == 0x7F or 0x80 <= code < 0xA0 or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069:
            out.append("␡" if code == 0x7F else "�")
        else:
            out.append(char)
    return "".join(out)


def day(at: float, zone: tzinfo | None) -> str:
    """`20 Aug`, for plots of many days."""
    try:
        moment = datetime.fromtimestamp(at, zone)
    except (OverflowError, OSError, ValueError):
        return UNKNOWN
    return f"{moment.day} {moment.strftime('%b')}"
