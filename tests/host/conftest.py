"""A training host in a temporary directory, with whatever a test started in it ended afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from console.host import doctor, loginenv, preflight, script
from tests.host.keeperlab import Lab

_LIMITS = ((doctor, "FACT_S"), (loginenv, "TIMEOUT_S"), (preflight, "CHECK_S"), (preflight, "SYNTAX_S"),
           (preflight, "MODULES_S"), (script, "SYNTAX_TIMEOUT_S"))  # fmt: skip


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is called in the test's own process gets its answer, however late; a test of such a limit sets it itself."""
    for module, name in _LIMITS:
        assert hasattr(module, name)
        monkeypatch.setattr(module, name, 60.0)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    found = Lab(tmp_path)
    yield found
    found.close()
