"""Every case of scenarios.py on real sshd and containers: played here, or proven by the tests that the table names.

The cases that must be refused share one run, in the unprivileged container, which has to step on through all of them;
those of a healthy run that falls ill share one in the systemd container.
"""

import ast
import asyncio
import functools
import json
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from console import protocol
from console.engine import Engine
from console.headless import restart as restart_command
from console.host import procfs
from console.model import LinkState, LogState, Snapshot, StageState, Verdict
from console.state import machine, outcome, stall
from console.state.gpuwork import usual_power_w
from tests import uncounted
from tests.headless.running import time_is_up_once_judged
from tests.lab.containers import Container
from tests.lab.rootfs import Flavour
from tests.lab.scenarios import CASES, ROWS, Case
from tests.lab.session import Lab, Setting
from tests.lab.training import CACHE, SCRIPT, STATE, Done, Training, finished, lost_by, reach
from tests.waiting import until, until_async

_REPOSITORY = Path(__file__).parents[2]
_ODD = "a b 'c' \"d\" $HOME `x` \\ \n\té ü 漢"
_SECRET = "geheim-7f3a"


@dataclass
class Ground:
    """A container with a run that the cases of a module share."""

    training: Training
    running: Done = field(init=False)
    second: Done | None = None
    """The restart that replaced the first run while no cache was there."""

    def run(self, argv: list[str]) -> str:
        return self.training.container.run(argv).stdout


