"""The file that a run writes its words to while its log is silent: found by what its processes hold open."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.host import otherfile
from tests.waiting import until

_WRITER = """import os, sys, time
names = sys.argv[1:]
files = [open(name, "r+" if name.endswith("+") else "a") for name in names]
for file in files:
    file.write("words\\n"); file.flush()
print("there", flush=True)
time.sleep(600)
"""


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with a log, another text file, and files that hold no words."""
    names = ["train.log", "own.log", "model.safetensors", "events.out.tfevents.1"]
    argv = [sys.executable, "-c", _WRITER, *(str(tmp_path / name) for name in names)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "there\n"
        yield child
        child.kill()


def _age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_other_text_file_is_found_with_its_writer(writer: subprocess.Popen[str], tmp_path: Path) -> None:
    _age(tmp_path / "train.log", 300)

    assert otherfile.beside({writer.pid}, str(tmp_path / "train.log")) == (str(tmp_path / "own.log"), writer.pid)


def test_log_that_speaks_is_where_the_run_writes(writer: subprocess.Popen[str], tmp_path: Path) -> None:
    assert otherfile.beside({writer.pid}, str(tmp_path / "train.log")) is None


def test_file_that_has_not_been_written_to_for_long_is_none(writer: subprocess.Popen[str], tmp_path: Path) -> None:
    for name in ("train.log", "own.log"):
        _age(tmp_path / name, 300)

    assert otherfile.beside({writer.pid}, str(tmp_path / "train.log")) is None


def test_run_without_a_log_is_looked_at_too_and_one_that_is_gone_gives_nothing(
    writer: subprocess.Popen[str], tmp_path: Path
) -> None:
    _age(tmp_path / "train.log", 300)

    assert otherfile.beside({writer.pid}, "") == (str(tmp_path / "own.log"), writer.pid)
    writer.kill()
    writer.wait()
    assert otherfile.beside({writer.pid}, "") is None


def test_file_that_is_only_read_is_none(tmp_path: Path) -> None:
    read = tmp_path / "data.jsonl"
    read.write_text("{}\n")
    with read.open():
        assert otherfile.newest_text({os.getpid()}, "") != (str(read), os.getpid())


def test_look_answers_without_waiting_and_forgets_when_the_log_speaks_again(
    writer: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otherfile, "PAUSE_S", 0.0)
    log = tmp_path / "train.log"
    _age(log, 300)
    other = otherfile.OtherFile()

    def found() -> otherfile.Found | None:
        other.look({writer.pid}, {"path": str(log)})
        other.advance()
        return other.found

    until(lambda: found() == (str(tmp_path / "own.log"), writer.pid), 20)
    os.utime(log)
    until(lambda: found() is None, 20)
    other.close()

    assert other.fd == -1
