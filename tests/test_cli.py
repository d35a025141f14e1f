"""The command line before anything is connected: help, mistakes, and what a script gets to read."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import types
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from console import bugs, config, configfile, tui
from console.cli import cli
from console.commands import looks, setup
from console.commands.options import Seconds, called
from console.headless import status
from tests.headless.running import call

LATER = ("tmux",)


@pytest.mark.parametrize("words", [["--help"], ["restart", "--help"], ["demo", "--help"], ["--version"]])
def test_help_imports_neither_screen_nor_ssh(words: list[str]) -> None:
    heavy = "{'textual', 'asyncssh', 'plotext', 'msgspec'}"
    code = (
        "import sys\nfrom console import cli\n"
        f"try: cli.main({words!r})\nfinally: print({heavy} & set(sys.modules), file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stderr.strip()) == (0, "set()")


def test_help_of_every_command_says_what_each_option_does() -> None:
    for name, command in cli.commands.items():
        answer = CliRunner().invoke(cli, [name, "--help"])

        assert answer.exit_code == 0, name
        assert all(each.help for each in command.params if isinstance(each, click.Option)), name


def test_no_target_can_be_named_like_a_command() -> None:
    assert set(cli.commands) <= configfile.RESERVED_NAMES


def test_help_shows_no_command_that_is_not_there_yet() -> None:
    assert set(LATER).isdisjoint(cli.commands)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["status", "a", "b"], "unexpected extra argument"),
        (["status", "--nosuch"], "No such option"),
        (["status", "--timeout", "5x"], "expected 15, 15s, 2m or 1h"),
        (["status", "--timeout", "-1"], "is negative"),
        (["status", "--timeout", "nan"], "is no duration"),
        (["status", "--timeout", "infs"], "is no duration"),
        (["status", "--timeout", "1h30"], "is no duration"),
        (["status", "--timeout", "1h-30m"], "is no duration"),
        (["logs", "--since", "inf"], "is no moment"),
        (["wait", "--for", "bogus"], "step=N"),
        (["wait", "--for", "step=x"], "step=N"),
        (["demo", "--fault", "nosuch"], "unknown fault 'nosuch'"),
        (["demo", "--speed", "0"], "not in the range"),
        (["restart", "--host", "h", "--command", "x", "--env", "NOEQUALS"], "expected NAME=VALUE"),
        (["restart", "--host", "h", "--command", "x", "--name", "a/b"], "without '/'"),
        (["restart", "--host", "h", "--command", "x", "--note", "a\udcff"], "not valid UTF-8"),
        (["restart", "--host", "h", "--command", "'open"], "can't be split into words"),
        (["statsu"], "Did you mean 'status'?"),
        (["open", "--host", "h"], "needs a terminal"),
        (["demo"], "needs a terminal"),
        (["replay", "slammed5"], "needs a terminal"),
    ],
)
def test_mistake_is_told_on_stderr_with_code_2(words: list[str], said: str) -> None:
    done = call(*words)

    assert (done.code, done.out) == (2, "")
    assert said in done.err


@pytest.mark.parametrize(
    "words",
    [["status", "--json", "--nosuch"], ["restart", "nosuch", "--json"], ["wait", "--json", "--for", "bogus"]],
)
def test_with_json_a_mistake_is_one_object_too(words: list[str]) -> None:
    answer = call(*words).json

    assert next(iter(answer)) == "schema"
    assert (answer["ok"], answer["exit_code"], answer["outcome"]) == (False, 2, "refused")
    assert {"target", "run", "id", "at", "data_age_s", "reason", "detail", "safe", "next"} <= set(answer)


def test_json_after_two_dashes_is_no_option() -> None:
    assert call("status", "--", "--json").out == ""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15", 15),
        ("15s", 15),
        ("2m", 120),
        ("1.5h", 5400),
        ("250ms", 0.25),
        ("1h30m", 5400),
        ("2h 14m", 8040),
        ("1d2h3m4s5ms", 93784.005),
    ],
)
def test_durations_have_units(text: str, seconds: float) -> None:
    assert Seconds().convert(text, None, None) == seconds


_ALL_OF_A_TARGET = {
    "--host": "10.1.2.6", "--user": "ops", "--port": "2222", "--jump": "ops@jump", "--identity": "/keys/a b",
    "--known-hosts": "/keys/known", "--exec": "pct exec 200 --", "--python": "python3.9", "--state-dir": "/var/state",
    "--command": "/root/run.sh 'two words'", "--cwd": "/srv", "--log": "/logs/{name}.log", "--match": "train.py",
    "--cache": "/tmp/inductor", "--gpus": "8",
}  # fmt: skip


def test_target_is_given_wholly_by_options_and_they_stand_in_the_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[str, config.Target]] = []
    ways: list[str] = []

    def show(name: str, target: config.Target, **_options: object) -> int:
        found.append((name, target))
        ways.append(called().way)
        return 0

    monkeypatch.setattr(status, "run", show)
    words = [word for pair in _ALL_OF_A_TARGET.items() for word in pair]

    assert call("status", *words).code == 0
    assert call("status", *shlex.split(ways[0])).code == 0

    (name, target), again = found
    assert name == "10.1.2.6-200"
    assert target == config.Target(
        host="10.1.2.6", user="ops", port=2222, jump="ops@jump", identity="/keys/a b", known_hosts="/keys/known",
        exec=("pct", "exec", "200", "--"), python="python3.9", state_dir="/var/state",
        command=("/root/run.sh", "two words"), cwd="/srv", log="/logs/{name}.log", match=("train.py",),
        caches=("/tmp/inductor",), gpus=config.Gpus(expected=8),
    )  # fmt: skip
    assert again == (name, target)


@pytest.mark.parametrize("words", [[], ["--read-only"]])
def test_screen_only_watches_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    opened: list[bool] = []

    def show(name: str, target: config.Target, *, read_only: bool, **_options: object) -> int:
        opened.append(read_only)
        return 0

    monkeypatch.setattr(setup, "require_terminal", lambda instead: None)
    monkeypatch.setattr(tui, "run", show)

    assert call("open", "--host", "h", *words).code == 0
    assert opened == [bool(words)]


def test_config_is_written_without_a_probe_where_none_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"

    done = call("init", "10.1.2.6", "--no-probe", "--user", "ops", "--identity", "/keys/a", "--config", str(path))

    target = configfile.load(path).targets["10.1.2.6"]
    assert done.code == 0
    assert (target.host, target.user, target.identity) == ("10.1.2.6", "ops", "/keys/a")


def test_host_that_is_not_there_is_a_result_with_code_30() -> None:
    plain = call("status", "--host", "127.0.0.1", "--port", "1")
    answer = call("status", "--host", "127.0.0.1", "--port", "1", "--json")

    assert (plain.code, answer.code) == (30, 30)
    assert plain.out.startswith("127.0.0.1 LINK-LOST last=unknown age=? link_unreachable: ")
    assert (answer.json["verdict"], answer.json["reason"]) == ("link_lost", "link_unreachable")


def test_warnings_of_the_parts_go_to_a_private_file_and_never_to_the_terminal() -> None:
    done = call("status", "--host", "127.0.0.1", "--port", "1")

    assert done.err == ""
    assert "link_unreachable" in bugs.log_path().read_text()
    assert bugs.log_path().stat().st_mode & 0o777 == 0o600


def test_error_of_our_own_names_its_log_and_shows_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    from console import configfile

    def broken() -> Path:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(configfile, "default_path", broken)

    done = call("status", "--json")

    assert (done.code, done.json["reason"]) == (1, "bug")
    assert str(bugs.log_path()) in done.json["detail"]
    assert "Traceback" not in done.err
    assert "Traceback" in bugs.log_path().read_text()


def run(shell_line: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a shell line in which `$C` is the command line."""
    command = f"{sys.executable} -m console.cli"
    return subprocess.run(
        ["/bin/sh", "-c", shell_line],
        env={**os.environ, "C": command, "PYTHONPATH": str(Path(__file__).parent.parent), **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_reader_that_leaves_ends_it_quietly_and_never_with_success() -> None:
    # `true` is long gone when the link is found unreachable, some tenths of a second later.
    done = run("{ $C status --host 127.0.0.1 --port 1; echo $? >&2; } | true")

    assert done.stderr.split() == ["141"]


@pytest.mark.parametrize(
    "words", ["status --host 127.0.0.1 --port 1", "formats --json", "status --json --nosuch", "--help"]
)
def test_result_that_finds_no_room_is_no_bug_and_no_success(words: str) -> None:
    done = run(f"$C {words} >/dev/full")

    *_, said = done.stderr.splitlines()
    assert done.returncode == 1
    assert said.startswith("ERROR output_unusable: stdout: No space left on device")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["formats --json", "--version"])
def test_closed_stdout_is_no_success(words: str) -> None:
    done = run(f"$C {words} >&-")

    assert done.returncode == 1
    assert done.stderr.startswith("ERROR output_unusable: stdout: Bad file descriptor")
    assert len(done.stderr.splitlines()) == 1


def test_log_that_cannot_be_read_from_a_closed_stdin_is_no_bug() -> None:
    done = run("$C explain - <&-")

    assert done.returncode == 2
    assert done.stderr == "Error: Could not open file '-': Bad file descriptor\n"


def test_closed_stderr_puts_no_progress_among_the_results() -> None:
    code = "from console import cli; from console.headless import output as o; cli.mend_streams()"
    done = run(f'$PY -c \'{code}; o.progress("progress"); o.say("result")\' 2>&-', PY=sys.executable)

    assert (done.returncode, done.stdout) == (0, "result\n")


def test_closed_stdin_and_foreign_locale_change_nothing() -> None:
    done = run("$C status --host 127.0.0.1 --port 1 --json <&-", LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")

    assert done.returncode == 30
    assert json.loads(done.stdout)["reason"] == "link_unreachable"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("environ", "encoding", "expected"),
    [
        ({}, "utf-8", False),
        ({"LC_CTYPE": "C.UTF-8"}, "UTF-8", False),
        ({"LANG": "en_US.UTF-8"}, "utf-8", False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "utf-8", True),
        ({"LANG": "C", "LC_CTYPE": "en_US.UTF-8"}, "utf-8", False),
        ({"LANG": "C", "LC_ALL": "C.UTF-8"}, "utf-8", False),
        ({"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}, "utf-8", True),
        ({"LANG": "de_DE.ISO-8859-1"}, "iso8859-1", True),
    ],
)
def test_glyphs_are_drawn_only_where_the_locale_knows_them(
    environ: dict[str, str], encoding: str, expected: bool
) -> None:
    assert looks.speaks_ascii_only(environ, encoding) is expected


def test_terminal_that_cannot_place_text_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{stream}", types.SimpleNamespace(isatty=lambda: True))

    with pytest.raises(click.UsageError, match=r"TERM=dumb can.t\. Without one use: dflash-console status x"):
        looks.require_terminal("dflash-console status x")
