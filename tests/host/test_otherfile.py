"""The file that a run writes its words to while its log is silent: found by what its processes hold open."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.host import background, netfs, otherfile
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


@pytest.mark.parametrize("moved", ["train.log.1", "train.log-20261130", "kept"])
def test_log_that_was_moved_away_and_made_anew_by_another_is_where_the_run_goes_on_writing(
    moved: str, tmp_path: Path
) -> None:
    log, away = tmp_path / "train.log", tmp_path / moved
    with log.open("w") as out:
        argv = [sys.executable, "-uc", "input()\nprint('words')\ninput()"]
        child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=out, stderr=out)
    with child:
        assert child.stdin is not None
        log.rename(away)
        log.write_text("")
        _age(log, 300)
        child.stdin.write(b"\n")
        child.stdin.flush()
        until(lambda: away.stat().st_size, 60, what="words in the file that was moved away")

        found = otherfile.beside({child.pid}, str(log))
        away.unlink()
        gone = otherfile.beside({child.pid}, str(log))
        child.kill()

    assert found == (str(away), child.pid)
    assert gone == (f"{away} (deleted)", child.pid)


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

    until(lambda: found() == (str(tmp_path / "own.log"), writer.pid), 60)
    os.utime(log)
    until(lambda: found() is None, 60)
    other.close()

    assert other.fd == -1


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for each child that is sent to look."""
    sent: list[None] = []
    job = background.Job

    def counted(*given: Any) -> background.Job:
        sent.append(None)
        return job(*given)

    monkeypatch.setattr(background, "Job", counted)
    return sent


@pytest.fixture
def speaker(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process whose output is its log."""
    with (tmp_path / "out.log").open("w") as log:
        child = subprocess.Popen(["sleep", "600"], stdout=log, text=True)
    yield child
    child.kill()
    child.wait()


def _noted(log: Path) -> dict[str, object]:
    status = log.stat()
    return {"path": str(log), "dev": status.st_dev, "inode": status.st_ino}


def test_log_that_grows_on_this_machine_needs_no_child(
    speaker: subprocess.Popen[str], tmp_path: Path, jobs: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(netfs, "is_here", lambda dev: True)
    monkeypatch.setattr(otherfile, "SILENT_S", 3600.0)  # however late this machine comes around to looking
    log = tmp_path / "out.log"
    other = otherfile.OtherFile()
    os.utime(log)

    other.look({speaker.pid}, _noted(log), speaker.pid)

    assert (jobs, other.fd, other.advance()) == ([], -1, False)


@pytest.mark.parametrize("why", ["silent", "elsewhere", "another", "network", "unknown"])
def test_child_looks_where_that_is_not_sure(
    why: str,
    speaker: subprocess.Popen[str],
    tmp_path: Path,
    jobs: list[None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(netfs, "is_here", lambda dev: why != "network")
    log = tmp_path / "out.log"
    noted = _noted(log)
    if why == "silent":
        _age(log, 300)
    elif why == "elsewhere":
        noted["path"] = str(log.with_name("named.log"))
    elif why == "another":
        noted["inode"] = 1
    elif why == "unknown":
        del noted["dev"]
    other = otherfile.OtherFile()

    other.look({speaker.pid}, noted, speaker.pid)

    assert len(jobs) == 1
    other.close()


def test_log_that_speaks_again_is_news_without_a_child(
    speaker: subprocess.Popen[str], tmp_path: Path, jobs: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(netfs, "is_here", lambda dev: True)
    monkeypatch.setattr(otherfile, "SILENT_S", 3600.0)  # however late this machine comes around to looking
    log = tmp_path / "out.log"
    os.utime(log)
    other = otherfile.OtherFile()
    other._take(("/own.log", speaker.pid), 0.0)
    assert other.advance()

    other.look({speaker.pid}, _noted(log), speaker.pid)

    assert other.advance()
    assert other.found is None
    assert not jobs
    assert not other.advance()
