"""GPU samples from every source, a driver that hangs, and whose memory it is."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from console.host import gpu, gpusource, gpuwatch, nvidiasmi, nvml, procfs
from tests.host.agentprocess import awaited
from tests.nvml import build

GIB = 1 << 30


def state_line(index: int, used_gib: float = 0.5, procs: str = "", **more: object) -> str:
    fields = {"util": 97, "power_mw": 612000, "limit_mw": 700000, "temp": 61, **more}
    words = " ".join(f"{key}={value}" for key, value in fields.items())
    used, total = int(used_gib * GIB), 140 * GIB
    return f'gpu {index} uuid=GPU-sim-{index} name="NVIDIA H200" total={total} used={used} {words} procs={procs}'


@pytest.fixture
def state(tmp_path: Path) -> Callable[..., Path]:
    def write(*lines: str) -> Path:
        path = tmp_path / "state"
        (tmp_path / "new").write_text("\n".join(["driver 550.90.07", *lines]) + "\n")
        (tmp_path / "new").rename(path)
        return path

    return write


@pytest.fixture
def sampler_of() -> Iterator[Callable[[str | None], gpu.Sampler]]:
    started: list[gpu.Sampler] = []

    def start(simulated: str | None) -> gpu.Sampler:
        sampler = gpu.Sampler(simulated)
        sampler.set_interval(0.1)
        sampler.start()
        started.append(sampler)
        return sampler

    yield start
    for sampler in started:
        sampler.stop()
        awaited(partial(_is_gone, sampler), 60, "the sampler's end")


def _is_gone(sampler: gpu.Sampler) -> bool:
    return not sampler.stuck()


def test_simulated_state_is_sampled_and_the_dead_do_not_count(state: Any, sampler_of: Any) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    path = state(
        state_line(0, 71, f"{os.getpid()}:{70 * GIB}"),
        state_line(1, 71, f"{dead.pid}:{70 * GIB}"),
        state_line(2, 71, f"{os.getpid()}:{70 * GIB}:1"),
        state_line(3, 3, temp="?"),
    )

    sample = awaited(sampler_of(str(path)).poll)

    assert (sample["source"], sample["driver"]) == ("simulated", "550.90.07")
    assert [each["used"] // GIB for each in sample["gpus"]] == [71, 1, 1, 3]
    assert [each["procs"] for each in sample["gpus"]] == [[[os.getpid(), 70 * GIB]], [], [], []]
    assert [each["util"] for each in sample["gpus"]] == [97, 0, 0, 97]
    assert sample["gpus"][3]["temp"] is None


def test_slowly_released_memory_stays_used_for_a_while(state: Any) -> None:
    held, over = state_line(0, 71, f"999999999:{70 * GIB}"), time.time()
    path = state(held + f" held_until={over + 60}", held.replace("gpu 0", "gpu 1") + f" held_until={over - 1}")

    sample = gpusource.Simulated(str(path)).sample()

    assert [each["used"] // GIB for each in sample["gpus"]] == [71, 1]


def test_a_missing_state_file_is_named(tmp_path: Path, sampler_of: Any) -> None:
    sample = awaited(sampler_of(str(tmp_path / "none")).poll)

    assert (sample["source"], sample["gpus"]) == ("simulated", [])
    assert "No such file" in sample["why"]


def test_request_brings_a_sample_before_the_interval_is_over(state: Any, sampler_of: Any) -> None:
    sampler = sampler_of(str(state(state_line(0))))
    awaited(sampler.poll)
    sampler.set_interval(60.0)
    awaited(lambda: sampler.poll() is None)

    sampler.request()

    assert awaited(sampler.poll)["gpus"], "within less than the minute that the interval is"


def test_without_driver_and_tool_the_source_is_none_and_says_why(sampler_of: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    sample = awaited(sampler_of(None).poll)

    assert (sample["source"], sample["gpus"]) == ("none", [])
    assert "NVML" in sample["why"]
    assert "nvidia-smi" in sample["why"]


SMI = """#!/bin/sh
case "$1" in
*compute-apps*) echo "GPU-a, 4711, 72000"; echo "GPU-a, 4712, [N/A]" ;;
*) echo "0, GPU-a, NVIDIA H200, 73000, 143771, 97, 612.40, 700.00, 61, 550.90.07"
   echo "1, GPU-b, NVIDIA H200, 500, 143771, [N/A], [Not Supported], 700.00, 38, 550.90.07" ;;
