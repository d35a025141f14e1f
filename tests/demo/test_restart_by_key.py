"""The whole way of a restart, from the key on the real screen to a process that steps, and back to the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from console.model import Snapshot, StageState
from console.ui.app import ConsoleApp
from console.ui.present.spans import as_text
from console.ui.screens import plan as plan_module
from console.ui.widgets.lines import LinesView
from tests.engine.consoles import REACH_S, console, quick_target
from tests.waiting import until_async


def _shown(pilot: Pilot[Any]) -> str:
    return "\n".join(as_text(view.view) for view in pilot.app.screen.query(LinesView) if view.display)


async def test_r_shows_the_plan_and_capital_r_leads_through_five_stages_to_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_module, "TYPE_AHEAD_S", 0.0)
    with quick_target(tmp_path / "demo", 8.0) as target:
        async with console(target) as engine:
            app = ConsoleApp(engine)
            async with app.run_test(size=(100, 30)) as pilot:
                await until_async(lambda: "IDLE" in _shown(pilot), what="the screen")
                await pilot.press("r")
                await until_async(lambda: "train_slammed1.log" in _shown(pilot), what="the plan")
                touched = engine.snapshot.run is not None
                await pilot.press("R")
                await until_async(lambda: _proven(engine.snapshot), REACH_S, "five stages, each with its evidence")
                await until_async(lambda: "STEPPING" in _shown(pilot), what="the verdict in words")
                await until_async(lambda: _rail(pilot).count("✓") == 4, what="the stages with their signs")
                assert "– kill" in _rail(pilot)  # nothing ran

    assert not touched


def _rail(pilot: Pilot[Any]) -> str:
    return as_text(pilot.app.screen.query_one("#rail", LinesView).view)


def _proven(snapshot: Snapshot) -> bool:
    states = [stage.state for stage in snapshot.stages]
    return set(states[:2]) <= {StageState.DONE, StageState.SKIPPED} and states[2:] == [StageState.DONE] * 3
