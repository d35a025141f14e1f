"""`doctor` and `diagnose` over real SSH, through `pct exec`, in every kind of container."""

import re
from pathlib import Path

import pytest

from console.engine.examination import IDS
from tests.headless.running import examined
from tests.lab.containers import Container
from tests.lab.rootfs import Flavour
from tests.lab.session import Lab
from tests.lab.training import Done, Training


def states(done: Done) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in done.out.splitlines()[:-1]:
        state, name = line[:4].strip(), line.split()[1]
        assert found.get(name) in (None, state, "warn"), line
        found[name] = state
    assert list(found) == list(IDS), done.out
    return found


def training_of(lab: Lab, container: Container, folder: Path) -> Training:
    return Training(lab, container, folder, folder)


@pytest.mark.parametrize("flavour", [Flavour.PLAIN, Flavour.SYSTEMD, Flavour.UNPRIVILEGED], ids=str)
def test_doctor_enters_each_container_and_names_what_is_there(lab: Lab, flavour: Flavour, tmp_path: Path) -> None:
    container = lab.container(flavour)
    container.write("/root/run.sh", "#!/bin/bash\nsleep 1\n", mode=0o755)
    training = training_of(lab, container, tmp_path)
    done = examined(lambda: training.cli("doctor"))

    found = states(done)
    assert done.code == 6, done.out  # no GPU in there
    assert found["gpu.nvml"] == "warn"
    kept = ("ssh.jump", "ssh.host", "exec.enter", "host.python", "host.killuser", "host.systemd", "state.dir")
    assert {found[each] for each in kept} == {"ok"}, done.out
    assert "running, returns exit codes (killed child -> 137)" in done.out
    assert re.search(r"ssh\.host .* SSH-2\.0-OpenSSH_\S+  \d+ ms  host key ssh-ed25519 SHA256:\S+ in /", done.out)
    systemd = "services of their own" if flavour is Flavour.SYSTEMD else "daemons"
    assert systemd in next(line for line in done.out.splitlines() if "host.systemd" in line)
    assert found["plan.preflight"] == "ok"


def test_doctor_names_the_incomplete_python(lab: Lab, minimal_container: Container, tmp_path: Path) -> None:
    training = training_of(lab, minimal_container, tmp_path)

    done = examined(lambda: training.cli("doctor"))

    found = states(done)
    assert done.code == 31
    assert (found["exec.enter"], found["host.python"], found["state.dir"]) == ("ok", "fail", "?")
    assert "lacks" in done.out


def test_doctor_names_a_container_that_is_not_running(lab: Lab, tmp_path: Path) -> None:
    container = lab.fresh_container()
    training = training_of(lab, container, tmp_path)
    container.stop()

    done = training.cli("doctor")

    found = states(done)
    assert done.code == 31
    assert (found["ssh.host"], found["exec.enter"], found["host.python"]) == ("ok", "fail", "?")


def test_doctor_through_the_jump_host(lab: Lab, plain_container: Container, tmp_path: Path) -> None:
    training = training_of(lab, plain_container, tmp_path)

    done = examined(lambda: training.cli("doctor", config=training.config("jump")))

    assert re.search(r"^ok   ssh\.jump +\S+@127\.0\.0\.2:\d+  SSH-2\.0-OpenSSH", done.out, re.M), done.out
    assert states(done)["exec.enter"] == "ok"


def test_doctor_sees_gpus_log_and_plan_of_a_run_and_diagnose_its_processes(training: Training, tmp_path: Path) -> None:
    run = training.restart().json

    done = examined(lambda: training.cli("doctor"))
    saved = training.cli("diagnose", "-o", str(tmp_path / "x.txt"))

    assert done.code == 0, done.out
    assert set(states(done).values()) == {"ok"}
    assert re.search(r"^ok   gpu\.nvml +8 x .*by NVML \(module sent along\)$", done.out, re.M), done.out
    assert saved.code == 0, saved.err
    text = (tmp_path / "x.txt").read_text()
    assert f"pid {run['pid']}" in text
    assert "source nvml" in text
    assert training.mains() == [run["pid"]]
