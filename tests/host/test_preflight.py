"""What is found out before anything is killed: commands that exec would stumble over, places, space."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from console.host import preflight, script
from tests.host.preflighting import PATH, checks, outcome, write


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path


SCRIPTS: list[tuple[str, bytes, int, str, str, str]] = [
    ("not executable", b"#!/bin/bash\n", 0o644, "command", "exec_not_permitted", "chmod +x"),
    ("interpreter missing", b"#!/bin/nosuch\n", 0o755, "interpreter", "bad_interpreter", "/bin/nosuch"),
    ("env cannot find it", b"#!/usr/bin/env nosuch9\n", 0o755, "interpreter", "bad_interpreter", "nosuch9"),
    ("interpreter is no program", b"#!/etc/passwd\n", 0o755, "interpreter", "exec_not_permitted", "/etc/passwd"),
    ("Windows line ends", b"#!/bin/bash\r\necho\r\n", 0o755, "interpreter", "crlf_script", "Windows"),
    ("no #! line", b"echo hello\n", 0o755, "interpreter", "exec_format", '"/bin/bash"'),
    ("byte order mark", b"\xef\xbb\xbf#!/bin/bash\n", 0o755, "interpreter", "exec_format", "byte order mark"),
    ("empty", b"", 0o755, "interpreter", "exec_format", "empty"),
    ("binary rubbish", b"\0\1\2\3" * 100, 0o755, "interpreter", "exec_format", "neither"),
    ("shell syntax", b"#!/bin/bash\nif true; then\n", 0o755, "syntax", "script_syntax", "line"),
    ("dash rejects it", b"#!/bin/sh\na=(1 2)\n", 0o755, "syntax", "script_syntax", "Syntax error"),
    ("Python syntax", b"#!/usr/bin/env python3\ndef f(:\n", 0o755, "syntax", "script_syntax", "SyntaxError"),
]


@pytest.mark.parametrize(
    ("content", "mode", "check", "reason", "words"), [s[1:] for s in SCRIPTS], ids=[s[0] for s in SCRIPTS]
)
def test_a_script_that_cannot_start_is_refused(
    place: Path, content: bytes, mode: int, check: str, reason: str, words: str
) -> None:
    path = write(place / "run.sh", content, mode)
    python_dir = str(Path(sys.executable).parent)

    found = outcome(place, [str(path)], path=f"{PATH}:{python_dir}")

    assert found[:2] == (check, reason)
    assert words in found[2]


GOOD: list[tuple[str, bytes]] = [
    ("bash", b"#!/bin/bash\na=(1 2)\nexec sleep 1\n"),
    ("bash with an option", b"#! /bin/bash -e\ntrue\n"),
    ("env", b"#!/usr/bin/env bash\ntrue\n"),
    ("env -S", b"#!/usr/bin/env -S FOO=1 bash -e\ntrue\n"),
    ("reads stdin and loops", b"#!/bin/sh\nwhile read line; do :; done\n"),
]


@pytest.mark.parametrize("content", [content for _, content in GOOD], ids=[name for name, _ in GOOD])
def test_a_script_that_can_start_is_not_refused(place: Path, content: bytes) -> None:
    path = write(place / "run.sh", content)

    assert outcome(place, [str(path)]) == ("", None, "")


def test_a_script_is_never_run_by_the_check(place: Path) -> None:
    path = write(place / "run.sh", b"#!/bin/bash\ntouch ran\n")

    checks(place, command=[str(path)])

    assert not (place / "ran").exists()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["/nowhere/run.sh"], "command_not_found"),
        (["nosuchcommand9"], "command_not_found"),
        ([], "command_not_found"),
        (["/"], "exec_not_permitted"),
        (["bash", "nowhere.sh"], "file_missing"),
        (["python3", "-u", "nowhere.py"], "file_missing"),
    ],
)
def test_a_command_that_is_not_there_is_named(place: Path, command: list[str], reason: str) -> None:
    python_dir = str(Path(sys.executable).parent)

    assert outcome(place, command, path=f"{PATH}:{python_dir}")[:2] == ("command", reason)


def test_a_dangling_symlink_is_told_from_a_missing_file(place: Path) -> None:
    (place / "run.sh").symlink_to("/nowhere/else")

    assert "symlink to /nowhere/else" in outcome(place, [str(place / "run.sh")])[2]


def test_the_script_given_to_a_shell_is_checked_too(place: Path) -> None:
    write(place / "run.sh", b"fi\n", 0o644)

    assert outcome(place, ["bash", "-e", "run.sh"])[:2] == ("syntax", "script_syntax")


def test_a_command_string_is_no_script(place: Path) -> None:
    assert outcome(place, ["bash", "-c", "nowhere.sh"]) == ("", None, "")


def test_the_program_loader_of_another_system_is_missed(place: Path) -> None:
    head = bytearray(Path("/bin/true").read_bytes())
    loader = script.elf_loader(bytes(head[:4096]))
    assert loader
    at = head.index(loader.encode())
    head[at : at + 5] = b"/nowh"
    path = write(place / "program", bytes(head))

    found = outcome(place, [str(path)])

    assert found[:2] == ("interpreter", "bad_interpreter")
    assert "program loader /nowh" in found[2]


def test_places_that_are_missing_are_named(place: Path) -> None:
    found = checks(place, cwd="/nowhere", log="/nowhere/run.log", preflight={"files": ["/models/none", str(place)]})

    assert [found[each]["reason"] for each in ("cwd", "log_dir", "files")] == [
        "cwd_missing",
        "log_dir_missing",
        "file_missing",
    ]


def test_space_that_is_asked_for_must_be_there(place: Path) -> None:
    free = shutil.disk_usage(place).free >> 30

    assert checks(place, preflight={"free_gib": free + 100})["free_space"]["reason"] == "disk_space_low"
    assert checks(place, preflight={"free_gib": 0.01})["free_space"]["state"] == "ok"


def test_modules_are_looked_for_by_the_python_that_run_sh_names(place: Path) -> None:
    fake = write(place / "python3.9", b'#!/bin/sh\nexec /usr/bin/env python3 "$@"\n')
    path = write(place / "run.sh", f"#!/bin/bash\nexec {fake} -u train.py --x\n".encode())
    python_dir = str(Path(sys.executable).parent)
    given: dict[str, Any] = {"command": [str(path)], "path": f"{python_dir}:{PATH}"}

    there = checks(place, preflight={"modules": ["json"]}, **given)["modules"]
    missing = checks(place, preflight={"modules": ["json", "no_such_module"]}, **given)["modules"]

    assert there["state"] == "ok"
    assert str(fake) in there["detail"]
    assert (missing["state"], missing["reason"]) == ("refuse", "missing_module")
    assert "no_such_module" in missing["detail"]


def test_a_module_missed_by_a_guessed_python_is_only_a_warning(place: Path) -> None:
    path = write(place / "run.sh", b"#!/bin/bash\nconda activate x\nlaunch_it\n")
    python_dir = str(Path(sys.executable).parent)

    found = checks(place, command=[str(path)], path=f"{python_dir}:{PATH}", preflight={"modules": ["no_such_module"]})[
        "modules"
    ]

    assert (found["state"], found["reason"]) == ("warn", "missing_module")


def test_a_state_directory_that_cannot_be_used_is_named(place: Path) -> None:
    (place / "state").write_text("a file")

    assert checks(place)["state_dir"]["reason"] == "state_dir_unusable"
    assert checks(place, action="stop")["state_dir"]["reason"] == "state_dir_unusable"


def test_gpus_are_counted_and_foreign_memory_named(place: Path) -> None:
    gib = 1 << 30
    gpus = [
        {"i": 0, "used": 2 * gib, "procs": [[os.getpid(), gib]]},
        {"i": 1, "used": 71 * gib, "procs": []},
        {"i": 2, "used": 0, "procs": []},
    ]
    owners = [{"i": 0, "owner": "other"}, {"i": 1, "owner": "nobody"}, {"i": 2, "owner": "free"}]
    world: dict[str, Any] = {"sample": {"source": "nvml", "gpus": gpus}, "judged": {"gpus": owners}}
    spec = {"target": "t", "command": ["/bin/true"], "cwd": str(place), "gpus": {"expected": 8}}

    found = preflight.checks(
        preflight.World(spec, str(place / "l"), {"PATH": PATH}, str(place), world["sample"], world["judged"], []),
        "restart",
    )

    gpus_check = next(check for check in found if check["id"] == "gpus")
    foreign = [check["detail"] for check in found if check["id"] == "gpu_memory_foreign"]
    assert (gpus_check["state"], gpus_check["detail"]) == ("refuse", "3 of 8 GPUs are listed by nvml")
    assert len(foreign) == 2
    assert f"pid {os.getpid()}" in foreign[0]
    assert "1.0 GiB" in foreign[0]
    assert "no process that can be seen" in foreign[1]


def test_memory_whose_holder_cant_be_told_is_never_called_free(place: Path) -> None:
    gpus = [{"i": 0, "used": 71 << 30, "procs": []}, {"i": 1, "used": None, "procs": None}]
    owners = [{"i": 0, "owner": "unknown", "why": "nobody is listed"}, {"i": 1, "owner": "unknown", "why": ""}]
    world: dict[str, Any] = {"sample": {"source": "nvml", "gpus": gpus}, "judged": {"gpus": owners}}

    found = preflight.gpu_memory(
        preflight.World({"target": "t"}, "", {}, str(place), world["sample"], world["judged"], [])
    )

    assert [(check["state"], check["detail"]) for check in found] == [
        ("warn", "GPU 0: whose 71 GiB is can't be told: nobody is listed"),
        ("warn", "GPU 1: whose memory is can't be told: no process is listed"),
    ]


def test_a_check_that_hangs_is_bounded_and_a_warning(place: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(preflight, "CHECK_S", 0.3)
    os.mkfifo(place / "fifo")

    def hang(world: preflight.World) -> None:
        (place / "fifo").read_bytes()

    monkeypatch.setattr(preflight, "_cwd", hang)

    found = checks(place)["cwd"]

    assert (found["state"], found["detail"]) == ("warn", "no answer in 0.3 s")