esac
"""


def test_nvidia_smi_stands_in_and_tells_each_field_alone(tmp_path: Path, monkeypatch: Any) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(SMI)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    sample = gpusource.Sources(None, lambda call: None).sample()

    assert (sample["source"], sample["driver"]) == ("nvidia-smi", "550.90.07")
    assert sample["why"].startswith("NVML")
    first, second = sample["gpus"]
    assert (first["used"], first["power_mw"], first["util"]) == (73000 << 20, 612400, 97)
    assert first["procs"] == [[4711, 72000 << 20], [4712, None]]
    assert (second["util"], second["power_mw"], second["limit_mw"], second["procs"]) == (None, None, 700000, [])


_OLD_SMI = """#!/bin/sh
case "$*" in
*compute-apps*) exit 0 ;;
*clocks_event_reasons*) echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; exit 2 ;;
*memory.reserved*) echo 'Field "memory.reserved" is not a valid field to query.'; exit 2 ;;
esac
set -- $(echo "$1" | cut -d= -f2 | tr , ' ')
for field; do
    case $field in
    index) v=0 ;; uuid) v=GPU-a ;; name) v="NVIDIA A100" ;; driver_version) v=470.57.02 ;;
    clocks_throttle_reasons.active) v=0x0000000000000004 ;; clocks.sm) v=1410 ;; power.draw) v='[Unknown Error]' ;;
    *) v='[Insufficient Permissions]' ;;
    esac
    printf '%s%s' "$sep" "$v"; sep=', '
done
"""


def test_an_older_nvidia_smi_loses_only_the_fields_that_it_does_not_know(tmp_path: Path, monkeypatch: Any) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(_OLD_SMI)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    (told,) = gpusource.Sources(None, lambda call: None).sample()["gpus"]

    assert (told["name"], told["sm_mhz"], told["throttle"]) == ("NVIDIA A100", 1410, 4)
    assert (told["used"], told["reserved"], told["power_mw"], told["temp"]) == (None, None, None, None)


@pytest.mark.parametrize("name", ["Card, one, of 2", "", "宽字符显卡", "A" * 60])
def test_a_name_that_nvidia_smi_does_not_quote_moves_no_other_field(
    tmp_path: Path, monkeypatch: Any, name: str
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(_OLD_SMI.replace("NVIDIA A100", name), encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    (told,) = gpusource.Sources(None, lambda call: None).sample()["gpus"]

    assert (told["uuid"], told["name"], told["sm_mhz"], told["throttle"]) == ("GPU-a", name, 1410, 4)


def test_a_hanging_nvidia_smi_is_bounded_and_named(tmp_path: Path, monkeypatch: Any) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(nvidiasmi, "SMI_TIMEOUT_S", 0.3)

    sample = gpusource.Sources(None, lambda call: None).sample()

    assert sample["source"] == "none"
    assert "nvidia-smi gave no answer in 0.3 s" in sample["why"]


# -- NVML itself, through the library of the tests --------------------------------------------------------------------

needs_compiler = pytest.mark.skipif(build.compiler() is None, reason="no C compiler for the NVML test library")

_DRIVE = """
import json, sys, time
from console.host import gpu
sampler = gpu.Sampler(None)
sampler.set_interval(0.1)
sampler.start()
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    sample = sampler.poll()
    if sample is not None:
        print(json.dumps(sample), flush=True)
        if len(sys.argv) == 2:
            break
    time.sleep(0.02)
sampler.stop()
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build.build(tmp_path_factory.mktemp("nvml"))


