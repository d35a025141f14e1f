"""The one text that is streamed to a host."""

import ast
import base64
import json
import subprocess
import sys
import zlib
from pathlib import Path

import pynvml
import pytest

from console.host import loader
from console.link.payload import build_payload, entry_line, without_remarks
from tests.host.agentprocess import Agent, pythons


def test_payload_is_ascii_and_the_same_for_the_same_sources() -> None:
    first = build_payload()

    assert first.isascii()
    assert build_payload() == first
    assert len(first) < 210_000


def test_remarks_go_but_for_those_that_say_whose_a_module_is() -> None:
    source = "# Copyright (c) Somebody\n# as follows\n\nx = 1  # one\n  # more\nif x:\n    # why\n    y = 2\n"

    lean = without_remarks(source)

    assert lean == "# Copyright (c) Somebody\n# as follows\n\nx = 1  # one\n\nif x:\n\n    y = 2\n"


def test_no_module_says_anything_else_without_its_remarks() -> None:
    """A text within a module, a shell script for one, may have lines that begin like a remark."""
    sources = [path.read_text("utf-8") for path in Path(loader.__file__).parent.glob("*.py")]
    sources.append(Path(pynvml.__file__).read_text("utf-8"))

    assert len(sources) > 50
    for source in sources:
        assert _meaning(without_remarks(source)) == _meaning(source)


def _meaning(source: str) -> str:
    """The module with its line numbers, by which tracebacks are told."""
    return ast.dump(ast.parse(source), include_attributes=True)


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

    done = subprocess.run([python, "-I", "-"], input=text.encode(), capture_output=True, timeout=120, check=False)

    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.split()[0] == b"imported"


def test_a_failing_entry_tells_the_line_that_failed() -> None:
    text = entry_line("agent", "one", "too many") + build_payload()

    done = subprocess.run([pythons()[0], "-I", "-"], input=text, capture_output=True, timeout=120, check=False)

    assert done.returncode == 1
    assert b"TypeError" in done.stderr
    assert b"status = int(module.main(*arguments) or 0)" in done.stderr


def test_keeper_s_program_runs_the_compiled_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keep_sources(monkeypatch, "VALUE = 'compiled'\ndef main(): print(VALUE, flush=True)\n")
    loader.keep_compiled(loader.compile_all())
    keep_sources(monkeypatch, "def main(): print('source', flush=True)\n")  # what ran tells where it came from

    assert _printed(tmp_path, "-S") == b"compiled"


def test_a_failing_compiled_module_tells_the_line_that_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keep_sources(monkeypatch, "def main():\n    raise ValueError('this line')\n")
    loader.keep_compiled(loader.compile_all())

    done = _ran(tmp_path)

    assert done.returncode == 1
    assert b"    raise ValueError('this line')" in done.stderr


def test_code_of_another_interpreter_is_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(loader, "_version", lambda: "another")
    keep_sources(monkeypatch, "def main(): print('compiled', flush=True)\n")
    loader.keep_compiled(loader.compile_all())
    keep_sources(monkeypatch, "def main(): print('source', flush=True)\n")

    assert _printed(tmp_path) == b"source"


@pytest.mark.parametrize("code", ["", "AAAA", "not base64", base64.b64encode(zlib.compress(b"?")).decode()])
def test_unreadable_code_is_no_reason_not_to_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str) -> None:
    keep_sources(monkeypatch, "def main(): print('source', flush=True)\n")
    loader.keep_compiled(code)

    assert _printed(tmp_path) == b"source"


def keep_sources(monkeypatch: pytest.MonkeyPatch, toy: str) -> None:
    """Let the loader hold itself and one module `toy`, as in a process that was started from a pack of them."""
    own = Path(loader.__file__).read_text("utf-8")
    sources = {"dflash_host": "", "dflash_host.loader": own, "dflash_host.toy": toy}
    packed = zlib.compress(json.dumps(sources).encode("ascii"))
    monkeypatch.setattr(loader, "compiled", loader.compiled)  # as it was, at the end
    monkeypatch.setattr(loader, "pack", base64.b64encode(packed))


def _ran(folder: Path, *flags: str) -> "subprocess.CompletedProcess[bytes]":
    for name, content in zip(("start.py", "start.bin"), loader.program(), strict=True):
        (folder / name).write_bytes(content)
    words = [sys.executable, "-I", *flags, str(folder / "start.py"), "toy"]
    return subprocess.run(words, capture_output=True, timeout=120, check=False)


def _printed(folder: Path, *flags: str) -> bytes:
    done = _ran(folder, *flags)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.strip()
