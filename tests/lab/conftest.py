"""Containers with the training run installed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.containers import Container
from tests.lab.session import Lab
from tests.lab.training import Training
from tests.nvml.build import build, compiler


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The NVML test library, built."""
    if compiler() is None:
        pytest.skip("no C compiler (gcc) to build the NVML test library with")
    return build(tmp_path_factory.mktemp("driver"))


def _installed(lab: Lab, container: Container, folder: Path, driver: Path) -> Iterator[Training]:
    training = Training(lab, container, folder, driver)
    training.clear()
    training.install()
    yield training
    training.clear()


@pytest.fixture
def training(lab: Lab, plain_container: Container, tmp_path: Path, driver: Path) -> Iterator[Training]:
    """The run in the plain container, nothing running."""
    yield from _installed(lab, plain_container, tmp_path, driver)


@pytest.fixture
def training_in_each(lab: Lab, container: Container, tmp_path: Path, driver: Path) -> Iterator[Training]:
    """The run in the plain and then in the systemd container, nothing running."""
    yield from _installed(lab, container, tmp_path, driver)