class Scene:
    """What a case is played on; each part is made when it is first asked for."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request

    @property
    def training(self) -> Training:
        """The run in the plain container, nothing running."""
        found: Training = self._request.getfixturevalue("training")
        return found

    @property
    def healthy(self) -> Ground:
        found: Ground = self._request.getfixturevalue("healthy")
        if not found.training.mains():
            found.running = found.training.restart()
        return found

    @property
    def odd(self) -> Ground:
        found: Ground = self._request.getfixturevalue("odd")
        return found

    @property
    def monkeypatch(self) -> pytest.MonkeyPatch:
        found: pytest.MonkeyPatch = self._request.getfixturevalue("monkeypatch")
        return found

    def fresh(self, flavour: Flavour = Flavour.PLAIN) -> Training:
        """A run in a container of its own, which may be stopped and frozen."""
        lab, driver, folder = (self._request.getfixturevalue(name) for name in ("lab", "driver", "tmp_path"))
        training = Training(lab, lab.fresh_container(flavour), folder, driver)
        training.install()
        return training


Play = Callable[[Case, Scene], None]
_PLAYS: dict[str, Play] = {}


def plays(*ids: str) -> Callable[[Play], Play]:
    def note(play: Play) -> Play:
        _PLAYS.update(dict.fromkeys(ids, play))
        return play

    return note


@pytest.fixture(scope="module")
def healthy(
    lab: Lab, unprivileged_container: Container, driver: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ground]:
    """A run that every refused restart must leave stepping."""
    training = Training(lab, unprivileged_container, tmp_path_factory.mktemp("healthy"), driver)
    training.clear()
    training.install()
    ground = Ground(training)
    ground.running = training.restart()
    yield ground
    training.clear()


@pytest.fixture(scope="module")
def odd(
    lab: Lab, systemd_container: Container, driver: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ground]:
    """A run with odd arguments, values and paths under systemd and a strict logind, whose run.sh reads stdin."""
    training = Training(lab, systemd_container, tmp_path_factory.mktemp("odd"), driver)
    training.clear()
    training.install("--step-time 0.05")
    container = training.container
    container.write("/etc/systemd/logind.conf", "[Login]\nKillUserProcesses=yes\n")
    container.make_folder("/root/w x 'y' é")
    container.write(
        "/root/run.sh",
        '#!/bin/bash\nread -r line; echo "stdin: $? <$line>"\n'
        'printf \'%s\\0\' "$PWD" "$ODD" "$API_TOKEN" "$@" >/workspace/got\n'
        f"exec {training.line('--step-time 0.05')}\n",
        mode=0o755,
    )
    ground = Ground(training)
    settings: dict[str, Setting] = {
        "command": ["/root/run.sh", _ODD, "-c"],
        "cwd": "/root/w x 'y' é",
        "log": "/workspace/train 1 é_{name}.log",
        "env": {"ODD": _ODD, "API_TOKEN": _SECRET},
    }
    ground.running = training.restart(config=training.config("host", **settings))
    yield ground
    container.remove("/etc/systemd/logind.conf", "/root/w x 'y' é")
    container.run(["systemctl", "restart", "systemd-logind"])  # it remembers
    training.clear()


# -- the table --------------------------------------------------------------------------------------------------------


def test_table_answers_for_every_row_and_case_once() -> None:
    ids = [case.id for case in CASES]
    assert sorted(set(ids)) == sorted(ids)
    assert {case.row for case in CASES} == set(ROWS)
    assert {case.id for case in CASES if not case.proof and not case.not_here} == set(_PLAYS)


@pytest.mark.parametrize("case", [case for case in CASES if case.proof], ids=lambda case: case.id)
def test_case_is_proven_by_tests_that_exist(case: Case) -> None:
    for proof in case.proof:
        path, _, name = proof.partition("::")
        tree = ast.parse((_REPOSITORY / path).read_text())
        functions = {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert name in functions, proof


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("case", [case for case in CASES if not case.proof], ids=lambda case: case.id)
def test_case_is_told_as_the_table_says(case: Case, request: pytest.FixtureRequest) -> None:
    if case.not_here:
        pytest.skip(case.not_here)
    _PLAYS[case.id](case, Scene(request))


# -- refused, and the old run steps on --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spoiled:
    """How to spoil the place, and what is configured for the attempt."""

    script: str | bytes | None = None
    commands: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    settings: dict[str, Setting] = field(default_factory=dict)
    says: str = ""


_SMALL = "mkdir -p /small && mount -t tmpfs -o size=4m none /small"
_NO_SMALL = "umount -R -l /small; rmdir /small"
_REFUSALS = {
    "L05": Spoiled(script="#!/bin/bash\nif true; then\n", says="syntax error"),
    "L06-cwd": Spoiled(settings={"cwd": "/nowhere"}, says="/nowhere"),
    "L06-missing": Spoiled(settings={"log": "/no/logs/{name}.log"}, says="/no/logs"),
    "L06-closed": Spoiled(
        commands=(_SMALL, "mount -o remount,bind,ro /small"),
        after=(_NO_SMALL,),
        settings={"log": "/small/{name}.log"},
        says="read-only",
    ),
    "L07-start": Spoiled(
        commands=(_SMALL,), after=(_NO_SMALL,), settings={"log": "/small/{name}.log"}, says="free for /small"
    ),
    "L19-symlink": Spoiled(
        commands=("ln -s /root /tmp/linked",),
        after=("rm /tmp/linked",),
        settings={"caches": ["/tmp/linked"]},
        says="symlink to /root",
    ),
    "L19-mount": Spoiled(
        commands=(_SMALL, "mkdir /small/cache", "mount --bind /workspace /small/cache"),
        after=(_NO_SMALL,),
        settings={"caches": ["/small/cache"]},
        says="is a mount point",
    ),
    "L19-kept": Spoiled(
        commands=(_SMALL, "mkdir -p /small/a/cache", "mount -o remount,bind,ro /small"),
        after=(_NO_SMALL,),
        settings={"caches": ["/small/a/cache"]},
        says="may not be removed",
    ),
    "L48": Spoiled(
        commands=(
            "mkdir -p /tmp/cache48/below/there /workspace/source",
            "touch /workspace/source/whole",
            "mount --bind /workspace/source /tmp/cache48/below/there",
        ),
        after=(
            "test -e /workspace/source/whole",
            "umount /tmp/cache48/below/there",
            "rm -r /tmp/cache48 /workspace/source",
        ),
        settings={"caches": ["/tmp/cache48"]},
        says="is mounted beneath it",
    ),
    "L36-ro": Spoiled(
        commands=(_SMALL, "mount -o remount,bind,ro /small"),
        after=(_NO_SMALL,),
        settings={"state_dir": "/small/state"},
        says="Read-only",
    ),
    "L36-full": Spoiled(
        commands=(_SMALL, "head -c 5000000 /dev/zero >/small/fill || true"),
        after=(_NO_SMALL,),
        settings={"state_dir": "/small/state"},
        says="No space left",
    ),
    "L51-shebang": Spoiled(script="echo hello\n", says="/bin/bash"),
    "L51-crlf": Spoiled(script="#!/bin/bash\r\necho hello\r\n", says="Windows"),
    "L51-bom": Spoiled(script="\ufeff#!/bin/bash\necho hello\n", says="remove the first three bytes"),
    "L51-noexec": Spoiled(
        commands=(
            "mkdir -p /small && mount -t tmpfs -o size=4m,noexec none /small",
            "cp /root/run.sh /small/run.sh",
        ),
        after=(_NO_SMALL,),
        settings={"command": ["/small/run.sh"]},
        says="noexec",
    ),
}


@plays(*_REFUSALS)
def _refused(case: Case, scene: Scene) -> None:
    ground, spoiled = scene.healthy, _REFUSALS[case.id]
    training, running = ground.training, ground.running
    config = training.config("host", **spoiled.settings)
    if isinstance(spoiled.script, str):
        training.container.write("/root/run.sh", spoiled.script, mode=0o755)
    try:
        for line in spoiled.commands:
            ground.run(["sh", "-c", line])
        refused = training.cli("restart", "--yes", "--json", config=config)
    finally:
        for line in spoiled.after:
            ground.run(["sh", "-c", line])
        training.write_run()

    told = refused.json
    assert (refused.code, told["exit_code"], told["reason"]) == (case.code, case.code, case.reason), told
    assert spoiled.says in told["detail"]
    assert told["next"]
    training.steps_on(running.json["log"])
    assert training.mains() == [running.json["pid"]]


# -- launches ---------------------------------------------------------------------------------------------------------


_RESTART = ("restart", "--yes", "--json")


def _launch(
    training: Training,
    case: Case,
    *words: str,
    timeout_s: int = 60,
    go: bool = False,
    start_s: float | None = None,
    **settings: Setting,
) -> Done:
    """Restart until stepping, and hold what comes of it against the table.

    `go`: make the file /root/go, which something in the run waits for, as soon as its start is proven.
    `start_s`: the age at which it is.
    """
    config = training.config("host", **settings)
    words = (*words, "--timeout", f"{timeout_s}s")
    if go:
        done = _going(training, *words, config=config)
    else:
        done = training.cli(*_RESTART, *words, config=config, start_s=start_s)
    told = done.json
    assert (done.code, told["exit_code"]) == (case.code, case.code), done
    if case.code:
        assert (told["stage"], told["reason"]) == (case.stage, case.reason), told
        assert told["next"]
    return done


def _going(training: Training, *words: str, config: Path) -> Done:
    """Restart, with /root/go made on its way."""
    with _restarting(training, *words, config=config) as restart:
        until(lambda: _running(training), what="its start is proven")
        training.container.write("/root/go", "")
        done = finished(restart)
    training.container.remove("/root/go")
    return done


def _evidence(done: Done) -> str:
    told = done.json
    return "\n".join([told["detail"], *(fact["text"] for fact in told["evidence"])])


@contextmanager
def _restarting(training: Training, *words: str, config: Path | None = None) -> Iterator[Popen[str]]:
    """Restart in the background; ended in any case."""
    restart = training.console(*_RESTART, *words, config=config)
    try:
        yield restart
    finally:
        restart.kill()


def _await_evidence(training: Training, pattern: str) -> None:
    """Wait until the newest run's keeper journals this of the killing that goes on."""
    seen: dict[str, None] = {}

    def is_there() -> bool:
        for run in training.run_ids():
            status = _status(training, run)
            seen[str(status.get("stages", {}).get("killing", {}).get("evidence", ""))] = None
            seen[str(status.get("stopping_text", ""))] = None
        return any(re.search(pattern, words) for words in seen)

    until(is_there, 60, f"{pattern} in {seen}")


