"""The one text that is streamed to a host."""

import ast
import subprocess

import pytest

from console.link.payload import build_payload, entry_line
from tests.host.agentprocess import Agent, pythons


def test_payload_is_ascii_and_the_same_for_the_same_sources() -> None:
    first = build_payload()

    assert first.isascii()
    assert build_payload() == first
    assert len(first) < 250_000


def test_entry_line_carries_any_argument_as_one_line_of_ascii() -> None:
    line = entry_line("keeper", "/tmp/a 'b\"\n\u00e9")

    assert line.isascii()
    assert line.count(b"\n") == 1
    assert ast.literal_eval(line.decode().partition("=")[2].strip()) == ("keeper", ["/tmp/a 'b\"\n\u00e9"])


@pytest.mark.parametrize("python", pythons())
def test_agent_says_hello_on_every_python(python: str) -> None:
    with Agent(python) as agent:
        assert agent.hello is not None
        assert agent.hello.v == 1
        assert agent.hello.pid == agent.process.pid
        assert "/" in agent.hello.boot


@pytest.mark.parametrize("python", pythons())
def test_every_module_of_the_payload_imports_on_every_python(python: str) -> None:
    check = (
        "import sys\nfor name in sorted(_sources):\n    __import__(name)\n"
        "print('unwanted' if any(n.startswith('console') for n in sys.modules) else 'imported', len(_sources))\n"
    )
    text = build_payload().decode("ascii")
    text = text.replace("_loader.start(", "_loader.prepare(", 1).partition("_loader.prepare(")[0]
    text += "sys.meta_path.insert(0, _loader.MemoryImporter(_sources))\n" + check

    done = subprocess.run([python, "-I", "-"], input=text.encode(), capture_output=True, timeout=30, check=False)

    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.split()[0] == b"imported"


def test_a_failing_entry_tells_the_line_that_failed() -> None:
    text = entry_line("agent", "one", "too many") + build_payload()

    done = subprocess.run([pythons()[0], "-I", "-"], input=text, capture_output=True, timeout=30, check=False)

    assert done.returncode == 1
    assert b"TypeError" in done.stderr
    assert b"code = int(module.main(*arguments) or 0)" in done.stderr
