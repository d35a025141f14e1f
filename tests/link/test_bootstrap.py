"""Getting an agent into a Python behind real shells, with whatever their rc files do. A stand-in agent."""

import ast
import asyncio
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.config import Target
from console.link import bootstrap, killtest
from console.link.agents import Agent, closing, open_agent
from console.link.transport import connect
from console.reasons import ConsoleError, Exit, Reason
from tests.link.conftest import Serve, target_of, trust
from tests.link.fakeagent import PAYLOAD
from tests.link.servers import clean_env
from tests.waiting import until_async

HOST_SOURCES = Path(bootstrap.__file__).parent.parent / "host"


@asynccontextmanager
async def agent_of(target: Target, payload: bytes = PAYLOAD, held: Any = None) -> AsyncIterator[Agent]:
    async with (
        closing(await connect(target)) as connection,
        open_agent(
            connection, target, payload, on_event=lambda event, data: None, on_held=held or (lambda error: None)
        ) as agent,
    ):
        try:
            yield agent
        finally:
            await agent.channel.bye()
            raise _Over


class _Over(Exception):
    """Leaves the block: an agent is read until its block is left by an exception."""


async def hello_from(target: Target, payload: bytes = PAYLOAD) -> int:
    pid = 0
    try:
        async with agent_of(target, payload) as agent:
            pid = agent.started.hello.pid
    except _Over:
        pass
    return pid


async def failure_of(target: Target, payload: bytes = PAYLOAD) -> ConsoleError:
    with pytest.raises(ConsoleError) as caught:
        await hello_from(target, payload)
    assert caught.value.exit_code is Exit.ENTRY
    return caught.value


def pythons(*, fit: bool = True) -> list[str]:
    """This Python, and those that DFLASH_PYTHONS or the PATH offer: 3.8 and later, or else those before."""
    named = os.environ.get("DFLASH_PYTHONS", "").split(":")
    found = [shutil.which(f"python3.{minor}") for minor in range(4, 16)]
    return [path for path in dict.fromkeys([sys.executable, *named, *found]) if path and _is_fit(path) is fit]


def _is_fit(python: str) -> bool | None:
    """None where it does not start: a version manager's shims stand on the PATH for versions that aren't there."""
    test = "import sys; print(sys.version_info >= (3, 8))"
    try:
        done = subprocess.run([python, "-c", test], check=False, capture_output=True, text=True, timeout=120)
    except OSError:
        return None
    return {"True": True, "False": False}.get(done.stdout.strip())


def script(path: Path, text: str) -> str:
    path.write_text(textwrap.dedent(text))
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("python", pythons())
async def test_every_python_takes_the_agent_in(python: str) -> None:
    assert await hello_from(Target(python=python)) > 0


NOISE = {
    "bash": (".noise", "echo Welcome to gpu1; echo careful >&2; read line; echo you said $line; printf 'no newline'\n"),
    "sh": (".noise", ""),
    "dash": (".noise", ""),
    "csh": (".cshrc", "echo Welcome to gpu1\nset line = $<\necho you said $line\n"),
    "tcsh": (".tcshrc", "echo Welcome to gpu1\nset line = $<\n"),
    "fish": (".config/fish/config.fish", "echo Welcome to gpu1\nread line\necho you said $line\n"),
    "zsh": (".zshenv", "echo Welcome to gpu1\nread line\necho you said $line\n"),
}


@pytest.mark.parametrize("shell", NOISE)
async def test_shells_with_noisy_rc_files_that_read_a_line_are_survived(
    shell: str, home: Path, key: Path, serve: Serve
) -> None:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    name, text = NOISE[shell]
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).write_text(text)
    server = await serve(
        shell=(path, "-c"), env=clean_env(home, BASH_ENV=str(home / ".noise")), banner="Authorized use only\n"
    )
    trust(home, server)

    # `env` stands for a wrapper that runs its words without a shell of its own
    assert await hello_from(target_of(server, key, python=sys.executable, exec=("env", "A B=1 2", "C=d"))) > 0

    assert server.commands[0].endswith(f"{sys.executable} -Iqi")


async def test_plain_remote_line_holds_no_quote(home: Path, key: Path, serve: Serve) -> None:
    server = await serve()
    trust(home, server)

    await hello_from(target_of(server, key, python=sys.executable, exec=("env", "A=1")))

    assert server.commands == [f"env A=1 {sys.executable} -Iqi"]


async def test_rc_file_that_swallows_all_of_stdin_is_a_failed_bootstrap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = script(tmp_path / "python3", "#!/bin/sh\necho swallowing >&2\n: >said\ncat >/dev/null\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bootstrap, "RESEND_S", 0.1)
    looks = 0

    def monotonic() -> float:
        """Its time is over once the shell's word was there for some turns, however late a busy machine makes it."""
        nonlocal looks
        looks += (tmp_path / "said").exists()
        return 1e9 if looks > 4 else 0.0

    monkeypatch.setattr(bootstrap, "time", SimpleNamespace(monotonic=monotonic))

    error = await failure_of(Target(python=python))

    assert error.reason is Reason.BOOTSTRAP_FAILED
    assert "did not answer" in error.detail
    assert error.tail == ("swallowing",)


async def test_an_echo_of_what_is_sent_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "ANSWER_S", 0.4)
    python = script(tmp_path / "python3", "#!/bin/sh\nexec cat\n")

    assert (await failure_of(Target(python=python))).reason is Reason.BOOTSTRAP_FAILED


async def test_endless_noise_is_given_up(tmp_path: Path) -> None:
    python = script(tmp_path / "python3", "#!/bin/sh\nexec yes\n")

    error = await failure_of(Target(python=python))

    assert error.reason is Reason.BOOTSTRAP_FAILED
    assert "noise" in error.detail


