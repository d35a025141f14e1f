"""The helper outside of a container: lines of the kernel log, cgroups, pids; and the whole of it as a process."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.host import kernlog, outgroup, outpids, procfs
from console.link.payload import build_payload, entry_line

_OOM = (
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=lxc.payload.210,mems_allowed=0,"
    "oom_memcg=/lxc.payload.210,task_memcg=/lxc.payload.210/system.slice/x.service,task=pt_main,thread,pid=24282,uid=0"
)
_GLOBAL = (
    "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,"
    "task_memcg=/lxc.payload.200/.lxc,task=python3,pid=77,uid=100000"
)


# -- the kernel log ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "NVRM: Xid (PCI:0000:3b:00): 79, pid=4411, name=python3, GPU has fallen off the bus.",
            {"kind": "xid", "bus": "0000:3b:00", "xid": 79, "pid": 4411, "name": "python3"},
        ),
        (
            "NVRM: Xid (PCI:0000:b3:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked",
            {"kind": "xid", "bus": "0000:b3:00", "xid": 63, "pid": None, "name": ""},
        ),
        (
            "NVRM: Xid (PCI:0000:1b:00): 31, Ch 00000010, intr 10000000",
            {"kind": "xid", "bus": "0000:1b:00", "xid": 31, "pid": None, "name": ""},
        ),
        (
            _OOM,
            {
                "kind": "oom",
                "pid": 24282,
                "name": "pt_main,thread",
                "group": "/lxc.payload.210/system.slice/x.service",
                "limit": "/lxc.payload.210",
            },
        ),
        (_GLOBAL, {"kind": "oom", "pid": 77, "name": "python3", "group": "/lxc.payload.200/.lxc", "limit": ""}),
        (
            "Memory cgroup out of memory: Killed process 9 (run.sh) total-vm:68600kB, anon-rss:64896kB",
            {"kind": "oom", "pid": 9, "name": "run.sh", "group": "", "limit": "?"},
        ),
        ("usb 1-1: new high-speed USB device number 2", None),
    ],
)
def test_lines_of_the_kernel_log_are_read(text: str, told: dict[str, Any] | None) -> None:
    assert kernlog.parse(text) == told


@pytest.fixture
def log(tmp_path: Path) -> Iterator[tuple[kernlog.KernelLog, int]]:
    """A kernel log that hands out a record at a time, as the real one does, and where to write records."""
    fifo = tmp_path / "kmsg"
    os.mkfifo(fifo)
    known = kernlog.KernelLog(str(fifo))
    writer = os.open(fifo, os.O_WRONLY)
    yield known, writer
    known.close()
    os.close(writer)


def _record(writer: int, age_s: float, text: str) -> None:
    microseconds = int((time.monotonic() - age_s) * 1e6)
    os.write(writer, f"6,1,{microseconds},-;{text}\n SUBSYSTEM=pci\n".encode())


def test_a_kill_that_the_kernel_names_twice_is_told_once_with_its_time(log: tuple[kernlog.KernelLog, int]) -> None:
    known, writer = log
    before = procfs.boottime()
    _record(writer, 5.0, _OOM)
    after = procfs.boottime()
    (first,) = known.read()
    _record(writer, 5.0, "Memory cgroup out of memory: Killed process 24282 (pt_main,thread) total-vm:1kB")

    assert known.read() == []
    assert before - 5.5 < first["bt"] < after - 4.5
    assert first["text"] == _OOM


def test_lines_older_than_ten_minutes_are_passed_over(log: tuple[kernlog.KernelLog, int]) -> None:
    known, writer = log
    _record(writer, 601.0, _OOM)

    assert known.read() == []


def test_a_kernel_log_that_is_not_there_is_told_in_words(tmp_path: Path) -> None:
    known = kernlog.KernelLog(str(tmp_path / "none"))

    assert known.read() == []
    assert known.why == "the kernel log can't be read: No such file or directory"


@pytest.mark.parametrize(
    ("group", "inner", "is_meant"),
    [
        ("/lxc.payload.210", {}, True),
        ("/lxc.payload.21", {}, False),
        ("", {}, False),
        ("", {24282: (8, 1)}, True),
    ],
)
def test_kills_are_of_a_container_by_cgroup_or_by_pid(
    group: str, inner: dict[int, tuple[int, int]], is_meant: bool
) -> None:
    note = kernlog.parse(_OOM)

    assert note is not None
    assert kernlog.concerns(note, group, inner) == is_meant


# -- cgroups ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[str]]:
    """What /proc/PID/cgroup says, by pid."""
    lines: dict[int, list[str]] = {}
    monkeypatch.setattr(procfs, "cgroup_lines", lambda pid: lines.get(pid, []))
    return lines


def _files(folder: Path, **texts: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_the_container_of_cgroup_v2_is_what_init_and_agent_have_in_common(
    processes: dict[int, list[str]], tmp_path: Path
) -> None:
    processes.update({1: ["0::/lxc.payload.201/init.scope"], 2: ["0::/lxc.payload.201/.lxc"]})
    _files(
        tmp_path / "lxc.payload.201",
        cgroup__events="populated 1\nfrozen 1\n",
        memory__max="1073741824\n",
        memory__current="1000\n",
        memory__events="low 0\noom 3\noom_kill 2\n",
    )

    groups = outgroup.Groups(1, 2, str(tmp_path))

    assert groups.memory_name == "/lxc.payload.201"
    assert groups.look() == {"frozen": True, "limit": 1 << 30, "used": 1000, "oom_kills": 2}


def test_the_tightest_limit_above_counts_in_cgroup_v2(processes: dict[int, list[str]], tmp_path: Path) -> None:
    processes.update({1: ["0::/pods/ct"], 2: ["0::/pods/ct"]})
    _files(tmp_path / "pods", cgroup__events="frozen 0\n", memory__max="4096\n")
    _files(tmp_path / "pods/ct", cgroup__events="frozen 0\n", memory__max="max\n")

    assert outgroup.Groups(1, 2, str(tmp_path)).look() == {
        "frozen": False,
        "limit": 4096,
        "used": None,
        "oom_kills": None,
    }


def test_cgroup_v1_states_no_limit_as_a_huge_number(processes: dict[int, list[str]], tmp_path: Path) -> None:
    lines = ["4:memory:/lxc/200", "6:freezer:/lxc/200", "0::/lxc/200"]
    processes.update({1: lines, 2: lines})
    _files(
        tmp_path / "memory/lxc/200",
        memory__stat="cache 1\nhierarchical_memory_limit 9223372036854771712\n",
        memory__usage_in_bytes="7\n",
        memory__oom_control="oom_kill_disable 0\nunder_oom 0\noom_kill 4\n",
    )
    _files(tmp_path / "freezer/lxc/200", freezer__state="FREEZING\n")

    assert outgroup.Groups(1, 2, str(tmp_path)).look() == {"frozen": False, "limit": None, "used": 7, "oom_kills": 4}


def test_a_container_without_a_cgroup_of_its_own_tells_nothing(processes: dict[int, list[str]], tmp_path: Path) -> None:
    processes.update({1: ["0::/"], 2: ["0::/"]})

    nothing = dict.fromkeys(("frozen", "limit", "used", "oom_kills"))
    assert outgroup.Groups(1, 2, str(tmp_path)).look() == nothing


# -- pids -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "label"),
    [
        (["0::/lxc.payload.201/init.scope"], "container 201"),
        (["4:memory:/lxc/200/x"], "container 200"),
        (["0::/system.slice/docker-0123456789abcdef.scope"], "container 0123456789ab"),
        (["0::/user.slice"], ""),
    ],
)
def test_another_container_is_named_by_its_cgroup(lines: list[str], label: str) -> None:
    assert outpids.label_of(lines) == label


def test_a_namespace_that_no_process_here_has_is_another_machine() -> None:
    with pytest.raises(outpids.NotFound, match="the prefix may lead to another machine"):
        outpids.Container("pid:[1]", (1, 1))


def test_a_prefix_into_no_namespace_needs_the_very_agent_to_be_here() -> None:
    own = procfs.read_stat(os.getpid())
    assert own is not None
    here = procfs.pid_namespace_here()

    assert not outpids.Container(here, (own.pid, own.start)).is_apart
    with pytest.raises(outpids.NotFound, match="no process of this machine"):
        outpids.Container(here, (own.pid, own.start + 1))


def test_a_pid_of_nobody_is_gone_and_one_of_ours_is_looked_up() -> None:
    own = procfs.read_stat(os.getpid())
    assert own is not None
    found = outpids.Container(procfs.pid_namespace_here(), (own.pid, own.start))
    ended = subprocess.Popen(["true"])
    ended.wait()

    assert found.look(ended.pid) == {"pid": ended.pid, "place": "gone"}
    told = found.look(own.pid)
    assert (told["place"], told["inner"], told["uvm"]) == ("container", own.pid, False)


# -- the helper as a process ------------------------------------------------------------------------------------------


def _helper(python: str = sys.executable, user: int | None = None) -> subprocess.Popen[bytes]:
    program = entry_line("outside") + build_payload()
    read = f"while len(t)<{len(program)}:t+=sys.stdin.buffer.raw.read({len(program)}-len(t))"
    words = [python, "-Ic", f"import sys;t=b''\n{read}\nexec(t)"]
    helper = subprocess.Popen(words, stdin=-1, stdout=-1, stderr=-1, bufsize=0, user=user)
    assert helper.stdin is not None
    rest = memoryview(program)
    while rest:
        rest = rest[helper.stdin.write(rest) :]
    return helper


def _said(helper: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert helper.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        part = helper.stdout.read(1)
        assert part, helper.communicate()
        line += part
    fields: dict[str, Any] = json.loads(line)
    return fields


def _ask(helper: subprocess.Popen[bytes], **fields: Any) -> None:
    assert helper.stdin is not None
    helper.stdin.write(json.dumps(fields).encode() + b"\n")


def _outside(helper: subprocess.Popen[bytes], space: str, **fields: Any) -> dict[str, Any]:
    _ask(helper, op="outside", id=1, agent={"pid": 1, "start": 1}, pid_ns=space, pids=[1], tree=[], **fields)
    assert _said(helper) == {"re": 1, "ok": True, "data": {}}
    told = _said(helper)
    assert told["ev"] == "outside"
    return told


def test_a_helper_that_finds_no_container_says_why_and_lives_on() -> None:
    helper = _helper()
    assert _said(helper)["pid_ns"] == procfs.pid_namespace_here()

    told = _outside(helper, "pid:[1]")
    _ask(helper, op="ping", id=2)

    assert (told["pids"], told["container"]) == ([], None)
    assert "another machine" in told["cannot"]["container"]
    assert _said(helper)["re"] == 2
    _ask(helper, op="bye", id=3)
    assert helper.wait(20) == 0
    helper.communicate()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
@pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="needs a Python that everybody may run")
def test_a_helper_that_is_not_root_says_what_it_may_not_see() -> None:
    helper = _helper("/usr/bin/python3", user=65534)
    _said(helper)

    told = _outside(helper, "pid:[1]")

    assert told["cannot"]["container"] == "we are not root there, and may not look at processes of others"
    restricted = Path("/proc/sys/kernel/dmesg_restrict").read_text().strip() == "1"
    if restricted:
        assert told["cannot"]["kernel"].startswith("the kernel log can't be read: Operation not permitted")
    helper.communicate()
    assert helper.returncode == 0, "the end of its input is its end"
