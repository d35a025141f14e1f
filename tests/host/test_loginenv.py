"""The login shell's environment: read in spite of what profiles do, and never at the price of killing one."""

import os
import signal
from pathlib import Path

import pytest

from console.host import loginenv, procfs
from tests.waiting import until


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user whose login shell reads `.profile` there."""
    entry = {"HOME": str(tmp_path), "USER": "x", "LOGNAME": "x", "SHELL": "/bin/sh"}
    monkeypatch.setattr(loginenv, "who", lambda: entry)
    return tmp_path


def processes_of(home: Path) -> list[int]:
    return [pid for pid in procfs.all_pids() if procfs.environ(pid).get("HOME") == str(home)]


def test_login_environment_is_read_in_spite_of_a_chatty_profile(home: Path) -> None:
    (home / ".profile").write_text("echo hello; export FROM_PROFILE='a\nb' EMPTY=; sleep 600 & ")

    login = loginenv.LoginEnv()
    env = login.get()
    left = processes_of(home)
    for pid in left:
        os.kill(pid, signal.SIGKILL)

    assert (env["FROM_PROFILE"], env["EMPTY"]) == ("a\nb", "")
    assert login.why == ""
    assert not {"SHLVL", "_", "PWD", "TERM"} & set(env)
    assert left, "what a profile leaves behind is not our business"


def test_a_profile_that_ends_the_shell_leaves_the_fallback(home: Path) -> None:
    (home / ".profile").write_text("exit 3")

    login = loginenv.LoginEnv()

    assert login.get()["PATH"] == loginenv.FALLBACK_PATH
    assert login.why == "the login shell ended without printing an environment"


def test_login_shell_that_takes_too_long_is_abandoned_and_ends_by_itself(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".profile").write_text("touch ~/lock; read answer < ~/gate; rm ~/lock; trap 'touch ~/left' EXIT\n")
    os.mkfifo(home / "gate")
    monkeypatch.setattr(loginenv, "TIMEOUT_S", 0.5)

    login = loginenv.LoginEnv()
    env = login.get()

    assert login.why == "the login shell took longer than 0.5 s and was left to end by itself"
    assert env["PATH"] == loginenv.FALLBACK_PATH
    until(lambda: (home / "lock").exists(), 60, "the profile has taken its lock")
    assert processes_of(home), "it lives on"
    (home / "gate").write_text("go\n")
    until(lambda: (home / "left").exists(), 60, "the profile was read to its end, and the shell left by its own exit")
    until(lambda: not processes_of(home), 60, "it has ended")
    assert not (home / "lock").exists()


def test_abandoned_login_shell_is_no_child_of_the_keeper(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".profile").write_text("read answer < ~/gate\n")
    os.mkfifo(home / "gate")
    monkeypatch.setattr(loginenv, "TIMEOUT_S", 0.2)

    loginenv.LoginEnv().get()
    shells = until(lambda: processes_of(home), what="the shell runs")
    ours = procfs.descendants([os.getpid()], procfs.table())
    (home / "gate").write_text("go\n")

    assert not set(shells) & ours
    until(lambda: not processes_of(home), 60, "it has ended")


def test_login_shell_that_is_not_wanted_any_more_is_not_killed(home: Path) -> None:
    (home / ".profile").write_text("read answer < ~/gate; touch ~/through\n")
    os.mkfifo(home / "gate")

    login = loginenv.LoginEnv()
    login.close()
    until(lambda: processes_of(home), 60, "the shell runs")
    (home / "gate").write_text("go\n")

    until(lambda: (home / "through").exists(), 60, "the profile was read to its end")


def test_signals_that_python_ignores_reach_the_profile_as_usual(home: Path) -> None:
    (home / ".profile").write_text("export IGNORED=$(grep SigIgn /proc/$$/status)\n")

    ignored = int(loginenv.LoginEnv().get()["IGNORED"].split()[1], 16)

    assert not ignored & (1 << (signal.SIGPIPE - 1))
