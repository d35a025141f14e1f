"""Keys that write into the config file: `c` in the table of settings, `i` on the page of first contact."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path

import pytest
from textual.pilot import Pilot

from console import configfile
from console.config import Target
from console.configeditor import ConfigEntry
from console.ui.app import ConsoleApp
from console.ui.present.spans import as_text
from console.ui.screens import plan as plan_module
from console.ui.screens.edit import EditScreen
from console.ui.screens.plan import PlanScreen
from console.ui.screens.prompt import PromptScreen
from console.ui.widgets.lines import LinesView
from tests.ui import fixtures
from tests.ui.fixtures import FakeSource
from tests.ui.screens import is_there
from tests.waiting import until_async


@pytest.fixture(autouse=True)
def _keys_count_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "TYPE_AHEAD_S", 0.0)


@asynccontextmanager
async def running(scene: str, entry: ConfigEntry | None) -> AsyncIterator[tuple[ConsoleApp, FakeSource, Pilot[str]]]:
    source = fixtures.SCENES[scene]()
    app = ConsoleApp(source, zone=UTC, entry=entry)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        yield app, source, pilot


async def edit_one_value(app: ConsoleApp, pilot: Pilot[str]) -> None:
    await pilot.press("r")
    await until_async(lambda: is_there(app, PlanScreen) and "kill" in shown(app, "rows"), what="the plan")
    await pilot.press("e")
    await until_async(lambda: is_there(app, EditScreen), what="the table")
    await pilot.press("down", "enter")
    await until_async(lambda: is_there(app, PromptScreen), what="the prompt")
    await pilot.press("backspace", "2", "enter")
    await until_async(lambda: is_there(app, EditScreen), what="the table again")


def shown(app: ConsoleApp, widget_id: str) -> str:
    return as_text(app.screen.query_one(f"#{widget_id}", LinesView).view)


async def test_c_keeps_what_was_edited_in_the_config_and_it_is_no_change_any_more(tmp_path: Path) -> None:
    entry = ConfigEntry(tmp_path / "config.toml", "ct200")
    entry.add(Target(host="10.1.2.6", command=("/root/run.sh",), env={"DFLASH_SPLIT_FC_LAYERS": "0"}))

    async with running("healthy", entry) as (app, source, pilot):
        await edit_one_value(app, pilot)
        assert "was 0" in shown(app, "rows")
        assert "keep in the config" in shown(app, "hints")
        await pilot.press("c")
        assert "was 0" not in shown(app, "rows")
        assert "keep in the config" not in shown(app, "hints")
        await pilot.press("escape")
        await until_async(lambda: len(source.asked) > 1, what="the plan anew")

    assert configfile.load(entry.path).targets["ct200"].env["DFLASH_SPLIT_FC_LAYERS"] == "2"
    assert source.declared_env["DFLASH_SPLIT_FC_LAYERS"] == "2"
    assert source.asked[-1][1].env == {}
    assert source.executed == []


async def test_without_a_config_file_nothing_offers_to_keep(tmp_path: Path) -> None:
    for entry in (None, ConfigEntry(tmp_path / "config.toml", "ct200")):
        async with running("healthy", entry) as (app, _, pilot):
            await edit_one_value(app, pilot)
            assert "keep" not in shown(app, "hints")
            await pilot.press("c")
            assert "was 0" in shown(app, "rows")


async def test_a_file_that_can_not_be_changed_is_said_and_the_edit_stays(tmp_path: Path) -> None:
    entry = ConfigEntry(tmp_path / "config.toml", "ct200")
    entry.add(Target(command=("/root/run.sh",)))

    async with running("healthy", entry) as (app, _, pilot):
        await edit_one_value(app, pilot)
        entry.path.write_text("not toml")
        await pilot.press("c")
        await pilot.pause()
        assert "was 0" in shown(app, "rows")
        assert any("not kept" in note.message for note in app._notifications)

    assert entry.path.read_text() == "not toml"


async def test_i_writes_a_target_that_was_given_by_flags_into_the_config_file(tmp_path: Path) -> None:
    entry = ConfigEntry(tmp_path / "config.toml", "ct200")

    async with running("by-hand", entry) as (app, _, pilot):
        assert "write this target into the config file" in shown(app, "contact")
        await pilot.press("i")
        await pilot.pause()
        assert "write this target" not in shown(app, "contact")
        await pilot.press("i")  # once is enough

    written = configfile.load(entry.path).targets["ct200"]
    assert written.host == "10.1.2.6"
    assert written.command


async def test_a_target_of_the_config_file_is_not_offered_to_be_written(tmp_path: Path) -> None:
    entry = ConfigEntry(tmp_path / "config.toml", "ct200")
    entry.add(Target())
    before = entry.path.read_text()

    async with running("by-hand", entry) as (app, _, pilot):
        assert "write this target" not in shown(app, "contact")
        await pilot.press("i")

    assert entry.path.read_text() == before
