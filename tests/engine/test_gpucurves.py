"""The GPUs' curves of a console that is open for days: bounded, and the last ten minutes by the second."""

from __future__ import annotations

from console.engine import gpucurves
from console.protocol import GpusEvent, WireGpu
from console.state.series import WINDOW_S, Series

_HOURS_S = 3 * 3600


def test_hours_of_samples_leave_the_last_ten_minutes_whole_and_the_peak_of_the_first() -> None:
    series: dict[str, Series] = {}
    for second in range(_HOURS_S):
        used = 140 << 30 if second == 100 else (70 << 30) + second
        gpu = WireGpu(i=0, uuid="GPU-0", name="NVIDIA H200", used=used, util=90, power_mw=600_000)
        gpucurves.take(series, GpusEvent(bt=float(second), source="nvml", gpus=(gpu,)), float(second))

    memory = series["gpu_memory:0"].points
    assert max(len(each.points) for each in series.values()) <= 2560
    newest = [point.at for point in memory if point.at >= _HOURS_S - WINDOW_S]
    assert newest == [float(second) for second in range(_HOURS_S - int(WINDOW_S), _HOURS_S)]
    assert max(point.value for point in memory) == 140 << 30
    assert memory[0].at == 0.0