_UNTIL_GO = "until test -e /root/go; do sleep 0.1; done"


def _small_disk(container: Container, size: str) -> Callable[[], None]:
    container.run(["sh", "-c", f"mkdir -p /small && mount -t tmpfs -o size={size} none /small"])

    def clear() -> None:
        container.kill_all()
        container.run(["sh", "-c", _NO_SMALL])

    return clear


@plays("L07-loading")
def _disk_fills_while_loading(case: Case, scene: Scene) -> None:
    training = scene.training
    clear = _small_disk(training.container, "20m")
    try:
        training.container.write(
            "/root/run.sh",
            f"#!/bin/bash\n({_UNTIL_GO}; head -c 30000000 /dev/zero >/small/fill 2>/dev/null; exit 0) &\n"
            f"exec {training.line('--load-time 24')}\n",
            mode=0o755,
        )
        done = _launch(training, case, go=True, timeout_s=60, log="/small/{name}.log")
        assert "0 B are free" in done.json["detail"]
        assert done.stage("stepping")["state"] == "not_reached"
    finally:
        clear()


@plays("L07-stepping")
def _disk_fills_while_stepping(case: Case, scene: Scene) -> None:
    training = scene.training
    clear = _small_disk(training.container, "20m")
    try:
        config = training.config(log="/small/{name}.log")
        training.restart(config=config)
        training.container.run(["sh", "-c", "head -c 30000000 /dev/zero >/small/fill || true"])
        until(lambda: not training.mains(), what="the trainer ends of it")
        training.await_end(training.run_ids()[-1])
        status = training.cli("status", "--json", "--check", config=config)
        assert (status.code, status.json["reason"]) == (case.code, case.reason), status
        assert "0 B are free" in status.json["detail"]
    finally:
        clear()


@plays("L10-kill")
def _killed_while_loading(case: Case, scene: Scene) -> None:
    training = scene.training
    training.container.write(
        "/root/run.sh",
        f"#!/bin/bash\n({_UNTIL_GO}; kill -KILL $$) &\nexec {training.line('--load-time 60')}\n",
        mode=0o755,
    )
    done = _launch(training, case, go=True)
    assert (done.json["signal"], done.json["exit_status"]) == (9, None)
    assert "sender unknown" in _evidence(done)
    assert "memory" in [fact["label"] for fact in done.json["evidence"]]


@plays("L10-own", "L10-shared")
def _killed_by_the_kernel(case: Case, scene: Scene) -> None:
    """A real kill for want of memory: by the cgroup of the run's own service, or by one of which the host knows."""
    training = scene.fresh(Flavour.SYSTEMD if case.id == "L10-own" else Flavour.PLAIN)
    container = training.container
    container.write(
        "/root/run.sh",
        f"#!/bin/bash\necho loading\n{_UNTIL_GO}\n"
        "all=$(head -c 300000000 /dev/zero | tr '\\0' x)\necho 'it all fits'\nsleep 60\n",
        mode=0o755,
    )
    config = training.config(host_helper=False)  # what is known from inside alone
    with _restarting(training, "--timeout", "90s", config=config) as restart, ExitStack() as afterwards:
        pid = until(lambda: _running(training), 60, "it loads")
        assert pid is not None
        _limit_memory(container.outside(pid), 64 << 20, container.number, afterwards)
        with uncounted.kill():
            container.write("/root/go", "")
            done = finished(restart)
    told = done.json
    assert (done.code, told["stage"], told.get("reason"), told["signal"]) == (13, "cuda", case.reason, 9), told
    counted = "the run's own cgroup counted" if case.id == "L10-own" else "near the death"
    assert counted in _evidence(done), _evidence(done)
    container.stop()


def _running(training: Training) -> int | None:
    """Return the main process of the newest run, once its start is proven."""
    for run in training.run_ids():
        status = _status(training, run)
        if status.get("state") == "running":
            pid: int = status["main"]["pid"]
            return pid
    return None


def _limit_memory(pid: int, limit_bytes: int, number: int, afterwards: ExitStack) -> None:
    """Limit the memory of a process, a pid of this machine: its service's, or by a cgroup of ours where it has none."""
    root = Path("/sys/fs/cgroup/memory")
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    own = next((line.split(":", 2)[2] for line in lines if ":memory:" in line), None)
    if own is None or not root.is_dir():
        pytest.skip("no memory controller of cgroup v1 on this machine, whose count the kernel's kill would raise")
    group = root / own.lstrip("/")
    if not group.name.startswith("dflash-"):
        group = root / f"dflash-lab-{number}-{os.getpid()}"
        group.mkdir()
        afterwards.callback(_remove_group, group)
        (group / "cgroup.procs").write_text(str(pid))
    (group / "memory.limit_in_bytes").write_text(str(limit_bytes))


def _remove_group(group: Path) -> None:
    until(lambda: not (group / "cgroup.procs").read_text(), 60, "nobody is left in it")
    group.rmdir()


