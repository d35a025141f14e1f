"""The demo's host: it is quick, it sees and touches nothing but its own, and it leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from console import configfile
from console.demo import command, trainer
from console.demo.host import DemoHost
from console.history import ledger
from console.host import procfs
from tests.headless.running import Console, call, fast_host, prove_starts_at
from tests.waiting import until

_START_S = 60.0
"""For a console that starts or ends as a process of its own: its second was seen to be twenty on a crowded machine."""


def processes_of(folder: Path) -> dict[int, list[str]]:
    """Return the processes that run in `folder` or name a file in it."""
    inside = f"{folder}/"
    found = {}
    for pid in procfs.all_pids():
        argv = procfs.argv(pid)
        if any(inside in word for word in argv) or f"{procfs.cwd(pid)}/".startswith(inside):
            found[pid] = argv
    return found


@pytest.fixture
def foreign_run(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Somebody's own training on this machine, by the usual name."""
    script = tmp_path / "theirs" / "train_dflash_pipeline.py"
    script.parent.mkdir()
    shutil.copyfile(trainer.__file__, script)
    words = ["--gpus", "2", "--targets", "1", "--drafters", "1", "--load-time", "0.2", "--step-time", "0.2"]
    with (script.parent / "log").open("wb") as log:
        run = subprocess.Popen([sys.executable, "-u", str(script), *words], stdout=log, stderr=log)
    until(lambda: b"step 2/" in (script.parent / "log").read_bytes(), 60)
    yield run
    run.terminate()
    run.wait(20)


def test_demo_never_sees_or_stops_a_run_that_is_not_its_own(
    tmp_path: Path, foreign_run: subprocess.Popen[bytes]
) -> None:
    with fast_host(tmp_path / "demo") as host:
        console = Console(host)

        idle, plan = console("status", "--json").json, console("restart", "--plan", "--json").json
        stopped, restarted = console("stop", "--yes"), console.restart("--json")

    assert (idle["run"], plan["replaces"]) == (None, [])
    assert (stopped.code, restarted.code, restarted.json["replaced"]) == (5, 0, None)
    assert foreign_run.poll() is None


def test_end_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with fast_host(folder) as host:
        console = Console(host)
        assert console.restart().code == 0
        assert len(processes_of(folder)) >= 9

    console.config.unlink()  # ours, not the host's
    assert processes_of(folder) == {}
    assert list(folder.iterdir()) == []


