"""One sampler for keeper and agent: the agent takes the keeper's samples while it lives and tells, and its own else."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from console import protocol
from console.host import gpueyes, gpushare, procfs
from tests.host.agentprocess import Agent, awaited
from tests.host.keeperlab import Lab, reached

GIB = 1 << 30


def sample(age_s: float = 0.0, **changes: Any) -> dict[str, Any]:
    taken = {"source": "nvml", "why": "", "driver": "550", "gpus": [{"i": 0, "used": GIB}]}
    return {**taken, "bt": procfs.boottime() - age_s, **changes}


@pytest.fixture
def outlet(tmp_path: Path) -> Iterator[gpushare.Outlet]:
    opened = gpushare.Outlet(str(tmp_path), None)
    yield opened
    opened.close()


@pytest.fixture
def eyes(tmp_path: Path) -> Iterator[Callable[..., gpueyes.GpuEyes]]:
    opened: list[gpueyes.GpuEyes] = []

    def make(interval_s: float = 1.0) -> gpueyes.GpuEyes:
        opened.append(gpueyes.GpuEyes(None, interval_s))
        opened[-1].follow(str(tmp_path))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def test_what_is_put_is_taken_whole_whatever_stood_there(tmp_path: Path, outlet: gpushare.Outlet) -> None:
    long, short = sample(why="x" * 40_000), sample()

    outlet.put(long)
    first = gpushare.take(str(tmp_path), None)
    outlet.put(short)

    assert first == long
    assert gpushare.take(str(tmp_path), None) == short
    assert gpushare.take(str(tmp_path), "/run/simulated") is None, "of other GPUs"
    assert (tmp_path / gpushare.NAME).stat().st_mode & 0o777 == 0o600
    outlet.close()
    assert list(tmp_path.iterdir()) == []


def test_what_is_torn_foreign_or_no_sample_is_none(tmp_path: Path, outlet: gpushare.Outlet) -> None:
    outlet.put(sample())
    path = tmp_path / gpushare.NAME
    whole = path.read_bytes()

    def taken_of(raw: bytes) -> dict[str, Any] | None:
        path.write_bytes(raw)
        return gpushare.take(str(tmp_path), None)

    assert taken_of(whole) is not None
    torn = [whole[:cut] for cut in range(0, len(whole), 7)]
    mixed = whole.replace(b'"used":1', b'"used":9')
    assert [taken_of(raw) for raw in [*torn, mixed, b"\0" * 64, b"0 0 ", b"0 2 {}"]] == [None] * (len(torn) + 4)
    path.unlink()
    path.symlink_to("/etc/hostname")
    assert gpushare.take(str(tmp_path), None) is None
    path.unlink()
    os.mkfifo(path)
    assert gpushare.take(str(tmp_path), None) is None, "and nobody waits for its writer"


def test_a_fresh_sample_of_the_keeper_is_told_once_and_nothing_asked_beside_it(
    outlet: gpushare.Outlet, eyes: Callable[..., gpueyes.GpuEyes], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_bt = procfs.boottime()
    monkeypatch.setattr(procfs, "boottime", lambda: now_bt)  # however long we are kept from looking, it is fresh
    outlet.put(taken := sample(0.1))
    ours = eyes()

    assert ours.poll() == taken
    assert ours.poll() is None
    assert ours.fds() == []


@pytest.mark.parametrize("age_s", [2.6, 60.0, -60.0], ids=["stale", "old", "of another boot"])
def test_without_a_fresh_sample_the_agent_asks_itself(
    outlet: gpushare.Outlet, eyes: Callable[..., gpueyes.GpuEyes], age_s: float
) -> None:
    outlet.put(sample(age_s))
    ours = eyes()

    assert ours.poll() is None
    assert len(ours.fds()) == 1, "its own child was begun at once"


def test_who_wants_to_see_more_often_than_the_keeper_asks_itself(
    outlet: gpushare.Outlet, eyes: Callable[..., gpueyes.GpuEyes]
) -> None:
    outlet.put(sample())
    ours = eyes(interval_s=0.1)

    assert ours.poll() is None
    assert len(ours.fds()) == 1


def test_a_keeper_that_comes_ends_the_agents_own_child(
    outlet: gpushare.Outlet, eyes: Callable[..., gpueyes.GpuEyes]
) -> None:
    ours = eyes()
    assert ours.poll() is None
    assert len(ours.fds()) == 1

    def tells_of_the_keeper() -> bool:
        outlet.put(sample(driver="the keeper's"))
        return (ours.poll() or {}).get("driver") == "the keeper's"

    awaited(tells_of_the_keeper)
    assert ours.fds() == []


def test_the_agent_has_the_keepers_samples_and_the_same_of_its_own_when_that_one_is_killed(lab: Lab) -> None:
    _, keeper, state = _launched(lab)
    with Agent() as agent:
        agent.watch(_spec(state), lab.state, interval_s=1.0)
        shared = awaited(lambda: _told(agent, 3), 60, "three samples of the keeper")
        # One was begun where the keeper was late, and has ended again.
        awaited(lambda: not _samplers(agent), what="no sampler of the agent's beside the keeper's")

        keeper.send_signal(signal.SIGKILL)
        keeper.wait()
        awaited(lambda: _samplers(agent), 60, "a sampler of the agent's")
        killed_bt = procfs.boottime()
        own = awaited(lambda: [each for each in agent.of(protocol.GpusEvent) if each.bt > killed_bt], 60)

    bts = [each.bt for each in shared]
    assert bts == sorted(set(bts))
    assert (shared[-1].gpus[0].context, shared[-1].gpus[0].owner) == (True, "run")
    assert [each.gpus for each in own[:1]] == [shared[-1].gpus]
    assert (own[0].source, own[0].rule, own[0].driver) == (shared[-1].source, shared[-1].rule, shared[-1].driver)


def test_a_keeper_that_hangs_is_not_waited_for_and_listened_to_again_when_it_goes_on(lab: Lab) -> None:
    _, keeper, state = _launched(lab)
    with Agent() as agent:
        agent.watch(_spec(state), lab.state, interval_s=1.0)
        awaited(lambda: _told(agent, 1), 60, "a sample")
        keeper.send_signal(signal.SIGSTOP)
        try:
            stopped_bt = procfs.boottime()
            awaited(lambda: _samplers(agent), 60, "a sampler of the agent's")
            awaited(lambda: agent.last(protocol.GpusEvent).bt > stopped_bt, 60, "a sample of the agent's own")
        finally:
            keeper.send_signal(signal.SIGCONT)
        awaited(lambda: not _samplers(agent), 60, "the end of the agent's own sampler")
        again_bt = agent.last(protocol.GpusEvent).bt
        awaited(lambda: agent.last(protocol.GpusEvent).bt > again_bt, 60, "a sample of the keeper's again")


def test_a_keeper_that_ends_leaves_no_sample_behind(lab: Lab) -> None:
    directory, keeper, _ = _launched(lab)
    assert (directory / gpushare.NAME).exists()

    os.kill(reached(directory, "running")["main"]["pid"], signal.SIGKILL)
    keeper.wait(20)

    assert not (directory / gpushare.NAME).exists()


def _launched(lab: Lab) -> tuple[Path, Any, Path]:
    """Start a run that has a context on the first of two GPUs; return once its keeper has seen that."""
    state = lab.folder / "gpus"
    lab.trainer(
        f"""
        line = "gpu %d uuid=GPU-%d name=sim total={140 * GIB} used=%d procs=%s"
        mine = line % (0, 0, {71 * GIB}, "%d:{70 * GIB}" % os.getpid())
        with open("{state}.new", "w") as file:
            print("driver 550", mine, line % (1, 1, {GIB // 2}, ""), sep=chr(10), file=file)
        os.rename("{state}.new", "{state}")
        time.sleep(600)
        """
    )
    directory, keeper = lab.launch("r1", spec={"gpus": {"expected": 1, "simulated": str(state)}})
    awaited(lambda: (gpushare.take(str(directory), str(state)) or {}).get("gpus"), 60, "the keeper's sample")
    return directory, keeper, state


def _spec(state: Path) -> protocol.RunSpec:
    gpus = protocol.GpuSpec(expected=1, simulated=str(state))
    return protocol.RunSpec(target="t", name="r{n}", command=("/bin/true",), cwd="/", log="/{name}.log", gpus=gpus)


def _told(agent: Agent, count: int) -> list[Any]:
    found = [each for each in agent.of(protocol.GpusEvent) if each.gpus and each.gpus[0].context]
    return found if len(found) >= count else []


def _samplers(agent: Agent) -> list[int]:
    table = procfs.table()
    return [pid for pid, stat in table.items() if stat.ppid == agent.process.pid and stat.comm == "dflash-gpu"]
