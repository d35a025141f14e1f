"""Whatever watches a run may be killed while it steps: the run goes on, and a fresh console finds all of it again."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.commands import argv_of, descendants
from tests.lab.containers import Container
from tests.lab.session import Lab
from tests.lab.training import Done, Training, finished


@pytest.fixture(scope="module")
def stepping(
    lab: Lab, plain_container: Container, driver: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Training, Done]]:
    """One run for the whole module, which nothing in here may disturb."""
    training = Training(lab, plain_container, tmp_path_factory.mktemp("stepping"), driver)
    training.clear()
    training.install()
    yield training, training.restart()
    training.clear()


@pytest.fixture(params=["console", "agent", "sshd session", "wrapper"])
def victim(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_run_steps_on_and_a_fresh_console_shows_its_original_times(
    victim: str, stepping: tuple[Training, Done]
) -> None:
    training, launched = stepping
    watching = training.console("logs", "-f", "-n", "5")
    try:
        assert watching.stdout is not None
        assert "step" in watching.stdout.readline()  # so both connections are up
        agents = training.agents()
        assert len(agents) == 2
        match victim:
            case "console":
                watching.kill()
            case "agent":
                training.container.run(["kill", "-KILL", *map(str, agents)])
            case "sshd session":
                assert training.lab.host().cut() >= 2
            case _:
                wrappers = _wrappers(training)
                assert len(wrappers) == 2
                for pid in wrappers:
                    os.kill(pid, signal.SIGKILL)
        training.steps_on(launched.json["log"])
    finally:
        watching.kill()
        finished(watching)

    status = training.cli("status", "--json", "--check")

    assert (status.code, status.json["id"], status.json["verdict"]) == (0, launched.json["id"], "stepping")
    training.shows_times_of(launched)
    assert training.mains() == [launched.json["pid"]]
    assert training.run_ids() == [launched.json["id"]]
    training.await_no_agents()


def _wrappers(training: Training) -> list[int]:
    """Return the lxc-attach processes below the training host's sshd that hold an agent."""
    found = [pid for each in training.lab.host().session_pids() for pid in descendants(each)]
    return sorted({pid for pid in found if argv_of(pid)[:1] == ["lxc-attach"] and _is_outermost(pid)})


def _is_outermost(pid: int) -> bool:
    """lxc-attach forks itself on its way in; the first one is what sshd started."""
    try:
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return False  # it has ended meanwhile
    return argv_of(parent)[:1] != ["lxc-attach"]