def test_end_in_the_middle_of_a_start_leaves_nothing_either(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with fast_host(folder) as host:
        console = Console(host)
        assert console("restart", "--yes", "--detach").code == 0

    console.config.unlink()
    until(lambda: processes_of(folder) == {}, 60)
    assert list(folder.iterdir()) == []


def test_every_run_leaves_a_cache_for_the_next_restart_to_clear(tmp_path: Path) -> None:
    with fast_host(tmp_path / "demo") as host:
        console = Console(host)
        said = [console.restart("--json").json for _ in range(2)]

    cleared = [stage for each in said for stage in each["stages"] if stage["stage"] == "cache"]
    assert [(stage["state"], stage["evidence"].partition(",")[0]) for stage in cleared] == [
        ("done", "1.5 MiB set aside")
    ] * 2


def test_run_that_ignores_term_is_ended_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with fast_host(folder) as host:
        host.inject("ignore-term")
        assert Console(host).restart().code == 0

    assert processes_of(folder) == {}


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_screen_that_is_told_to_end_again_and_again_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """As by a terminal that is closed, whose shell and whose kernel send a SIGHUP each."""
    screen, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (36, 120))
    demo = subprocess.Popen(
        [sys.executable, "-m", "console", "demo", "--speed", "8"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(tmp_path), "TERM": "xterm"},
        stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
    )  # fmt: skip
    os.close(terminal)
    shown = bytearray()

    def read() -> None:
        if select.select([screen], [], [], 0)[0]:
            with contextlib.suppress(OSError):  # nobody has it open any more
                shown.extend(os.read(screen, 1 << 16))

    def runs() -> bool:
        read()
        return b"slammed1" in shown and any(tmp_path.glob("dflash-demo-*/host/train_slammed1.log"))

    def ended() -> bool:
        with contextlib.suppress(ProcessLookupError):
            demo.send_signal(number)
        read()
        return demo.poll() is not None

    try:
        until(runs, _START_S)
        until(ended, _START_S)
    finally:
        os.close(screen)
        demo.kill()
        demo.wait(20)

    assert demo.returncode in (0, 128 + number), shown[-2000:]
    assert not re.search(rb"Warning|Traceback|Exception", shown), shown[-2000:]
    assert processes_of(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


def test_taking_of_pictures_that_is_told_to_end_leaves_no_run(tmp_path: Path) -> None:
    taking = subprocess.Popen(
        [sys.executable, "-m", "screenshots", "healthy"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    until(lambda: any(tmp_path.glob("dflash-demo-*/host/train_slammed1.log")), _START_S, "the run")

    taking.terminate()
    out, err = taking.communicate(timeout=_START_S)

    assert (taking.returncode, out) == (128 + signal.SIGTERM, b""), err
    assert processes_of(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_serve_lets_another_terminal_in_and_cleans_up(tmp_path: Path, number: signal.Signals) -> None:
    served = subprocess.Popen(
        [sys.executable, "-m", "console.cli", "demo", "--serve", "place", "--speed", "8"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    config = tmp_path / "place" / "config.toml"
    try:
        until(config.exists, _START_S)
        until(lambda: configfile.load(config).targets)

        done = call("restart", "--config", str(config), "--yes", "--timeout", "90s")
        served.send_signal(number)
        out, err = served.communicate(timeout=_START_S)
    finally:
        served.kill()

    assert (done.code, served.returncode) == (0, 0), (done, err)
    assert out == f"dflash-console --config {config}\n"
    assert processes_of(tmp_path) == {}
    assert list((tmp_path / "place").iterdir()) == []


def test_serve_never_overwrites_a_config(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("mine")

    done = call("demo", "--serve", str(tmp_path))

    assert (done.code, (tmp_path / "config.toml").read_text()) == (2, "mine")


def test_fault_that_the_demo_opens_with_strikes_the_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prove_starts_at(30.0, monkeypatch)
    with fast_host(tmp_path / "demo") as host:
        command._start_first_run(host, "exit-at-once")

        failed = Console(host)("wait", "--timeout", "60s", "--json").json

    assert (failed["outcome"], failed["stage"], failed["reason"]) == ("failed", "spawned", "missing_module"), failed


def test_fault_of_the_script_lets_the_first_run_be_and_refuses_the_next(tmp_path: Path) -> None:
    with fast_host(tmp_path / "demo") as host:
        command._start_first_run(host, "exec-refused")
        console = Console(host)

        refused = console("restart", "--yes", "--expect-run", "slammed1", "--json")
        mended = command._inject(host, "none")
        there = console("wait", "--timeout", "60s", "--json").json

    assert (refused.code, refused.json["reason"]) == (3, "exec_not_permitted"), refused
    assert mended == "no fault from now on"
    assert (there["outcome"], there["run"]) == ("reached", "slammed1"), there


def test_faults_are_listed_with_what_they_do() -> None:
    done = call("demo", "--fault", "list")

    names = [line.split()[0] for line in done.out.splitlines()]
    assert (done.code, len(names)) == (0, len(set(names)))
    assert {"exec-refused", "exit-at-once", "traceback", "oom-load", "cuda-hang", "nan", "stall", "link-cut"} <= {
        *names
    }


def test_run_that_the_demo_opens_with_is_not_noted_among_the_users(tmp_path: Path) -> None:
    with fast_host(tmp_path / "demo") as host:
        command._start_first_run(host, None)
        noted = list((tmp_path / "demo").glob("ledger.sqlite3"))

    assert len(noted) == 1
    assert not ledger.default_path().exists()


def test_first_run_steps_within_fifteen_seconds(tmp_path: Path) -> None:
    """At the speed that the demo has by itself."""
    with DemoHost(tmp_path / "demo") as host:
        run_sh = Path(host.target.command[0]).read_text()
        given = {name: float(value) for name, value in re.findall(r"--([a-z-]+) ([\d.]+)(?=\s)", run_sh)}

        assert Console(host).restart().code == 0

    # By its own settings, since the clock of a busy machine would say something else: loaded, and two steps.
    assert (given["load-time"] + 2 * given["step-time"]) / given["speed"] < 10