def through_nvml(library: Path, state: Path, *arguments: str) -> list[dict[str, Any]]:
    env = {**os.environ, "PATH": "/nonexistent", "LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_STATE": str(state)}
    done = subprocess.run(
        [sys.executable, "-c", _DRIVE, *arguments], env=env, capture_output=True, text=True, timeout=120, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@needs_compiler
def test_nvml_is_sampled_through_the_real_binding(library: Path, state: Any) -> None:
    path = state(state_line(0, 71, f"{os.getpid()}:{70 * GIB}"), state_line(1))

    sample = through_nvml(library, path, "50")[-1]

    assert (sample["source"], sample["why"], sample["driver"]) == ("nvml", "", "550.90.07")
    first, second = sample["gpus"]
    assert first["procs"] == [[os.getpid(), 70 * GIB]]
    assert (first["name"], first["uuid"], first["util"]) == ("NVIDIA H200", "GPU-sim-0", 97)
    assert (first["power_mw"], first["limit_mw"], first["temp"]) == (612000, 700000, 61)
    assert first["total"] == 140 * GIB
    assert second["procs"] == []


@needs_compiler
def test_a_failing_call_costs_one_field_of_one_gpu(library: Path, state: Any) -> None:
    path = state(state_line(0), state_line(1), "fail nvmlDeviceGetPowerUsage=3 gpu=1")

    sample = through_nvml(library, path, "50")[-1]

    assert [each["power_mw"] for each in sample["gpus"]] == [612000, None]
    assert [each["util"] for each in sample["gpus"]] == [97, 97]


@needs_compiler
def test_a_lost_gpu_is_named_and_the_others_go_on(library: Path, state: Any) -> None:
    path = state(state_line(0), state_line(1), "fail nvmlDeviceGetHandleByIndex_v2=15 gpu=1")

    sample = through_nvml(library, path, "50")[-1]

    assert sample["gpus"][0]["util"] == 97
    assert sample["gpus"][1]["lost"] == "gone from the bus"


@needs_compiler
def test_clocks_broken_memory_and_errors_are_told_where_the_driver_knows_them(library: Path, state: Any) -> None:
    told: dict[str, Any] = {"sm_mhz": 1410, "sm_max_mhz": 1980, "throttle": 4, "reserved": GIB // 2, "hot_at": 85}
    path = state(
        state_line(0, 71, **told, remapped=3, pending=1, ecc_uncorrected=2, xid=63),
        state_line(1, retired=5),
        state_line(2),
    )

    first, second, third = through_nvml(library, path, "50")[-1]["gpus"]

    assert {key: first[key] for key in told} == told
    assert (first["retired"], first["pending"], first["ecc"], first["xid"]) == (3, True, 2, 63)
    assert (second["retired"], second["pending"], second["xid"]) == (5, False, None)
    assert (third["retired"], third["pending"]) == (None, None)
    assert first["bus"] == "00000000:10:00.0"


@needs_compiler
def test_instances_of_a_divided_gpu_are_told_with_their_own_memory(library: Path, state: Any) -> None:
    part = f'mig 1.{{}} uuid=MIG-{{}} name="H200 MIG 3g.71gb" total={70 * GIB} used={{}} procs={{}}'
    path = state(
        state_line(0),
        state_line(1, util="?"),
        part.format(0, "a", 20 * GIB, f"{os.getpid()}:{20 * GIB}"),
        part.format(2, "b", GIB // 4, ""),
    )

    whole, divided = through_nvml(library, path, "50")[-1]["gpus"]

    assert whole["mig"] is None
    assert divided["util"] is None
    assert [(each["i"], each["uuid"], each["used"]) for each in divided["mig"]] == [
        (0, "MIG-a", 20 * GIB),
        (2, "MIG-b", GIB // 4),
    ]
    assert divided["mig"][0]["procs"] == [[os.getpid(), 20 * GIB]]


@needs_compiler
def test_a_gpu_that_is_lost_in_flight_is_named_while_the_others_go_on(library: Path, state: Any) -> None:
    path = state(state_line(0), state_line(1))
    code = _DRIVE.replace("break", "pass")
    env = {**os.environ, "LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_STATE": str(path)}
    with subprocess.Popen([sys.executable, "-c", code, "30"], env=env, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        before = json.loads(child.stdout.readline())
        state(state_line(0), state_line(1, xid=79), "fail nvmlDeviceGetMemoryInfo_v2=15 gpu=1")
        lost = next(s for line in child.stdout if (s := json.loads(line))["gpus"][1].get("lost"))
        child.kill()

    assert before["gpus"][1].get("lost") is None
    assert (lost["gpus"][1]["lost"], lost["gpus"][1]["xid"]) == ("gone from the bus", 79)
    assert lost["gpus"][1]["uuid"] == before["gpus"][1]["uuid"]
    assert [lost["gpus"][1][key] for key in ("used", "total", "util", "power_mw", "temp")] == [None] * 5
    assert lost["gpus"][0]["util"] == 97


@needs_compiler
def test_a_gpu_that_is_missing_when_the_driver_is_opened_again_keeps_its_row_and_its_number(
    library: Path, state: Any
) -> None:
    # All lost at once: the library is opened anew, and counts one GPU less.
    path = state(state_line(0), state_line(1), state_line(2))
    code = _DRIVE.replace("break", "pass")
    env = {**os.environ, "LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_STATE": str(path)}
    with subprocess.Popen([sys.executable, "-c", code, "30"], env=env, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        state(*[state_line(i, used="?", util="?") for i in range(3)], *[f"fail {call}=15" for call in _LIVELY])
        next(line for line in child.stdout if all(gpu["used"] is None for gpu in json.loads(line)["gpus"]))
        state(state_line(0), state_line(1).replace("GPU-sim-1", "GPU-sim-2"))
        after = next(s for line in child.stdout if (s := json.loads(line))["gpus"][0]["used"] is not None)
        child.kill()

    assert [each["i"] for each in after["gpus"]] == [0, 1, 2]
    assert [each["uuid"] for each in after["gpus"]] == ["GPU-sim-0", "GPU-sim-1", "GPU-sim-2"]
    assert after["gpus"][1]["lost"] == "gone from the bus"


_ASKED = """
import json, os, sys
from console.host import nvml

class Clock:
    now = 100.0
    def monotonic(self):
        return self.now

calls, nvml.time = [], Clock()
source = nvml.Nvml(calls.append)
for step in json.loads(sys.argv[1]):
    nvml.time.now += step["after_s"]
    with open(os.environ["FAKE_NVML_STATE"], "w") as state:
        state.write(step["state"])
    calls.clear()
    (told,) = source.sample()["gpus"]
    print(json.dumps([calls.count("nvmlDeviceGetComputeRunningProcesses_v3"), told["procs"]]))
"""


@needs_compiler
def test_who_is_on_a_gpu_is_asked_when_its_memory_moves_and_every_few_seconds(library: Path, state: Any) -> None:
    me, gone = f"{os.getpid()}:{70 * GIB}", ""
    seen: list[tuple[float, float, str]] = [
        (1.0, 71, me),
        (1.0, 71, me),
        (1.0, 1, gone),
        (1.0, 71, me),
        (1.0, 71, gone),
        (nvml.PROCS_S, 71, gone),
    ]
    steps = [{"after_s": after, "state": "driver 550.90.07\n" + state_line(0, used, who)} for after, used, who in seen]
    unknown = state_line(0, 71, me).replace(f"used={71 * GIB}", "used=?")
    steps += [{"after_s": 1.0, "state": "driver 550.90.07\n" + unknown}] * 2
    env = {**os.environ, "LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_STATE": str(state())}

    done = subprocess.run(
        [sys.executable, "-c", _ASKED, json.dumps(steps)],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    mine = [[os.getpid(), 70 * GIB]]
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told == [[1, mine], [0, mine], [1, []], [1, mine], [0, mine], [1, []], [1, mine], [1, mine]]


_LIVELY = ("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates")


@needs_compiler
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (18, "driver and library have different versions"),
        (9, "the driver is not loaded"),
        (4, "no permission to use the driver"),
    ],
)
def test_a_driver_that_does_not_open_says_why(library: Path, state: Any, code: int, words: str) -> None:
    path = state(state_line(0), f"fail nvmlInitWithFlags={code}")

    sample = through_nvml(library, path, "50")[-1]

    assert (sample["source"], sample["gpus"]) == ("none", [])
    assert words in sample["why"]
    assert "no nvidia-smi on the PATH" in sample["why"]


@needs_compiler
def test_a_driver_without_gpus_is_none_and_says_so(library: Path, state: Any) -> None:
    sample = through_nvml(library, state(), "50")[-1]

    assert (sample["source"], sample["gpus"]) == ("none", [])
    assert sample["why"].startswith("NVML lists no GPU")


@needs_compiler
def test_thirty_two_gpus_with_odd_names_arrive_whole(library: Path, state: Any) -> None:
    names = ["Ünïcode → H200", "[bold]H200[/]", "A" * 90, "x	H200"]
    lines = [state_line(i).replace("NVIDIA H200", names[i % 4]) for i in range(32)]

    gpus = through_nvml(library, state(*lines), "50")[-1]["gpus"]

    assert [each["name"] for each in gpus] == names * 8


@needs_compiler
def test_a_call_that_never_returns_is_named_and_the_sampler_replaced(library: Path, state: Any) -> None:
    path = state(state_line(0), "hang nvmlDeviceGetTemperature")

    samples = through_nvml(library, path, "50")

    assert samples[0]["gpus"] == []
    assert "Temperature" in samples[0]["why"]
    assert "has not answered for 5 s" in samples[0]["why"]


def test_a_killed_sampler_is_called_stuck_only_once_it_has_had_the_time_to_die(monkeypatch: Any) -> None:
    sampler = gpu.Sampler()
    with subprocess.Popen(["sleep", "60"]) as hanging:
        try:
            sampler._stuck = [hanging.pid]  # as if it had been killed
            sampler._give_up("nvmlDeviceGetPowerUsage has not answered for 16 s")
            monkeypatch.setattr(gpu, "_DIES_S", 600.0)
            at_once = sampler.poll()
            monkeypatch.setattr(gpu, "_DIES_S", 0.0)
            later = sampler.poll()
        finally:
            hanging.kill()
            hanging.wait()
    dead = sampler.poll()

    assert (at_once, dead) == (None, None)
    assert later is not None
    assert later["why"].startswith("nvmlDeviceGetPowerUsage has not answered for 16 s; sampler pid ")
    assert later["why"].endswith("can't be killed (stuck in the driver)")


@needs_compiler
def test_a_driver_without_the_newest_list_of_processes_is_asked_for_the_one_before(library: Path, state: Any) -> None:
    lines = state_line(0, 71, f"{os.getpid()}:{71 * GIB}"), "fail nvmlDeviceGetComputeRunningProcesses_v3=13"

    (told,) = through_nvml(library, state(*lines), "50")[-1]["gpus"]

    assert told["procs"] == [[os.getpid(), 71 * GIB]]


@needs_compiler
def test_a_gpu_that_was_given_to_others_is_no_broken_one(library: Path, state: Any) -> None:
    lines = state_line(0), state_line(1), "fail nvmlDeviceGetHandleByIndex_v2=4 gpu=0"

    sample = through_nvml(library, state(*lines), "50")[-1]

    assert [each["i"] for each in sample["gpus"]] == [1]
    assert (sample["source"], sample["why"]) == ("nvml", "1 more may not be used from here")


@needs_compiler
def test_what_the_driver_says_for_not_available_is_no_number(library: Path, state: Any) -> None:
    (told,) = through_nvml(library, state(state_line(0, power_mw=0xFFFFFFFF, limit_mw=0xFFFFFFFF)), "50")[-1]["gpus"]

    assert (told["power_mw"], told["limit_mw"], told["util"]) == (None, None, 97)


# -- judging ----------------------------------------------------------------------------------------------------------


def gpu_of(index: int, used_gib: float | None, procs: list[list[int | None]] | None) -> dict[str, Any]:
    return {"i": index, "used": None if used_gib is None else int(used_gib * GIB), "procs": procs}


def sample_of(*gpus: dict[str, Any], source: str = "nvml") -> dict[str, Any]:
    return {"source": source, "gpus": list(gpus)}


def test_an_nvml_pid_counts_only_in_our_tree_and_with_uvm() -> None:
    sample = sample_of(gpu_of(0, 70, [[10, None]]), gpu_of(1, 70, [[11, None]]), gpu_of(2, 70, [[99, None]]))

    verdict = gpu.judge(sample, {10, 11}, {10, 99})

    assert verdict["contexts"] == [0]
    assert verdict["rule"] == "nvml pid in tree"
    assert [each["context"] for each in verdict["gpus"]] == [True, False, False]
    assert [each["owner"] for each in verdict["gpus"]] == ["run", "other", "other"]


@pytest.mark.parametrize("is_there", [True, False])
def test_without_a_uvm_device_a_listed_pid_of_ours_is_neither_ours_nor_anothers(
    is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(procfs, "UVM", str(tmp_path / "nvidia-uvm"))
    if is_there:  # then our process would hold it open, if it were the one that is meant
        (tmp_path / "nvidia-uvm").touch()
    sample = sample_of(gpu_of(0, 70, [[10, None]]), gpu_of(1, 70, [[99, None]]), gpu_of(2, 0.5, []))

    verdict = gpu.judge(sample, {10}, set())

    assert [each["owner"] for each in verdict["gpus"]] == ["other" if is_there else "unknown", "other", "free"]
    assert [each["context"] for each in verdict["gpus"]] == [False if is_there else None] * 3
    assert ("no /dev/nvidia-uvm here" in verdict["gpus"][0]["why"]) is not is_there


def divided(index: int, *parts: list[list[int | None]] | None) -> dict[str, Any]:
    """A GPU in MIG instances whose processes the driver lists by instance alone."""
    mig = [{"i": number, "uuid": f"MIG-{index}{number}", "procs": procs} for number, procs in enumerate(parts)]
    return {**gpu_of(index, 60, None), "mig": mig}


def test_contexts_on_mig_instances_are_told_by_instance() -> None:
    sample = sample_of(divided(0, [[10, GIB]], [[99, GIB]], []), gpu_of(1, 0.5, []))

    verdict = gpu.judge(sample, {10}, {10})

    assert verdict["contexts"] == [0]
    assert verdict["gpus"][0]["parts"] == {"MIG-00": True, "MIG-01": False, "MIG-02": False}
    assert [each["owner"] for each in verdict["gpus"]] == ["run", "free"]
    assert gpu.judge(sample, {10}, None)["gpus"][0]["parts"]["MIG-00"] is None


def test_keeper_counts_the_mig_instances_that_the_run_was_told_to_see(tmp_path: Path) -> None:
    watch = gpuwatch.GpuWatch(None, None, str(tmp_path))
    watch.visible = "MIG-00, MIG-02"
    counts = []
    samples = (
        divided(0, [], [], []),
        divided(0, [[10, GIB]], [], []),
        divided(0, [[10, GIB]], [], [[11, GIB]]),
    )
    for number, board in enumerate(samples):
        watch.latest = {"bt": 1.0 + number, **sample_of(board)}
        cuda = watch.judge({10, 11}, {10, 11})
        counts.append((cuda["have"], cuda["expected"], watch.complete, cuda["contexts"]))

    assert counts == [(0, 2, False, []), (1, 2, False, [0]), (2, 2, True, [0])]


def test_host_pids_are_told_by_uvm_and_the_rise_of_memory() -> None:
    sample = sample_of(gpu_of(0, 70, [[40001, None]]), gpu_of(1, 0.6, []), gpu_of(2, 30, [[40002, None]]))

    verdict = gpu.judge(sample, {10}, {10}, {0: GIB // 2, 1: GIB // 2, 2: 30 * GIB})

    assert (verdict["contexts"], verdict["rule"]) == ([0], "uvm + memory rise")
    assert [each["owner"] for each in verdict["gpus"]] == ["run", "free", "other"]


def test_without_uvm_there_is_no_context_and_without_knowledge_no_answer() -> None:
    sample = sample_of(gpu_of(0, 70, [[40001, None]]))

    assert gpu.judge(sample, {10}, set(), {0: 0})["gpus"][0]["context"] is False
    assert gpu.judge(sample, {10}, None, {0: 0})["gpus"][0]["context"] is None
    assert gpu.judge(sample, {10}, {10}, None)["gpus"][0]["context"] is None


def test_keeper_notes_why_it_could_tell_no_context_for_as_long_as_that_is_so(tmp_path: Path) -> None:
    watch = gpuwatch.GpuWatch(None, None, str(tmp_path))
    watch.latest = {"bt": 1.0, **sample_of(gpu_of(0, 70, [[40001, None]]))}

    seen = [watch.judge(tree, uvm).get("untold") for tree, uvm in (({10}, set()), ({10}, None), (set(), set()))]
    watch.latest = {"bt": 2.0, **sample_of(gpu_of(0, 70, [[10, None]]))}
    seen.append(watch.judge({10}, {10}).get("untold"))

    unreadable = "the open files of the run's processes may not be read"
    assert seen == ["", unreadable, unreadable, ""], "its end tells nothing anew of what it held"


def test_memory_without_a_listed_process_is_nobodys_where_all_are_listed_and_else_unknown() -> None:
    sample = sample_of(gpu_of(0, 70, []), gpu_of(1, 70, None), gpu_of(2, 0.5, []), gpu_of(3, None, []))

    whole = gpu.judge(sample, set(), set(), lists_all=True)["gpus"]
    inside = gpu.judge(sample, set(), set(), lists_all=False)["gpus"]

    assert [each["owner"] for each in whole] == ["nobody", "unknown", "free", "unknown"]
    assert [each["owner"] for each in inside] == ["unknown", "unknown", "free", "unknown"]
    assert "may leave out whoever is outside of this container" in inside[0]["why"]
    assert whole[1]["why"] == "the driver can't list processes here"


def test_on_a_host_the_driver_is_taken_to_list_everybody_and_in_a_container_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sample = sample_of(gpu_of(0, 70, []))
    owners = []

    for namespace in ("pid:[4026531836]", "pid:[4026532575]", ""):
        monkeypatch.setattr(procfs, "pid_namespace_here", lambda found=namespace: found)
        owners.append(gpu.judge(sample, set(), set())["gpus"][0]["owner"])

    assert owners == ["nobody", "unknown", "unknown"]


def test_memory_beyond_what_the_runs_processes_hold_is_told() -> None:
    sample = sample_of(
        gpu_of(0, 70, [[10, 69 * GIB]]),
        gpu_of(1, 70, [[10, 20 * GIB]]),
        gpu_of(2, 70, [[10, 20 * GIB], [99, 49 * GIB]]),
        gpu_of(3, 70, [[10, None]]),
    )

    judged = gpu.judge(sample, {10}, {10})["gpus"]

    assert [each["owner"] for each in judged] == ["run"] * 4
    assert [bool(each["why"]) for each in judged] == [False, True, False, False]
    assert "50.0 GiB more" in judged[1]["why"]


def test_a_simulated_gpu_is_ours_where_the_file_lists_our_pid() -> None:
    sample = sample_of(gpu_of(0, 70, [[10, None]]), gpu_of(1, 1, []), source="simulated")

    verdict = gpu.judge(sample, {10}, set())

    assert (verdict["contexts"], verdict["rule"]) == ([0], "simulated")
    assert [each["context"] for each in verdict["gpus"]] == [True, False]
