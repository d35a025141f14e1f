"""What a hung run can tell: seen from outside, bounded in time, secrets taken out, and the run untouched."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from console import protocol
from console.host import bounded, diagnose_run, hanging, procfs, pyspy
from tests.host.agentprocess import Agent
from tests.host.keeperlab import Lab, reached
from tests.waiting import until

TOKEN = "hf_" + "T0ken" * 6
PASSWORD = "correct-horse-battery"

# One process waits for a pipe, one for a lock (futex), one is stopped.
HUNG = f"""
import os, signal, sys, threading, time
print("step 1 | loss 2.0", flush=True)
print("logging in with {TOKEN} and password={PASSWORD}", flush=True)
if os.fork() == 0:
    lock = threading.Lock()
    lock.acquire()
    def waits_for_the_lock():
        lock.acquire()
    waits_for_the_lock()
if os.fork() == 0:
    os.kill(os.getpid(), signal.SIGSTOP)
reader, writer = os.pipe()
open("hung", "w").close()
os.read(reader, 1)
"""


class Hung:
    """A run of a keeper that hangs in three ways."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        (lab.work / "hang.py").write_text(HUNG)
        script = lab.work / "run.sh"
        script.write_text(f"#!/bin/sh\nexec {sys.executable} -u hang.py --api-key {PASSWORD}\n")
        script.chmod(0o755)
        self.env = {"HF_TOKEN": TOKEN, "MY_PASSWORD": PASSWORD, "WANDB_API_KEY": "0123456789abcdef0123"}
        self.directory, _ = lab.launch("r-1", spec={"env": self.env})
        reached(self.directory, "running")
        until(lambda: (lab.work / "hung").exists(), 60, "it hangs")
        until(lambda: sorted(self.states().values()) == ["S", "S", "T"], 60, "two wait and one is stopped")

    def states(self) -> dict[int, str]:
        found = {pid: procfs.read_stat(pid) for pid in self.lab.marked()}
        return {pid: each.state for pid, each in found.items() if each and "hang.py" in procfs.argv(pid)}

    def spec(self) -> protocol.RunSpec:
        return protocol.RunSpec(
            target="t", name="r{n}", command=(str(self.lab.work / "run.sh"),), cwd=str(self.lab.work),
            log=str(self.lab.work / "{name}.log"), match=("hang.py",),
        )  # fmt: skip

    def diagnosed(self, env: dict[str, str] | None = None) -> str:
        with Agent(env=env) as agent:
            operation = protocol.Diagnose(id=agent.next_id(), spec=self.spec(), state_dir=str(self.lab.state))
            reply = agent.ask(operation, 60)
            assert reply.ok, reply
            return agent.reply_raw[operation.id].decode()


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hung]:
    lab = Lab(tmp_path_factory.mktemp("hung"))
    try:
        yield Hung(lab)
    finally:
        lab.close()


@pytest.fixture
def spy(tmp_path: Path) -> Path:
    """A directory for a stand-in of py-spy, which a test writes."""
    folder = tmp_path / "spy"
    folder.mkdir()
    return folder


def write_spy(folder: Path, body: str) -> dict[str, str]:
    """Put a py-spy on the PATH that does `body`; return the environment to start an agent with."""
    path = folder / "py-spy"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def section(text: str, title: str) -> str:
    found = text.partition(f"\n== {title}")[2]
    assert found, f"no section {title}"
    return found.partition("\n== ")[0]


def test_each_process_is_told_with_its_state_and_what_it_sleeps_in(hung: Hung) -> None:
    text = hung.diagnosed()

    rows = {int(line.split()[0]): line for line in section(text, "processes (3)").splitlines()[2:]}
    states = hung.states()
    assert set(rows) == set(states)
    assert sorted(line.split()[1] for line in rows.values()) == ["S", "S", "T"]
    told = " ".join(rows.values())
    assert "pipe" in told
    assert "futex" in told
    assert section(text, f"pid {next(iter(states))}")


