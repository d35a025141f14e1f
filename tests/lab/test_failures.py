"""Launches that fail: the stage, the reason, the evidence and the exit code that a script gets to see."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.headless import restart as restart_command
from console.model import StageState
from tests.headless.running import time_is_up_once_judged
from tests.lab.containers import Container
from tests.lab.session import Lab
from tests.lab.training import Done, Training


@pytest.fixture(scope="module")
def healthy(
    lab: Lab, plain_container: Container, driver: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Training, Done]]:
    """A run that every refused restart must leave stepping."""
    training = Training(lab, plain_container, tmp_path_factory.mktemp("healthy"), driver)
    training.clear()
    training.install()
    yield training, training.restart()
    training.clear()


def _is_missing(training: Training) -> None:
    training.container.remove("/root/run.sh")


def _is_not_executable(training: Training) -> None:
    training.write_run(mode=0o644)


def _names_no_interpreter(training: Training) -> None:
    training.write_run(shebang="#!/bin/nosuch")


@pytest.mark.parametrize(
    ("spoil", "reason", "evidence"),
    [
        (_is_missing, "command_not_found", "/root/run.sh"),
        (_is_not_executable, "exec_not_permitted", "/root/run.sh"),
        (_names_no_interpreter, "bad_interpreter", "/bin/nosuch"),
    ],
)
def test_preflight_refuses_what_can_not_start_and_the_old_run_steps_on(
    spoil: Callable[[Training], None], reason: str, evidence: str, healthy: tuple[Training, Done]
) -> None:
    training, running = healthy
    spoil(training)
    try:
        refused = training.cli("restart", "--yes", "--json")
    finally:
        training.write_run()

    assert (refused.code, refused.json["exit_code"], refused.json["reason"]) == (3, 3, reason)
    assert evidence in refused.json["detail"]
    assert (refused.json["ok"], refused.json["stage"]) == (False, "preflight")
    assert refused.json["next"]
    training.steps_on(running.json["log"])
    assert training.mains() == [running.json["pid"]]
    assert training.run_ids() == [running.json["id"]]


@pytest.mark.parametrize(
    ("fault", "code", "stage", "reason", "status", "evidence"),
    [
        ("exit-at-once:0.3", 12, "spawned", "missing_module", 1, "ModuleNotFoundError: No module named 'dflash"),
        ("exit-zero", 12, "spawned", "exit_without_step", 0, "nothing to do"),
        ("traceback", 13, "cuda", "python_exception", 1, "Missing key(s)"),
        ("oom-load:2", 13, "cuda", "cuda_oom", 1, "CUDA out of memory"),
    ],
)
def test_failed_launch_names_stage_reason_and_evidence(
    fault: str, code: int, stage: str, reason: str, status: int, evidence: str, training: Training
) -> None:
    training.write_run("--load-time 3")  # so that what strikes while loading does so after the start is proven
    training.fault(fault)

    # However busy the machine is: what ends at once does so before the start is proven, the rest afterwards.
    start_s = 30.0 if stage == "spawned" else 0.3
    failed = training.cli("restart", "--yes", "--json", "--timeout", "90s", start_s=start_s)

    told = failed.json
    assert (failed.code, told["exit_code"], told["stage"], told["reason"]) == (code, code, stage, reason), told
    assert (told["ok"], told["outcome"], told["exit_status"], told["run_alive"]) == (False, "failed", status, False)
    assert failed.stage(stage)["state"] == "failed"
    assert failed.stage("stepping")["state"] == "not_reached"
    assert evidence in "\n".join(told["log_tail"])
    assert evidence in " ".join(fact["text"] for fact in told["evidence"])
    assert told["next"]
    assert training.mains() == []


def test_hanging_cuda_is_late_and_left_alone(training: Training) -> None:
    training.fault("cuda-hang:6")
    config = training.config(deadlines={"cuda": 2.0})

    with time_is_up_once_judged(
        restart_command, lambda now: now.stages[3].state is StageState.LATE and now.stages[3].have == 6
    ):
        late = training.cli("restart", "--yes", "--json", "--timeout", "90s", config=config)

    assert (late.code, late.json["exit_code"], late.json["outcome"]) == (20, 20, "late")
    assert (late.json["stage"], late.json["run_alive"]) == ("cuda", True)
    assert late.stage("cuda")["state"] == "late"
    assert (late.stage("cuda")["k"], late.stage("cuda")["missing"]) == (6, [6, 7])
    assert training.mains() == [late.json["pid"]]
