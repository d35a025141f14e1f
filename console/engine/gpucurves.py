"""The curves of the GPUs: samples as they come, joined with what the run's flight recorder kept unwatched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping

from console.protocol import GpusEvent, Growth
from console.state.series import Series

GAP_S = 45.0
"""Nothing is drawn over a longer silence: coarse samples are 10 s apart, and one may be missing."""
LIVE_GAP_S = 12.0
"""Nor over this one where samples came each second: between a run's end and a console that came later nobody looked."""
_COARSE_S = 10.0
_SAME_S = 0.7
_CAPACITY = 2560
"""The last ten minutes by the second, and before them twice what is drawn. There are three curves a GPU: each thousand
points are 3 MB with eight of them."""


def take(series: MutableMapping[str, Series], event: GpusEvent, at: float) -> None:
    """Add what was just sampled."""
    for gpu in event.gpus:
        _add(series, gpu.i, (gpu.used, gpu.util, gpu.power_mw), at, LIVE_GAP_S)


def join(series: MutableMapping[str, Series], records: Iterable[Growth], at_of: Callable[[float], float]) -> None:
    """Put the recorder's samples before and between those that were watched.

    `at_of` turns the host's boot time into the console's clock.
    """
    kept = sorted(_rows(records, at_of), key=lambda row: row[0])
    if not kept:
        return
    fresh: dict[str, Series] = {}
    for at, rows in kept:
        for index, *values in rows:
            if index is not None:
                used, util, power_mw = (*values, None, None, None)[:3]
                _add(fresh, index, (used, util, power_mw), at)
    for name, recorded in fresh.items():
        series[name] = _merged(recorded, series.get(name))


def _rows(records: Iterable[Growth], at_of: Callable[[float], float]) -> Iterable[tuple[float, list[list[int | None]]]]:
    return ((at_of(record.bt), record.gpus) for record in records if record.k == "gpu" and record.gpus)


def _add(
    series: MutableMapping[str, Series],
    index: int,
    values: tuple[int | None, int | None, int | None],
    at: float,
    gap_s: float = GAP_S,
) -> None:
    for name, value, scale in zip(("gpu_memory", "gpu_busy", "gpu_power"), values, (1.0, 1.0, 0.001), strict=True):
        if value is None:
            continue
        one = series.setdefault(f"{name}:{index}", Series(_CAPACITY))
        if one.last is not None and at - one.last.at > gap_s:
            one.gap()
        one.add(at, value * scale)


def _merged(recorded: Series, watched: Series | None) -> Series:
    if watched is None or not len(watched):
        return recorded
    times = [point.at for point in watched.points]
    points = [(point.at, point.value) for point in watched.points]
    fresh: list[tuple[float, float]] = []
    at = 0
    for point in recorded.points:
        while at < len(times) and times[at] < point.at - _SAME_S:
            at += 1
        near = [value for when, value in points[at : at + 3] if abs(when - point.at) <= _SAME_S]
        if point.value not in near:  # another value is news, however near: the last one before a death, for one
            fresh.append((point.at, point.value))
    merged = Series(_CAPACITY)
    last, usual_s = None, GAP_S
    for when, value in sorted([*points, *fresh]):
        silent_s = 0.0 if last is None else when - last
        if silent_s > GAP_S or silent_s > max(LIVE_GAP_S, usual_s * GAP_S / _COARSE_S):
            merged.gap()
        merged.add(when, value)
        last, usual_s = when, silent_s
    return merged