def test_kernel_stacks_open_files_and_threads_are_there(hung: Hung) -> None:
    text = hung.diagnosed()

    stopped = next(pid for pid, state in hung.states().items() if state == "T")
    told = section(text, f"pid {stopped}")
    assert "State: T (stopped)" in told
    assert "r-1.log" in told.partition("open files:")[2]
    assert "threads: 1 x T" in told
    stacks = told.partition("kernel stacks:")[2].partition("open files:")[0]
    assert "signal" in stacks if os.access(f"/proc/{stopped}/stack", os.R_OK) else "not readable" in stacks


def test_log_records_gpus_and_kernel_log_are_there(hung: Hung) -> None:
    text = hung.diagnosed()

    assert "step 1 | loss 2.0" in section(text, "log, the end")
    assert '"state": "running"' in section(text, "status.json")
    assert "hang.py" in text
    assert "source " in section(text, "GPUs")
    assert section(text, "kernel log, the end").strip()


def test_no_secret_leaves_the_host(hung: Hung) -> None:
    text = hung.diagnosed()

    for secret in (TOKEN, PASSWORD, *hung.env.values()):
        assert secret not in text
    assert "HF_TOKEN=[hidden]" in text
    assert "MY_PASSWORD=[hidden]" in text
    assert "--api-key [hidden]" in text


def test_nothing_of_the_run_is_touched(hung: Hung) -> None:
    before = hung.states()
    signals = {pid: _signals(pid) for pid in before}
    files_before = {path: path.stat().st_mtime_ns for path in hung.lab.work.iterdir()}

    hung.diagnosed()

    assert hung.states() == before
    assert {pid: _signals(pid) for pid in before} == signals
    assert {path: path.stat().st_mtime_ns for path in hung.lab.work.iterdir()} == files_before


def _signals(pid: int) -> list[str]:
    wanted = ("TracerPid", "SigPnd", "ShdPnd", "SigCgt", "nonvoluntary_ctxt_switches", "voluntary_ctxt_switches")
    return [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(wanted)]


def test_py_spy_is_asked_without_stopping_a_process(hung: Hung, spy: Path) -> None:
    env = write_spy(spy, 'echo "$@" >>' + str(spy / "asked") + '; echo "Thread 1 (idle): MainThread in $4"')

    told = section(hung.diagnosed(env), "Python stacks")

    asked = (spy / "asked").read_text().splitlines()
    assert sorted(asked) == sorted(f"dump --nonblocking --pid {pid}" for pid in hung.states())
    assert all(f"MainThread in {pid}" in told for pid in hung.states())


