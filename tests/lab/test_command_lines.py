"""The operators' shell lines of the design, over real ssh and `pct exec`: each fails silently, as told there."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import standin
from tests.lab.containers import Container
from tests.lab.sshd import Sshd
from tests.waiting import until

_LOG = "/workspace/train.log"
_SELF_KILLING_LINES = {
    "pkill finds the shell by python3": "bash -c 'pkill -9 -f python3; sleep 8; rm -rf /tmp/torchinductor_root;"
    " nohup /root/run.sh >/workspace/train.log 2>&1 & disown; sleep 5; tail -n 2 /workspace/train.log'",
    "pkill finds the shell by run.sh": "bash -lc 'pkill -9 -f train.py || true; pkill -9 -f /root/run.sh || true;"
    " sleep 8; nohup /root/run.sh >/workspace/train.log 2>&1 & disown; sleep 5; tail -n 2 /workspace/train.log'",
    "the bracket trick does not help": 'bash -lc \'pkill -9 -f "[t]rain.py" || true; sleep 8;'
    " nohup /root/run.sh >/workspace/train.log 2>&1 & disown; sleep 5; pgrep -af train.py'",
}
_HANGING_LINE = (
    "bash -c 'rm -rf /tmp/torchinductor_root && nohup /root/run.sh >/workspace/train.log 2>&1 & disown"
    " && sleep 1 && ps -e -o comm= | grep -c python3'"
)


@pytest.fixture
def idle(container: Container) -> Iterator[Container]:
    """A container with the run installed, nothing running and no log."""
    standin.install(container)
    container.remove(_LOG)
    yield container
    container.kill_all()
    container.remove(_LOG)


def _over_ssh(container: Container, line: str) -> str:
    return " ".join([*container.exec_prefix, line])


@pytest.mark.parametrize("line", _SELF_KILLING_LINES.values(), ids=_SELF_KILLING_LINES.keys())
def test_line_kills_its_own_shell_and_prints_nothing(idle: Container, host: Sshd, line: str) -> None:
    done = host.run(_over_ssh(idle, line), timeout_s=60)

    assert (done.returncode, done.stdout, done.stderr) == (137, "", "")
    # pkill, whose own argument names the trainer, outlives by a moment the shell it killed; a run would stay for good.
    until(lambda: idle.pids_of("train.py") == [], what="nothing but pkill bore the trainer's name")
    assert not idle.path(_LOG).exists()


def test_chained_background_line_starts_the_run_but_never_returns(idle: Container, host: Sshd) -> None:
    with subprocess.Popen(
        host.ssh_argv(_over_ssh(idle, _HANGING_LINE)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as ssh:
        assert ssh.stdout is not None
        until(lambda: "step 3 " in idle.read(_LOG), timeout_s=60, what="the run steps")
        assert ssh.stdout.readline() in ("1\n", "0\n")  # so the list's last command has ended; that may have been early
        with pytest.raises(subprocess.TimeoutExpired):
            ssh.wait(timeout=1)

        # What kept it is the run alone: it returns when that dies.
        idle.kill_all(idle.pids_of("train.py"))

        assert ssh.wait(timeout=20) == 0


def test_pgrep_takes_its_own_shell_for_the_run(idle: Container, host: Sshd) -> None:
    done = host.run(_over_ssh(idle, "bash -c 'pgrep -af train.py; echo checked'"))

    assert done.returncode == 0
    assert "pgrep -af train.py; echo checked" in done.stdout.splitlines()[0]
    assert idle.pids_of("train.py") == []


def test_exit_status_of_a_pipe_hides_the_failure(idle: Container, host: Sshd) -> None:
    done = host.run(_over_ssh(idle, "bash -c 'python3 /root/missing.py 2>&1 | tee /workspace/train.log'"))

    assert done.returncode == 0
    assert "No such file" in done.stdout


def test_bystander_of_another_name_is_not_counted(idle: Container, tmp_path: Path) -> None:
    idle.write("/workspace/notes_on_train.py", "")
    idle.run(["bash", "-c", "setsid -f tail -f /workspace/notes_on_train.py </dev/null >/dev/null 2>&1"])
    until(lambda: "tail" in {argv[0] for argv in idle.processes().values()})

    assert idle.pids_of("train.py") == []
