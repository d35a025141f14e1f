"""replay of a real run of the demo's host: written into a file, and played in a terminal."""

import json
import os
import stat
import sys
from pathlib import Path

import msgspec
import pytest

from console.engine.tape import load
from console.host import recorder
from console.protocol import Growth
from tests.bench.terminal import Terminal
from tests.headless.running import Console, Done
from tests.waiting import until

STEPS = 12


@pytest.fixture(scope="module")
def run(console: Console) -> str:
    """The name of a run that has made some steps and was then stopped."""
    started = console.restart("--json", "--env", "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123456789")
    assert started.code == 0, started
    assert console("wait", "--for", f"step={STEPS}", "--timeout", "60s").code == 0
    (kept,) = Path(console.host.target.state_dir or "").glob(f"targets/*/runs/*/{recorder.NAME}")
    until(lambda: any(map(_is_loaded, kept.read_bytes().splitlines())), 60.0, "a sample of its GPUs")
    console.free()
    name: str = started.json["run"]
    return name


def _is_loaded(line: bytes) -> bool:
    """Whether this is a sample in which every GPU has its share of the model."""
    sample = msgspec.json.decode(line, type=Growth)
    return sample.k == "gpu" and len(sample.held) == 8 and all((row[1] or 0) > 30 << 30 for row in sample.gpus)


@pytest.fixture(scope="module")
def exported(console: Console, run: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    path = tmp_path_factory.mktemp("tape") / "run.json"
    return path, console("replay", run, "--export", str(path), "--json")


def test_a_run_is_written_into_a_file_of_ours_alone(run: str, exported: tuple[Path, Done]) -> None:
    path, done = exported

    assert done.code == 0, done
    assert done.json["run"] == run
    assert done.json["bytes"] == path.stat().st_size
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "hf_abcdefghij" not in path.read_text()


def test_the_file_holds_what_happened(exported: tuple[Path, Done]) -> None:
    tape = load(exported[0])

    assert tape.run.exit is not None
    spawned, ended = tape.run.spawned_bt, tape.run.exit.ended_bt
    assert spawned is not None
    assert ended is not None
    assert exported[1].json["gpu_samples"] == sum(1 for each in tape.records if each.k == "gpu")
    loaded_bt = [each.bt for each in tape.records if _is_loaded(msgspec.json.encode(each))]
    assert spawned < loaded_bt[0] <= loaded_bt[-1] < ended
    # Not that at its end: its ranks give their memory back before it is gone, and a sample may fall in between.
    before, stepping = tape.gpus_at(spawned), tape.gpus_at(loaded_bt[-1])
    assert stepping is not None
    assert [len(each.gpus) for each in (before, stepping) if each is not None] in ([8, 8], [8])
    assert [gpu.context for gpu in stepping.gpus] == [True] * 8
    assert all((gpu.used or 0) > 30 << 30 for gpu in stepping.gpus)
    assert tape.log_size_at(spawned - 1) == 0
    assert tape.log_size_at(ended + 1) == tape.log_bytes > 0
    whole = tape.read(0, tape.log_bytes)
    assert len(whole) == tape.log_bytes
    assert b"step" in whole
    middle, last = tape.record_at((spawned + ended) / 2), tape.record_at(ended + 1)
    assert middle is not None
    assert last is not None
    assert (middle.alive, middle.exit) == (True, None)
    assert (last.alive, last.exit) == (False, tape.run.exit)


def test_what_is_not_there_and_what_is_there_already_is_refused_by_name(
    console: Console, run: str, exported: tuple[Path, Done]
) -> None:
    unknown = console("replay", "slammed99", "--export", str(exported[0]) + ".new", "--json")
    twice = console("replay", run, "--export", str(exported[0]))
    no_terminal = console("replay", str(exported[0]))

    assert (unknown.code, unknown.json["reason"]) == (3, "run_unknown"), unknown
    assert not Path(str(exported[0]) + ".new").exists()
    assert twice.code == 2
    assert "exists" in twice.err
    assert no_terminal.code == 2
    assert "--export" in no_terminal.err


def test_a_file_is_played_in_the_screens_without_its_host_and_q_leaves(exported: tuple[Path, Done], run: str) -> None:
    size = len(json.loads(exported[0].read_bytes())["records"])
    assert size > 20
    command = [sys.executable, "-m", "console.cli", "replay", str(exported[0]), "--speed", "64"]
    with Terminal(command, columns=120, rows=36) as screen:
        screen.wait_for(f"recording of {run}")
        screen.wait_for("signal 15, .* after exec")
        screen.type("q")
        ends: list[int] = []

        def has_ended() -> bool:
            pid, status = os.waitpid(screen.pid, os.WNOHANG)
            ends.extend([os.waitstatus_to_exitcode(status)] if pid else [])
            return bool(ends)

        until(has_ended, 120.0, "the end after q")
    assert ends == [0]
