"""What the words on the way into a container print, and what is made of it."""

import pytest

from console.link.entry import broke_down, never_answered, unfit_python
from console.link.transport import Ended
from console.reasons import Exit, Reason

PCT = ("pct", "exec", "200", "--")

CASES = [
    # how it ended, what was printed, prefix, reason
    (127, "bash: line 1: pct: command not found", PCT, Reason.WRAPPER_MISSING),
    (127, "sh: 1: pct: not found", PCT, Reason.WRAPPER_MISSING),
    (1, "pct: Command not found.", PCT, Reason.WRAPPER_MISSING),
    (127, "fish: Unknown command: pct", PCT, Reason.WRAPPER_MISSING),
    (127, "zsh:1: command not found: pct", PCT, Reason.WRAPPER_MISSING),
    (1, "sudo: pct: command not found", ("sudo", "-n", *PCT), Reason.WRAPPER_MISSING),
    (127, "/opt/enter: No such file or directory", ("/opt/enter",), Reason.WRAPPER_MISSING),
    (127, "bash: line 1: python3: command not found", (), Reason.PYTHON_MISSING),
    (1, "python3: Command not found.", (), Reason.PYTHON_MISSING),
    (127, "", (), Reason.PYTHON_MISSING),
    (
        127,
        'lxc-attach: 200: ../src/lxc/attach.c: run_command: 1841 No such file or directory - Failed to exec "python3"',
        ("lxc-attach", "-n", "200", "--"),
        Reason.PYTHON_MISSING,
    ),
    (
        126,
        'OCI runtime exec failed: unable to start container: exec: "python3": executable file not found in $PATH',
        ("docker", "exec", "-i", "train"),
        Reason.PYTHON_MISSING,
    ),
    (
        1,
        "lxc-attach: 200: ../src/lxc/attach.c: get_attach_context: 405 Connection refused - Failed to get init pid",
        PCT,
        Reason.CONTAINER_STOPPED,
    ),
    (255, "container '200' not running!", PCT, Reason.CONTAINER_STOPPED),
    (255, "CT 200 not running", PCT, Reason.CONTAINER_STOPPED),
    (
        1,
        "Error response from daemon: container 3f2a is not running",
        ("docker", "exec", "train"),
        Reason.CONTAINER_STOPPED,
    ),
    (2, "Configuration file 'nodes/pve/lxc/200.conf' does not exist", PCT, Reason.CONTAINER_MISSING),
    (255, "CT 200 does not exist", PCT, Reason.CONTAINER_MISSING),
    (1, "Error response from daemon: No such container: train", ("docker", "exec", "train"), Reason.CONTAINER_MISSING),
    (
        1,
        "Error response from daemon: Container 3f2a is paused, unpause the container before exec",
        ("docker", "exec", "-i", "train"),
        Reason.CONTAINER_FROZEN,
    ),
    (
        2,
        "Unknown option: -I\nusage: python [option] ... [-c cmd | -m mod | file | -] [arg] ...",
        (),
        Reason.PYTHON_TOO_OLD,
    ),
    (1, "sudo: a password is required", ("sudo", "-n", *PCT), Reason.BOOTSTRAP_FAILED),
    (0, "", PCT, Reason.BOOTSTRAP_FAILED),
    (127, "", PCT, Reason.BOOTSTRAP_FAILED),
]


@pytest.mark.parametrize(("code", "printed", "prefix", "reason"), CASES, ids=[case[1][:30] for case in CASES])
def test_what_was_printed_tells_the_reason(code: int, printed: str, prefix: tuple[str, ...], reason: Reason) -> None:
    banner = "Welcome to gpu1. Files not found anywhere are not our fault."

    error = never_answered(Ended(code=code), [banner, *printed.splitlines()], prefix, "python3")

    assert error.reason is reason
    assert error.exit_code is Exit.ENTRY
    assert error.tail[0] == banner


def test_unknown_end_is_said_to_be_unknown() -> None:
    error = never_answered(Ended(), [], PCT, "python3")

    assert error.reason is Reason.BOOTSTRAP_FAILED
    assert "not known" in error.detail


def test_old_python_is_told_before_missing_modules() -> None:
    error = unfit_python("python3", (3, 7, 3), ["json"])

    assert error is not None
    assert error.reason is Reason.PYTHON_TOO_OLD
    assert "3.7.3" in error.detail


def test_missing_modules_are_named() -> None:
    error = unfit_python("python3", (3, 11, 2), ["json", "ctypes"])

    assert error is not None
    assert error.reason is Reason.PYTHON_INCOMPLETE
    assert "json, ctypes" in error.detail


def test_whole_python_is_fit() -> None:
    assert unfit_python("python3", (3, 8, 0), []) is None
    assert unfit_python("python3", (3, 13, 0), []) is None


def test_agent_that_broke_down_shows_its_last_line() -> None:
    error = broke_down(Ended(code=1), ["Traceback (most recent call last):", "ImportError: no"])

    assert error.reason is Reason.BOOTSTRAP_FAILED
    assert error.detail.endswith("ImportError: no")
