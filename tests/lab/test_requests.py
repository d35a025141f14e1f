"""Requests of several operators and scripts: what each is told, and that nothing is ever doubled."""

import json

from tests.lab.training import Training, finished
from tests.waiting import until


def test_second_restart_is_told_the_stage_of_the_first_and_wait_follows_it(training: Training) -> None:
    training.fault("ignore-term")
    first = training.restart()
    training.container.remove("/root/fault")
    config = training.config(stop={"grace_s": 600.0})

    accepted = training.cli("restart", "--yes", "--json", "--detach", config=config)
    second = training.cli("restart", "--yes", "--json", config=config)
    training.container.run(["kill", "-KILL", str(first.json["pid"])])  # only now: the second met the first at its work
    waited = training.cli("wait", accepted.json["id"], "--json", "--timeout", "90s", config=config)

    assert (accepted.code, accepted.json["outcome"]) == (0, "accepted")
    assert (second.code, second.json["reason"], second.json["exit_code"]) == (4, "restart_under_way", 4)
    assert second.json["id"] == accepted.json["id"]
    assert second.json["stage"] in ("killing", "spawned", "cuda", "stepping")
    assert (waited.code, waited.json["id"], waited.json["stage"]) == (0, accepted.json["id"], "stepping")
    assert waited.json["replaced"] == first.json["run"]
    assert training.mains() == [waited.json["pid"]]
    assert len(training.run_ids()) == 2


def test_plan_id_holds_until_the_world_changes(training: Training) -> None:
    planned = training.cli("restart", "--plan", "--json", "--env", "DFLASH_SPLIT_FC_LAYERS=1")
    assert (planned.code, training.run_ids()) == (0, [])

    done = training.cli("restart", "--plan-id", planned.json["plan_id"], "--json", "--timeout", "90s")
    again = training.cli("restart", "--plan-id", planned.json["plan_id"], "--json")

    assert done.code == 0, done
    assert "DFLASH_SPLIT_FC_LAYERS=1" in training.container.read(f"/proc/{done.json['pid']}/environ").split("\0")
    assert (again.code, again.json["reason"], again.json["exit_code"]) == (3, "plan_changed", 3)
    assert training.mains() == [done.json["pid"]]


def test_expected_run_guards_restart_and_stop(training: Training) -> None:
    running = training.restart()

    wrong = training.cli("restart", "--yes", "--json", "--expect-run", "slammed77")
    kept = training.cli("stop", "--yes", "--json", "--expect-run", "slammed77")

    assert (wrong.code, wrong.json["reason"]) == (4, "unexpected_run")
    assert running.json["run"] in wrong.json["detail"]
    assert (kept.code, kept.json["reason"]) == (4, "unexpected_run")
    training.steps_on(running.json["log"])
    assert training.mains() == [running.json["pid"]]

    stopped = training.cli("stop", "--yes", "--json", "--expect-run", running.json["run"])
    assert stopped.code == 0, stopped


def test_stop_proves_that_all_are_gone_and_check_says_so_afterwards(training_in_each: Training) -> None:
    training = training_in_each
    idle = training.cli("status", "--json", "--check")
    nothing = training.cli("stop", "--yes", "--json")
    running = training.restart()
    unconfirmed = training.cli("stop", "--json")
    healthy = training.cli("status", "--check")
    waiting = training.console("wait", running.json["id"], "--for", "exit", "--json", "--timeout", "90s")
    until(lambda: len(training.agents()) == 2, 60, "somebody waits for its end")

    stopped = training.cli("stop", "--yes", "--json")

    ended = finished(waiting)
    after = training.cli("status", "--json", "--check")
    assert (idle.code, idle.json["verdict"]) == (5, "idle")
    assert (nothing.code, nothing.json["reason"]) == (5, "nothing_runs")
    assert (unconfirmed.code, healthy.code) == (2, 0)
    assert (stopped.code, stopped.json["verdict"], stopped.json["run_alive"]) == (0, "stopped", False)
    assert stopped.stage("killing")["state"] == "done"
    assert "9 pids gone" in stopped.stage("killing")["evidence"]
    assert "GiB freed" in stopped.stage("killing")["evidence"]
    assert (ended.code, ended.json["signal"]) == (0, 15)
    assert (after.code, after.json["verdict"], after.json["alive"]) == (5, "stopped", False)
    assert training.container.pids_of("train_dflash_pipeline.py") == []
    training.await_no_agents()


def test_hand_started_run_can_be_stopped_and_stopping_again_finds_nothing(training: Training) -> None:
    by_hand = training.start_by_hand()

    stopped = training.cli("stop", "--yes", "--json")
    again = training.cli("stop", "--yes", "--json")

    assert (stopped.code, stopped.json["run_alive"]) == (0, False)
    assert by_hand not in training.container.processes()
    assert training.container.pids_of("train_dflash_pipeline.py") == []
    assert (again.code, again.json["reason"]) == (5, "nothing_runs")


def test_status_check_tells_a_run_that_ended_from_a_bad_one(training: Training) -> None:
    training.fault("nan:5")
    running = training.restart()
    until(lambda: "loss nan" in training.container.read(running.json["log"]), 60, "the loss is NaN")

    bad = training.cli("status", "--json", "--check")
    training.container.run(["kill", "-KILL", str(running.json["pid"])])
    training.await_end(running.json["id"])
    ended = training.cli("status", "--json", "--check")
    waited = training.cli("wait", running.json["id"], "--for", "stepping", "--json")

    assert (bad.code, bad.json["verdict"], bad.json["loss_state"]) == (6, "nan", "nan")
    assert (ended.code, ended.json["reason"]) == (15, "sigkill_unknown")
    assert (waited.code, waited.json["signal"]) == (15, 9)
    assert json.loads(waited.out)["stages"][-1]["state"] == "done"