@plays("L11")
def _background(case: Case, scene: Scene) -> None:
    training = scene.training
    training.container.write("/root/run.sh", f"#!/bin/bash\n{training.line()} &\nexit 0\n", mode=0o755)
    done = _launch(training, case)
    assert training.mains() == [done.json["pid"]]
    training.container.run(["kill", "-TERM", str(done.json["pid"])])
    training.await_end(done.json["id"])
    after = training.cli("status", "--json", "--check")
    assert (after.code, after.json["reason"]) == (15, "sigterm_external")


@plays("L12", "L13")
def _stubborn(case: Case, scene: Scene) -> None:
    training = scene.training
    training.fault("ignore-term" if case.id == "L12" else "none")
    hidden = "setsid -f sh -c 'trap \"\" TERM; setsid -f sleep 700; exec sleep 700' </dev/null"
    training.container.write(
        "/root/run.sh", f"#!/bin/bash\n{hidden}\nexec {training.line('--workers spawn')}\n", mode=0o755
    )
    training.restart()
    hoppers = until(lambda: _sleepers(training, "700", 2), what="both that hop out of its tree sleep")
    training.container.remove("/root/fault")
    training.write_run()
    grace_s = 6.0 if case.id == "L12" else 3.0  # of the first one it must be seen how it is waited out
    with _restarting(
        training, "--timeout", "60s", config=training.config("host", stop={"grace_s": grace_s})
    ) as restart:
        if case.id == "L12":
            _await_evidence(training, "TERM, . s of 6 s left")
        done = finished(restart)
    assert done.code == case.code, done
    killing = done.stage("killing")
    assert killing["state"] == "done"
    assert "pids gone" in killing["evidence"]
    assert not set(hoppers) & set(training.container.processes())
    assert training.mains() == [done.json["pid"]]
    if case.id == "L12":
        assert killing["took_s"] >= 5.9


def _sleepers(training: Training, seconds: str, count: int) -> list[int]:
    """Return the pids of those that sleep so long, once there are so many; none that is only about to."""
    found = [pid for pid, argv in training.container.processes().items() if argv == ["sleep", seconds]]
    return found if len(found) == count else []


@plays("L17")
def _late_release(case: Case, scene: Scene) -> None:
    training = scene.training
    training.write_run("--release-delay 600")
    training.restart()
    training.write_run()
    with _restarting(training, "--timeout", "60s") as restart:
        _await_evidence(training, r"waits for GPU 0: 7\d GiB")
        released_bt = procfs.boottime()
        training.release_gpus()
        done = finished(restart)
    killing = done.stage("killing")
    assert (done.code, killing["state"]) == (case.code, "done"), done
    ended_bt = _status(training, done.json["id"])["stages"]["killing"]["ended_bt"]
    assert ended_bt >= released_bt - 0.001  # noted in milliseconds
    assert "GiB freed" in killing["evidence"]


@plays("L18")
def _foreign_memory(case: Case, scene: Scene) -> None:
    training = scene.training
    container = training.container
    container.run(["sh", "-c", "setsid -f sleep 800 </dev/null >/dev/null 2>&1 3</dev/nvidia-uvm"])
    (pid,) = until(lambda: _sleepers(training, "800", 1), what="it sleeps")
    path = "/run/fake-nvml/state"
    lines = [
        line.replace("procs=", f"procs={pid}:{5 << 30}").replace("used=536870912", f"used={(5 << 30) + (1 << 29)}")
        if line.startswith("gpu 3 ")
        else line
        for line in container.read(path).splitlines()
    ]
    container.write(path, "\n".join(lines) + "\n")
    plan = training.cli("restart", "--plan", "--json")
    (check,) = [each for each in plan.json["checks"] if each["reason"] == case.reason]
    assert check["state"] == "warn"
    assert check["detail"] == f"GPU 3: pid {pid} (sleep, root) holds 5.0 GiB"
    assert pid not in [each["pid"] for each in plan.json["replaces"]]
    assert case.reason in training.cli("status", "--json").json["warnings"]
    _launch(training, case)
    # Also while the run has that GPU, too: whoever reads the memory must know that it isn't all the run's.
    until(lambda: case.reason in training.cli("status", "--json").json["warnings"], 60, "who shares it is named")
    assert pid in container.processes()


@plays("L19-missing", "L53")
def _unprivileged(case: Case, scene: Scene) -> None:
    ground = scene.healthy
    training, first = ground.training, ground.running
    if ground.second is None:
        training.container.remove(CACHE)
        ground.second = ground.running = _launch(training, case)
        assert ground.second.json["replaced"] == first.json["run"]
    done = ground.second
    assert [each["state"] for each in done.json["stages"]] == ["done", "skipped", "done", "done", "done"]
    if case.id == "L19-missing":
        assert done.stage("cache")["why"] == case.seen
        return
    plan = training.cli("restart", "--plan", "--json")
    ages = [each["age_s"] for each in plan.json["replaces"]]
    reached_at = datetime.fromisoformat(done.json["at"]).timestamp()
    elapsed_s = time.time() - reached_at + done.json["launch_s"]
    assert len(ages) == 9
    # From lxcfs's uptime they would be hours wrong, or negative.
    assert all(0 <= age <= elapsed_s + 5 for age in ages), (ages, elapsed_s)
    training.container.run(["kill", "-KILL", str(done.json["pid"])])
    training.await_end(done.json["id"])
    after = training.cli("status", "--check")
    assert after.code == 15
    assert "sigkill_unknown" in after.out
    assert "memory: no kill for want of memory was counted" in after.out


