"""Which files a run is made of, and what of them has changed."""

from __future__ import annotations

import hashlib
import os
import tracemalloc
from pathlib import Path

import pytest

from console.host import fingerprints


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "run.sh"
    path.write_text("#!/bin/sh\nexec /nowhere/python train.py\n")
    return path


def scripts_of(script: Path) -> fingerprints.Scripts:
    return fingerprints.scripts_of({"command": [str(script)], "cwd": str(script.parent)})


@pytest.mark.parametrize(
    "line",
    [
        "{program} -u train.py",
        "exec {program} -u train.py",
        "  FOO=1 BAR='x' exec nohup {program} train.py > log 2>&1",
        "if {program} --check; then",
        '"{program}" train.py',
        "env A=b {program}",
    ],
)
def test_program_that_a_shell_script_starts_belongs_to_the_run(script: Path, line: str) -> None:
    program = script.parent / "python"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    script.write_text(f"#!/usr/bin/env bash\nset -e\n{line.format(program=program)}\n")
    then = scripts_of(script)

    program.chmod(0o644)

    assert fingerprints.changes(then, scripts_of(script)) == [f"{program} (mode 755 -> 644)"]


@pytest.mark.parametrize("line", ["# {data}", "echo {data}", "python --data {data}", "cat < {data}", "OUT={data}"])
def test_data_that_a_script_names_is_none_of_it(script: Path, line: str) -> None:
    data = script.parent / "metrics"
    data.write_text("1")
    script.write_text(f"#!/bin/sh\n{line.format(data=data)}\n")

    assert set(scripts_of(script)) == {str(script)}


def test_big_program_is_told_without_being_read(script: Path) -> None:
    program = script.parent / "python"
    with program.open("wb") as file:
        file.truncate(64 << 20)
    os.utime(program, (1000, 1000))
    script.write_text(f"#!/bin/sh\n{program} train.py\n")
    then = scripts_of(script)

    os.utime(program, (2000, 2000))

    assert fingerprints.changes(then, then) == []
    assert fingerprints.changes(then, scripts_of(script)) == [str(program)]


def test_script_of_another_language_names_no_programs(script: Path) -> None:
    program = script.parent / "tool"
    program.write_text("x")
    script.write_text(f"#!/usr/bin/python3\n{program}\n")

    assert set(scripts_of(script)) == {str(script)}


def test_file_that_was_not_looked_at_before_is_not_called_new(script: Path) -> None:
    now = scripts_of(script)

    assert fingerprints.changes({str(script): now[str(script)]}, {**now, "/x": now[str(script)]}) == []


def test_file_that_is_gone_is_named(script: Path) -> None:
    then = scripts_of(script)

    script.unlink()

    assert fingerprints.changes(then, scripts_of(script)) == [f"{script} (gone)"]


def test_argument_that_names_a_folder_or_a_pipe_is_no_script_and_no_accident(script: Path) -> None:
    (script.parent / "out").mkdir()
    os.mkfifo(script.parent / "pipe")
    words = [str(script), str(script.parent / "out"), "./pipe", "/nowhere/at/all"]
    before = len(os.listdir("/proc/self/fd"))

    found = fingerprints.scripts_of({"command": words, "cwd": str(script.parent)})

    assert set(found) == {str(script)}
    assert len(os.listdir("/proc/self/fd")) == before


def test_interpreter_that_a_command_names_is_not_kept_in_memory(tmp_path: Path) -> None:
    """Debian's has 7 MB, and what an agent has once taken it does not give back."""
    interpreter = tmp_path / "python3.11"
    interpreter.write_bytes(b"\x7fELF" + bytes(7 << 20))
    tracemalloc.start()
    try:
        found = fingerprints.scripts_of({"cwd": str(tmp_path), "command": [str(interpreter), "-c", "pass"]})
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert found[str(interpreter)]["sha256"] == hashlib.sha256(interpreter.read_bytes()).hexdigest()
    assert peak_bytes < 1 << 20