def test_a_py_spy_that_hangs_is_given_up_after_its_time(hung: Hung, spy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_spy(spy, "exec sleep 60")
    monkeypatch.setattr(pyspy, "EACH_S", 0.5)

    said = list(pyspy.dump(str(spy / "py-spy"), list(hung.states())))

    assert [text for _, text in said] == ["no answer in 0.5 s"] * 3
    assert not [pid for pid in procfs.all_pids() if procfs.argv(pid)[:2] == ["sleep", "60"] and _is_child(pid)]


def _is_child(pid: int) -> bool:
    found = procfs.read_stat(pid)
    return found is not None and found.ppid == os.getpid() and not procfs.is_gone(found)


def test_no_more_than_sixteen_processes_are_asked(spy: Path) -> None:
    write_spy(spy, "echo $4")

    said = list(pyspy.dump(str(spy / "py-spy"), list(range(1000, 1040))))

    assert [pid for pid, _ in said] == list(range(1000, 1016))


def test_the_real_py_spy_tells_the_function_that_waits(hung: Hung) -> None:
    program = os.environ.get("DFLASH_PY_SPY") or shutil.which("py-spy")
    if program is None:
        pytest.skip("no py-spy on this machine (DFLASH_PY_SPY or PATH)")
    before = hung.states()

    text = hung.diagnosed({"PATH": f"{Path(program).parent}:{os.environ['PATH']}"})

    assert "waits_for_the_lock" in section(text, "Python stacks")
    assert hung.states() == before


def test_without_py_spy_that_is_said(hung: Hung) -> None:
    if pyspy.find([]) is not None:
        pytest.skip("this machine has a py-spy")

    assert "py-spy is not on this host's PATH" in section(hung.diagnosed(), "Python stacks")


def test_a_process_whose_files_hang_costs_its_own_facts_alone(hung: Hung, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the command line of a wedged process waits for its lock of memory: here for a pipe."""
    wedged = next(pid for pid, state in hung.states().items() if state == "T")
    reader, _ = os.pipe()
    true_argv = procfs.argv

    def argv(pid: int) -> list[str]:
        if pid == wedged:
            os.read(reader, 1)
        return true_argv(pid)

    monkeypatch.setattr(procfs, "argv", argv)
    monkeypatch.setattr(bounded, "_close_all_but", lambda kept: None)  # the pipe must stay open
    monkeypatch.setattr(diagnose_run, "FIND_S", 2.0)
    ask, asked = diagnose_run.Report._ask, list[object]()

    def patient(report: diagnose_run.Report, function: Callable[[], Any], limit_s: float) -> tuple[Any, str]:
        """The others may answer as late as a busy machine likes."""
        asked.append(function)
        alone = function.args[0] if isinstance(function, functools.partial) else None
        is_other = alone is not None and getattr(alone, "pid", alone) != wedged
        return ask(report, function, 60.0 if is_other or len(asked) == 1 else limit_s)  # first for the records

    monkeypatch.setattr(diagnose_run.Report, "_ask", patient)

    found = diagnose_run.report(_plain(hung.spec()), str(hung.lab.state))

    text = found["text"]
    assert "runs started by hand: no answer in 2 s" in text
    rows = {int(line.split()[0]): line for line in section(text, "processes (3)").splitlines()[2:]}
    assert "(hangs)" in rows.pop(wedged)
    assert all("hang.py" in row for row in rows.values())
    assert "State: T (stopped)" in section(text, f"pid {wedged}")


def _plain(spec: protocol.RunSpec) -> dict[str, object]:
    plain: dict[str, object] = msgspec.to_builtins(spec)
    return plain


def test_a_run_started_by_hand_is_diagnosed_too(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "by_hand.py").write_text(HUNG)
    with (tmp_path / "by-hand.log").open("wb") as log:
        run = subprocess.Popen([sys.executable, "-u", "by_hand.py"], cwd=tmp_path, stdout=log, start_new_session=True)
    try:
        until(lambda: (tmp_path / "hung").exists(), 60, "it hangs")
        spec = protocol.RunSpec(
            target="t", name="r{n}", command=("/bin/true",), cwd=str(tmp_path), log=str(tmp_path / "{name}.log"),
            match=("by_hand.py",),
        )  # fmt: skip
        with Agent() as agent:
            operation = protocol.Diagnose(id=1, spec=spec, state_dir=str(tmp_path / "state"))
            reply = agent.ask(operation, 60)
            text = agent.reply_raw[1].decode()
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()

    assert reply.data["run"] is None
    assert reply.data["processes"] == 3
    assert f"{tmp_path}/by-hand.log" in section(text, "log, the end")
    assert "step 1 | loss 2.0" in text


def test_where_nothing_runs_that_is_the_answer(lab: Lab) -> None:
    spec = protocol.RunSpec(target="t", name="r", command=("/bin/true",), cwd="/", log="/tmp/{name}.log", match=())
    with Agent() as agent:
        reply = agent.ask(protocol.Diagnose(id=1, spec=spec, state_dir=str(lab.state)), 30)

    assert not reply.ok
    assert reply.error is not None
    assert reply.error.reason == "nothing_runs"


def test_the_text_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnose_run, "CAP_BYTES", 1000)

    cut = diagnose_run._capped("ä" * 4000)

    assert len(cut.encode()) <= 1000
    assert "[cut: 8000 bytes" in cut


def test_the_kernels_log_ends_with_its_last_lines_or_with_a_reason() -> None:
    lines = hanging.kernel_log(5)

    assert 1 <= len(lines) <= 5
    if stat.S_ISCHR(os.stat("/dev/kmsg").st_mode) and os.geteuid() == 0:
        assert lines[0].startswith(("[", "not readable"))
