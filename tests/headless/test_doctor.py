"""`doctor` as scripts and people meet it: stable ids, one line each, and the first failure's exit code."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from console.config import Target
from console.engine.examination import IDS, Finding, understood
from console.headless.doctor import exit_code, line, summary
from console.reasons import Exit, Reason
from tests.headless.running import Console, call, examined

LINE = re.compile(r"(ok  |warn|fail|\?   ) (\S+) +\S.*")


def ids(out: str) -> list[str]:
    found = [LINE.fullmatch(each) for each in out.splitlines()[:-1]]
    assert all(found), out
    return list(dict.fromkeys(each[2] for each in found if each))


def states(out: str) -> dict[str, str]:
    return {found[2]: found[1].strip() for each in out.splitlines()[:-1] if (found := LINE.fullmatch(each))}


def here(tmp_path: Path, *words: str) -> list[str]:
    """Flags of a target that is this machine, with its state in a directory of the test."""
    flags = ["--host", "local", "--state-dir", str(tmp_path / "state"), "--command", "/bin/true", "--cwd", "/"]
    return ["doctor", "--config", str(tmp_path / "none.toml"), *flags, "--log", f"{tmp_path}/{{name}}.log", *words]


def test_every_check_has_one_line_and_all_is_well_on_a_good_host(console: Console) -> None:
    assert console.restart().code == 0

    done = examined(lambda: console("doctor"))

    assert done.code == 0, done.out
    assert ids(done.out) == list(IDS)
    assert set(states(done.out).values()) == {"ok"}
    assert re.search(
        r"^ok   ssh\.host +demo@127\.0\.0\.1:\d+  SSH-2\.0-\S+  \d+ ms  host key \S+ SHA256:", done.out, re.M
    )
    assert re.search(r"^ok   exec\.enter .*returns exit codes \(killed child -> 137\)$", done.out, re.M)
    assert re.search(r"^ok   gpu\.nvml +8 x NVIDIA H200, driver 550", done.out, re.M)
    assert re.search(r"^ok   log\.format +dflash: \d+ of \d+ last lines understood in /.*\.log$", done.out, re.M)
    assert re.search(r"^ok   plan\.preflight +(\d+) of \1 checks would pass$", done.out, re.M)
    assert re.fullmatch(r"12 ok, 0 warnings, 0 failed \(\d+\.\d s\); code 0", done.out.splitlines()[-1])


def test_doctor_leaves_the_run_alone(console: Console) -> None:
    run = console.restart("--json").json

    console("doctor")

    assert console("status", "--json").json["pid"] == run["pid"]


def test_json_is_one_object_with_a_check_an_id(console: Console) -> None:
    done = console("doctor", "--json")

    answer = done.json
    assert next(iter(answer)) == "schema"
    assert {"target", "run", "id", "at", "data_age_s"} <= set(answer)
    assert list(dict.fromkeys(each["id"] for each in answer["checks"])) == list(IDS)
    assert answer["exit_code"] == done.code
    assert all(each["took_s"] >= 0 for each in answer["checks"])
    assert all(each["state"] in ("ok", "warn", "fail") or each["why"] for each in answer["checks"])


def test_a_log_that_is_not_there_is_not_known_rather_than_well(tmp_path: Path) -> None:
    done = examined(lambda: call(*here(tmp_path)))

    assert states(done.out)["log.format"] == "?"
    assert "there is no log yet" in done.out


def test_a_log_of_no_known_format_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "old.log").write_text("nothing to see\n" * 50)

    done = examined(lambda: call(*here(tmp_path)))

    assert re.search(
        r"^warn log\.format +no known format: 0 of 50 last lines understood in .* \| next: ", done.out, re.M
    )
    assert done.code == 6


def test_a_plan_that_would_be_refused_is_a_failure_of_the_host(tmp_path: Path) -> None:
    done = examined(lambda: call(*here(tmp_path, "--command", "/nowhere/run.sh")))

    found = re.search(r"^fail plan\.preflight +\d+ of \d+ checks would pass; command: /nowhere/run.sh", done.out, re.M)
    assert found, done.out
    assert done.code == 3


def test_a_state_directory_that_cannot_be_used_fails_first(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")

    done = examined(lambda: call(*here(tmp_path)))

    assert re.search(r"^fail state\.dir .*\| next: make room", done.out, re.M), done.out
    assert done.code == 3


@pytest.mark.parametrize(
    ("words", "failed", "code", "detail"),
    [
        (["--exec", "/nowhere/pct exec 200 --"], "exec.enter", 31, "No such file"),
        (["--exec", "sh -c 'echo CT 200 not running >&2; exit 255'"], "exec.enter", 31, "CT 200 not running"),
        (["--python", "/nowhere/python3"], "host.python", 31, "/nowhere/python3"),
    ],
    ids=["wrapper missing", "container stopped", "python missing"],
)
def test_a_failure_on_the_way_leaves_the_rest_not_known(
    tmp_path: Path, words: list[str], failed: str, code: int, detail: str
) -> None:
    done = examined(lambda: call(*here(tmp_path, *words)))

    found = states(done.out)
    assert done.code == code, done.out
    assert found[failed] == "fail"
    assert ids(done.out) == list(IDS)
    after = IDS[IDS.index(failed) + 1 :]
    assert {found[each] for each in after} == {"?"}
    assert f"not looked at, since {failed} failed" in done.out
    assert detail in next(each for each in done.out.splitlines() if each.startswith("fail"))


def test_a_host_that_does_not_answer_is_code_30_in_json_too() -> None:
    with socket.socket() as taken:  # and nobody listens there
        taken.bind(("127.0.0.1", 0))
        words = ["doctor", "--host", "127.0.0.1", "--port", str(taken.getsockname()[1])]

        plain, answer = call(*words), call(*words, "--json").json

    assert plain.code == 30
    assert states(plain.out)["ssh.host"] == "fail"
    assert (answer["exit_code"], answer["ok"]) == (30, False)
    assert [each["state"] for each in answer["checks"][:3]] == ["ok", "fail", None]


def test_a_jump_host_that_does_not_answer_is_blamed_itself() -> None:
    with socket.socket() as taken:  # and nobody listens there
        taken.bind(("127.0.0.1", 0))

        done = call("doctor", "--host", "127.0.0.1", "--jump", f"ops@127.0.0.1:{taken.getsockname()[1]}")

    assert done.code == 30
    assert (states(done.out)["ssh.jump"], states(done.out)["ssh.host"]) == ("fail", "?")


def test_a_wrapper_that_swallows_exit_codes_is_a_warning(tmp_path: Path) -> None:
    wrapper = tmp_path / "pct"
    wrapper.write_text('#!/bin/sh\n"$@"; exit 0\n')
    wrapper.chmod(0o755)

    done = examined(lambda: call(*here(tmp_path, "--exec", str(wrapper))))

    assert states(done.out)["exec.enter"] == "warn"
    assert states(done.out)["host.python"] == "ok"
    assert done.code == 6


def finding(state: str | None, code: Exit = Exit.OK, **more: object) -> Finding:
    return Finding(id="a.b", state=state, detail="x", exit_code=code, **more)  # type: ignore[arg-type]


def test_the_first_failure_decides_the_code() -> None:
    assert exit_code([finding("ok"), finding("warn"), finding("fail", Exit.ENTRY), finding("fail", Exit.REFUSED)]) == 31
    assert exit_code([finding("ok"), finding("warn")]) == 6
    assert exit_code([finding("ok"), finding(None)]) == 0


def test_a_line_stands_alone_and_tells_what_to_do() -> None:
    assert line(finding("ok", reason=Reason.UNKNOWN)) == "ok   a.b             x"
    assert line(finding("warn", next="do it")) == "warn a.b             x | next: do it"
    assert "\n" not in line(Finding(id="a.b", state="fail", detail="a\nb"))
    assert summary([finding("warn"), finding(None)], 1.94, Exit.UNHEALTHY) == (
        "0 ok, 1 warning, 0 failed, 1 not known (1.9 s); code 6"
    )


def test_lines_of_a_log_are_counted_from_its_end() -> None:
    whole = b"".join(b"step %d | loss 2.0 | tok/s 100\n" % number for number in range(5000))

    state, told, reason = understood(Target(), whole[-100_000:], len(whole) - 100_000, "/x.log")

    assert (state, reason) == ("ok", None)
    assert re.fullmatch(r"\S+: 3,000 of 3,000 last lines understood in /x\.log", told), told
    assert understood(Target(), b"", 0, "/x.log")[0] is None
