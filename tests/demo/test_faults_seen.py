"""Every fault of the demo's catalogue, on a real run: the verdict, the reason and the exit code that it must lead to.

What is expected follows from what the fault is, and stands here before anything was run: a program that ends within the
second in which "spawned" is proven fails there (12); one that dies with only some of its contexts open fails at CUDA
(13); what happens after the first steps is no failed launch (0) but an unhealthy (6) or an ended (15) run.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from console import configfile
from console.config import Deadlines, Stop
from console.demo import faults
from console.demo.host import NAME, DemoHost
from console.engine import Engine
from console.headless import restart
from console.headless.session import opened
from console.model import Snapshot
from console.state import health, outcome, stall, standing
from tests import uncounted
from tests.headless.running import Console, prove_starts_at, time_is_up_once_judged
from tests.waiting import until


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What an operator must be told."""

    launch: int
    """Exit code of `restart`, which waits for steps."""
    check: int
    """Exit code of `status --check` once the fault has struck."""
    verdict: str
    reason: str | None
    stage: str | None = None
    """The stage that a failed launch is put down to."""
    also: str | None = None
    """What is told beside the reason."""


EXPECTED = {
    "exec-refused": Seen(launch=3, check=0, verdict="stepping", reason="exec_not_permitted"),
    "bad-interpreter": Seen(launch=3, check=0, verdict="stepping", reason="bad_interpreter"),
    "exit-at-once": Seen(launch=12, check=12, verdict="failed", reason="missing_module", stage="spawned"),
    "exit-zero": Seen(launch=12, check=12, verdict="failed", reason="exit_without_step", stage="spawned"),
    "no-cuda": Seen(launch=12, check=12, verdict="failed", reason="cuda_init_failed", stage="spawned"),
    "traceback": Seen(launch=13, check=13, verdict="failed", reason="python_exception", stage="cuda"),
    "oom-load": Seen(launch=13, check=13, verdict="failed", reason="cuda_oom", stage="cuda"),
    "cuda-hang": Seen(launch=20, check=6, verdict="launching", reason="stage_late", stage="cuda"),
    "nan": Seen(launch=0, check=6, verdict="nan", reason="nan_loss"),
    "stall": Seen(launch=0, check=6, verdict="stalled", reason="stalled"),
    "stall-idle": Seen(launch=0, check=6, verdict="stalled", reason="stalled"),
    "sigkill": Seen(launch=0, check=15, verdict="ended", reason="sigkill_unknown"),
    "buffered": Seen(launch=0, check=6, verdict="running", reason="output_buffered"),
    "elsewhere": Seen(launch=0, check=6, verdict="running", reason="log_elsewhere"),
    "suspend": Seen(launch=0, check=6, verdict="suspended", reason="suspended"),
    "spike": Seen(launch=0, check=6, verdict="spike", reason="loss_spike"),
    "linger": Seen(launch=0, check=6, verdict="not_exited", reason="finished_not_exited"),
    "starve": Seen(launch=0, check=6, verdict="slow", reason="slow", also="queue_starved"),
    "recompile": Seen(launch=0, check=6, verdict="slow", reason="slow", also="recompile_limit"),
    "download-stall": Seen(launch=20, check=6, verdict="launching", reason="download_stall", stage="cuda"),
    "slow": Seen(launch=0, check=6, verdict="slow", reason="slow"),
    "ignore-term": Seen(launch=0, check=0, verdict="stepping", reason=None),
    "link-cut": Seen(launch=30, check=30, verdict="link_lost", reason=None),
    "log-cut": Seen(launch=0, check=6, verdict="running", reason="log_lost"),
}
BEFORE = [name for name, fault in faults.CATALOGUE.items() if fault.by is faults.By.SCRIPT]
LAUNCH = [name for name, seen in EXPECTED.items() if seen.stage is not None]
WHILE_RUNNING = ["nan", "stall", "stall-idle", "sigkill", "buffered", "slow"]
IN_ONE_RUN = ["spike", "starve", "elsewhere", "log-cut", "suspend", "recompile", "linger"]
"""In this order: what recompile says lasts, and nothing comes behind linger."""
HASTY = {
    stall: {"STALL_FLOOR_S": 2.0, "SILENT_S": 2.0, "UNLEARNED_S": 20.0},
    standing: {"EXIT_S": 2.0},
    health: {"SLOW_FOR_S": 2.0, "STARVED_FOR_S": 1.0},
}


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """Loading takes 2.4 s, so that what goes wrong while the model loads comes after "spawned" was proven."""
    deadlines = Deadlines(killing=20.0, cache=10.0, spawned=10.0, cuda=4.0, stepping=60.0)
    with DemoHost(tmp_path_factory.mktemp("demo"), speed=8.0, load_s=30.0) as host:
        yield Console(host, deadlines=deadlines, stop=Stop(grace_s=0.5))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge health within seconds: the run steps eight times a second, so that every rule keeps its proportions."""
    for module, bounds in HASTY.items():
        for name, seconds in bounds.items():
            assert hasattr(module, name)
            monkeypatch.setattr(module, name, seconds)


def test_every_fault_of_the_catalogue_has_an_expectation() -> None:
    assert set(EXPECTED) == set(faults.CATALOGUE)


@pytest.mark.parametrize("fault", LAUNCH)
def test_fault_at_the_start_fails_the_launch_where_it_strikes(
    console: Console, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = EXPECTED[fault]
    prove_starts_at(30.0 if expected.stage == "spawned" else 0.3, monkeypatch)
    console.free()
    console.host.inject(fault)

    is_told = functools.partial(_is_told, expected)
    with time_is_up_once_judged(restart, is_told) if expected.launch == 20 else contextlib.nullcontext():
        done = console.restart("--json")

    answer = done.json
    assert (done.code, answer["exit_code"]) == (expected.launch, expected.launch), answer
    assert (answer["reason"], answer["stage"]) == (expected.reason, expected.stage), answer
    status = console("status", "--check", "--json")
    assert (status.json["verdict"], status.json["reason"], status.code) == (
        expected.verdict,
        expected.reason,
        expected.check,
    )


@pytest.mark.parametrize("fault", BEFORE)
def test_fault_of_the_script_is_refused_and_the_run_steps_on(console: Console, fault: str) -> None:
    expected = EXPECTED[fault]
    console.free()
    before = console.restart("--json").json
    console.host.inject(fault)

    done = console.restart("--json")

    assert (done.code, done.json["reason"], done.json["stage"]) == (expected.launch, expected.reason, "preflight")
    status = console("status", "--check", "--json")
    assert (status.json["verdict"], status.code) == (expected.verdict, expected.check)
    assert status.json["pid"] == before["pid"]


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("fault", WHILE_RUNNING)
def test_fault_while_running_is_seen_as_what_it_is(console: Console, fault: str) -> None:
    expected = EXPECTED[fault]
    console.free()
    seen: list[tuple[str, str | None, int]] = []

    def is_told() -> bool:
        done = console("status", "--check", "--json")
        seen.append((done.json["verdict"], done.json["reason"], done.code))
        return seen[-1] == (expected.verdict, expected.reason, expected.check)

    with uncounted.no_kills() if fault == "sigkill" else contextlib.nullcontext():
        assert console.restart().code == expected.launch
        assert console("wait", "--for", "step=30", "--timeout", "60s").code == 0
        console.host.inject(f"{fault}:0" if faults.CATALOGUE[fault].arg else fault)

        until(is_told, 60, f"{fault} is told, not {seen}")


@pytest.mark.usefixtures("hasty")
def test_faults_in_one_run_are_each_told_and_gone_when_they_are(console: Console) -> None:
    """A console that watches all the time: each fault strikes, is seen as what it is, and is over."""
    console.free()
    assert console.restart("--detach").code == 0

    async def play() -> None:
        async with opened(NAME, configfile.load(console.config).targets[NAME]) as engine:
            await _until(engine, lambda now: (now.progress.step or 0) >= 60, "it steps, past its warm-up")
            for fault in IN_ONE_RUN:
                expected = EXPECTED[fault]
                if fault == "log-cut":
                    console.host.cut_log(600.0)
                else:
                    console.host.inject(f"{fault}:0" if faults.CATALOGUE[fault].arg else fault)
                seen = await _until(engine, functools.partial(_is_told, expected), f"{fault} is told")
                assert outcome.check_exit_code(seen) == expected.check
                assert seen.reason is not None
                assert 0 < len(seen.reason.brief) <= 17
                if fault == "suspend":
                    await _suspended(console, seen)
                if fault == "linger":
                    return
                console.host.inject("none")
                if fault == "log-cut":
                    console.host._log_cut = False
                    engine.retry_link()
                if fault != "recompile":
                    await _until(engine, lambda now: now.verdict == "stepping" and not now.reason, f"{fault} is over")

    asyncio.run(play())


def _is_told(expected: Seen, now: Snapshot) -> bool:
    also = {warning.slug for warning in now.warnings}
    is_there = now.reason is not None and (now.verdict, now.reason.slug) == (expected.verdict, expected.reason)
    return is_there and (expected.also is None or expected.also in also)


async def _suspended(console: Console, seen: Snapshot) -> None:
    """A script is told the same, with the way out; that way is gone."""
    assert seen.run is not None
    assert seen.run.pid is not None
    told = await asyncio.to_thread(console, "status", "--check")
    assert told.code == EXPECTED["suspend"].check
    assert f"next: kill -CONT {seen.run.pid} on the host" in told.out
    os.kill(seen.run.pid, signal.SIGCONT)


async def _until(engine: Engine, predicate: Callable[[Snapshot], bool], what: str) -> Snapshot:
    deadline = asyncio.get_running_loop().time() + 60
    found = await engine.until(lambda now: now if predicate(now) else None, deadline)
    assert found is not None, (what, engine.snapshot.verdict, engine.snapshot.reason, engine.snapshot.warnings)
    return found


def test_run_that_ignores_term_is_killed_after_its_grace(console: Console) -> None:
    console.free()
    console.host.inject("ignore-term")
    first = console.restart("--json")
    console.host.inject("none")

    second = console.restart("--json")

    assert (first.code, second.code) == (0, 0)
    killing = second.json["stages"][0]
    assert killing["state"] == "done"
    assert killing["took_s"] >= 0.5, killing


def test_cut_link_is_called_lost_and_the_run_goes_on(console: Console) -> None:
    console.free()
    before = console.restart("--json").json
    console.host.cut_link(600.0)

    while_cut = console("restart", "--yes", "--json")
    status = console("status", "--check", "--json")

    assert (while_cut.code, status.code) == (EXPECTED["link-cut"].launch, EXPECTED["link-cut"].check)
    assert status.json["verdict"] == EXPECTED["link-cut"].verdict
    console.host.cut_link(0.0)
    until(lambda: console("status").code == 0, 60, "the link is back")
    after = console("status", "--json").json
    assert (after["pid"], after["verdict"]) == (before["pid"], "stepping")
