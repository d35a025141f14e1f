"""The time that a log line says it was written at. Pure: zones and clocks are the caller's."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

_NEAR: Final = 120
"""Characters in which a stamp stands before the record: behind ranks, labels and levels."""
_STAMP: Final = re.compile(
    r"(?<!\d)(?P<y>20\d\d)[-/](?P<m>\d\d)[-/](?P<d>\d\d)[T ](?P<h>\d\d):(?P<min>\d\d):(?P<s>\d\d)"
    r"(?:[.,](?P<frac>\d{1,9}))?(?:(?P<z>Z)|(?P<sign>[+-])(?P<zh>\d\d):?(?P<zm>\d\d))?(?!\d)"
)


def read_stamp(text: str, utc_offset_s: float) -> float | None:
    """Return the Unix time that a line bears, taken as local time of that offset where it names no zone; else None."""
    if ":" not in text[:_NEAR] or (match := _STAMP.search(text, 0, _NEAR)) is None:
        return None
    zone = timezone(timedelta(seconds=utc_offset_s))
    if match["z"]:
        zone = UTC
    elif match["sign"]:
        minutes = int(match["zh"]) * 60 + int(match["zm"])
        if minutes >= 24 * 60:
            return None
        zone = timezone(timedelta(minutes=minutes if match["sign"] == "+" else -minutes))
    try:
        whole = datetime(*(int(match[name]) for name in ("y", "m", "d", "h", "min", "s")), tzinfo=zone)  # type: ignore[misc,arg-type]
    except ValueError:
        return None
    return whole.timestamp() + float(f"0.{match['frac']}" if match["frac"] else 0)
