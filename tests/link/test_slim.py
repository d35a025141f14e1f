"""What is left of a module that is sent: all that is used of it, at its place, and nothing else."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from console.host import nvml
from console.link.payload import _sources
from console.link.slim import only_what_is_used

_SOURCE = '''# whose it is
import os
LIMIT = 3
UNUSED = [
    4,
]
ERROR_A = 1
def helper(): return LIMIT
@wraps
@again(
    helper)
def used():
    """A text.
def not_a_function(): in a text
    """
    return helper()

@wraps
def unused():
    """Another
text, whose lines begin at the margin
"""
    return UNUSED
class Also(object):
    x = LIMIT
if os.name:
    LIMIT = 5
'''


@pytest.fixture(scope="module")
def sent() -> Iterator[types.ModuleType]:
    module = types.ModuleType("sent_pynvml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)  # it looks itself up
        exec(compile(_sources()["pynvml"], "pynvml.py", "exec"), module.__dict__)  # noqa: S102  what importing is
        yield module


def test_what_is_used_stays_where_it_was_and_the_rest_is_blank() -> None:
    lean = only_what_is_used(_SOURCE, ["m.used()"], always="ERROR_")

    gone = {"UNUSED = [", "    4,", "]", "def unused():", '    """Another', "    return UNUSED", "class Also(object):"}
    gone |= {"text, whose lines begin at the margin", '"""', "    x = LIMIT"}
    kept = ["" if line in gone else line for line in _SOURCE.splitlines()]
    kept[_SOURCE.splitlines().index("def unused():") - 1] = ""  # its decorator
    assert lean.splitlines() == kept
    ast.parse(lean)


def test_a_name_in_a_text_counts_as_used() -> None:
    assert "class Also" in only_what_is_used(_SOURCE, ["getattr(m, 'Also')"], always="ERROR_")


def test_all_that_is_asked_of_the_driver_is_sent_as_it_was(sent: types.ModuleType) -> None:
    words = set(_words_of(Path(nvml.__file__).read_text("utf-8")))
    asked = {word for word in words if hasattr(pynvml, word) and not hasattr(types, word)}

    assert len(asked) > 40
    for name in asked:
        assert _code_of(getattr(sent, name)) == _code_of(getattr(pynvml, name)), name


def test_nothing_that_is_sent_misses_another_part(sent: types.ModuleType) -> None:
    needed = {name for code in _codes_of(compile(_sources()["pynvml"], "pynvml.py", "exec")) for name in code.co_names}

    missing = {name for name in needed if hasattr(pynvml, name) and not hasattr(sent, name)}

    assert missing - set(dir(sent.c_nvmlMemory_t)) == set()


def test_every_error_of_the_driver_has_its_class(sent: types.ModuleType) -> None:
    assert _errors(sent) == _errors(pynvml)
    with pytest.raises(sent.NVMLError_GpuIsLost):
        raise sent.NVMLError(15)


def _errors(module: types.ModuleType) -> set[str]:
    return {name for name in dir(module) if name.startswith(("NVMLError", "NVML_ERROR_"))}


def _words_of(source: str) -> Iterator[str]:
    """Names, attributes and texts: calls are made by name, too."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr=word) | ast.Constant(value=str(word)) | ast.Name(id=word):
                yield word


def _codes_of(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes_of(constant)


def _code_of(value: object) -> object:
    """What a function does and where it stands in its file; a constant itself."""
    function = getattr(value, "__wrapped__", value)
    code = getattr(function, "__code__", None)
    if code is None:
        return type(value).__name__ if isinstance(value, type) else value
    return code.co_code, code.co_firstlineno, code.co_names
