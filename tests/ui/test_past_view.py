"""Looking at runs of before: `[` and `]` in every panel, the banner, what is offered, and the live run meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from console.model import Overrides, Verdict
from console.reasons import ConsoleError, Reason
from console.state.events import RingBell
from console.ui.actions import offered
from console.ui.app import ConsoleApp
from console.ui.present.spans import as_text
from console.ui.screens import plan as plan_module
from console.ui.screens.plan import PlanScreen
from console.ui.screens.target import TargetScreen
from console.ui.situation import Face, situation_of
from console.ui.widgets.lines import LinesView
from console.ui.widgets.logpane import LogPane
from tests.ui import fixtures, pastruns
from tests.ui.filelogs import FileLogs
from tests.ui.fixtures import FakeSource, replace
from tests.ui.screens import is_there
from tests.ui.test_keys import running
from tests.waiting import until_async

_BACK, _ON = "left_square_bracket", "right_square_bracket"


@pytest.fixture(autouse=True)
def _keys_count_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "TYPE_AHEAD_S", 0.0)


def with_log(path: Path) -> FakeSource:
    """A source whose newest run of before has this log on the host."""
    lines = [f"[step {n:>6}] loss=1.{n:03} tok/s=21000" for n in range(1, 400)]
    path.write_text("\n".join([*lines, "the very last line\n"]))
    rows = tuple(replace(row, log_path=str(path)) if row.name == "slammed4" else row for row in pastruns.ROWS)
    source = pastruns.source(rows)
    source.logs = FileLogs(path)
    return source


def screen_of(app: ConsoleApp) -> TargetScreen:
    screen = app.screen
    assert isinstance(screen, TargetScreen)
    return screen


def banner(app: ConsoleApp) -> str:
    view = screen_of(app).query_one("#banner", LinesView)
    return as_text(view.view) if view.display else ""


async def press(pilot: Pilot[str], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()


def shown(app: ConsoleApp) -> str:
    return screen_of(app).text()


def log_lines(app: ConsoleApp) -> list[str]:
    pane = screen_of(app).query_one(LogPane)
    return [row.text for row in pane.log_view.rows()]


async def test_brackets_go_through_the_runs_of_before_and_back_to_the_live_one() -> None:
    async with running(pastruns.source()) as (app, _, pilot):
        await press(pilot, _BACK)
        assert "viewing slammed4 (stopped)" in banner(app)
        assert "1 of 6 past runs" in banner(app)
        assert "live: slammed5 STEPPING" in banner(app)
        assert screen_of(app).snapshot.verdict is Verdict.STOPPED

        await press(pilot, _BACK)
        assert "viewing slammed3 (ended)" in banner(app)
        assert "loss is NaN since step 9,311" in shown(app)

        await press(pilot, _ON)
        assert "viewing slammed4" in banner(app)
        await press(pilot, _ON)
        assert banner(app) == ""
        assert screen_of(app).snapshot.verdict is Verdict.STEPPING


async def test_escape_comes_back_to_the_live_run_from_every_panel() -> None:
    async with running(pastruns.source()) as (app, _, pilot):
        for face in ("1", "2", "3", "5"):
            await press(pilot, face, _BACK)
            assert "viewing slammed4" in banner(app), face
            await press(pilot, "escape")
            assert banner(app) == "", face


async def test_every_panel_shows_the_run_that_is_viewed_and_the_list_of_runs_the_live_one() -> None:
    async with running(pastruns.source()) as (app, _, pilot):
        await press(pilot, _BACK, "2")
        assert "viewing slammed4" in banner(app)
        assert "131.2" in shown(app)
        assert "612" not in shown(app), "the live run's watts"
        await press(pilot, "enter")
        assert "of a run of before no processes are kept" in shown(app)

        await press(pilot, "5")
        assert "anna" in shown(app)
        assert "ops1 started slammed4" in shown(app)
        await press(pilot, "3")
        assert screen_of(app).snapshot.run_id == "r-0040"
        await press(pilot, "4")
        assert screen_of(app).snapshot.run_id == "r-0041"


async def test_log_of_the_viewed_run_is_there_whole_and_the_live_one_comes_back(tmp_path: Path) -> None:
    source = with_log(tmp_path / "train_slammed4.log")
    async with running(source) as (app, _, pilot):
        live = log_lines(app)
        await press(pilot, _BACK)
        assert log_lines(app)[-1] == "the very last line"

        await press(pilot, "g")
        await until_async(lambda: "[step      1]" in log_lines(app)[0], what="the log's first line")
        await press(pilot, "escape", "escape")
        await until_async(lambda: log_lines(app) == live, what="the live run's log")

        await press(pilot, "full_stop", _BACK)
        assert log_lines(app) == ["the very last line"], "step lines are hidden of every run, until they are wanted"


async def test_log_that_is_gone_is_named(tmp_path: Path) -> None:
    source = with_log(tmp_path / "train_slammed4.log")
    (tmp_path / "train_slammed4.log").unlink()
    async with running(source) as (app, _, pilot):
        await press(pilot, _BACK)

        pane = screen_of(app).query_one(LogPane)
        assert "the log is gone" in pane.placeholder
        assert "train_slammed4.log" in pane.placeholder


async def test_a_past_run_is_neither_restarted_nor_stopped_but_its_settings_can_be_taken_again() -> None:
    async with running(pastruns.source()) as (app, source, pilot):
        await press(pilot, _BACK)
        ids = {action.id for action in offered(screen_of(app).situation)}
        assert ids.isdisjoint({"restart", "stop", "again", "diagnose", "baseline"})
        await press(pilot, "r", "s", "d")
        assert not isinstance(app.screen, PlanScreen)

        await pilot.press("o")
        await until_async(lambda: is_there(app, PlanScreen) and source.asked, what="the plan")

        action, overrides = source.asked[-1]
        assert action == "restart"
        assert isinstance(overrides, Overrides)
        assert overrides.base is not None
        assert (overrides.base.id, overrides.base.settings) == ("r-0040", pastruns.BEFORE.settings)


def test_read_only_offers_no_settings_of_a_past_run() -> None:
    now = situation_of(fixtures.HEALTHY, face=Face.OVERVIEW, read_only=True, past=True)

    assert {action.id for action in offered(now)}.isdisjoint({"view_again", "restart", "stop"})


async def test_failure_of_the_live_run_rings_and_is_told_while_one_looks_at_the_past(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rung: list[bool] = []
    async with running(pastruns.source()) as (app, source, pilot):
        monkeypatch.setattr(app, "bell", lambda: rung.append(True))
        await press(pilot, _BACK)

        source.bells.append(RingBell(verdict="ended", title="ct200 slammed5 ENDED"))
        source.change(verdict=Verdict.ENDED, run=replace(fixtures.RUN, alive=False))
        await until_async(lambda: rung, what="the bell")
        await pilot.pause()

        assert any("slammed5 ENDED" in note.message for note in app._notifications)
        assert "live: slammed5 ENDED" in banner(app)
        assert screen_of(app).snapshot.run_id == "r-0040"


async def test_without_runs_of_before_nothing_is_shown_but_the_reason_why() -> None:
    async with running("healthy") as (app, _, pilot):
        await press(pilot, _BACK)
        assert banner(app) == ""
        assert any("no run before this one" in note.message for note in app._notifications)


async def test_ledger_that_can_not_be_read_is_said_and_the_live_run_stays() -> None:
    source = pastruns.source()
    assert isinstance(source.archive, pastruns.FakeArchive)
    source.archive.refuse = ConsoleError(Reason.LEDGER_UNUSABLE, "database is locked")
    async with running(source) as (app, _, pilot):
        await press(pilot, _BACK)
        assert banner(app) == ""
        assert any("database is locked" in note.message for note in app._notifications)


async def test_run_of_which_only_its_log_is_known_claims_no_failure() -> None:
    async with running(pastruns.source()) as (app, _, pilot):
        await press(pilot, *[_BACK] * 6)
        assert "viewing old (ended)" in banner(app)
        assert "how it ended was not recorded" in shown(app)
        assert "0/8" not in shown(app)
        await press(pilot, _BACK)
        assert "viewing old" in banner(app), "there is no older one"


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (60, 24)])
async def test_run_of_which_only_its_log_is_known_shows_its_curve(size: tuple[int, int]) -> None:
    source = pastruns.source()
    archive = source.archive
    assert isinstance(archive, pastruns.FakeArchive)
    archive.kept["log:/workspace/train_old.log"] = pastruns.curves(3, 9_900, 100, 1.0)
    async with running(source, size=size) as (app, _, pilot):
        await press(pilot, *[_BACK] * 6)

        assert "viewing old" in banner(app)
        assert "tok/s" in shown(app)
        assert "nothing was recorded" not in shown(app)
        assert "these settings again" not in shown(app), "nobody knows them"


async def test_m_turns_from_why_a_run_ended_to_its_plots_and_back() -> None:
    source = pastruns.source()
    archive = source.archive
    assert isinstance(archive, pastruns.FakeArchive)
    archive.kept["r-0039"] = pastruns.curves(3, 14_500, 100, 1.0)
    async with running(source) as (app, _, pilot):
        await press(pilot, _BACK, _BACK)
        assert "evidence, first cause first" in shown(app)
        assert "m plots" in shown(app)

        found = []
        for _turn in range(5):
            await press(pilot, "m")
            found.append(next(word for word in _MIDDLES if f"── {word}" in shown(app)))

        assert found == ["tok/s", "loss", "queue", "memory", "why"]


async def test_plots_of_one_failure_do_not_hide_why_another_run_failed() -> None:
    source = pastruns.source()
    archive = source.archive
    assert isinstance(archive, pastruns.FakeArchive)
    archive.kept["r-0039"] = archive.kept["r-0037"] = pastruns.curves(3, 14_500, 100, 1.0)
    async with running(source) as (app, _, pilot):
        await press(pilot, _BACK, _BACK, "m")
        assert "── tok/s" in shown(app)

        await press(pilot, _BACK, _BACK)

        assert "── why" in shown(app)


_MIDDLES = ("why", "tok/s", "loss", "queue", "memory")
