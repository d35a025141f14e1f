"""The keys of a recording that is played: each does to the player what the help says of it, and the bar shows it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from typing import Any

import pytest
from textual.pilot import Pilot

from console.engine.replay import Replay
from console.ui.app import ConsoleApp
from console.ui.present.spans import as_text
from console.ui.widgets.lines import LinesView
from tests.engine.test_replay import tape
from tests.ui import fixtures
from tests.waiting import until_async

_KEYS = {
    "{": "left_curly_bracket",
    "}": "right_curly_bracket",
    "(": "left_parenthesis",
    ")": "right_parenthesis",
}


@asynccontextmanager
async def _played() -> AsyncIterator[tuple[Replay, Pilot[Any]]]:
    """A recording that stands: it begins a second before its run, killing at 1 s, cache and spawned at 5 s."""
    player = Replay(tape())
    player.is_paused = True
    source = fixtures.SCENES["healthy"]()
    source.playback = player
    app = ConsoleApp(source, zone=UTC, read_only=True)
    async with app.run_test(size=(120, 36)) as pilot:
        await _says(pilot, "PAUSED")
        yield player, pilot


async def _says(pilot: Pilot[Any], text: str) -> None:
    def footer() -> str:
        return "".join(as_text(view.view) for view in pilot.app.screen.query(LinesView) if view.id == "footer")

    await until_async(lambda: text in footer(), what=f"{text!r} in the footer")


async def test_keys_go_to_stages_and_by_ten_seconds() -> None:
    places: list[float] = []

    async with _played() as (player, pilot):
        for key in "}})({":
            await pilot.press(_KEYS[key])
            await pilot.pause()
            places.append(player.position_s)

    assert places == pytest.approx([1.0, 5.0, 15.0, 5.0, 1.0])


@pytest.mark.parametrize("screen", ["1", "2", "3"])
async def test_keys_stop_and_hasten_it_on_every_screen_that_shows_the_run(screen: str) -> None:
    async with _played() as (player, pilot):
        await pilot.press(screen)
        await _says(pilot, "PAUSED")
        await pilot.press("plus", "plus", "minus")
        await _says(pilot, "×2")
        await pilot.press("space")
        await _says(pilot, "REPLAY")

    assert (player.speed, player.is_paused) == (2.0, False)
