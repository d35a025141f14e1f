"""How a run numbers the host's GPUs, as the CUDA driver reads its two variables."""

from __future__ import annotations

import pytest

from console.protocol import WireGpu, WireInstance
from console.state.cudaorder import cuda_order

GPUS = tuple(WireGpu(i=i, uuid=f"GPU-{'ab'[i // 2]}{i}-full", name="H200", total=140) for i in range(4))
MIXED = (*GPUS[:3], WireGpu(i=3, uuid="GPU-x", name="A2", total=16))
DIVIDED = (
    GPUS[0],
    WireGpu(i=1, uuid="GPU-m", mig=(WireInstance(i=0, uuid="MIG-p0"), WireInstance(i=1, uuid="MIG-p1"))),
)


@pytest.mark.parametrize(
    ("visible", "indices"),
    [
        (None, {0: 0, 1: 1, 2: 2, 3: 3}),
        ("0,1,2,3", {0: 0, 1: 1, 2: 2, 3: 3}),
        ("2,3", {2: 0, 3: 1}),
        ("3, 0", {3: 0, 0: 1}),
        ("0,9,1", {0: 0}),  # the list ends where it makes no sense
        ("1,-1,2", {1: 0}),
        ("GPU-b3,GPU-a0-full", {3: 0, 0: 1}),
        ("GPU-a", {}),  # two begin so
        ("0,0", {}),
        ("", {}),
        ("NoDevFiles", {}),
        ("2,GPU-a1", {2: 0, 1: 1}),
    ],
)
def test_visible_gpus_are_numbered_as_cuda_does(visible: str | None, indices: dict[int, int]) -> None:
    order = cuda_order(GPUS, {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})

    assert order.indices == indices
    assert order.is_certain
    assert bool(order.why) is (not indices)


def test_the_fastest_comes_first_where_gpus_differ_and_nobody_asked_for_the_order_of_the_bus() -> None:
    by_speed, by_bus = cuda_order(MIXED, {}), cuda_order(MIXED, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})

    assert (by_speed.is_certain, by_bus.is_certain) == (False, True)
    assert "PCI_BUS_ID" in by_speed.why
    assert by_bus.why == ""


def test_uuids_are_certain_in_any_order() -> None:
    order = cuda_order(MIXED, {"CUDA_VISIBLE_DEVICES": "GPU-x,GPU-a0"})

    assert (order.indices, order.is_certain, order.why) == ({3: 0, 0: 1}, True, "")


def test_instances_of_a_divided_gpu_are_numbered_too() -> None:
    order = cuda_order(DIVIDED, {"CUDA_VISIBLE_DEVICES": "MIG-p1,0"})

    assert order.parts == {"MIG-p1": 0}
    assert order.indices == {0: 1}


def test_without_the_runs_environment_the_hosts_numbers_are_a_guess() -> None:
    order = cuda_order(GPUS, None)

    assert order.indices == {0: 0, 1: 1, 2: 2, 3: 3}
    assert not order.is_certain