@plays("L20")
def _no_gpu(case: Case, scene: Scene) -> None:
    training = scene.training
    training.fault("cuda-hang:0")
    config = training.config(deadlines={"cuda": 1.0})
    with time_is_up_once_judged(restart_command, lambda now: now.stages[3].state is StageState.LATE):
        done = training.cli("restart", "--yes", "--json", "--timeout", "90s", config=config)
    assert (done.code, done.json["exit_code"], done.json["stage"]) == (case.code, case.code, case.stage), done
    assert done.json["reason"] == case.reason
    cuda = done.stage("cuda")
    assert (cuda["state"], cuda["k"], cuda["missing"]) == ("late", 0, [*range(8)])
    assert (done.json["outcome"], done.json["run_alive"]) == ("late", True)
    assert training.mains() == [done.json["pid"]]


@plays("L22-none")
def _no_cuda(case: Case, scene: Scene) -> None:
    training = scene.training
    training.write_run("--load-time 30")  # it strikes after a tenth of that
    training.fault("no-cuda")
    done = _launch(training, case, start_s=0.3)
    assert "No CUDA GPUs are available" in _evidence(done)


@plays("L27-spawned")
def _cut_after_the_spawn(case: Case, scene: Scene) -> None:
    training = scene.training
    training.container.write("/root/run.sh", f"#!/bin/bash\n{_UNTIL_GO}\nexec {training.line()}\n", mode=0o755)
    restart = training.console("restart", "--yes", "--json", "--timeout", "60s")
    try:
        until(lambda: any(_was_spawned(training, run) for run in training.run_ids()), 60, "it was spawned")
        # Both of its connections: on a busy machine the second may come late.
        until(lambda: len(training.agents()) == 2, 60, "both agents watch")
        assert training.lab.host().cut() >= 2
        training.container.write("/root/go", "")
    finally:
        done = finished(restart)
        training.container.remove("/root/go")
    assert done.code == case.code, done
    assert [each["state"] for each in done.json["stages"]] == ["skipped", "done", "done", "done", "done"]
    assert (len(training.run_ids()), training.mains()) == (1, [done.json["pid"]])


@plays("L30")
def _container_restarted(case: Case, scene: Scene) -> None:
    training = scene.fresh()
    training.restart()
    training.container.stop()
    training.container.start()
    status = training.cli("status", "--json", "--check")
    assert (status.code, status.json["verdict"]) == (case.code, "host_restarted"), status
    assert (status.json["reason"], status.json["alive"]) == (case.reason, False)
    training.container.stop()


@plays("L31")
def _pid_reused(case: Case, scene: Scene) -> None:
    training = scene.training
    container = training.container
    done = training.restart()
    container.run(["kill", "-KILL", str(training.keeper(done.json["id"])), str(done.json["pid"])])
    until(lambda: not training.mains(), 60)
    container.run(["sh", "-c", "setsid -f sleep 900 </dev/null >/dev/null 2>&1"])
    (other,) = until(lambda: _sleepers(training, "900", 1), what="it sleeps")
    for name in ("status.json", "run.json"):
        path = f"{STATE}/targets/lab/runs/{done.json['id']}/{name}"
        record = training.record(done.json["id"], name)
        record["main"]["pid"] = other
        container.write(path, json.dumps(record), mode=0o600)
    status = training.cli("status", "--json")
    stopped = training.cli("stop", "--yes", "--json")
    assert status.json["alive"] is False
    assert (stopped.code, stopped.json["reason"]) == (case.code, case.reason)
    assert other in container.processes()


@plays("L32")
def _two_at_once(case: Case, scene: Scene) -> None:
    training = scene.training
    config = training.config()
    # Both confirm the same plan: on a busy machine one command line may begin when the other's run steps already.
    plan = training.cli("restart", "--plan", "--json", config=config).json["plan_id"]
    words = ("restart", "--plan-id", plan, "--json", "--timeout", "90s")
    both = [training.console(*words, config=config) for _ in range(2)]
    first, second = sorted((finished(each) for each in both), key=lambda done: done.code)
    assert first.code == 0, (first, second)
    assert (second.code, second.json["reason"]) in [(4, "restart_under_way"), (3, "plan_changed")], second
    assert training.mains() == [first.json["pid"]]
    assert len([run for run in training.run_ids() if _was_spawned(training, run)]) == 1


def _was_spawned(training: Training, run: str) -> bool:
    return "spawned" in _status(training, run).get("stages", {})


def _status(training: Training, run: str) -> dict[str, Any]:
    return training.record(run, "status.json")


@plays("L34-loading")
def _stop_while_loading(case: Case, scene: Scene) -> None:
    training = scene.training
    training.write_run("--load-time 60")
    accepted = training.cli("restart", "--yes", "--json", "--detach")
    run = accepted.json["id"]
    until(
        lambda: training.mains() and _status(training, run).get("state") == "running", 20, "it loads, its start proven"
    )
    stopped = training.cli("stop", "--yes", "--json")
    assert (accepted.code, stopped.code) == (0, case.code), stopped
    assert (stopped.json["verdict"], stopped.json["run_alive"]) == ("stopped", False)
    record = training.record(run, "exit.json")
    assert record["by"] == stopped.json["stopped_by"]
    assert record["by"]
    assert training.container.pids_of(SCRIPT) == []


@plays("L37-plain")
def _without_systemd(case: Case, scene: Scene) -> None:
    training = scene.training
    done = _launch(training, case)
    training.await_no_agents()
    until(lambda: not training.wrappers(), 60, "the session is over")
    training.steps_on(done.json["log"])
    assert training.parent(training.keeper(done.json["id"])) == 1


@plays("L40")
def _tee(case: Case, scene: Scene) -> None:
    training = scene.training
    training.fault("traceback")
    line = training.line("--load-time 3")
    training.container.write("/root/run.sh", f"#!/bin/bash\n{line} 2>&1 | tee /workspace/own.log\n", mode=0o755)
    done = _launch(training, case)
    assert done.json["exit_status"] in (0, 1)
    assert "Missing key(s)" in _evidence(done)
    assert training.container.read("/workspace/own.log")


