"""The simulated trainer as a real process: what it prints, what it holds, how it goes wrong and how it ends."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from console.demo import faults, gpustate, trainer
from tests.waiting import until

TRAINER = Path(trainer.__file__)
GIB = 1 << 30
STEP = re.compile(
    r"^\[\d\d:\d\d:\d\d\] step (\d+)/(\d+) \| loss (\S+) \| acc \d\.\d{3} \| lr \d\.\d\de-\d\d \| tok/s ([\d,]+) "
    r"\| hs_queue min_ready=(\d+) max_depth=16$",
    re.MULTILINE,
)


def pythons() -> list[str]:
    """Return the interpreters of this machine, 3.8 and later; a version manager's name on PATH is no proof of one."""
    found = {}
    for minor in range(8, 15):
        if name := shutil.which(f"python3.{minor}"):
            asked = subprocess.run([name, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
            if asked.returncode == 0:
                found[minor] = asked.stdout.strip()
    return list(found.values()) or [sys.executable]


PYTHONS = pythons()


class Run:
    """One trainer that a test started."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        python: str = sys.executable,
        env: dict[str, str] | None = None,
        program: Path = TRAINER,
    ):
        self.log = folder / "train.log"
        self.state = folder / "gpus"
        self.uvm = folder / "nvidia-uvm"
        self.uvm.touch()
        argv = [python, "-u", str(program), "--gpu-state", str(self.state), "--open-uvm", str(self.uvm), *options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **(env or {})}
            )

    @property
    def text(self) -> str:
        return self.log.read_bytes().decode()  # as bytes: read_text would turn every \r into \n

    @property
    def last_line(self) -> str:
        return self.text.splitlines()[-1]

    @property
    def steps(self) -> list[int]:
        return [int(step) for step, *_ in STEP.findall(self.text)]

    @property
    def gpus(self) -> list[dict[str, Any]]:
        return gpustate.parse(self.state.read_text()) if self.state.exists() else []

    @property
    def holders(self) -> list[int]:
        return [pid for gpu in self.gpus for pid, _ in gpu["procs"]]

    def end(self) -> int:
        """Wait for the end and return the status, negative for a signal."""
        return self.process.wait(20)


Start = Callable[..., Run]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    runs: list[Run] = []
    strays: set[int] = set()

    def begin(*options: str, **more: Any) -> Run:
        runs.append(Run(tmp_path, *options, **more))
        return runs[-1]

    yield begin
    for run in runs:
        strays.update(run.holders)
        run.process.kill()
        run.process.wait(20)
    for pid in strays - {os.getpid()}:
        if gpustate.is_alive(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def open_files(pid: int) -> set[str]:
    try:
        return {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:
        return set()


def command_line(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]


@pytest.mark.parametrize("python", PYTHONS, ids=[Path(python).name for python in PYTHONS])
def test_a_healthy_run_loads_steps_and_ends_with_status_0(start: Start, python: str) -> None:
    run = start("--speed", "200", "--steps", "30", "--ckpt-every", "10", python=python)

    assert run.end() == 0

    text = run.text
    assert "roles: target=[0,1,2,3,4] drafter=[5,6,7]  seq_len=4096 batch=8" in text
    assert re.search(r"\rLoading checkpoint shards:  42%\|████▏     \| 5/12 \[\d\d:\d\d<\d\d:\d\d, +[\d.]+it/s\]", text)
    assert run.steps == list(range(1, 31))
    assert re.search(r"^Checkpoint saved at step 20 → /workspace/\S+/step_20 \(41\.2 GiB, \d+\.\d s\)$", text, re.M)
    assert text.endswith("Training completed\n")
    assert all(gpu["used"] == GIB // 2 and not gpu["procs"] and gpu["util"] == 0 for gpu in run.gpus)


def test_stepping_gpus_are_held_by_live_ranks_that_have_the_device_open(start: Start) -> None:
    run = start("--speed", "50")
    until(lambda: len(run.steps) > 3 and run.gpus[0]["util"] > 90, 60)

    gpus = run.gpus

    assert [len(gpu["procs"]) for gpu in gpus] == [1] * 8
    assert len(set(run.holders)) == 8
    assert all(str(run.uvm) in open_files(pid) for pid in run.holders)
    assert str(run.uvm) not in open_files(run.process.pid)
    assert {round(gpu["used"] / GIB) for gpu in gpus[:5]} <= {71, 72}
    assert {round(gpu["used"] / GIB) for gpu in gpus[5:]} <= {118, 119}
    assert all(gpu["power_mw"] > 500_000 and gpu["total"] == trainer.TOTAL_BYTES for gpu in gpus)


def test_contexts_come_one_after_the_other_and_the_last_drafter_late(start: Start) -> None:
    run = start("--load-time", "60")
    until(lambda: len(run.holders) >= 5)

    assert len(run.holders) < 8


def test_each_context_is_told_between_the_shards_before_and_after_it(start: Start) -> None:
    run = start("--speed", "200", "--steps", "1")
    assert run.end() == 0

    told = re.findall(r"(?:target|drafter) (\d):|\| (\d+)/12 \[", run.text)

    opened_behind, shard = {}, None
    for rank, done in told:
        shard = int(done) if done else shard
        if rank:
            opened_behind[int(rank)] = shard
    assert opened_behind == {0: None, 1: None, 2: None, 3: None, 4: None, 5: 3, 6: 6, 7: 9}


def test_the_rate_warms_up_and_the_queue_stays_between_5_and_16(start: Start) -> None:
    run = start("--speed", "2000", "--start-step", "18000", "--steps", "18200", "--ckpt-every", "0", "--load-time", "0")
    assert run.end() == 0

    records = STEP.findall(run.text)
    rates = [int(rate.replace(",", "")) for *_, rate, _ in records]
    losses = [float(loss) for _, _, loss, _, _ in records]
    queue = [int(ready) for *_, ready in records]

    assert rates[0] < 16_000
    assert all(21_000 < rate < 22_000 for rate in rates[60:])
    assert all(1.15 < loss < 1.25 for loss in losses)
    assert (min(queue), max(queue)) == (5, 16)


def test_a_checkpoint_dents_the_rate(start: Start) -> None:
    run = start("--speed", "2000", "--steps", "130", "--ckpt-every", "100", "--load-time", "0")
    assert run.end() == 0

    rates = {int(step): int(rate.replace(",", "")) for step, *_, rate, _ in STEP.findall(run.text)}

    assert rates[101] < 0.9 * rates[100]
    assert rates[110] > 0.97 * rates[100]


def test_the_same_seed_tells_the_same_story(start: Start, tmp_path: Path) -> None:
    stories = []
    for _ in range(2):
        run = start("--speed", "5000", "--steps", "20", "--load-time", "0", "--seed", "7")
        assert run.end() == 0
        stories.append(STEP.findall(run.text)[-20:])
        run.log.unlink()

    assert stories[0] == stories[1]


@pytest.mark.parametrize(
    ("form", "step", "checkpoint"),
    [
        ("megatron", r"^ \[[\d: .-]+\] iteration {8}7/ {6}20 \| .*\| lm loss: \d\.\d{6}E\+00 \|", "successfully saved"),
        (
            "torchtitan",
            r"^\[titan\] .* - INFO - step:  7  loss: +\d\.\d{5}  grad_norm: .*tps: [\d,]+ ",
            "Finished saving",
        ),
        ("hf", r"\r *35%\|███▌      \| 7/20 \[", "Saving model checkpoint to .*/checkpoint-10"),
    ],
)
def test_it_speaks_the_formats_of_other_trainers(start: Start, form: str, step: str, checkpoint: str) -> None:
    run = start("--format", form, "--speed", "1000", "--steps", "20", "--ckpt-every", "10", "--load-time", "0")

    assert run.end() == 0

    assert re.search(step, run.text, re.MULTILINE)
    assert re.search(checkpoint, run.text)
    if form == "hf":
        assert re.search(
            r"\r\{'loss': \d\.\d{4}, 'grad_norm': \d\.\d+, 'learning_rate': \S+, 'epoch': 0\.50\}", run.text
        )


def test_megatron_drops_the_loss_where_it_is_nan(start: Start) -> None:
    run = start("--format", "megatron", "--speed", "1000", "--steps", "12", "--load-time", "0", "--fault", "nan:10")
    assert run.end() == 0

    with_loss = ["lm loss" in line for line in run.text.splitlines() if " iteration " in line and "consumed" in line]

    assert with_loss == [True] * 10 + [False] * 2


# -- how it ends


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_by_that_signal_with_the_gpus_released(start: Start, number: signal.Signals) -> None:
    run = start("--speed", "50")
    until(lambda: len(run.steps) > 3, 60)
    ranks = run.holders

    run.process.send_signal(number)

    assert run.end() == -number
    assert not any(gpustate.is_alive(pid) for pid in ranks)
    assert "procs=\n" in run.state.read_text()
    assert all(gpu["used"] == GIB // 2 for gpu in run.gpus)


def test_sigterm_while_loading_leaves_no_rank(start: Start) -> None:
    run = start("--load-time", "60")
    until(lambda: len(run.holders) >= 5, 60)
    ranks = run.holders

    run.process.terminate()

    assert run.end() == -signal.SIGTERM
    assert not any(gpustate.is_alive(pid) for pid in ranks)


def test_after_sigkill_the_ranks_end_and_readers_see_the_memory_released(start: Start) -> None:
    run = start("--speed", "50")
    until(lambda: len(run.steps) > 3 and len(run.holders) == 8, 60)

    run.process.kill()
    run.end()

    until(lambda: not run.holders, 60)
    assert "procs=\n" not in run.state.read_text()  # nobody has rewritten the file
    assert all(gpu["used"] == GIB // 2 and gpu["util"] == 0 for gpu in run.gpus)


def test_orphaned_ranks_keep_their_memory_without_naming_the_script(start: Start) -> None:
    run = start("--speed", "50", "--orphans", "--workers", "spawn")
    until(lambda: len(run.steps) > 3, 60)
    ranks = run.holders

    run.process.kill()
    run.end()

    assert len(ranks) == 8
    assert run.holders == ranks
    assert not any(TRAINER.name in word for pid in ranks for word in command_line(pid))
    assert all(command_line(pid)[-1] == "--multiprocessing-fork" for pid in ranks)
    assert all({str(run.uvm), str(run.log)} <= open_files(pid) for pid in ranks)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_memory_stays_used_for_the_release_delay(start: Start, number: signal.Signals) -> None:
    run = start("--speed", "50", "--release-delay", "600")
    until(lambda: len(run.steps) > 3 and len(run.holders) == 8)

    run.process.send_signal(number)
    run.end()
    until(lambda: not run.holders)

    text, now = run.state.read_text(), time.time()
    assert all(gpu["used"] > 70 * GIB and not gpu["procs"] for gpu in gpustate.parse(text, now=now))
    assert all(gpu["used"] == GIB // 2 for gpu in gpustate.parse(text, now=now + 600))


def test_a_rank_that_dies_takes_the_run_with_it(start: Start) -> None:
    run = start("--speed", "50")
    until(lambda: len(run.steps) > 3, 60)

    os.kill(run.holders[3], signal.SIGKILL)

    assert run.end() == 1
    assert run.last_line.endswith("ProcessExitedException: process 3 terminated with signal SIGKILL")
    assert not run.holders


# -- what others wrote into the state file


def test_foreign_lines_and_living_processes_survive_in_the_state_file(start: Start, tmp_path: Path) -> None:
    me = os.getpid()
    (tmp_path / "gpus").write_text(
        "driver 535.1\nfail nvmlDeviceGetPowerUsage=3 gpu=2\n"
        f"gpu 3 uuid=GPU-sim-3 total={trainer.TOTAL_BYTES} used=0 procs={me}:1000000000,999999999:5\n"
        "gpu 9 uuid=GPU-other total=5 used=1 procs=\n"
    )
    run = start("--speed", "200", "--steps", "5")
    assert run.end() == 0

    text = run.state.read_text()

    assert text.startswith("driver 535.1\nfail nvmlDeviceGetPowerUsage=3 gpu=2\n")
    assert "uuid=GPU-other" in text
    assert run.gpus[3]["procs"] == [(me, 1_000_000_000)]
    assert run.gpus[3]["used"] == GIB // 2 + 1_000_000_000


def test_idle_gpus_can_be_written_without_a_run(tmp_path: Path) -> None:
    argv = [sys.executable, str(TRAINER), "--idle", "--gpus", "4", "--gpu-state", str(tmp_path / "gpus")]
    subprocess.run(argv, check=True, timeout=20)

    gpus = gpustate.parse((tmp_path / "gpus").read_text())

    assert [(gpu["index"], gpu["used"], gpu["procs"]) for gpu in gpus] == [(i, GIB // 2, []) for i in range(4)]


def test_options_come_from_the_environment_too(start: Start) -> None:
    env = {"DFLASH_SIM_SPEED": "1000", "DFLASH_SIM_STEPS": "4", "DFLASH_SIM_LOAD_TIME": "0", "DFLASH_SIM_GPUS": "2"}
    run = start(env=env)

    assert run.end() == 0
    assert run.steps == [1, 2, 3, 4]
    assert "roles: target=[0] drafter=[1]" in run.text


@pytest.mark.parametrize(
    "options", [["--fault", "nonsense"], ["--gpus", "2", "--targets", "2", "--drafters", "1"], ["--speed", "0"]]
)
def test_wrong_options_are_refused_with_status_2(start: Start, options: list[str]) -> None:
    run = start(*options)

    assert run.end() == 2
    assert not run.state.exists()


# -- faults


def test_the_catalogue_and_the_trainer_know_the_same_faults() -> None:
    ours = {name for name, fault in faults.CATALOGUE.items() if fault.by is faults.By.TRAINER}
    at_once = {
        name
        for name, fault in faults.CATALOGUE.items()
        if fault.by is faults.By.TRAINER and fault.takes is faults.Takes.AT_ONCE
    }

    assert ours == {*trainer.FAULTS_AT_START, *trainer.FAULTS_WHILE_RUNNING}
    assert at_once == set(trainer.FAULTS_WHILE_RUNNING)
    assert len(faults.CATALOGUE) == 24


@pytest.mark.parametrize(
    ("fault", "status", "last_line"),
    [
        ("exit-at-once", 1, r"ModuleNotFoundError: No module named 'dflash\.kernels'"),
        ("exit-zero", 0, r"\[\d\d:\d\d:\d\d\] resume: already at step 60000/60000, nothing to do"),
        ("traceback", 1, r"\[rank1\]: RuntimeError: Error\(s\) in loading state_dict for .*"),
        ("oom-load:6", 1, r"\[rank6\]: torch\.OutOfMemoryError: CUDA out of memory\..* GPU 6 has a total .*"),
        ("no-cuda", 1, r"RuntimeError: No CUDA GPUs are available"),
    ],
)
def test_a_fault_before_the_first_step_ends_the_run(start: Start, fault: str, status: int, last_line: str) -> None:
    run = start("--speed", "20", "--fault", fault)

    assert run.end() == status

    assert re.fullmatch(last_line, run.last_line)
    assert run.steps == []
    assert ("Traceback (most recent call last):" in run.text) == (status == 1)
    assert all(gpu["used"] == GIB // 2 for gpu in run.gpus)


def test_out_of_memory_fills_the_gpu_first(start: Start, tmp_path: Path) -> None:
    """For as long as it takes to be seen; that it ends then is seen above."""
    slow = tmp_path / TRAINER.name
    slow.write_text(TRAINER.read_text().replace(f"STATE_PERIOD_S = {trainer.STATE_PERIOD_S}", "STATE_PERIOD_S = 300.0"))
    assert slow.read_text() != TRAINER.read_text()

    run = start("--speed", "20", "--fault", "oom-load:6", program=slow)

    until(lambda: run.gpus and run.gpus[6]["used"] > 138 * GIB, 60)
    assert run.process.poll() is None


def test_only_some_ranks_get_a_context_when_cuda_hangs(start: Start) -> None:
    run = start("--speed", "100", "--fault", "cuda-hang")
    until(lambda: "12/12" in run.text, 60)

    assert len(run.holders) == 6
    assert run.process.poll() is None
    assert run.steps == []
    run.process.terminate()
    assert run.end() == -signal.SIGTERM


def test_nan_begins_at_the_step_that_was_named(start: Start) -> None:
    run = start("--speed", "1000", "--steps", "15", "--load-time", "0", "--fault", "nan:10")
    assert run.end() == 0

    assert [loss == "nan" for _, _, loss, _, _ in STEP.findall(run.text)] == [False] * 10 + [True] * 5


@pytest.mark.parametrize(("fault", "util", "watts"), [("stall", 100, 128), ("stall-idle", 0, 77)])
def test_a_stall_is_silent_and_shows_on_the_gpus(start: Start, fault: str, util: int, watts: int) -> None:
    run = start("--speed", "200", "--fault", f"{fault}:5")
    until(lambda: run.gpus and run.gpus[7]["util"] == util and len(run.steps) == 5, 60)

    gpus = run.gpus

    assert len(run.holders) == 8
    assert all(gpu["util"] == util and 0 <= gpu["power_mw"] / 1000 - watts < 4 for gpu in gpus)
    assert run.process.poll() is None
    assert run.steps == [1, 2, 3, 4, 5]


def test_sigkill_strikes_after_the_steps_that_were_named(start: Start) -> None:
    run = start("--speed", "200", "--fault", "sigkill:6")

    assert run.end() == -signal.SIGKILL
    assert run.steps == [1, 2, 3, 4, 5, 6]
    until(lambda: not run.holders, 60)


def test_buffered_output_stays_away_while_the_gpus_work(start: Start) -> None:
    run = start("--speed", "50", "--fault", "buffered")

    until(lambda: run.gpus and run.gpus[0]["util"] > 90, 60)

    assert run.text == ""
    assert len(run.holders) == 8


def test_slow_costs_17_percent(start: Start) -> None:
    options = ["--speed", "2000", "--steps", "200", "--load-time", "0", "--ckpt-every", "0"]
    run = start(*options, "--fault", "slow:100")
    assert run.end() == 0

    rates = [int(rate.replace(",", "")) for *_, rate, _ in STEP.findall(run.text)]

    assert sum(rates[100:]) / sum(rates[60:100]) * 40 / 100 == pytest.approx(0.83, abs=0.01)


def test_ignored_sigterm_leaves_only_sigkill(start: Start) -> None:
    run = start("--speed", "100", "--fault", "ignore-term")
    until(lambda: len(run.steps) > 2, 60)
    ranks = run.holders

    run.process.terminate()
    for pid in ranks:
        os.kill(pid, signal.SIGTERM)
    seen = len(run.steps)

    until(lambda: len(run.steps) > seen + 5, 60)
    assert run.holders == ranks
    run.process.kill()
    assert run.end() == -signal.SIGKILL


def test_a_fault_file_strikes_a_running_trainer_and_lets_go_again(start: Start, tmp_path: Path) -> None:
    order = tmp_path / "fault"
    run = start("--speed", "50", "--fault-file", str(order))
    until(lambda: len(run.steps) > 2, 60)

    order.write_text("stall\n")
    until(lambda: run.gpus[0]["power_mw"] < 140_000 and run.gpus[0]["util"] == 100, 60)
    seen = len(run.steps)
    order.unlink()

    until(lambda: len(run.steps) > seen + 2, 60)
