"""The screens as SVGs, at every size and in the states that matter: a change of look is a change of these files.

`pytest tests/ui/test_pictures.py --snapshot-update` after having looked at the new pictures.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC
from typing import Any

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from console.ui import plot
from console.ui.app import ConsoleApp
from console.ui.present.spans import as_text
from console.ui.screens import plan as plan_module
from console.ui.widgets.lines import LinesView
from tests.ui import fixtures, pastruns
from tests.waiting import until_async

Compare = Callable[..., bool]
SIZES = ((160, 48), (120, 36), (80, 24), (60, 20))


@pytest.fixture(autouse=True)
def _same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setattr(plan_module, "TYPE_AHEAD_S", 0.0)
    plot.load()


async def _settled(pilot: Pilot[Any]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def _after(*keys: str, shows: str) -> Callable[[Pilot[Any]], Awaitable[None]]:
    async def run(pilot: Pilot[Any]) -> None:
        await _settled(pilot)
        await pilot.press(*keys)
        await until_async(lambda: shows in _all_rows(pilot), what=f"{shows!r} on the screen")
        for node in pilot.app.query("Input"):
            node.cursor_blink = False  # type: ignore[attr-defined]
        await pilot.pause()

    return run


def _all_rows(pilot: Pilot[Any]) -> str:
    return "\n".join(as_text(view.view) for view in pilot.app.screen.query(LinesView))


def _app(scene: str, **plans: Any) -> ConsoleApp:
    source = fixtures.SCENES[scene]()
    if plans:
        source.plans = list(plans.values())
    return ConsoleApp(source, zone=UTC)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scene", ["healthy", "launching", "failed", "link"])
def test_overview(scene: str, size: tuple[int, int], snap_compare: Compare) -> None:
    assert snap_compare(_app(scene), terminal_size=size, run_before=_settled)


@pytest.mark.parametrize(
    "scene",
    ["stopping", "stalled", "ended", "nan", "slow", "idle", "connecting", "refused", "by-hand", "late", "read-only"],
)
def test_other_states(scene: str, snap_compare: Compare) -> None:
    assert snap_compare(_app(scene), terminal_size=(120, 36), run_before=_settled)


@pytest.mark.parametrize("size", [(120, 36), (80, 24)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(
    ("key", "plan", "shows"),
    [
        ("r", fixtures.RESTART_PLAN, "about 3m 45s"),
        ("s", fixtures.STOP_PLAN, "20 s grace"),
        ("r", fixtures.REFUSED_PLAN, "may not be executed"),
        ("r", fixtures.LOCKED_PLAN, "is restarting"),
    ],
    ids=["restart", "stop", "refused", "locked"],
)
def test_dialogs(key: str, plan: Any, shows: str, size: tuple[int, int], snap_compare: Compare) -> None:
    app = _app("healthy", first=plan)
    assert snap_compare(app, terminal_size=size, run_before=_after(key, shows=shows))


@pytest.mark.parametrize("size", [(120, 36), (80, 24)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_help(size: tuple[int, int], snap_compare: Compare) -> None:
    before = _after("question_mark", shows="first line of the log")
    assert snap_compare(_app("healthy"), terminal_size=size, run_before=before)


def test_edit(snap_compare: Compare) -> None:
    async def before(pilot: Pilot[Any]) -> None:
        await _after("r", shows="about 3m 45s")(pilot)
        await _after("e", "down", "x", shows="WANDB_API_KEY")(pilot)

    assert snap_compare(_app("healthy"), terminal_size=(80, 24), run_before=before)


@pytest.mark.parametrize(
    ("scene", "size", "keys"),
    [
        ("troubled", (120, 36), ("2",)),
        ("troubled", (80, 24), ("2",)),
        ("troubled", (120, 36), ("2", "down", "enter")),
        ("many", (120, 36), ("2", "m")),
        ("launching", (160, 48), ("2",)),
        ("no-driver", (80, 24), ("2",)),
    ],
    ids=["plots", "small", "processes", "many", "launching", "none"],
)
def test_gpu_screen(scene: str, size: tuple[int, int], keys: tuple[str, ...], snap_compare: Compare) -> None:
    assert snap_compare(_app(scene), terminal_size=size, run_before=_after(*keys, shows="GPUs"))


@pytest.mark.parametrize(
    ("size", "keys"),
    [
        ((120, 36), ("left_square_bracket",)),
        ((80, 24), ("left_square_bracket",)),
        ((120, 36), ("left_square_bracket", "left_square_bracket")),
        ((80, 24), ("left_square_bracket", "2")),
    ],
    ids=["stopped", "small", "ended", "gpus"],
)
def test_run_before(size: tuple[int, int], keys: tuple[str, ...], snap_compare: Compare) -> None:
    async def before(pilot: Pilot[Any]) -> None:
        await _settled(pilot)
        for key in keys:
            await pilot.press(key)
            await _settled(pilot)
        await until_async(lambda: "viewing slammed" in _all_rows(pilot), what="the banner")

    app = ConsoleApp(pastruns.source(), zone=UTC)
    assert snap_compare(app, terminal_size=size, run_before=before)


def test_light_theme(snap_compare: Compare) -> None:
    app = ConsoleApp(fixtures.SCENES["failed"](), zone=UTC, light=True)
    assert snap_compare(app, terminal_size=(120, 36), run_before=_settled)


def test_ascii_only(snap_compare: Compare) -> None:
    app = ConsoleApp(fixtures.SCENES["healthy"](), zone=UTC, ascii_only=True)
    assert snap_compare(app, terminal_size=(120, 36), run_before=_settled)


def _runs(*keys: str, shows: str) -> Callable[[Pilot[Any]], Awaitable[None]]:
    async def run(pilot: Pilot[Any]) -> None:
        await _settled(pilot)
        await pilot.press("4")
        await until_async(lambda: "slammed4" in _all_rows(pilot), what="the table")
        await pilot.press(*keys)
        await until_async(lambda: shows in _all_rows(pilot), what=f"{shows!r} on the screen")
        await _settled(pilot)

    return run


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_two_runs(size: tuple[int, int], snap_compare: Compare) -> None:
    app = ConsoleApp(pastruns.source(), zone=UTC)
    before = _runs("space", "down", "space", shows="A against B")
    assert snap_compare(app, terminal_size=size, run_before=before)


@pytest.mark.parametrize("size", [(120, 36), (80, 24)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_runs(size: tuple[int, int], snap_compare: Compare) -> None:
    app = ConsoleApp(pastruns.source(), zone=UTC)
    assert snap_compare(app, terminal_size=size, run_before=_runs("down", "down", shows="args batch 8->6"))


async def _while_away(pilot: Pilot[Any]) -> None:
    """A key ten minutes ago, then a slow spell and a lost link while nobody was there."""
    await _settled(pilot)
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    now = fixtures.NOW
    app.chronicle.key(now - 640)
    await pilot.press("5")
    app.chronicle.see(fixtures.STALLED)
    app.chronicle.see(fixtures.HEALTHY)
    await until_async(lambda: "slammed4: stopped by anna" in _all_rows(pilot), what="the ledger's runs")
    await until_async(lambda: "STEPPING again" in _all_rows(pilot), what="what came meanwhile")
    await _settled(pilot)


@pytest.mark.parametrize("size", [(120, 36), (80, 24)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_events(size: tuple[int, int], snap_compare: Compare) -> None:
    rows = (pastruns.LIVE, *(replace(row, ended_wall=row.accepted_wall + 3000) for row in pastruns.ROWS[1:]))
    app = ConsoleApp(pastruns.source(rows), zone=UTC)
    assert snap_compare(app, terminal_size=size, run_before=_while_away)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_log_screen(size: tuple[int, int], snap_compare: Compare) -> None:
    assert snap_compare(_app("healthy"), terminal_size=size, run_before=_after("3", shows="following"))


@pytest.mark.parametrize("scene", ["failed", "link", "launching"])
def test_log_screen_when_somebody_is_needed(scene: str, snap_compare: Compare) -> None:
    assert snap_compare(_app(scene), terminal_size=(80, 24), run_before=_after("3", shows="log"))


def test_log_screen_searching(snap_compare: Compare) -> None:
    async def before(pilot: Pilot[Any]) -> None:
        await _after("3", "slash", *"drafter", "enter", shows="hit 2 of 2")(pilot)
        await _after("w", "ampersand", "s", "t", "e", "p", shows="shows only them")(pilot)
        await until_async(lambda: "ain_slammed5.log" in _all_rows(pilot), what="a title without trouble")

    assert snap_compare(_app("healthy"), terminal_size=(80, 24), run_before=before)
