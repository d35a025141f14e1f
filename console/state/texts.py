"""How durations, sizes and numbers are written in the sentences of evidence.

Only formatting lives here: a number in, words out, nothing rounded to a lie (absent is `?`, never 0). Anybody may
import this module. Clock times aren't written here: they need the operator's zone.
"""

from __future__ import annotations

from collections.abc import Iterable

UNKNOWN = "?"
_KIB = 1024
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")


def duration(seconds: float | None) -> str:
    """`0.01 s`, `0.2 s`, `11.8 s`, `1m 04s`, `2h 14m`, `3d 04h`; a negative one is written as 0."""
    if seconds is None:
        return UNKNOWN
    seconds = max(0.0, seconds)
    if seconds < 0.095:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    return _long(round(seconds))


def span(seconds: float | None) -> str:
    """The same in whole seconds and as short as possible: `4 s`, `60 s`, `4m`, `6m 12s`, `2h 14m`."""
    if seconds is None:
        return UNKNOWN
    whole = round(max(0.0, seconds))
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60}m" if whole < 3600 and whole % 60 == 0 else _long(whole)


def _long(whole: int) -> str:
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600:02d}h"


def size(n_bytes: float | None) -> str:
    """`211 B`, `3.1 GiB`, `574 GiB`."""
    if n_bytes is None:
        return UNKNOWN
    if n_bytes < _KIB:
        return f"{n_bytes:.0f} B"
    value, unit = n_bytes / _KIB, 0
    # 1,023.5 would be rounded to 1,024 of the smaller unit.
    while value >= _KIB - 0.5 and unit < len(_UNITS) - 1:
        value, unit = value / _KIB, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if value < 99.95 else f"{value:.0f} {_UNITS[unit]}"


def gib(n_bytes: float | None) -> str:
    """Always in GiB with one decimal and without the unit, for pairs such as `137.9 of 139.8 GiB`."""
    return UNKNOWN if n_bytes is None else f"{n_bytes / _KIB**3:.1f}"


def count(number: float | None) -> str:
    """`18,420`."""
    return UNKNOWN if number is None else f"{number:,.0f}"


_RATES = ((999_950e6, 1e12, "T"), (999_950e3, 1e9, "G"), (999_950.0, 1e6, "M"), (999.5, 1e3, "K"))


def rate(per_second: float | None) -> str:
    """`112`, `9.8K`, `21.5K`, `1.2M`; one that is not 0 is not written as 0: `0.031`."""
    if per_second is None:
        return UNKNOWN
    for from_, unit, mark in _RATES:
        if abs(per_second) >= from_:
            return f"{per_second / unit:.1f}{mark}"
    return f"{per_second:.0f}" if abs(per_second) >= 1 or not per_second else f"{per_second:.2g}"


def difference(percent: float | None) -> str:
    """`+2.1 %`, `−17 %` (U+2212); one decimal below ten."""
    if percent is None:
        return UNKNOWN
    digits = 1 if abs(percent) < 9.95 else 0
    return f"{'−' if percent < 0 else '+'}{abs(percent):.{digits}f} %"


def plural(number: int, one: str, many: str | None = None) -> str:
    """`1 line`, `412 lines`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def ranges(numbers: Iterable[int]) -> str:
    """`6, 7` or `0–4, 6`: runs of three and more are joined."""
    parts: list[str] = []
    run: list[int] = []
    for number in [*sorted(numbers), None]:
        if run and (number is None or number != run[-1] + 1):
            parts.extend([f"{run[0]}–{run[-1]}"] if len(run) > 2 else [str(each) for each in run])
            run = []
        if number is not None:
            run.append(number)
    return ", ".join(parts)


def parts(places: Iterable[str]) -> str:
    """`GPU 0 part 2, GPU 1 part 0` of `0:2`, `1:0`."""
    return ", ".join(f"GPU {gpu} part {part}" for gpu, _, part in (place.partition(":") for place in places))


def joined(*facts: str) -> str:
    """Facts in order of worth, joined as on the screens; empty ones are left out."""
    return " · ".join(fact for fact in facts if fact)
