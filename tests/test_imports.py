"""The directions between our packages, read from the source: what import-linter can't express."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_PACKAGE = Path(__file__).parent.parent / "console"
_MODULES = sorted(_PACKAGE.rglob("*.py"))
_STDLIB_OF_3_8 = frozenset(sys.stdlib_module_names) - {"graphlib", "tomllib", "zoneinfo"}


def _name_of(path: Path) -> str:
    parts = path.relative_to(_PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(source: str, module: str, *, is_package: bool) -> Iterator[str]:
    """Yield the absolute name of everything that `source` imports anywhere in it, also within functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = node.level - 1 if is_package else node.level
            base = module.split(".")[: -above or None] if node.level else []
            origin = ".".join([*base, *filter(None, [node.module])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def _imports(path: Path) -> set[str]:
    return set(imports_of(path.read_text("utf-8"), _name_of(path), is_package=path.name == "__init__.py"))


def _within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def test_relative_and_nested_imports_are_resolved() -> None:
    source = "from . import frames\nfrom .proc import stat\ndef f():\n    import console.state.series\n"

    found = set(imports_of(source, "console.host.agent", is_package=False))

    assert found == {"console.host.frames", "console.host.proc.stat", "console.state.series"}


@pytest.mark.parametrize("path", [p for p in _MODULES if "host" in p.relative_to(_PACKAGE).parts[:1]], ids=_name_of)
def test_host_side_needs_only_the_standard_library_of_python_3_8(path: Path) -> None:
    ast.parse(path.read_text("utf-8"), feature_version=(3, 8))

    outside = {n for n in _imports(path) if not _within(n, "console.host") and n.split(".")[0] not in _STDLIB_OF_3_8}

    # pynvml is sent along with the agent, so it may be there.
    assert {n for n in outside if not _within(n, "pynvml")} == set()


def test_no_expression_has_a_possessive_or_atomic_group() -> None:
    """Python 3.11 before 3.11.5, which Debian 12 has, matches less with them where the group backtracks."""
    such = re.compile(r"(?<![(\\])\)(?:[*+?]|\{[\d,]+\})\+|\(\?>")
    nodes = (node for path in _MODULES for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))

    assert not [text for text in texts if such.search(text)]


def test_only_the_engine_knows_both_link_and_state() -> None:
    both = {
        _name_of(path)
        for path in _MODULES
        if all(any(_within(name, package) for name in _imports(path)) for package in ("console.link", "console.state"))
    }

    assert {name for name in both if not _within(name, "console.engine")} == set()


def test_nothing_but_the_entry_point_imports_the_command_line() -> None:
    importers = {_name_of(path) for path in _MODULES if any(_within(n, "console.cli") for n in _imports(path))}

    assert {name for name in importers if not _within(name, "console.cli")} <= {"console.__main__"}


def test_importing_the_package_costs_no_heavy_dependency() -> None:
    heavy = "{'textual', 'asyncssh', 'plotext', 'msgspec'}"
    code = f"import sys, console, console.resources; print({heavy} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)

    assert done.stdout.strip() == "set()"
