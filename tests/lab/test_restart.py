"""The main job through real SSH into real containers: `restart` proves five stages where the operators' lines fail."""

import pytest

from console.host.cache import TRASH_PREFIX
from tests.lab.session import Way
from tests.lab.training import CACHE, SCRIPT, STAGES, Training
from tests.waiting import until

_OLD_LINE = (
    "bash -c 'pkill -9 -f python3; sleep 8; rm -rf /tmp/torchinductor_root;"
    " nohup /root/run.sh >/workspace/train.log 2>&1 & disown; sleep 5; tail -n 2 /workspace/train.log'"
)


@pytest.mark.parametrize("way", ["host", "jump"])
def test_restart_proves_five_stages_where_the_old_line_prints_nothing(way: Way, training_in_each: Training) -> None:
    training, container = training_in_each, training_in_each.container
    config = training.config(way)
    old = training.lab.host(way).run(*container.exec_prefix, _OLD_LINE, timeout_s=60)
    assert (old.returncode, old.stdout, training.mains()) == (137, "", [])

    first = training.restart(config=config)
    second = training.restart(config=config)
    status = training.cli("status", "--json", "--check", config=config)

    assert first.stage("killing")["state"] == "skipped"
    assert [each["state"] for each in second.json["stages"]] == ["done"] * 5
    assert [each["stage"] for each in second.json["stages"]] == list(STAGES)
    assert all(each["evidence"] for each in second.json["stages"])
    assert second.json["replaced"] == first.json["run"]
    assert "gone" in second.stage("killing")["evidence"]
    assert "GiB freed" in second.stage("killing")["evidence"]
    assert second.stage("cuda")["evidence"].startswith("8/8")
    assert training.mains() == [second.json["pid"]]
    assert (status.code, status.json["gpu_source"]) == (0, "nvml")
    assert [(gpu["owner"], gpu["context"]) for gpu in status.json["gpus"]] == [("run", True)] * 8
    training.shows_times_of(second, config)


def test_cache_is_set_aside_and_deleted_unless_kept(training: Training) -> None:
    old = training.container.path(f"{CACHE}/fx00/old.so")
    old.write_text("x" * 100_000)
    kept = training.restart("--keep-cache")
    assert kept.stage("cache")["state"] == "skipped"
    assert old.exists()

    cleared = training.restart()

    assert cleared.stage("cache")["state"] == "done"
    assert "KiB set aside" in cleared.stage("cache")["evidence"]
    assert not old.exists()
    beside = training.container.path("/tmp")
    until(lambda: not list(beside.glob(f"{TRASH_PREFIX}*")), 60, "the trash is deleted")


def test_hand_started_run_is_planned_and_replaced_and_bystanders_are_neither(training_in_each: Training) -> None:
    training, container = training_in_each, training_in_each.container
    by_hand = training.start_by_hand()
    script = f"/root/{SCRIPT}"
    bystanders = [
        f"exec tail -f {script}",
        f"exec -a vim tail -f {script}",
        f"sleep 600; : {SCRIPT}",
        f"tail -f /dev/null | grep {SCRIPT}",
        f"exec python3 -c 'import time; edited = \"{SCRIPT}\"; time.sleep(600)'",
    ]
    before = set(container.processes())
    for line in bystanders:
        container.run(["bash", "-c", 'setsid -f bash -c "$0" </dev/null >/dev/null 2>&1', line])
    until(lambda: len(_with_the_name(training) - before) >= len(bystanders) + 1, 60, "the bystanders are there")
    standing = _with_the_name(training) - before
    status = training.cli("status", "--json")

    plan = training.cli("restart", "--plan", "--json")
    training.restart()

    assert (status.json["by_hand"], status.json["pid"]) == (True, by_hand)
    assert status.json["log"]["path"] == "/workspace/train_hand.log"
    planned = {process["pid"] for process in plan.json["replaces"]}
    assert by_hand in planned
    assert not planned & standing
    assert by_hand not in container.processes()
    assert standing <= set(container.processes())
    assert len(training.mains()) == 1


def _with_the_name(training: Training) -> set[int]:
    """Return every process whose command line carries the trainer's name anywhere."""
    return {pid for pid, argv in training.container.processes().items() if SCRIPT in " ".join(argv)}
