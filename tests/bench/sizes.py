"""How much is measured: in full for the table, tiny for the test that every measurement still runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    repeats: int
    """Starts of a program, deaths."""
    presses: int
    """Keystrokes. Of fewer than twenty the slowest alone would be their p95."""
    launches: int
    """Restarts of a run, which take seconds each."""
    steady_s: float
    """How long something that goes on is watched."""
    settle_s: float
    """What a launch may still cost is not part of a steady state: wait for so long before."""
    lines_per_s: int
    """How many lines a log gets whose every line is noted."""
    flood_bytes_per_s: int
    big_cache_files: int
    log_bytes: tuple[int, ...]
    """Logs that are opened, the smallest first."""
    viewers: tuple[str, ...]
    """Programs that open them, too, where they are installed: lnav, and `tl` of toolong."""
    parsed_lines: int


FULL = Sizes(
    repeats=15,
    presses=40,
    launches=5,
    steady_s=20.0,
    settle_s=8.0,
    lines_per_s=1000,
    flood_bytes_per_s=50_000_000,
    big_cache_files=200_000,
    log_bytes=(10_000_000, 200_000_000, 2_000_000_000),
    viewers=("lnav", "tl"),
    parsed_lines=200_000,
)
TINY = Sizes(
    repeats=1,
    presses=1,
    launches=1,
    steady_s=0.5,
    settle_s=0.2,
    lines_per_s=100,
    flood_bytes_per_s=1_000_000,
    big_cache_files=50,
    log_bytes=(4_000_000,),
    viewers=(),
    parsed_lines=500,
)
