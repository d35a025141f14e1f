"""The parser of the state file does the driver's part: dead processes hold nothing."""

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from console.demo import gpustate

GIB = 1 << 30
LINE = (
    'gpu 2 uuid=GPU-sim-2 name="NVIDIA H200" total=150121480192 used=3758096384 util=97 memutil=41 power_mw=612000 '
    "limit_mw=700000 temp=61 sm_mhz=1755 mem_mhz=2619 procs="
)


def test_a_line_gives_every_field_under_its_name() -> None:
    (gpu,) = gpustate.parse(f"driver 550.90.07\n{LINE}41:3221225472:777\n", alive=lambda pid, start: True)

    assert gpu == {
        "index": 2, "uuid": "GPU-sim-2", "name": "NVIDIA H200", "total": 150121480192, "used": 3758096384, "util": 97,
        "memutil": 41, "power_mw": 612000, "limit_mw": 700000, "temp": 61, "sm_mhz": 1755, "mem_mhz": 2619,
        "procs": [(41, 3221225472)],
    }  # fmt: skip


def test_the_bytes_of_dead_processes_are_free_and_an_abandoned_gpu_rests() -> None:
    (one_dead,) = gpustate.parse(f"{LINE}41:{GIB}:777,42:{2 * GIB}", alive=lambda pid, start: pid == 42)
    (all_dead,) = gpustate.parse(f"{LINE}41:{GIB}:777,42:{2 * GIB}", alive=lambda pid, start: False)

    assert (one_dead["used"], one_dead["util"], one_dead["procs"]) == (3758096384 - GIB, 97, [(42, 2 * GIB)])
    assert (all_dead["used"], all_dead["util"], all_dead["memutil"], all_dead["procs"]) == (GIB // 2, 0, 0, [])
    assert (all_dead["power_mw"], all_dead["sm_mhz"]) == (77_000, 345)


def test_memory_is_held_until_its_time_has_come() -> None:
    text = f"{LINE}41:{GIB} held_until=1000.5"

    (held,) = gpustate.parse(text, alive=lambda pid, start: False, now=1000.4)
    (free,) = gpustate.parse(text, alive=lambda pid, start: False, now=1000.5)

    assert (held["used"], held["procs"], held["util"]) == (3758096384, [], 0)
    assert free["used"] == 3758096384 - GIB


def test_what_is_not_said_is_not_available_and_costs_nothing_else() -> None:
    (gpu,) = gpustate.parse("gpu 0 used=5 power_mw=? procs=1:?\n", alive=lambda pid, start: True)

    assert (gpu["used"], gpu["power_mw"], gpu["total"], gpu["name"]) == (5, None, None, None)
    assert gpu["procs"] == [(1, None)]


def test_lines_that_make_no_sense_are_left_out() -> None:
    text = f'gpu x used=1\ngpu 1 used=abc\ngpu 3 name="open\nhang nvmlInit_v2\n\n# note\n{LINE}\n'

    assert [gpu["index"] for gpu in gpustate.parse(text)] == [2]
    assert gpustate.driver_version(text) is None
    assert gpustate.driver_version("driver 1.2\n") == "1.2"


def test_a_zombie_and_a_reused_pid_are_dead() -> None:
    me = os.getpid()
    start = int(Path(f"/proc/{me}/stat").read_text().rpartition(")")[2].split()[19])
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    zombie = gpustate.is_alive(child.pid)
    child.wait()

    assert not zombie
    assert not gpustate.is_alive(child.pid)
    assert gpustate.is_alive(me)
    assert gpustate.is_alive(me, start)
    assert not gpustate.is_alive(me, start + 1)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200), st.sampled_from(["", "gpu 0 ", "gpu 1 procs="]))
def test_no_text_raises(text: str, lead: str) -> None:
    gpustate.parse(lead + text)
    gpustate.driver_version(lead + text)
