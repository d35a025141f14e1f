"""The lab does what its fixtures promise; a test elsewhere that leans on it would else fail for the lab's sake."""

import os
import select
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from tests.lab import session
from tests.lab.commands import argv_of
from tests.lab.containers import Container
from tests.lab.session import Lab
from tests.lab.sshd import Sshd
from tests.lab.wire import Wire
from tests.waiting import until


def test_pct_exec_reaches_the_container_and_passes_its_exit_status(container: Container, host: Sshd) -> None:
    done = host.run(*container.exec_prefix, "sh -c 'hostname; exit 7'")

    assert (done.returncode, done.stdout.strip()) == (7, f"ct{container.number}")


def test_training_host_is_reached_by_the_jump_host(lab: Lab, plain_container: Container, jump: Sshd) -> None:
    done = lab.host("jump").run(*plain_container.exec_prefix, "hostname")

    assert (done.returncode, done.stdout.strip()) == (0, "ct200")
    assert "Accepted publickey" in jump.log


def test_stdin_of_pct_exec_is_binary_clean(plain_container: Container, host: Sshd) -> None:
    every_byte = bytes(range(256)) * 400

    argv = host.ssh_argv(*plain_container.exec_prefix, "cat")
    done = subprocess.run(argv, input=every_byte, capture_output=True, timeout=20, check=True)

    assert done.stdout == every_byte


def test_systemd_is_pid_1_only_where_promised(plain_container: Container, systemd_container: Container) -> None:
    assert plain_container.run(["systemctl", "--version"], check=False).returncode == 127
    assert systemd_container.read("/proc/1/comm") == "systemd\n"
    assert systemd_container.run(["systemd-run", "--wait", "--quiet", "true"]).returncode == 0


def test_minimal_container_has_an_incomplete_python(minimal_container: Container) -> None:
    assert minimal_container.run(["python3", "-Ic", "import sys"]).returncode == 0

    done = minimal_container.run(["python3", "-Ic", "import json"], check=False)

    assert (done.returncode, "No module named 'json'" in done.stderr) == (1, True)


def test_unprivileged_container_is_mapped_and_has_an_uptime_of_its_own(unprivileged_container: Container) -> None:
    unprivileged_container.write("/root/deep/mine", "yes")

    assert unprivileged_container.read("/proc/1/uid_map").split() == ["0", "100000", "65536"]
    assert unprivileged_container.run(["stat", "-c", "%u", "/root/deep", "/root/deep/mine"]).stdout == "0\n0\n"
    assert unprivileged_container.run(["dmesg"], check=False).returncode != 0
    uptime_s = float(unprivileged_container.run(["cat", "/proc/uptime"]).stdout.split()[0])
    assert uptime_s < float(Path("/proc/uptime").read_text().split()[0]) - 30


def test_files_go_in_and_come_out_also_on_tmpfs(container: Container) -> None:
    container.write("/dev/shm/deep/hello.sh", "#!/bin/sh\necho hello from $(hostname)\n", mode=0o755)

    said = container.run(["/dev/shm/deep/hello.sh"]).stdout

    assert said == f"hello from ct{container.number}\n"
    assert container.read("/dev/shm/none") == ""
    container.remove("/dev/shm/deep")


def test_holder_of_the_stand_in_uvm_device_is_seen(container: Container) -> None:
    device = container.touch_uvm()
    line = f"setsid -f sleep 60 <{device} >/dev/null 2>&1"

    container.run(["bash", "-c", line])

    (pid,) = until(lambda: [p for p, argv in container.processes().items() if argv == ["sleep", "60"]])
    assert str(container.path(f"/proc/{pid}/fd/0").readlink()) == device
    container.kill_all([pid])
    container.remove(device)


def test_cut_kills_the_connection_but_not_what_runs_in_the_container(plain_container: Container, host: Sshd) -> None:
    line = "sh -c 'setsid -f sleep 77 </dev/null >/dev/null 2>&1; echo up; exec sleep 78'"
    argv = host.ssh_argv(*plain_container.exec_prefix, line)
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as ssh:
        assert ssh.stdout is not None
        assert ssh.stdout.readline() == "up\n"

        assert host.cut() >= 1

        assert ssh.wait(timeout=20) == 255

    def survivors() -> list[int]:
        found = [pid for pid, argv in plain_container.processes().items() if argv in (["sleep", "77"], ["sleep", "78"])]
        return found if len(found) == 2 else []

    plain_container.kill_all(until(survivors, what="what it had begun in there goes on"))