async def test_missing_python_is_named(tmp_path: Path) -> None:
    error = await failure_of(Target(python=str(tmp_path / "python9")))

    assert error.reason is Reason.PYTHON_MISSING
    assert "python9" in error.detail


async def test_missing_python_behind_a_wrapper_is_named() -> None:
    error = await failure_of(Target(exec=("env",), python="python-that-is-not-there"))

    assert error.reason is Reason.PYTHON_MISSING


async def test_missing_wrapper_is_named() -> None:
    error = await failure_of(Target(exec=("pct-that-is-not-there", "exec", "200", "--")))

    assert error.reason is Reason.WRAPPER_MISSING
    assert "pct-that-is-not-there" in error.detail


@pytest.mark.parametrize("shell", ["bash", "dash", "tcsh", "fish", "zsh"])
@pytest.mark.parametrize("what", ["wrapper", "python"])
async def test_what_is_missing_is_told_through_every_shell(
    what: str, shell: str, home: Path, key: Path, serve: Serve
) -> None:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    server = await serve(shell=(path, "-c"))
    trust(home, server)
    prefix = ("pct-not-there", "exec", "200", "--") if what == "wrapper" else ()

    error = await failure_of(target_of(server, key, exec=prefix, python="python-not-there"))

    assert error.reason is (Reason.WRAPPER_MISSING if what == "wrapper" else Reason.PYTHON_MISSING)


@pytest.mark.parametrize("python", pythons(fit=False))
async def test_every_python_before_3_8_is_told_to_be_too_old(python: str) -> None:
    assert (await failure_of(Target(python=python))).reason is Reason.PYTHON_TOO_OLD


PRETENDER = """\
    #!{python}
    import builtins, code, sys
    {change}
    console = code.InteractiveConsole({{}})
    for line in iter(sys.stdin.readline, ""):
        console.push(line)
"""


async def test_old_python_is_told_before_the_payload_is_sent(tmp_path: Path) -> None:
    change = "sys.version_info = (3, 7, 9, 'final', 0)"
    python = script(tmp_path / "python3", PRETENDER.format(python=sys.executable, change=change))

    error = await failure_of(Target(python=python))

    assert error.reason is Reason.PYTHON_TOO_OLD
    assert "3.7.9" in error.detail


async def test_incomplete_python_is_told_with_the_missing_modules(tmp_path: Path) -> None:
    change = "sys.modules['json'] = sys.modules['ctypes'] = None"
    python = script(tmp_path / "python3", PRETENDER.format(python=sys.executable, change=change))

    error = await failure_of(Target(python=python))

    assert error.reason is Reason.PYTHON_INCOMPLETE
    assert "ctypes, json" in error.detail


async def test_terminal_on_the_way_is_named(tmp_path: Path) -> None:
    if shutil.which("script") is None:
        pytest.skip("script(1) is not installed")
    python = script(tmp_path / "python3", f'#!/bin/sh\nexec script -qec "{sys.executable} -Iqi" /dev/null\n')

    error = await failure_of(Target(python=python))

    assert error.reason is Reason.BOOTSTRAP_FAILED
    assert "terminal" in error.detail


async def test_payload_that_fails_shows_its_traceback() -> None:
    error = await failure_of(Target(python=sys.executable), b"raise SystemError('broken payload')\n")

    assert error.reason is Reason.BOOTSTRAP_FAILED
    assert "broken payload" in error.detail


async def test_large_payload_arrives_whole() -> None:
    padding = b"# " + b"x" * 2_000_000 + b"\n"

    assert await hello_from(Target(python=sys.executable), padding + PAYLOAD) > 0


async def test_frozen_container_is_named_and_its_attempt_goes_on_when_thawed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "ANSWER_S", 0.3)
    monkeypatch.setattr(killtest, "HOST_ANSWER_S", 30.0)
    gate = tmp_path / "thawed"
    wrapper = script(tmp_path / "enter", f'#!/bin/sh\nwhile ! [ -e {gate} ]; do sleep 0.05; done\nexec "$@"\n')
    held: list[ConsoleError] = []
    target = Target(exec=(wrapper,), python=sys.executable)

    async def enter() -> None:
        async with agent_of(target, held=held.append):
            pass

    attempt = asyncio.create_task(enter())
    await until_async(lambda: held)
    assert held[0].reason is Reason.CONTAINER_FROZEN
    assert not attempt.done()

    monkeypatch.setattr(bootstrap, "ANSWER_S", 20.0)  # what follows is answered, however busy the machine
    gate.touch()

    with pytest.raises(_Over):
        await asyncio.wait_for(attempt, 20)
    assert len(held) == 1


async def test_host_that_hangs_as_a_whole_is_not_called_a_frozen_container(
    home: Path, key: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "ANSWER_S", 0.3)
    monkeypatch.setattr(killtest, "HOST_ANSWER_S", 0.3)
    server = await serve(stuck=["true", "pct"])
    trust(home, server)

    error = await failure_of(target_of(server, key, exec=("pct", "exec", "200", "--")))

    assert error.reason is Reason.BOOTSTRAP_FAILED


def test_probe_asks_for_all_that_the_host_side_imports() -> None:
    wanted = set()
    for path in HOST_SOURCES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                wanted.add(node.module)
    wanted -= {"__future__", "pynvml", "sys", "importlib", "importlib.abc", "importlib.machinery"}
    tops = {name.split(".")[0] for name in bootstrap.MODULES}

    assert {name for name in wanted if name.split(".")[0] not in tops} == set()
