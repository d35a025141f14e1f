"""Runs started by hand: found by the script of a Python process and by kinship, never by a name somewhere."""

import os
import subprocess
import sys
from typing import Any

import pytest

from console.host import discover, procfs
from tests.host.keeperlab import Lab
from tests.waiting import until

SPAWNED = "from multiprocessing.spawn import spawn_main; import time; time.sleep(600)"


def found(lab: Lab, **options: Any) -> list[dict[str, Any]]:
    """Runs of this lab only: others may work on this machine with trainers of the same name."""
    ours = set(lab.marked())
    return [run for run in discover.find_runs([lab.trainer_name], **options) if run["main"]["pid"] in ours]


def pids(run: dict[str, Any]) -> set[int]:
    return {entry["pid"] for entry in run["pids"]}


@pytest.mark.parametrize(
    ("argv", "matched"),
    [
        (["python3", "-u", "/root/train.py", "--gpus", "8"], "/root/train.py"),
        (["/opt/venv/bin/python3.11", "-X", "dev", "-W", "ignore", "train.py"], "train.py"),
        (["python3", "/usr/bin/torchrun", "--nproc-per-node", "8", "train.py"], "train.py"),
        (["torchrun", "train.py"], "train.py"),
        (["python", "-m", "torch.distributed.run", "--nnodes=1", "a/train.py"], "a/train.py"),
        (["python", "-m", "accelerate.commands.launch", "train.py"], "train.py"),
        (["python3", "-c", "import train", "train.py"], None),
        (["python3", "-uc", "run('train.py')"], None),
        (["python3", "editor.py", "train.py"], None),
        (["python3", "-m", "pyflakes", "train.py"], None),
        (["python3", "my_train.py"], None),
        (["python3", "train.py.bak"], None),
        (["vim", "train.py"], None),
        (["bash", "-c", "python3 train.py"], None),
        (["python3"], None),
        ([], None),
    ],
)
def test_only_the_script_of_a_python_process_counts(argv: list[str], matched: str | None) -> None:
    assert discover.matched_element(argv, ["train.py"]) == matched


def test_run_by_hand_is_found_with_its_script_log_and_children(lab: Lab) -> None:
    lab.trainer("subprocess.Popen(['sleep', '600']); print('ready'); time.sleep(600)")
    lab.script("outer.sh", f"#!/bin/sh\n{sys.executable} -u {lab.work}/{lab.trainer_name}\necho done\n")
    with open(lab.work / "old.log", "wb") as log:
        outer = lab.start(lab.work / "outer.sh", stdout=log)
    until(lambda: "ready" in lab.log("old"))

    (run,) = found(lab)

    inside = procfs.descendants([outer.pid], procfs.table())
    assert pids(run) == {outer.pid} | inside
    assert len(inside) == 2
    assert run["main"]["pid"] in inside
    assert run["matched"].endswith(lab.trainer_name)
    assert run["log"]["path"] == str(lab.work / "old.log")
    assert run["log"]["inode"] == (lab.work / "old.log").stat().st_ino
    assert run["cwd"] == str(lab.work)


def test_only_what_a_run_begins_with_is_worth_looking_through_all_processes(lab: Lab) -> None:
    lab.trainer("print('ready'); time.sleep(600)")
    template = str(lab.work / "train_*.log")
    run = lab.start(sys.executable, str(lab.work / lab.trainer_name))
    worker = lab.start(sys.executable, "-c", SPAWNED)
    with open(lab.work / "train_x.log", "wb") as log:
        writer = lab.start(sys.executable, "-c", "import time; time.sleep(600)", stdout=log)
    stranger = lab.start(sys.executable, "-c", "import time; time.sleep(600)")
    until(lambda: all(procfs.argv(each.pid) for each in (run, worker, writer, stranger)))

    asked = {
        each.pid: discover.may_be_of_a_run({each.pid: procfs.argv(each.pid)}, [lab.trainer_name], template)
        for each in (run, worker, writer, stranger)
    }

    assert asked == {run.pid: True, worker.pid: True, writer.pid: True, stranger.pid: False}


