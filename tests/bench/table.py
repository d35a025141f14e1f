"""What was measured, beside a peer or a physical limit of the same run, as one table. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_UNITS = {
    "ms": (1000.0, "{:.0f}"),
    "s": (1.0, "{:.2f}"),
    "%": (100.0, "{:.2f}"),
    "MB": (1e-6, "{:.0f}"),
    "x": (1.0, "{:.2f}"),
}
HEADINGS = ("what", "p50", "p95", "peer or limit", "its p50", "ratio", "budget", "")


@dataclass(frozen=True, slots=True)
class Row:
    """One measured quantity. `values` and `peer` are in seconds, shares of one core, bytes or plain numbers."""

    what: str
    values: Sequence[float]
    unit: str = "ms"
    peer_name: str = ""
    peer: Sequence[float] = ()
    budget: float | None = None
    judged: str = "p95"
    """Which number the budget is about: p50 or p95."""
    why_not: str = ""
    """Why there are no values: what this machine lacks."""

    @property
    def p50(self) -> float:
        return statistics.median(self.values)

    @property
    def p95(self) -> float:
        return percentile(self.values, 0.95)

    @property
    def ratio(self) -> float | None:
        limit = statistics.median(self.peer) if self.peer else 0.0
        return self.p50 / limit if limit else None

    @property
    def is_over(self) -> bool | None:
        """None where there is no budget."""
        if self.budget is None or not self.values:
            return None
        return (self.p95 if self.judged == "p95" else self.p50) >= self.budget

    def cells(self) -> tuple[str, ...]:
        over = self.is_over
        if not self.values:
            return (self.what, "", "", f"not measured: {self.why_not}", "", "", "", "")
        return (
            self.what,
            self._number(self.p50),
            self._number(self.p95) if len(self.values) > 1 else "",
            self.peer_name,
            self._number(statistics.median(self.peer)) if self.peer else "",
            f"{self.ratio:.1f}x" if self.ratio is not None else "",
            f"{self.judged} < {self._number(self.budget)}" if self.budget is not None else "",
            "" if over is None else "OVER" if over else "ok",
        )

    def _number(self, value: float) -> str:
        factor, form = _UNITS.get(self.unit, (1.0, "{:,.0f}"))
        scaled = value * factor
        text = form.format(scaled) if abs(scaled) >= 10 or self.unit != "ms" else f"{scaled:.1f}"
        return f"{text} {self.unit}"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


def table(rows: Iterable[Row]) -> str:
    lines = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    rule = "  ".join("-" * width for width in widths)
    drawn = [
        "  ".join(_placed(cell, column, widths[column]) for column, cell in enumerate(line)).rstrip() for line in lines
    ]
    return "\n".join([drawn[0], rule, *drawn[1:]])


def _placed(cell: str, column: int, width: int) -> str:
    return cell.ljust(width) if column in (0, 3, 6, 7) else cell.rjust(width)