# What `fuser -k` does, for where psmisc is not installed: KILL for each process that has the file open.
_FUSER_KILL = """
for fd in /proc/[0-9]*/fd/*; do
    case "$(readlink "$fd")" in /dev/nvidia*) pid=${fd#/proc/}; echo "${pid%%/*}";; esac
done | sort -u | xargs -r kill -KILL
"""


@plays("L46", "L46-fuser")
def _killed_with_all_their_kind(case: Case, scene: Scene) -> None:
    training = scene.training
    done = training.restart()
    keeper = training.keeper(done.json["id"])
    line = ["pkill", "-9", "-f", "python3"] if case.id == "L46" else ["bash", "-c", _FUSER_KILL]
    training.container.run(line, check=False)
    until(lambda: not training.mains(), 60)
    until(lambda: keeper not in training.container.processes(), 60, "the keeper ends by itself")
    status = training.cli("status", "--check")
    assert status.code == case.code
    assert case.reason in status.out
    # The driver's files are held by the ranks: the trainer outlives them for a moment and says what became of them.
    told, ending = (
        ("sender unknown", (9, True)) if case.id == "L46" else ("terminated with signal SIGKILL", (None, True))
    )
    assert told in status.out, status.out
    record = training.record(done.json["id"], "exit.json")
    assert (record["signal"], record["all_gone"]) == ending


@plays("L49")
def _orphans(case: Case, scene: Scene) -> None:
    training = scene.training
    container = training.container
    main = training.start_by_hand(options="--workers spawn --orphans")
    workers = [pid for pid, argv in container.processes().items() if "--multiprocessing-fork" in argv]
    assert len(workers) == 8
    renamed = "exec -a 'dflash drafter 7' sleep 1000 >>/workspace/train_hand.log 2>&1 </dev/null"
    container.run(["setsid", "-f", "bash", "-c", renamed])
    (worker,) = until(lambda: container.pids_of("1000"), 60)
    container.run(["kill", "-KILL", str(main)])
    until(lambda: main not in container.processes(), 60)
    plan = training.cli("restart", "--plan", "--json")
    assert {*workers, worker} <= {each["pid"] for each in plan.json["replaces"]}
    done = _launch(training, case)
    assert "pids gone" in done.stage("killing")["evidence"]
    assert not {*workers, worker} & set(container.processes())


@plays("L50-other")
def _redirected(case: Case, scene: Scene) -> None:
    training = scene.training
    container = training.container
    container.write(
        "/root/run.sh", f"#!/bin/bash\nexec >/workspace/other.log 2>&1\nexec {training.line()}\n", mode=0o755
    )
    done = _launch(training, case)
    status = training.cli("status", "--json").json
    assert (done.json["log"], status["log"]["path"]) == ("/workspace/other.log",) * 2
    assert "train_slammed1.log" in status["log"]["why"]
    assert status["step"]


@plays("L50-left")
def _stragglers(case: Case, scene: Scene) -> None:
    training = scene.training
    container = training.container
    container.write(
        "/root/run.sh", f"#!/bin/bash\n(exec -a tensorboard sleep 1100) &\nexec {training.line()}\n", mode=0o755
    )
    done = training.restart()
    (left,) = until(lambda: container.pids_of("1100"), what="what it leaves behind")
    training.fault("sigkill:0")
    until(lambda: training.record(done.json["id"], "exit.json").get("stragglers") == [f"sleep, pid {left}"])
    status = training.cli("status", "--check")
    assert status.code == case.code
    assert "sigkill_unknown" in status.out
    assert f"1 straggler: sleep, pid {left}" in status.out, status.out
    assert left in container.processes()
    again = training.cli("restart", "--plan", "--json")
    assert left in [each["pid"] for each in again.json["replaces"]]
    assert again.json["replaced_id"] == done.json["id"]


@plays("L54")
def _python_removed(case: Case, scene: Scene) -> None:
    training = scene.training
    container = training.container
    done = training.restart()
    hide = "mount -t tmpfs none /usr/lib/python3.11 && mv /usr/bin/python3.11 /usr/bin/hidden"
    show = "umount /usr/lib/python3.11; mv /usr/bin/hidden /usr/bin/python3.11"
    container.run(["sh", "-c", hide])
    try:
        container.run(["kill", "-KILL", str(done.json["pid"])])
        training.await_end(done.json["id"])
        gone = training.cli("status", "--json")
    finally:
        container.run(["sh", "-c", show])
    status = training.cli("status", "--json", "--check")
    assert (gone.code, gone.json["reason"]) == (31, "python_missing")
    assert (status.code, status.json["reason"]) == (case.code, case.reason)


@plays("L56")
def _no_root(case: Case, scene: Scene) -> None:
    ground = scene.odd
    container = ground.training.container
    if "ops1" not in container.read("/etc/passwd"):
        container.run(["useradd", "-m", "ops1"])
    entry: Setting = [*container.exec_prefix, "setpriv", "--reuid=ops1", "--regid=ops1", "--clear-groups", "--"]
    config = ground.training.config(
        exec=entry, command=["/bin/sleep", "60"], cwd="/home/ops1", log="/home/ops1/{name}.log", caches=[]
    )
    container.run(["systemctl", "restart", "systemd-logind"])
    refused = ground.training.cli("restart", "--yes", "--json", config=config)
    told = refused.json
    assert (refused.code, told["reason"]) == (case.code, case.reason), told
    assert "KillUserProcesses" in told["detail"]
    ground.training.steps_on(ground.running.json["log"])


# -- one odd run under systemd ----------------------------------------------------------------------------------------


