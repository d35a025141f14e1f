"""What every test gets: homes and XDG folders of its own, so that no test reads or writes the developer's."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.order import longest_first

pytest_plugins = ["tests.lab.fixtures"]

# An example that the scheduler stopped for a second is neither slow nor flaky.
hypothesis.settings.register_profile("busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("busy")


def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False  # xdist's order is by the number of tests: it begins the longest files last


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    longest_first(config, items)


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a new folder of this session at each turn.

    `mktemp` reads through all that it ever made to number the next: at six thousand it takes longer than most tests.
    """
    parent = tmp_path_factory.mktemp("xdg")
    return (parent / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _private_folders(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    base = next(_homes)
    base.mkdir(mode=0o700)
    for variable in ("CONFIG", "DATA", "STATE", "CACHE", "RUNTIME"):
        folder = base / variable.lower()
        folder.mkdir(mode=0o700)
        monkeypatch.setenv(f"XDG_{variable}_{'DIR' if variable == 'RUNTIME' else 'HOME'}", str(folder))
    monkeypatch.delenv("NO_COLOR", raising=False)
