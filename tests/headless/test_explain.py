"""`explain`: any log file, stdin, huge files, and the catalogue's list."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from console.headless import explain
from console.reasons import CATALOGUE, Reason
from tests.headless.running import call

LOG = "step 1 | loss 1.2 | tok/s 900\nstep 2 | loss 1.1 | tok/s 900\nKilled\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text(LOG)
    return path


def test_json_has_the_reason_its_evidence_and_advice(log: Path) -> None:
    answer = call("explain", str(log), "--exit", "137", "--json").json

    entry = CATALOGUE[Reason.SIGKILL_UNKNOWN]
    assert next(iter(answer)) == "schema"
    assert (answer["reason"], answer["title"], answer["safe"]) == ("sigkill_unknown", entry.title, entry.safe)
    assert answer["evidence"][0] == {"line": 3, "text": "Killed"}
    assert answer["next"]
    assert "(r)" not in " ".join(answer["next"])
    assert (answer["step"], answer["status"], answer["signal"], answer["exit_code"]) == (2, 137, None, 0)


def test_nothing_wrong_is_null_and_a_clean_end_is_completed(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("step 1/2 | loss 1.2 | tok/s 900\nstep 2/2 | loss 1.1 | tok/s 900\n")

    assert call("explain", str(path), "--exit", "0", "--json").json["reason"] == "completed"
    path.write_text("step 1/9 | loss 1.2 | tok/s 900\n")
    assert call("explain", str(path), "--json").json["reason"] is None


def test_text_is_a_few_lines_each_with_its_word(log: Path) -> None:
    lines = call("explain", str(log), "--signal", "KILL").out.splitlines()

    assert 4 <= len(lines) <= 8
    assert lines[0].startswith("sigkill_unknown: ")
    assert "  line 3: Killed" in lines
    assert any(line.startswith("  next: ") for line in lines)


def test_stdin_is_read_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    line = b"[09:12:44] step 7 | loss 1.25 | tok/s 19,960 | hs_queue min_ready=6 max_depth=16\n"
    many = 8 * explain.TAIL_BYTES // len(line)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line * many + b"Segmentation fault (core dumped)\n")))

    answer = call("explain", "-", "--json").json

    assert answer["reason"] == "segfault"
    assert answer["evidence"][0]["line"] == many + 1


def test_of_a_huge_file_only_start_and_end_are_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.log"
    with path.open("wb") as file:
        file.write(b"starting\n")
        file.truncate(explain.COUNTED_BYTES + 1)
        file.seek(0, 2)
        file.write(b"\nOSError: [Errno 122] Disk quota exceeded\n")

    with path.open("rb") as file:
        pieces = explain._pieces_of_file(file)

    assert sum(len(piece.data) for piece in pieces) <= explain.HEAD_BYTES + explain.TAIL_BYTES
    answer = call("explain", str(path), "--exit", "1", "--json").json
    assert (answer["reason"], answer["evidence"][0]["line"]) == ("disk_quota", None)


def test_control_characters_of_the_log_are_not_sent_to_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"\x1b]0;x\x07\x9b31mRuntimeError: a\x00b\x08 \xff\xfe: CUDA error: misaligned address\n")

    done = call("explain", str(path), "--exit", "1")

    assert done.out.startswith("illegal_memory_access")
    assert not [char for char in done.out if ord(char) < 32 and char != "\n"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--signal", "NOSUCH"), "no such signal"),
        (("--exit", "x"), "not a valid integer"),
        (("/nowhere/x.log",), "does not exist"),
        ((), "Missing argument"),
    ],
)
def test_wrong_use_is_said(log: Path, words: tuple[str, ...], what: str) -> None:
    done = call("explain", *((str(log), *words) if words and words[0].startswith("--") else words))

    assert done.code == 2
    assert what in done.err


@pytest.mark.parametrize("given", [("--exit", "-9"), ("--signal", "9"), ("--signal", "sigkill"), ("--exit", "137")])
def test_a_kill_may_be_told_in_any_way(tmp_path: Path, given: tuple[str, ...]) -> None:
    path = tmp_path / "train.log"
    path.write_text("step 1 | loss 1.2 | tok/s 900\n")

    assert call("explain", str(path), *given, "--json").json["reason"] == "sigkill_unknown"


def test_list_names_every_reason_with_severity_and_title() -> None:
    lines = call("explain", "--list").out.splitlines()

    assert len(lines) == len(Reason)
    assert any(line.split()[:2] == ["nan_loss", "error"] for line in lines)
    listed = json.loads(call("explain", "--list", "--json").out)["reasons"]
    assert {each["reason"] for each in listed} == {str(reason) for reason in Reason}
