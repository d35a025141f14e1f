"""The built library, once a session."""

from pathlib import Path

import pytest

from tests.nvml.build import build, compiler


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test library; its directory goes on LD_LIBRARY_PATH, its state file into FAKE_NVML_STATE."""
    if compiler() is None:
        pytest.skip("no C compiler (gcc) to build the NVML test library with")
    return build(tmp_path_factory.mktemp("nvml"))
