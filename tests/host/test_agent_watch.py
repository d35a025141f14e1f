"""What the agent tells of a target: runs of keepers, runs started by hand, deaths, processes and GPUs."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from console import protocol
from console.host import procfs, records, strangers, watcher
from tests.host.agentprocess import Agent, awaited

BOOT = procfs.boot_identity()
TRAINER = """
import signal, subprocess, sys, time
workers = [subprocess.Popen(["sleep", "300"]) for _ in range(int(sys.argv[1]))]
def end(*_):
    for worker in workers:
        worker.kill()
    sys.exit(143)
signal.signal(signal.SIGTERM, end)
print("step 1", flush=True)
while True:
    time.sleep(1)
"""

Spec = Callable[..., protocol.RunSpec]
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def trainer(tmp_path: Path) -> Path:
    path = tmp_path / f"train_{os.getpid()}_{time.monotonic_ns()}.py"
    path.write_text(TRAINER)
    return path


@pytest.fixture
def spec(tmp_path: Path, trainer: Path) -> Spec:
    def make(**changes: Any) -> protocol.RunSpec:
        base: dict[str, Any] = {
            "target": "t",
            "name": "run{n}",
            "command": ("/bin/true",),
            "cwd": str(tmp_path),
            "log": str(tmp_path / "{name}.log"),
            "match": (trainer.name,),
        }
        return protocol.RunSpec(**{**base, **changes})

    return make


@pytest.fixture
def start(tmp_path: Path, trainer: Path) -> Iterator[Start]:
    """Start the trainer by hand, its output on a log."""
    children: list[subprocess.Popen[bytes]] = []

    def run(workers: int = 0, log: str = "byhand.log") -> subprocess.Popen[bytes]:
        with (tmp_path / log).open("ab") as file:
            command = [sys.executable, "-u", str(trainer), str(workers)]
            child = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
        children.append(child)
        awaited(lambda: (tmp_path / log).stat().st_size)
        return child

    yield run
    for child in children:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()


def hands(agent: Agent) -> tuple[protocol.HandRun, ...]:
    state = agent.state()
    return state.hand if state else ()


def test_the_first_state_already_knows_what_was_started_by_hand(
    tmp_path: Path, trainer: Path, spec: Spec, start: Start
) -> None:
    child = start(2)
    with Agent() as agent:
        agent.watch(spec(), tmp_path / "state")

        awaited(agent.state)
        first = agent.of(protocol.StateEvent)[0]

    assert first.run is None
    assert [run.main.pid for run in first.hand] == [child.pid]
    assert first.hand[0].matched == str(trainer)
    assert first.hand[0].log.path == str(tmp_path / "byhand.log")
    assert len(first.hand[0].pids) == 3


def test_bystanders_are_no_runs(tmp_path: Path, trainer: Path, spec: Spec) -> None:
    bystanders = [
        subprocess.Popen(["tail", "-f", str(trainer)], stdout=subprocess.DEVNULL),
        subprocess.Popen(["bash", "-c", f"sleep 300; : python {trainer.name}"]),
        subprocess.Popen([sys.executable, "-c", f"import time; time.sleep(300)  # {trainer.name}"]),
    ]
    try:
        with Agent() as agent:
            agent.watch(spec(), tmp_path / "state")
            state = awaited(agent.state)
            reply = agent.ask(protocol.MakePlan(id=agent.next_id(), action="restart", spec=spec()), 20.0)
    finally:
        for child in bystanders:
            child.kill()
            child.wait()

    assert state.hand == ()
    assert reply.data["replaces"] == []
    assert {child.pid for child in bystanders} <= {each["pid"] for each in reply.data["bystanders"]}


class Clock:
    """Stands for `time` in the agent's eyes: it goes on only when it is told to."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