def test_server_refuses_while_stopped_and_is_itself_again_after(lab: Lab) -> None:
    server = lab.host("jump")
    server.stop()
    refused = server.run("true")

    server.start()

    assert refused.returncode == 255
    assert server.run("echo", "back").stdout == "back\n"


def test_dropped_wire_is_silent_and_comes_back(wire: Wire, plain_container: Container) -> None:
    hostname = [*plain_container.exec_prefix, "hostname"]
    assert wire.host.run(*hostname).stdout.strip() == "ct200"
    with subprocess.Popen(
        wire.host.ssh_argv("cat"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as ssh:
        assert ssh.stdin is not None
        assert ssh.stdout is not None
        ssh.stdin.write("before\n")
        assert ssh.stdout.readline() == "before\n"

        wire.drop()
        ssh.stdin.write("during\n")

        assert select.select([ssh.stdout], [], [], 1.0)[0] == []  # neither an answer nor an end
        wire.restore()
        assert ssh.stdout.readline() == "during\n"
        ssh.stdin.close()
        assert ssh.wait(timeout=20) == 0


def test_limited_wire_is_as_slow_as_asked(wire: Wire) -> None:
    wire.limit(bytes_per_s=1_000_000)
    started = time.monotonic()

    wire.host.run("head", "-c", "1500000", "/dev/zero", timeout_s=60)

    assert time.monotonic() - started > 1.0


def test_frozen_container_hangs_an_attach_until_it_thaws(lab: Lab) -> None:
    container = lab.fresh_container()
    container.freeze()
    with subprocess.Popen(lab.host().ssh_argv(*container.exec_prefix, "true"), stdin=subprocess.DEVNULL) as ssh:
        with pytest.raises(subprocess.TimeoutExpired):
            ssh.wait(timeout=1)

        container.thaw()

        assert ssh.wait(timeout=20) == 0
    container.stop()


def test_stopped_container_refuses_and_keeps_its_disk(lab: Lab) -> None:
    container = lab.fresh_container()
    container.write("/root/kept", "yes")
    before = container.read("/proc/sys/kernel/random/boot_id")
    container.stop()
    refused = lab.host().run(*container.exec_prefix, "true")

    container.start()

    assert (refused.returncode, "Failed to get init pid" in refused.stderr) == (1, True)
    assert container.read("/root/kept") == "yes"
    assert container.run(["cat", "/proc/sys/kernel/random/boot_id"]).stdout != before
    container.stop()


def test_config_for_the_console_is_toml_with_the_way_in(lab: Lab, plain_container: Container) -> None:
    text = lab.config(plain_container, way="jump", env={"A b": 'c "d"'}, match=["train.py"])

    target = tomllib.loads(text)["targets"]["lab"]

    assert target["exec"] == ["pct", "exec", "200", "--"]
    assert target["jump"] == f"root@127.0.0.2:{lab.jump.port}"
    assert target["env"] == {"A b": 'c "d"'}


@pytest.mark.usefixtures("lab")
def test_session_leaves_nothing_behind() -> None:
    another = Lab()
    container = another.container("unprivileged")
    another.wire.host.run("true")
    init = container.root

    another.close()

    assert not another.folder.exists()
    assert not init.exists()
    mounts = subprocess.run(["findmnt", "-rn", "-o", "TARGET"], capture_output=True, text=True, check=True).stdout
    assert str(another.folder) not in mounts
    names = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    assert another.folder.name not in names


@pytest.mark.usefixtures("lab")
def test_next_session_clears_what_a_killed_one_left() -> None:
    code = (
        "import signal\nfrom tests.lab.session import Lab\nlab = Lab()\nlab.host(); lab.container('plain')\n"
        "print(lab.folder, flush=True)\nsignal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        folder = Path(killed.stdout.readline().strip())
        with session._exclusive():  # a session that begins elsewhere would clear it now
            killed.kill()
            assert (killed.wait(), folder.is_dir()) == (-9, True)

    Lab().close()

    assert not folder.exists()
    # What watched over the container in lxc's name is told of its end, and then ends itself.
    until(lambda: not _named(str(folder)), what="no process names the folder")


def _named(folder: str) -> list[list[str]]:
    argvs = [argv_of(int(pid)) for pid in os.listdir("/proc") if pid.isdigit()]
    return [argv for argv in argvs if folder in " ".join(argv)]
