"""The rows of the launch table that preflight answers for, on real files, mounts and users."""

import errno
import os
import pwd
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from console.host import preflight, script
from tests.host.mounts import mount, with_own_mounts
from tests.host.preflighting import PATH, checks, outcome, write
from tests.waiting import until

Answer = tuple[str, str | None, str]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A place that any user may enter, with a log directory that any user may write to."""
    found = Path("/tmp") / f"dflash-test-{os.getpid()}"
    found.mkdir(mode=0o755)
    found.chmod(0o755)
    (found / "logs").mkdir()
    (found / "logs").chmod(0o777)
    yield found
    shutil.rmtree(found)


def as_nobody(work: Callable[[], Any]) -> Any:
    def become() -> Any:
        os.setgroups([])
        os.setuid(pwd.getpwnam("nobody").pw_uid)
        return work()

    return with_own_mounts(become)


def test_l02_a_command_that_does_not_exist(place: Path) -> None:
    assert outcome(place, ["/nowhere/run.sh"])[:2] == ("command", "command_not_found")


@pytest.mark.parametrize(("command", "check"), [(["./sub"], "command"), (["bash", "sub"], "interpreter")])
def test_l02_a_directory_is_no_command(place: Path, command: list[str], check: str) -> None:
    (place / "sub").mkdir()

    found = outcome(place, command)

    assert found[:2] == (check, "exec_not_permitted")
    assert "is a directory" in found[2]


def test_l03_a_script_that_is_not_executable(place: Path) -> None:
    found = outcome(place, [str(write(place / "run.sh", b"#!/bin/bash\n", 0o644))])

    assert found == ("command", "exec_not_permitted", f"{place}/run.sh is not executable (mode 644); chmod +x it")


def test_l03_a_script_that_only_others_may_execute(open_place: Path) -> None:
    path = write(open_place / "run.sh", b"#!/bin/bash\n", 0o744)

    found = as_nobody(lambda: outcome(open_place, [str(path)]))

    assert found[:2] == ["command", "exec_not_permitted"]


INTERPRETERS: list[tuple[str, bytes, str, str]] = [
    ("missing", b"#!/bin/nosuch\n", "bad_interpreter", "/bin/nosuch"),
    ("env X missing", b"#!/usr/bin/env nosuch9\n", "bad_interpreter", "nosuch9"),
    ("env -S X missing", b"#!/usr/bin/env -S A=1 nosuch9 -x\n", "bad_interpreter", "nosuch9"),
    ("a directory", b"#!/usr\n", "exec_not_permitted", "/usr is a directory"),
    ("beyond what the kernel reads", b"#!/" + b"x/" * 130 + b"bin/python\n", "bad_interpreter", "256 bytes"),
]


@pytest.mark.parametrize(("content", "reason", "words"), [row[1:] for row in INTERPRETERS], ids=lambda v: str(v)[:20])
def test_l04_an_interpreter_that_cannot_be(place: Path, content: bytes, reason: str, words: str) -> None:
    found = outcome(place, [str(write(place / "run.sh", content))])

    assert found[:2] == ("interpreter", reason)
    assert words in found[2]


def test_l04_a_script_may_be_an_interpreter_but_not_one_that_exec_refuses(place: Path) -> None:
    good = write(place / "good", b"#!/bin/bash\n")
    bad = write(place / "bad", b"echo no first line\n")
    lost = write(place / "lost", b"#!/bin/nosuch\n")

    answers = [outcome(place, [str(write(place / "run.sh", b"#!%s\n" % bytes(each)))]) for each in (good, bad, lost)]

    assert [answer[1] for answer in answers] == [None, "exec_format", "bad_interpreter"]
    assert [_exec_says(place / "run.sh", interpreter) for interpreter in (good, bad, lost)] == ["", "ENOEXEC", "ENOENT"]


def _exec_says(script: Path, interpreter: Path) -> str:
    """What the kernel itself makes of it."""
    write(script, b"#!%s\n" % bytes(interpreter))
    try:
        subprocess.run([script], check=False, timeout=20)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return ""


@pytest.mark.parametrize("first", [b"#!/bin/bash", b"#!/bin/sh", b"#!/usr/bin/env bash"])
def test_l05_a_shell_syntax_error_is_shown_with_its_line(place: Path, first: bytes) -> None:
    found = outcome(place, [str(write(place / "run.sh", first + b"\necho a\nif true; then\n"))])

    assert found[:2] == ("syntax", "script_syntax")
    assert "run.sh" in found[2]
    assert "line" in found[2] or ": 4:" in found[2] or ": 3:" in found[2]


def test_l06_places_that_are_missing_or_closed(open_place: Path) -> None:
    closed = open_place / "closed"
    closed.mkdir(mode=0o700)

    missing = checks(open_place, cwd="/nowhere", log="/nowhere/run.log")
    refused = as_nobody(lambda: {name: [c["state"], c["reason"]] for name, c in _closed(open_place, closed).items()})

    assert [missing[each]["reason"] for each in ("cwd", "log_dir")] == ["cwd_missing", "log_dir_missing"]
    assert refused == {"cwd": ["refuse", "cwd_missing"], "log_dir": ["refuse", "log_dir_unwritable"]}


def _closed(place: Path, closed: Path) -> dict[str, dict[str, Any]]:
    found = checks(place, cwd=str(closed), log=str(closed / "run.log"))
    return {each: found[each] for each in ("cwd", "log_dir")}


def test_l06_a_log_directory_on_a_read_only_filesystem(place: Path) -> None:
    def work() -> list[Any]:
        mount("tmpfs", place / "mount", "size=1m,ro")
        check = checks(place, log=str(place / "mount" / "run.log"))["log_dir"]
        return [check["state"], check["reason"], check["detail"]]

    assert with_own_mounts(work) == [
        "refuse",
        "log_dir_unwritable",
        f"{place}/mount lies on a read-only filesystem",
    ]


@pytest.mark.parametrize(
    ("options", "fill", "state"),
    [("size=64k", True, "refuse"), ("size=40m", False, "warn"), ("size=40m", True, "refuse")],
)
def test_l07_a_small_or_full_disk_for_the_log(place: Path, options: str, fill: bool, state: str) -> None:
    def work() -> list[Any]:
        mount("tmpfs", place / "mount", options)
        if fill:
            with (place / "mount" / "fill").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(place / "mount").free)
        check = checks(place, log=str(place / "mount" / "run.log"))["free_space"]
        return [check["state"], check["reason"]]

    assert with_own_mounts(work) == [state, "disk_space_low"]


def test_l07_a_disk_without_free_inodes(place: Path) -> None:
    def work() -> list[Any]:
        mount("tmpfs", place / "mount", "size=40m,nr_inodes=2")
        (place / "mount" / "only").touch()
        check = checks(place, log=str(place / "mount" / "run.log"))["free_space"]
        return [check["state"], "inode" in check["detail"]]

    assert with_own_mounts(work) == ["refuse", True]


def test_l18_who_holds_gpu_memory_is_named_with_pid_owner_and_amount(place: Path) -> None:
    gpus = [{"i": 3, "used": 2 << 30, "procs": [[os.getpid(), 1288490188]]}]
    judged = {"gpus": [{"i": 3, "owner": "other"}]}

    check = checks(place, sample={"source": "nvml", "gpus": gpus}, judged=judged)["gpu_memory_foreign"]

    user = pwd.getpwuid(os.getuid()).pw_name
    comm = Path("/proc/self/comm").read_text().strip()
    assert check["state"] == "warn"
    assert check["detail"] == f"GPU 3: pid {os.getpid()} ({comm}, {user}) holds 1.2 GiB"


@pytest.mark.parametrize("action", ["restart", "stop"])
def test_l36_a_state_directory_that_is_read_only_or_full(place: Path, action: str) -> None:
    def work() -> list[Any]:
        answers = []
        for options in ("size=1m,ro", "size=64k"):
            mount("tmpfs", place / "state", options)
            check = checks(place, action=action)["state_dir"]
            answers.append([check["state"], check["reason"], check["detail"].rsplit(": ")[-1]])
            subprocess.run(["umount", str(place / "state")], check=True)
        return answers

    assert with_own_mounts(work) == [
        ["refuse", "state_dir_unusable", "Read-only file system"],
        ["refuse", "state_dir_unusable", "No space left on device"],
    ]


@pytest.mark.parametrize(
    ("conf", "state", "words"),
    [
        ("[Login]\nKillUserProcesses=yes\n", "refuse", "loginctl enable-linger nobody"),
        ("[Login]\nKillUserProcesses=no\n", "ok", "KillUserProcesses=no"),
        ("[Login]\n#KillUserProcesses=yes\n", "warn", "can't be read"),
        (None, "ok", "no systemd"),
    ],
    ids=["kills", "spares", "not told", "no systemd"],
)
def test_l37_l56_a_user_whose_processes_end_with_the_login(
    open_place: Path, conf: str | None, state: str, words: str
) -> None:
    def work() -> list[Any]:
        mount("tmpfs", Path("/run"), "size=1m,mode=755")
        if conf is not None:
            Path("/run/systemd/system").mkdir(parents=True)
            mount("tmpfs", Path("/etc/systemd"), "size=1m,mode=755")
            Path("/etc/systemd/logind.conf").write_text(conf)
        os.setgroups([])
        os.setuid(pwd.getpwnam("nobody").pw_uid)
        check = checks(open_place)["survives_logout"]
        return [check["state"], check["reason"], check["detail"]]

    found = with_own_mounts(work)

    assert found[0] == state
    assert words in found[2]
    assert found[1] == (None if state == "ok" else "dies_at_logout")


def test_l37_root_is_not_ended_at_logout(place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")

    assert checks(place)["survives_logout"]["state"] == "ok"


FORMATS: list[tuple[str, bytes, str, str, str]] = [
    ("no #! line", b"echo hello\n", "interpreter", "exec_format", "/bin/bash"),
    ("CRLF", b"#!/bin/bash\r\necho\r\n", "interpreter", "crlf_script", "Windows"),
    ("BOM", b"\xef\xbb\xbf#!/bin/bash\n", "interpreter", "exec_format", "remove the first three bytes"),
    ("empty", b"", "interpreter", "exec_format", "empty"),
]


@pytest.mark.parametrize(("content", "check", "reason", "words"), [r[1:] for r in FORMATS], ids=[r[0] for r in FORMATS])
def test_l51_a_script_in_no_form_that_exec_takes(
    place: Path, content: bytes, check: str, reason: str, words: str
) -> None:
    found = outcome(place, [str(write(place / "run.sh", content))])

    assert found[:2] == (check, reason)
    assert words in found[2]


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "exec_format"), (b"\xef\xbb\xbfecho\n", "exec_format"), (b"echo a\r\necho b\r\n", "crlf_script")],
    ids=["empty", "BOM", "CRLF"],
)
def test_l51_the_same_read_by_a_shell_is_a_warning(place: Path, content: bytes, reason: str) -> None:
    write(place / "run.sh", content)

    check = checks(place, command=["bash", "run.sh"])["syntax"]

    assert (check["state"], check["reason"]) == ("warn", reason)


def test_l51_windows_line_ends_do_no_harm_in_python(place: Path) -> None:
    write(place / "run.py", b"print(1)\r\nprint(2)\r\n")

    assert checks(place, command=[sys.executable, "run.py"])["syntax"]["state"] == "ok"


@pytest.mark.parametrize("what", ["script", "interpreter"])
def test_l51_a_noexec_mount_is_named(place: Path, what: str) -> None:
    def work() -> Answer:
        mount("tmpfs", place / "mount", "size=4m,noexec")
        shutil.copy("/bin/bash", place / "mount" / "bash")
        folder = place / "mount" if what == "script" else place
        first = b"#!/bin/bash\n" if what == "script" else b"#!%s/mount/bash\n" % bytes(place)
        return outcome(place, [str(write(folder / "run.sh", first))])

    found = with_own_mounts(work)

    assert found[:2] == ["command" if what == "script" else "interpreter", "exec_not_permitted"]
    assert "noexec" in found[2]


@pytest.mark.parametrize("wide", [True, False], ids=["64 bit", "32 bit"])
def test_the_loader_of_an_elf_file_is_found(wide: bool) -> None:
    name = b"/lib/ld-test.so\0"
    if wide:
        head = struct.pack("<4sBBB9xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
        table = struct.pack("<IIQQQQQQ", 3, 4, 120, 0, 0, len(name), len(name), 1)
    else:
        head = struct.pack("<4sBBB9xHHIIIIIHHHHHH", b"\x7fELF", 1, 1, 1, 2, 3, 1, 0, 52, 0, 0, 52, 32, 1, 0, 0, 0)
        table = struct.pack("<IIIIIIII", 3, 84, 0, 0, len(name), len(name), 4, 1)

    assert script.elf_loader(head + table + name + bytes(64)) == "/lib/ld-test.so"


def test_a_program_for_another_processor(place: Path) -> None:
    head = bytearray(Path("/bin/true").read_bytes())
    head[18:20] = (0xF3).to_bytes(2, "little")  # RISC-V

    found = outcome(place, [str(write(place / "program", bytes(head)))])

    assert found[:2] == ("interpreter", "exec_format")
    assert "another processor" in found[2]


def test_a_command_that_is_being_written_is_refused_until_it_is_closed(place: Path) -> None:
    path = write(place / "run.sh", b"#!/bin/bash\n")
    with path.open("ab"):
        busy = outcome(place, [str(path)])
        said = _exec_says_busy(path)
    free = outcome(place, [str(path)])

    if not said:
        pytest.skip("this kernel executes what is being written")
    assert busy[:2] == ("command", "exec_failed")
    assert f"pid {os.getpid()} " in busy[2]
    assert free == ("", None, "")


def _exec_says_busy(path: Path) -> bool:
    try:
        subprocess.run([path], check=False, timeout=20, close_fds=True)
    except OSError as error:
        return error.errno == errno.ETXTBSY
    return False


def test_a_writer_of_another_name_is_found_by_the_kernels_count(place: Path) -> None:
    path = write(place / "run.sh", b"#!/bin/bash\n")
    os.link(path, place / "other")
    with (place / "other").open("ab"):
        found = outcome(place, [str(path)])

    assert found[:2] == ("command", "exec_failed")
    assert "can't be seen" in found[2]


def test_a_reader_of_the_command_is_no_writer(place: Path) -> None:
    path = write(place / "run.sh", b"#!/bin/bash\nread line\n")
    running = subprocess.Popen([path], stdin=subprocess.PIPE)
    try:
        until(lambda: b"run.sh" in Path(f"/proc/{running.pid}/cmdline").read_bytes(), 60)

        assert outcome(place, [str(path)]) == ("", None, "")
    finally:
        running.kill()
        running.wait()
        assert running.stdin is not None
        running.stdin.close()


def test_every_check_of_the_plan_is_named_once_and_labelled(place: Path) -> None:
    spec = {"target": "t", "command": ["/bin/true"], "cwd": str(place), "preflight": {"modules": ["json"]}}
    world = preflight.World(spec, str(place / "logs" / "l"), {"PATH": PATH}, str(place / "s"), {}, {}, [])

    found = preflight.checks(world, "restart")

    assert [check["id"] for check in found] == [
        "command",
        "interpreter",
        "cwd",
        "log_dir",
        "free_space",
        "modules",
        "gpus",
        "lock",
        "state_dir",
        "survives_logout",
    ]
    assert all(check["label"] and check["state"] in ("ok", "warn", "refuse") for check in found)
