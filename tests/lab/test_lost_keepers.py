"""A keeper killed with SIGKILL: the run goes on and is still stoppable; a restart cut in two is called interrupted."""

from tests.lab.training import Training
from tests.waiting import until


def test_run_outlives_its_keeper_and_can_still_be_stopped(training_in_each: Training) -> None:
    training = training_in_each
    running = training.restart()
    training.container.run(["kill", "-KILL", str(training.keeper(running.json["id"]))])

    training.steps_on(running.json["log"])
    status = training.cli("status", "--json", "--check")
    stopped = training.cli("stop", "--yes", "--json")

    assert (status.json["verdict"], status.json["id"]) == ("stepping", running.json["id"])
    assert "keeper_lost" in status.json["warnings"]
    assert stopped.code == 0, stopped
    assert training.container.pids_of("train_dflash_pipeline.py") == []
    assert training.cli("status", "--json").json["alive"] is False


def test_restart_cut_between_kill_and_spawn_is_interrupted_and_the_next_one_works(training: Training) -> None:
    training.fault("ignore-term")
    first = training.restart()
    training.container.remove("/root/fault")
    config = training.config(stop={"grace_s": 600.0})
    accepted = training.cli("restart", "--yes", "--json", "--detach", config=config)
    training.container.run(["kill", "-KILL", str(training.keeper(accepted.json["id"]))])
    training.container.run(["kill", "-KILL", str(first.json["pid"])])
    until(lambda: not training.mains(), 60, "nothing runs")

    status = training.cli("status", "--json", "--check")
    waited = training.cli("wait", accepted.json["id"], "--json", "--timeout", "90s")
    restarted = training.restart()

    assert (status.json["verdict"], status.json["reason"]) == ("interrupted", "interrupted")
    assert status.json["alive"] is False
    assert waited.code in (10, 11, 12)
    assert waited.json["outcome"] == "failed"
    assert training.mains() == [restarted.json["pid"]]