@plays("L37-systemd", "L38", "L39")
def _odd_run(case: Case, scene: Scene) -> None:
    ground = scene.odd
    training, told = ground.training, ground.running.json
    container = training.container
    assert ground.running.code == case.code
    match case.id:
        case "L37-systemd":
            training.await_no_agents()
            until(lambda: not training.wrappers(), 60, "the session is over")
            training.steps_on(told["log"])
            keeper = training.keeper(told["id"])
            assert "/dflash-" in container.read(f"/proc/{keeper}/cgroup")
        case "L38":
            assert "stdin: 1 <>" in container.read(told["log"])
        case _:
            got = container.read("/workspace/got").split("\0")
            assert got == ["/root/w x 'y' é", _ODD, _SECRET, _ODD, "-c", ""]
            assert told["log"].startswith("/workspace/train 1 é_")
            assert not [pid for pid, argv in container.processes().items() if _SECRET in " ".join(argv)]
            units = "grep -rslF geheim-7f3a /run/systemd /etc/systemd /root/.local /root/.config || true"
            assert ground.run(["sh", "-c", units]) == ""
            shown = "systemctl show 'dflash-*' | grep -cF geheim-7f3a || true"
            assert ground.run(["sh", "-c", shown]).strip() == "0"


_HASTY = {"STALL_FLOOR_S": 1.5, "SILENT_S": 1.5, "UNLEARNED_S": 20.0}
"""Bounds of `stall`, in proportion to a run that steps five times a second and quicker."""


@plays("L23", "L25", "L26-idle", "L26-spin")
def _falls_ill(case: Case, scene: Scene) -> None:
    training = scene.odd.training
    stalls = case.id != "L25"
    for name, seconds in _HASTY.items() if stalls else ():
        scene.monkeypatch.setattr(stall, name, seconds)
    fault, verdict = {
        "L23": ("buffered", Verdict.RUNNING),
        "L25": ("nan:0", Verdict.NAN),
        "L26-idle": ("stall-idle:0", Verdict.STALLED),
        "L26-spin": ("stall:0", Verdict.STALLED),
    }[case.id]
    log = "/workspace/train 1 é_{name}.log"

    async def play() -> Snapshot:
        async with training.engine(training.config(log=log)) as engine:
            await reach(engine, lambda now: now.verdict == Verdict.STEPPING)
            if stalls:
                # Learned, though a machine that is busy had a step wait for a second.
                await reach(engine, lambda now: 1.5 <= now.progress.stall_budget_s < 5.0)
                await reach(engine, lambda now: now.gpus.at is not None and now.gpus.gpus[0].power_w > 400)
                await until_async(lambda: usual_power_w(engine._state) is not None, what="the usual power")
            training.fault(fault)
            # On a busy machine a step may be late, or the link be lost, before it strikes.
            return await reach(engine, lambda now: now.reason is not None and now.reason.slug == case.reason, 60)

    try:
        snapshot = asyncio.run(play())
    finally:
        training.container.remove("/root/fault")
        training.fault("none")
    reason = snapshot.reason
    assert reason is not None
    assert (snapshot.verdict, reason.slug, outcome.check_exit_code(snapshot)) == (verdict, case.reason, case.code)
    match case.id:
        case "L23":
            assert "GPUs work" in reason.detail
        case "L25":
            assert f"NaN since step {snapshot.progress.bad_since_step:,}".replace(",", "") in reason.detail.replace(
                ",", ""
            )
        case "L26-idle":
            assert "0 % busy" in reason.detail
            assert "collective" not in reason.detail
        case _:
            assert "100 % busy" in reason.detail
            assert "a collective waits?" in reason.detail
    training.steps_on(scene.odd.running.json["log"])


@plays("L26-stopped")
def _stopped(case: Case, scene: Scene) -> None:
    training, running = scene.odd.training, scene.odd.running
    pid = str(running.json["pid"])
    training.container.run(["kill", "-STOP", pid])
    try:
        told = training.cli("status", "--check")
    finally:
        training.container.run(["kill", "-CONT", pid])
    assert told.code == case.code
    assert f"{case.reason}: pid {pid} stopped by a signal" in told.out, told.out
    assert f"next: kill -CONT {pid} on the host" in told.out
    training.steps_on(running.json["log"])


@plays("L41-truncated", "L41-moved", "L41-deleted")
def _log_is_taken_away(case: Case, scene: Scene) -> None:
    training = scene.training
    log = training.restart().json["log"]
    deed, state = {
        "L41-truncated": (f"cp {log} {log}.1 && truncate -s 0 {log}", LogState.FOLLOWING),
        "L41-moved": (f"mv {log} {log}.1", LogState.FOLLOWING),
        "L41-deleted": (f"rm {log}", LogState.DELETED),
    }[case.id]

    async def play(engine: Engine) -> None:
        await reach(engine, lambda now: now.verdict == Verdict.STEPPING and now.log.caught_up)
        await asyncio.to_thread(training.container.run, ["sh", "-c", deed])
        words = {"L41-truncated": "truncated", "L41-moved": f"moved to {log}.1", "L41-deleted": "the name is gone"}
        # On a busy machine it makes many a step before it is seen what was done.
        told = await reach(engine, lambda now: now.log.state is state and words[case.id] in _said_of_log(engine))
        step = told.progress.step or 0
        well = (Verdict.STEPPING, None)
        after = await reach(
            engine, lambda now: (now.verdict, now.reason) == well and (now.progress.step or 0) > step + 8
        )
        assert (after.log.state, outcome.check_exit_code(after)) == (state, case.code)
        assert words[case.id] in _said_of_log(engine), after.log

    _in_console(training, play)


def _said_of_log(engine: Engine) -> str:
    """Return what stands in the log of what was done to its file, and beside it."""
    notes = [entry.text for entry in map(engine.log.line, range(engine.log.first, engine.log.end)) if entry]
    return "".join(text for text in notes if text.startswith("log was")) + engine.snapshot.log.detail


