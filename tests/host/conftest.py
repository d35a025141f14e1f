"""A training host in a temporary directory, with whatever a test started in it ended afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.keeperlab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    found = Lab(tmp_path)
    yield found
    found.close()
