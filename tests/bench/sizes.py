"""How much is measured: in full for the table, tiny for the test that every measurement still runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    repeats: int
    """Starts of a program, deaths, keystrokes."""
    launches: int
    """Restarts of a run, which take seconds each."""
    steady_s: float
    """How long something that goes on is watched."""
    settle_s: float
    """What a launch may still cost is not part of a steady state: wait for so long before."""
    flood_bytes_per_s: int
    big_cache_files: int
    small_log_bytes: int
    big_log_bytes: int
    parsed_lines: int


FULL = Sizes(
    repeats=15,
    launches=5,
    steady_s=20.0,
    settle_s=8.0,
    flood_bytes_per_s=50_000_000,
    big_cache_files=200_000,
    small_log_bytes=10_000_000,
    big_log_bytes=2_000_000_000,
    parsed_lines=200_000,
)
TINY = Sizes(
    repeats=1,
    launches=1,
    steady_s=0.5,
    settle_s=0.2,
    flood_bytes_per_s=1_000_000,
    big_cache_files=50,
    small_log_bytes=100_000,
    big_log_bytes=4_000_000,
    parsed_lines=500,
)