def test_a_death_is_told_within_milliseconds(
    tmp_path: Path, spec: Spec, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its pidfd alone: while no time passes, no look is due that would find it."""
    child, clock, told = start(), Clock(), list[dict[str, Any]]()
    for module in (watcher, strangers):
        monkeypatch.setattr(module, "time", clock)
    operation = {"spec": msgspec.to_builtins(spec()), "state_dir": str(tmp_path / "state"), "interval_s": 1.0}

    def send(event: dict[str, Any]) -> bool:
        told.append(event)
        return True

    eyes = watcher.Watcher(operation, send, lambda event: True)

    def looks() -> bool:
        clock.now += 0.1
        eyes.step(set())
        return bool(told and told[-1]["hand"])

    try:
        awaited(looks)
        child.kill()
        child.wait()
        ready = awaited(lambda: set(select.select(eyes.fds(), [], [], 0.0)[0]) & set(eyes._deaths.fds()))
        eyes.step(ready)
    finally:
        eyes.close()

    assert told[-1]["hand"] == []


def test_a_run_started_later_is_found_within_seconds(tmp_path: Path, spec: Spec, start: Start) -> None:
    with Agent() as agent:
        agent.watch(spec(), tmp_path / "state")
        awaited(agent.state)
        assert hands(agent) == ()

        child = start()

        assert awaited(lambda: hands(agent))[0].main.pid == child.pid


def test_processes_are_told_with_their_use(tmp_path: Path, spec: Spec, start: Start) -> None:
    child = start(3)
    with Agent() as agent:
        agent.watch(spec(), tmp_path / "state", interval_s=0.1)

        event = awaited(
            lambda: next((e for e in agent.of(protocol.ProcsEvent) if e.procs and e.cpu_cores is not None), None)
        )
        later = awaited(
            lambda: next((e for e in agent.of(protocol.ProcsEvent) if e.procs and e.procs[0].cpu_pct is not None), None)
        )

    assert len(event.procs) == 4
    assert event.procs[0].pid == child.pid
    assert event.procs[0].rss > 1 << 20
    assert later.procs[0].cpu_pct >= 0.0


def test_gpus_of_a_run_by_hand_are_told_with_context_owner_and_peak(tmp_path: Path, spec: Spec, start: Start) -> None:
    child, gib, path = start(), 1 << 30, tmp_path / "gpus"

    def write(used_gib: int) -> None:
        lines = [
            f"gpu 0 uuid=GPU-0 name=H200 total={140 * gib} used={used_gib * gib} procs={child.pid}:{used_gib * gib}",
            f"gpu 1 uuid=GPU-1 name=H200 total={140 * gib} used={2 * gib} procs={os.getpid()}:{2 * gib}",
            f"gpu 2 uuid=GPU-2 name=H200 total={140 * gib} used=0 procs=",
        ]
        (tmp_path / "gpus.new").write_text("driver 1\n" + "\n".join(lines) + "\n")
        (tmp_path / "gpus.new").rename(path)

    write(80)
    with Agent() as agent:
        agent.watch(spec(gpus=protocol.GpuSpec(simulated=str(path))), tmp_path / "state", interval_s=0.1)
        told = awaited(lambda: next((e for e in agent.of(protocol.GpusEvent) if e.gpus and e.gpus[0].context), None))
        write(70)
        lower = awaited(
            lambda: next((e for e in agent.of(protocol.GpusEvent) if e.gpus and e.gpus[0].used == 70 * gib), None)
        )

    assert (told.source, told.rule) == ("simulated", "simulated")
    assert [gpu.owner for gpu in told.gpus] == ["run", "other", "free"]
    assert [gpu.context for gpu in told.gpus] == [True, False, False]
    assert lower.gpus[0].peak == 80 * gib
    assert lower.gpus[1].peak is None


# -- run directories --------------------------------------------------------------------------------------------------


class Keeper:
    """A stand-in for a keeper: files as it writes them, and a process that lives."""

    def __init__(self, state: Path, run: str, **request: Any) -> None:
        self.directory = state / "targets" / "t" / "runs" / run
        self.directory.mkdir(parents=True, mode=0o700)
        self.process = subprocess.Popen(["sleep", "600"])
        stat = procfs.read_stat(self.process.pid)
        assert stat is not None
        self.ident = {"pid": self.process.pid, "start": stat.start}
        now = procfs.boottime()
        spec = {"target": "t", "command": ["/bin/true"], "cwd": "/", "env": {"A": "1"}}
        asked: dict[str, Any] = {"request": run, "action": "restart", "spec": spec, "name": run, "boot": BOOT}
        asked.update(accepted_bt=now, accepted_wall=time.time())
        self.write("request.json", {**asked, **request})

    def write(self, name: str, content: dict[str, Any]) -> None:
        (self.directory / ".new").write_text(json.dumps(content))
        (self.directory / ".new").rename(self.directory / name)

    def status(self, state: str, **more: Any) -> None:
        self.write("status.json", {"state": state, "keeper": self.ident, "boot": BOOT, **more})

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Callable[..., Keeper]]:
    made: list[Keeper] = []

    def make(run: str, **request: Any) -> Keeper:
        made.append(Keeper(tmp_path / "state", run, **request))
        return made[-1]

    yield make
    for each in made:
        each.kill()


def run_of(agent: Agent) -> protocol.RunRecord | None:
    state = agent.state()
    return state.run if state else None


def state_is(agent: Agent, state: str) -> Callable[[], protocol.RunRecord | None]:
    return lambda: run if (run := run_of(agent)) is not None and run.state == state else None


def test_each_stage_is_told_as_the_keeper_writes_it(tmp_path: Path, spec: Spec, keeper: Any) -> None:
    with Agent() as agent:
        agent.watch(spec(), tmp_path / "state")
        awaited(agent.state)
        one = keeper("r-1", operator="anna")
        one.status("accepted")
        awaited(state_is(agent, "accepted"))
        one.status("killing", stages={"killing": {"state": "active", "began_bt": 1.0}})

        run = awaited(state_is(agent, "killing"))

        assert (run.id, run.operator, run.keeper_alive, run.alive) == ("r-1", "anna", True, False)
        assert run.stages["killing"].state == "active"


def test_a_keeper_that_dies_in_the_middle_leaves_an_interrupted_run(tmp_path: Path, spec: Spec, keeper: Any) -> None:
    one = keeper("r-1")
    one.status("cache")
    with Agent() as agent:
        agent.watch(spec(), tmp_path / "state")
        awaited(state_is(agent, "cache"))

        one.kill()

        run = awaited(state_is(agent, "interrupted"))
        assert run.keeper_alive is False
        assert "cache" in run.detail


def test_a_run_goes_on_without_its_keeper(tmp_path: Path, spec: Spec, keeper: Any) -> None:
    one, main = keeper("r-1"), keeper("r-0").process
    stat = procfs.read_stat(main.pid)
    assert stat is not None
    one.status("running", main={"pid": main.pid, "start": stat.start})
    with Agent() as agent:
        agent.watch(spec(), tmp_path / "state")
        awaited(state_is(agent, "running"))

        one.kill()

        run = awaited(lambda: (run := run_of(agent)) and not run.keeper_alive and run)
        assert (run.state, run.main_alive, run.alive) == ("running", True, True)


def test_a_pid_that_another_process_has_now_is_not_the_run(tmp_path: Path, spec: Spec, keeper: Any) -> None:
    one = keeper("r-1")
    one.status("running", main={"pid": os.getpid(), "start": 1})
    one.kill()
    with Agent() as agent:
        agent.watch(spec(), tmp_path / "state")

        run = awaited(state_is(agent, "running"))
        assert (run.main_alive, run.keeper_alive, run.alive, run.exit) == (False, False, False, None)


def test_a_run_of_another_boot_is_not_alive(tmp_path: Path, spec: Spec, keeper: Any) -> None:
    one = keeper("r-1", boot="another/1")
    one.status("running", main=one.ident, boot="another/1")
    with Agent() as agent:
        agent.watch(spec(), tmp_path / "state")

        run = awaited(state_is(agent, "running"))
        assert (run.boot, run.alive, run.keeper_alive) == ("another/1", False, False)


def test_the_newest_accepted_restart_is_the_run_and_the_others_are_history(
    tmp_path: Path, spec: Spec, keeper: Any
) -> None:
    clock = procfs.boottime()
    for number, (state, action, wall) in enumerate(
        [
            ("ended", "restart", 900.0),
            ("running", "restart", 100.0),
            ("refused", "restart", 1.0),
            ("stopped", "stop", 1.0),
        ]
    ):
        # The wall clock was put back: the host's boot clock decides.
        one = keeper(f"r-{number}", action=action, accepted_bt=clock + number, accepted_wall=wall)
        one.status(state)
    with Agent() as agent:
        agent.watch(spec(), tmp_path / "state")
        state_event = awaited(agent.state)

    assert state_event.run.id == "r-1"
    assert [run.id for run in state_event.last] == ["r-3", "r-2", "r-0"]


def test_who_replaces_the_run_is_told_on_the_run(tmp_path: Path, spec: Spec, keeper: Any) -> None:
    old, stop = keeper("r-1"), None
    old.status("running", main=old.ident)
    with Agent() as agent:
        agent.watch(spec(), tmp_path / "state")
        awaited(state_is(agent, "running"))

        stop = keeper("r-2", action="stop", operator="bert", replaced_id="r-1")
        stop.status("killing")

        awaited(lambda: (run := run_of(agent)) and run.stopping == "bert")


def test_a_keepers_own_run_is_never_told_as_started_by_hand(
    tmp_path: Path, trainer: Path, spec: Spec, keeper: Any
) -> None:
    """Discovery may look just after a spawn that it does not know of; here it does so for certain."""
    one = keeper("r-1")
    code = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    with (tmp_path / "own.log").open("wb") as log:
        parent = subprocess.Popen(
            [sys.executable, "-c", code, sys.executable, "-u", str(trainer), "0"], stdout=log, start_new_session=True
        )
    try:
        with Agent() as agent:
            agent.watch(spec(), tmp_path / "state")
            awaited(lambda: hands(agent))
            stat = procfs.read_stat(parent.pid)
            assert stat is not None
            one.ident = {"pid": parent.pid, "start": stat.start}
            one.status("running", main=hand_main(agent))

            awaited(state_is(agent, "running"))
            told = [event for event in agent.of(protocol.StateEvent) if event.run and event.run.state == "running"]
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()

    assert [event.hand for event in told] == [()] * len(told)


def hand_main(agent: Agent) -> dict[str, int]:
    main = hands(agent)[0].main
    return {"pid": main.pid, "start": main.start}


def test_twenty_looks_a_second_cost_next_to_nothing(tmp_path: Path, keeper: Any) -> None:
    for number in range(30):
        keeper(f"r-{number}").status("ended")
    runs = records.Runs(str(tmp_path / "state"), "t", BOOT)
    awaited(lambda: not runs.refresh())

    began = time.process_time()
    for _ in range(200):
        runs.refresh(thorough=False)
    took_s = (time.process_time() - began) / 200

    assert took_s < 0.001
    shutil.rmtree(tmp_path / "state")
