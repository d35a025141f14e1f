"""What the agent finds out about its host for `doctor`."""

import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from console import protocol
from console.host import doctor, logout, startkeeper
from tests.host.agentprocess import Agent, pythons
from tests.host.mounts import mount, with_own_mounts
from tests.waiting import until

IDS = ["host.python", "host.killuser", "host.systemd", "gpu.nvml", "gpu.foreign", "state.dir"]


def spec(place: Path, **changes: Any) -> protocol.RunSpec:
    given = {"target": "t", "name": "run{n}", "command": ("/bin/true",), "cwd": "/", "log": f"{place}/{{name}}.log"}
    return protocol.RunSpec(**{**given, **changes})


def examined(place: Path, python: str | None = None, **changes: Any) -> tuple[dict[str, Any], str | None]:
    found: list[protocol.WireExamination] = []

    def is_answered() -> bool:
        operation = protocol.Examine(id=agent.next_id(), spec=spec(place, **changes), state_dir=str(place / "state"))
        reply = agent.ask(operation, 60)
        assert reply.ok, reply
        found.append(msgspec.convert(reply.data, protocol.WireExamination))
        return not any(each.detail.startswith("no answer in") for each in found[-1].findings)

    with Agent(python) if python else Agent() as agent:
        until(is_answered, 60, "answers to all that is asked: a busy machine may take longer than they are waited for")
    return {each.id: each for each in found[-1].findings}, found[-1].log


@pytest.mark.parametrize("python", pythons())
def test_every_fact_has_its_line_on_every_python(tmp_path: Path, python: str) -> None:
    found, log = examined(tmp_path, python)

    assert list(found) == IDS
    assert all(each.state in ("ok", "warn", "refuse", "unknown") and each.detail for each in found.values())
    assert log is None
    program, version = found["host.python"].detail.split()
    said = subprocess.run([program, "-IV"], capture_output=True, text=True, timeout=20, check=True).stdout
    assert said == f"Python {version}\n"


def test_state_directory_is_told_with_mode_and_space(tmp_path: Path) -> None:
    found, _ = examined(tmp_path)

    assert found["state.dir"].detail.startswith(f"{tmp_path}/state  0700, ")
    assert found["state.dir"].detail.endswith(" free")
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_state_directory_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")

    found, _ = examined(tmp_path)

    assert (found["state.dir"].state, found["state.dir"].reason) == ("refuse", "state_dir_unusable")


def test_gpus_are_counted_named_and_their_source_told(tmp_path: Path) -> None:
    state = tmp_path / "gpus"
    line = 'gpu {} uuid=GPU-sim-{} name="NVIDIA H200" total=150121480192 used=600000000 util=0'
    state.write_text("driver 550.90.07\n" + "\n".join(line.format(index, index) for index in range(8)) + "\n")

    found, _ = examined(tmp_path, gpus=protocol.GpuSpec(expected=8, simulated=str(state)))
    short, _ = examined(tmp_path, gpus=protocol.GpuSpec(expected=9, simulated=str(state)))

    assert found["gpu.nvml"].state == "ok"
    assert found["gpu.nvml"].detail == "8 x NVIDIA H200, driver 550.90.07, simulated"
    assert found["gpu.foreign"].state == "ok"
    assert (short["gpu.nvml"].state, short["gpu.nvml"].reason) == ("refuse", "gpus_missing")


def test_the_newest_log_of_the_template_is_found(tmp_path: Path) -> None:
    for age, name in enumerate(("run3", "run1", "other")):
        path = tmp_path / f"{name}.log"
        path.write_text("x\n")
        os.utime(path, (1_000_000 - age, 1_000_000 - age))

    assert examined(tmp_path)[1] == f"{tmp_path}/run3.log"


def test_what_hangs_is_a_warning_and_costs_its_own_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    timed = doctor._timed
    limits_s = {"host.systemd": 0.5}  # the others may answer as late as a busy machine likes
    monkeypatch.setattr(doctor, "_timed", lambda name, look, limit_s: timed(name, look, limits_s.get(name, 60.0)))
    monkeypatch.setattr(startkeeper, "has_system_manager", lambda: bool(fifo.read_bytes()))

    plain: dict[str, Any] = msgspec.to_builtins(spec(tmp_path))
    found = {each["id"]: each for each in doctor.examine(plain, str(tmp_path / "state"))["findings"]}

    assert list(found) == IDS
    assert (found["host.systemd"]["state"], found["host.systemd"]["detail"]) == ("warn", "no answer in 0.5 s")
    assert found["state.dir"]["state"] == "ok"


@pytest.mark.parametrize(
    ("conf", "uid", "state", "words"),
    [
        ("KillUserProcesses=yes\n", 0, "ok", "spares root"),
        ("KillUserProcesses=yes\nKillExcludeUsers=\n", 0, "refuse", "every run dies at logout"),
        ("KillUserProcesses=yes\n", 65534, "refuse", "every run dies at logout"),
        ("KillUserProcesses=no\n", 65534, "ok", "KillUserProcesses=no"),
        ("", 65534, "warn", "does not say"),
    ],
)
def test_what_logind_does_at_logout(conf: str, uid: int, state: str, words: str) -> None:
    def work() -> list[str]:
        mount("tmpfs", Path("/run"), "size=1m,mode=755")
        Path("/run/systemd/system").mkdir(parents=True)
        mount("tmpfs", Path("/etc/systemd"), "size=1m,mode=755")
        Path("/etc/systemd/logind.conf").write_text("[Login]\n" + conf)
        os.setuid(uid)
        found = doctor._killuser()
        return [found["state"], found["detail"]]

    found = with_own_mounts(work)

    assert found[0] == state
    assert words in found[1]


def test_a_lingering_user_only_has_to_start_by_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logout, "has_systemd", lambda: True)
    monkeypatch.setattr(logout, "ask", lambda: logout.Logind(True, False, "logind"))
    monkeypatch.setattr(startkeeper, "has_user_manager", lambda: True)

    found = doctor._killuser()

    assert found["state"] == "warn"
    assert found["detail"] == "logind KillUserProcesses=yes: runs started by hand die at logout"
    assert found["next"].startswith("start it with restart")
