"""What is wrong with a GPU: each condition is one sentence, and a healthy GPU has none."""

from __future__ import annotations

from typing import Any

import pytest

from console import config, protocol
from console.model import GpuTrouble, Snapshot
from console.state import events
from tests.state.story import GIB, Story, gpu

ROLES = config.Gpus(expected=8, roles={"target": (0, 1, 2, 3, 4), "drafter": (5, 6, 7)})
WORKING = {"sm_mhz": 1755, "sm_max_mhz": 1980, "throttle": 0, "temp": 62, "hot_at": 87}


def told(*changed: tuple[int, dict[str, Any]], seconds: int = 8, **event: Any) -> Snapshot:
    """A stepping run of eight GPUs, some of which are otherwise than the rest for `seconds`."""
    story = Story(target=config.Target(gpus=ROLES)).up()
    story.launched()
    story.stepping()
    for _ in range(seconds):
        gpus = [gpu(index, **WORKING) for index in range(8)]
        for index, fields in changed:
            gpus[index] = gpu(index, **(WORKING | fields))
        story.after(1.0)
        said = protocol.GpusEvent(bt=story.bt, source="nvml", gpus=tuple(gpus), **event)
        story.tell(events.GpusSaid(at=story.at, gpus=said))
    return story.snapshot


def notes(snapshot: Snapshot) -> list[tuple[GpuTrouble, str]]:
    return [(note.kind, note.text) for note in snapshot.gpus.notes]


def test_of_a_healthy_run_nothing_is_said() -> None:
    assert notes(told()) == []


@pytest.mark.parametrize(
    ("fields", "kind", "text"),
    [
        ({"lost": "gone from the bus", "xid": 79}, GpuTrouble.LOST, "GPU 2: gone from the bus (Xid 79)"),
        ({"warning": "NVML: Unknown Error"}, GpuTrouble.LOST, "GPU 2: NVML: Unknown Error"),
        (
            {"ecc": 2, "pending": True},
            GpuTrouble.ERRORS,
            "GPU 2: 2 uncorrected memory errors · memory",
        ),
        ({"peak": 139 * GIB}, GpuTrouble.HEADROOM, "GPU 2 peak 139.0 of 140.0 GiB · 1.0 GiB headroom"),
        ({"temp": 85}, GpuTrouble.HOT, "GPU 2 85 °C · it slows itself down at 87"),
        ({"sm_mhz": 1410, "throttle": 4}, GpuTrouble.SLOWED, "GPU 2 clock 1,410 of 1,755 MHz: power cap"),
        ({"sm_mhz": 1200, "throttle": 0x40}, GpuTrouble.SLOWED, "GPU 2 clock 1,200 of 1,980 MHz: too hot"),
        ({"owner": "nobody", "used": 40 * GIB}, GpuTrouble.NOBODY, "GPU 2: 40.0 GiB held by no process that is seen"),
    ],
)
def test_each_trouble_is_a_sentence(fields: dict[str, Any], kind: GpuTrouble, text: str) -> None:
    found = notes(told((2, fields)))

    assert found[0][0] is kind
    assert found[0][1].startswith(text)


def test_memory_of_others_is_named_with_pid_owner_and_amount() -> None:
    others = (
        protocol.WireHolder(pid=7712, bytes=int(1.2 * GIB), name="jupyter", user="root", seen=True),
        protocol.WireHolder(pid=40002, bytes=3 * GIB),
        protocol.WireHolder(pid=9, bytes=GIB, name="x", user="u", seen=True),
        protocol.WireHolder(pid=10, bytes=1 << 20, name="tiny", user="u", seen=True),
    )

    found = notes(told((3, {"others": others, "owner": "other", "context": False})))
    beside_ours = notes(told((3, {"others": others[:2]})))

    named = "pid 40002 (not seen from here) holds 3.0 GiB, pid 7712 (jupyter, root) holds 1.2 GiB"
    sentence = f"GPU 3: {named} and 1 more, not ours"
    assert found == [(GpuTrouble.FOREIGN, sentence)]
    assert beside_ours == [(GpuTrouble.FOREIGN, "GPU 3: pid 7712 (jupyter, root) holds 1.2 GiB, not ours")]


def test_memory_whose_holder_cant_be_told_is_one_sentence_a_reason_and_nobodys_peak() -> None:
    hidden = {"owner": "unknown", "owner_why": "the driver lists nobody on it", "context": False, "used": 30 * GIB}

    snapshot = told((2, hidden), (3, hidden), (5, {"owner_why": "7.0 GiB more in use than its processes hold"}))

    assert notes(snapshot) == [
        (GpuTrouble.UNTOLD, "GPU 2, 3: whose 60.0 GiB is can't be told: the driver lists nobody on it"),
        (GpuTrouble.UNTOLD, "GPU 5: 7.0 GiB more in use than its processes hold"),
    ]


def test_a_power_cap_that_all_share_is_how_the_run_works() -> None:
    capped = {"sm_mhz": 1600, "throttle": 4}

    assert notes(told(*[(index, capped) for index in range(8)])) == []


def test_a_clock_that_dips_for_a_moment_is_not_mentioned() -> None:
    assert notes(told((2, {"sm_mhz": 1410, "throttle": 4}), seconds=4)) == []


def test_full_load_at_low_power_is_a_collective_that_spins() -> None:
    spinning = {"util": 100, "power_mw": 128_000}

    everyone = notes(told(*[(index, spinning) for index in range(8)]))
    some = notes(told(*[(index, spinning) for index in (5, 6, 7)]))

    assert everyone[0] == (
        GpuTrouble.SPINNING,
        "all 100 % busy at 128 W: spinning, not computing · a collective waits?",
    )
    assert some[0][1].startswith("GPU 5–7 100 % busy at 128 W")


def test_the_odd_one_of_a_role_is_named() -> None:
    found = notes(told((6, {"util": 60}), (0, {"util": 60}), (1, {"used": 100 * GIB}), seconds=300))

    assert found == [
        (GpuTrouble.UNEVEN, "GPU 0 60 % busy, the other targets 97 %: uneven load?"),
        (GpuTrouble.UNEVEN, "GPU 1 uses 100.0 GiB, the other targets 71.0"),
        (GpuTrouble.UNEVEN, "GPU 6 60 % busy, the other drafters 97 %: uneven load?"),
    ]


def test_roles_follow_the_runs_own_numbers() -> None:
    snapshot = told(cuda_env={"CUDA_VISIBLE_DEVICES": "7,6,5,4,3,2,1,0"})

    assert [each.role for each in snapshot.gpus.gpus] == ["drafter"] * 3 + ["target"] * 5
    assert [each.cuda_index for each in snapshot.gpus.gpus] == [7, 6, 5, 4, 3, 2, 1, 0]


def test_what_is_wrong_with_a_gpu_is_among_the_warnings() -> None:
    snapshot = told((2, {"lost": "gone from the bus"}), (3, {"temp": 86}))

    assert [each.slug for each in snapshot.warnings] == ["gpu_fell_off_bus", "gpu_slowed"]
