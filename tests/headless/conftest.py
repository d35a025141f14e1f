"""One demo host for each module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.headless.running import Console, fast_host


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with fast_host(tmp_path_factory.mktemp("demo")) as host:
        yield Console(host)