def test_shell_with_other_children_is_not_kin(lab: Lab) -> None:
    lab.trainer("print('ready'); time.sleep(600)")
    lab.script(
        "busy.sh",
        f"#!/bin/sh\nsleep 600 &\n{sys.executable} {lab.work}/{lab.trainer_name} > {lab.work}/old.log\nwait\n",
    )
    busy = lab.start(lab.work / "busy.sh")
    until(lambda: found(lab))

    assert busy.pid not in pids(found(lab)[0])


def test_log_is_found_through_a_pipeline(lab: Lab) -> None:
    lab.trainer("time.sleep(600)")
    lab.script("piped.sh", f"#!/bin/sh\n{sys.executable} {lab.work}/{lab.trainer_name} | tee {lab.work}/old.log\n")
    piped = lab.start(lab.work / "piped.sh")
    until(lambda: (lab.work / "old.log").exists() and found(lab))

    (run,) = found(lab)

    assert run["log"]["path"] == str(lab.work / "old.log")
    assert piped.pid in pids(run)
    assert len(run["pids"]) == 3


def test_what_only_carries_the_name_is_a_bystander(lab: Lab) -> None:
    lab.trainer()
    run_sh = lab.start(lab.work / "run.sh")
    carriers = [
        lab.start("tail", "-f", lab.work / lab.trainer_name),
        lab.start("bash", "-c", f"sleep 600; python {lab.trainer_name}"),
        lab.start(sys.executable, "-c", "import time; time.sleep(600)", f"edit {lab.trainer_name}"),
    ]
    until(lambda: found(lab))
    until(lambda: all(any(lab.trainer_name in part for part in procfs.argv(each.pid)) for each in carriers))

    (run,) = found(lab)
    others = {each["pid"] for each in discover.bystanders([lab.trainer_name], pids(run))}

    assert pids(run) == {run_sh.pid}
    assert {each.pid for each in carriers} <= others
    assert run_sh.pid not in others
    assert os.getpid() not in others


def test_orphans_of_a_dead_run_are_found_by_its_log(lab: Lab) -> None:
    with open(lab.work / "train_x.log", "wb") as log:
        middle = subprocess.Popen(
            ["setsid", "-f", "sleep", "602"], stdout=log, env={**os.environ, "DFLASH_TEST_MARK": lab.mark}
        )
    middle.wait(20)
    (orphan,) = until(lambda: lab.marked())

    runs = found(lab, log_glob=str(lab.work / "train_*.log"))

    assert [pids(run) for run in runs] == [{orphan}]
    assert found(lab) == []


def test_orphaned_spawn_workers_are_kin_of_ranks_in_their_session(lab: Lab) -> None:
    lab.trainer(
        f"""
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-c", {SPAWNED!r}]) if os.fork() == 0 else os._exit(0)
        time.sleep(600)
        """
    )
    run_sh = lab.start(lab.work / "run.sh")
    (worker,) = until(lambda: [pid for pid in lab.marked() if "-c" in procfs.argv(pid)])
    stat = until(lambda: _without_its_parent(worker, lab), what="who forked it has ended")
    assert stat is not None
    if stat.ppid != 1:
        pytest.skip("orphans do not go to init here")

    (run,) = found(lab)

    assert pids(run) == {run_sh.pid, worker}


def _without_its_parent(pid: int, lab: Lab) -> procfs.Stat | None:
    stat = procfs.read_stat(pid)
    return stat if stat is not None and stat.ppid not in lab.marked() else None


@pytest.mark.skipif(os.geteuid() != 0, reason="making a pid namespace needs root")
def test_run_inside_a_container_is_not_seen_from_its_host(lab: Lab) -> None:
    lab.trainer("print('ready'); time.sleep(600)")
    command = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-u", f"{lab.work}/{lab.trainer_name}"]
    with open(lab.work / "old.log", "wb") as log:
        lab.start(*command, stdout=log)
    until(lambda: "ready" in lab.log("old"))

    assert found(lab) == []
