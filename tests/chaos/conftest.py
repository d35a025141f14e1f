"""Short launches, so that many fit into a minute: no profile is read, and spawned means 0.2 s old, not a second."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from console.config import Target
from console.engine import requests
from console.link import payload
from console.model import Overrides
from console.protocol import RunSpec


@pytest.fixture(autouse=True)
def _quick_spawns(monkeypatch: pytest.MonkeyPatch) -> None:
    made = requests.run_spec

    def quick(name: str, target: Target, overrides: Overrides) -> RunSpec:
        return replace(made(name, target, overrides), start_s=0.2)

    monkeypatch.setattr(requests, "run_spec", quick)


@pytest.fixture(autouse=True)
def _no_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send an agent whose login shells read no profile: that of the developer may take half a second."""
    made = payload._sources

    def without() -> dict[str, str]:
        found = made()
        name = next(each for each in found if each.endswith(".loginenv"))
        assert '"-lc"' in found[name]
        return {**found, name: found[name].replace('"-lc"', '"-c"')}

    monkeypatch.setattr(payload, "_sources", without)
