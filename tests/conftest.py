"""What every test gets: homes and XDG folders of its own, so that no test reads or writes the developer's."""

from pathlib import Path

import hypothesis
import pytest

pytest_plugins = ["tests.lab.fixtures"]

# An example that the scheduler stopped for a second is neither slow nor flaky.
hypothesis.settings.register_profile("busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("busy")


@pytest.fixture(autouse=True)
def _private_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    base: Path = tmp_path_factory.mktemp("xdg")
    for variable in ("CONFIG", "DATA", "STATE", "CACHE", "RUNTIME"):
        folder = base / variable.lower()
        folder.mkdir(mode=0o700)
        monkeypatch.setenv(f"XDG_{variable}_{'DIR' if variable == 'RUNTIME' else 'HOME'}", str(folder))
    monkeypatch.delenv("NO_COLOR", raising=False)