# -- in one console ---------------------------------------------------------------------------------------------------


def _in_console(training: Training, play: Callable[[Engine], Awaitable[None]], **settings: Setting) -> None:
    async def within() -> None:
        async with training.engine(training.config("host", **settings)) as engine:
            await play(engine)

    asyncio.run(within())


@plays("L24")
def _far_later(case: Case, scene: Scene) -> None:
    training = scene.training
    for variable in ("STATE_HOME", "CACHE_HOME"):
        scene.monkeypatch.setenv(f"XDG_{variable}", str(training.folder / variable.lower()))
    training.restart()
    scene.monkeypatch.setattr(machine, "LATE_FLOOR_S", 1.0)
    training.write_run("--load-time 120")

    async def play(engine: Engine) -> None:
        await engine.execute(await engine.plan("restart"))
        late = await reach(engine, lambda now: now.reason is not None and now.reason.slug == case.reason, 60)
        assert late.verdict == Verdict.LAUNCHING
        assert late.reason is not None
        words = " ".join(fact.text for fact in late.reason.facts)
        assert "usually" in words, words
        assert late.run is not None

    _in_console(training, play)


@plays("L47-killing")
def _frozen_while_killing(case: Case, scene: Scene) -> None:
    training = scene.fresh()
    container = training.container
    training.fault("ignore-term")
    first = training.restart()
    scene.monkeypatch.setattr(protocol, "Execute", functools.partial(protocol.Execute, ttl_s=6.0))

    async def play(engine: Engine) -> None:
        plan = await engine.plan("restart")
        asked_bt = procfs.boottime()
        await engine.execute(plan)
        await asyncio.to_thread(_await_evidence, training, "TERM, . s of 8 s left")
        await asyncio.to_thread(container.freeze)
        try:
            frozen = await reach(engine, lambda now: now.link.state is not LinkState.UP, 60)
            assert frozen.link.state is LinkState.LOST
            told = await asyncio.to_thread(training.cli, "status", "--json", timeout_s=40)
            assert (told.code, told.json["reason"]) == (31, "container_frozen"), told
            await until_async(lambda: procfs.boottime() > asked_bt + 8.0, what="the request has expired")
        finally:
            await asyncio.to_thread(container.thaw)
        engine.retry_link()
        failed = await reach(engine, lambda now: now.verdict == Verdict.FAILED, 60)
        assert failed.reason is not None
        assert failed.reason.slug == case.reason
        assert outcome.judge(failed, "stepping").exit_code == case.code

    _in_console(training, play, stop={"grace_s": 8.0})
    assert first.json["pid"] not in container.processes()
    assert training.mains() == []
    container.stop()


@plays("L47-asked")
def _frozen_before_it_was_read(case: Case, scene: Scene) -> None:
    training = scene.fresh()
    container = training.container
    first = training.restart()
    lease_s = 3.0
    scene.monkeypatch.setattr(protocol, "Watch", functools.partial(protocol.Watch, lease_s=lease_s))

    async def play(engine: Engine) -> None:
        plan = await engine.plan("restart")
        await asyncio.to_thread(container.freeze)
        over_at = asyncio.get_running_loop().time() + lease_s
        asked = asyncio.create_task(engine.execute(plan))
        try:
            await reach(engine, lambda now: now.link.state is not LinkState.UP, 60)
            asked.cancel()
            # Beyond the agent's lease, however soon the host has told that it is frozen.
            await asyncio.sleep(max(0.0, over_at + 1.0 - asyncio.get_running_loop().time()))
        finally:
            await asyncio.to_thread(container.thaw)
        engine.retry_link()
        back = await reach(engine, lambda now: now.link.state is LinkState.UP, 60)
        assert back.run is not None
        assert back.run.id == first.json["id"]

    _in_console(training, play)
    assert training.run_ids() == [first.json["id"]]
    training.steps_on(first.json["log"])
    container.stop()


@plays("L52-twenty")
def _twenty_reconnects(case: Case, scene: Scene) -> None:
    training = scene.training
    first = training.restart()
    host = training.lab.host()

    async def play(engine: Engine) -> None:
        for _ in range(20):
            assert await lost_by(engine, host.cut) >= 1
            engine.retry_link()
            await reach(engine, lambda now: now.link.state is LinkState.UP and now.verdict == Verdict.STEPPING, 60)
        await until_async(lambda: len(training.agents()) <= 2, 60, "no pile of agents")
        await until_async(lambda: len(training.wrappers()) <= 4, 60, "no pile of wrappers")

    _in_console(training, play)
    assert (training.run_ids(), training.mains()) == ([first.json["id"]], [first.json["pid"]])


@plays("L55")
def _adopted(case: Case, scene: Scene) -> None:
    training = scene.training
    began = time.time()
    main = training.start_by_hand()

    async def play(engine: Engine) -> None:
        known = await reach(engine, lambda now: now.verdict == Verdict.STEPPING and len(now.gpus.contexts) == 8)
        assert known.run is not None
        assert (known.run.by_hand, known.run.pid, known.log.path) == (True, main, "/workspace/train_hand.log")
        assert known.progress.format == "dflash"
        assert known.run.spawned_at is not None
        assert began - 2.0 < known.run.spawned_at < known.at  # the clocks are one; ticks of 10 ms and a round trip
        assert outcome.check_exit_code(known) == case.code
        await asyncio.to_thread(training.container.run, ["kill", "-KILL", str(main)])
        ended = await reach(engine, lambda now: now.verdict == Verdict.ENDED)
        assert ended.reason is not None
        words = " ".join([ended.reason.detail, *(fact.text for fact in ended.reason.facts)])
        assert "no keeper started it" in words

    _in_console(training, play)
