"""A key is answered before the log goes on, and its answer paints no more of the screen than it changes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC
from types import SimpleNamespace
from typing import Any

import pytest
from textual._compositor import Compositor
from textual.app import App
from textual.events import Key, Paste
from textual.pilot import Pilot
from textual.widgets import Input

from console.engine.replay import Replay
from console.history.entry import Runs
from console.model import Overrides, Plan
from console.ui import keyorder, pace, plot
from console.ui.app import ConsoleApp
from console.ui.present.spans import as_text
from console.ui.screens import plan
from console.ui.screens.help import HelpScreen
from console.ui.screens.log import LogScreen
from console.ui.screens.overview import Overview
from console.ui.screens.pick import PickRow, PickScreen
from console.ui.widgets.lines import LinesView
from console.ui.widgets.logpane import LogPane
from tests.engine.test_replay import tape
from tests.ui import fixtures, pastruns
from tests.ui.fixtures import FakeSource, raw
from tests.ui.pastruns import FakeArchive
from tests.ui.screens import is_there
from tests.waiting import until_async


@asynccontextmanager
async def shown(source: FakeSource, columns: int = 120) -> AsyncIterator[tuple[Overview, Pilot[str]]]:
    app = ConsoleApp(source, zone=UTC, read_only=source.playback is not None)
    async with app.run_test(size=(columns, 36)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, Overview)
        yield screen, pilot


def rows_of(pane: LogPane) -> list[str]:
    return [pane.render_line(y).text.strip() for y in range(pane.size.height)]


# --- the search line ---


async def test_the_search_line_stands_over_the_panes_last_row_and_the_newest_line_right_above_it() -> None:
    async with shown(fixtures.SCENES["healthy"]()) as (screen, pilot):
        pane, line = screen.query_one(LogPane), screen.query_one("#search", Input)
        size, newest = pane.size, rows_of(pane)[-1]
        assert newest

        await pilot.press("slash")
        await pilot.pause()

        assert pane.size == size
        assert line.visible
        assert line.region.y == pane.region.bottom - 1 == screen.query_one("#footer").region.y - 1
        assert rows_of(pane)[-2:] == [newest, ""]

        await pilot.press("escape")
        await pilot.pause()
        assert rows_of(pane)[-1] == newest


@pytest.mark.parametrize("columns", [120, 80, 60])
@pytest.mark.parametrize("key", ["slash", "ampersand"])
async def test_what_the_search_line_is_for_is_never_cut(columns: int, key: str) -> None:
    async with shown(fixtures.SCENES["healthy"](), columns) as (screen, pilot):
        await pilot.press(key)
        await pilot.pause()

        line = screen.query_one("#search", Input)
        assert 20 <= len(line.placeholder) <= line.content_size.width
        assert line.placeholder.startswith("search the whole log" if key == "slash" else "show only lines that match")
        assert ("regular expression" in line.placeholder) == (columns == 120 or (columns, key) == (80, "slash"))

        await pilot.resize_terminal(60, 20)
        await until_async(
            lambda: len(line.placeholder) <= line.content_size.width <= 60, what="words that fit into the new width"
        )


def is_paint_due(app: App[Any]) -> bool:
    """Whether a screen is to be laid out, or the one in front painted: a busy machine may come to that later."""
    front = app.screen
    return bool(
        front._repaint_required or front._dirty_widgets or any(each._layout_required for each in app.screen_stack)
    )


async def test_nothing_but_the_log_and_the_footer_is_painted_when_a_search_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole: list[Compositor] = []
    partly: list[set[int]] = []
    full_update, partial_update = Compositor.render_full_update, Compositor.render_partial_update

    def paint_all(self: Compositor, simplify: bool = False) -> Any:
        whole.append(self)
        return full_update(self, simplify)

    def paint_some(self: Compositor) -> Any:
        partly.append({y for region in self._dirty_regions for y in region.line_range})
        return partial_update(self)

    plot.load()  # else the plots are painted when it is there
    async with shown(fixtures.SCENES["healthy"]()) as (screen, pilot):
        pane = screen.query_one(LogPane)
        await until_async(lambda: not is_paint_due(pilot.app), what="all of the screen is painted")
        monkeypatch.setattr(Compositor, "render_full_update", paint_all)
        monkeypatch.setattr(Compositor, "render_partial_update", paint_some)
        await pilot.press("slash")
        await pilot.pause()

        # The pane, its last row under the search line, its title, and the footer.
        assert not whole
        assert partly
        assert set().union(*partly) <= {*range(pane.region.y - 1, pane.region.bottom + 1)}


async def test_the_search_line_stands_above_both_rows_of_a_recordings_footer() -> None:
    player = Replay(tape())
    player.is_paused = True
    source = fixtures.SCENES["healthy"]()
    source.playback = player
    async with shown(source) as (screen, pilot):
        await pilot.press("slash")
        await pilot.pause()

        footer = screen.query_one("#footer", LinesView)
        assert footer.size.height == 2
        assert screen.query_one("#search", Input).region.y == footer.region.y - 1


# --- new lines wait for a key ---


class Clock:
    """The screen's clock and timers; nothing is due before a test says so."""

    def __init__(self, screen: Overview, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.due: list[tuple[float, Callable[[], None]]] = []
        monkeypatch.setattr(pace, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(screen, "set_timer", self._set_timer)
        for timer in tuple(screen._timers):
            timer.stop()  # the screen's own second, which a busy machine may take between two lines of a test

    def _set_timer(self, delay: float, callback: Callable[[], None]) -> Any:
        timer = (self.now + delay, callback)
        self.due.append(timer)
        return SimpleNamespace(stop=lambda: self.due.remove(timer))

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for timer in [timer for timer in self.due if timer[0] <= self.now + 1e-9]:
            self.due.remove(timer)
            timer[1]()


async def lines_come(source: FakeSource, pilot: Pilot[str], text: str) -> None:
    source.log.append([raw(f"{text} {number}") for number in range(20)])
    for callback in list(source.on_lines):
        callback()
    await pilot.pause()


async def test_a_key_goes_before_new_lines_once_and_held_down_keys_do_not_stop_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = fixtures.SCENES["launching"]()
    async with shown(source) as (screen, pilot):
        clock, pane = Clock(screen, monkeypatch), screen.query_one(LogPane)
        await lines_come(source, pilot, "first")
        assert "first 19" in rows_of(pane)  # nothing was painted lately

        clock.advance(1.0)
        await pilot.press("x")
        await lines_come(source, pilot, "second")
        assert "second 19" not in rows_of(pane)
        clock.advance(0.04)
        await pilot.press("x")  # held down: these lines have waited for one key already
        clock.advance(0.03)
        assert "second 19" in rows_of(pane)

        await lines_come(source, pilot, "third")  # waits for the pace: 40 ms
        clock.advance(0.03)
        await pilot.press("x")
        clock.advance(0.02)
        assert "third 19" not in rows_of(pane)
        clock.advance(0.05)
        assert "third 19" in rows_of(pane)


async def test_in_a_flood_the_log_is_painted_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    source = fixtures.SCENES["launching"]()
    async with shown(source) as (screen, pilot):
        clock, pane = Clock(screen, monkeypatch), screen.query_one(LogPane)
        source.log.gap(5_000_000, source.snapshot.at - 0.5)
        await lines_come(source, pilot, "first")
        await lines_come(source, pilot, "second")
        clock.advance(0.1)
        assert "second 19" not in rows_of(pane)
        clock.advance(0.03)
        assert "second 19" in rows_of(pane)

        source.change(at=source.snapshot.at + 2)  # nothing was skipped for some time
        await pilot.pause()
        clock.advance(1.0)
        await lines_come(source, pilot, "third")
        await lines_come(source, pilot, "fourth")
        clock.advance(0.05)
        assert "fourth 19" in rows_of(pane)


# --- how long a paint is put off ---


@pytest.mark.parametrize(("told", "period_s"), [(None, 1 / 120), ("30", 1 / 30)])
def test_a_paint_is_put_off_by_a_turn_of_120_a_second_unless_told_otherwise(told: str | None, period_s: float) -> None:
    surroundings = {name: value for name, value in os.environ.items() if name != "TEXTUAL_FPS"}
    surroundings |= {"TEXTUAL_FPS": told} if told is not None else {}
    program = "import console.ui.app, textual.screen; print(textual.screen.UPDATE_PERIOD)"

    done = subprocess.run(
        [sys.executable, "-c", program], env=surroundings, stdout=subprocess.PIPE, text=True, check=True
    )

    assert float(done.stdout) == pytest.approx(period_s)


# --- keys that come all at once ---


def at_once(app: ConsoleApp, text: str) -> None:
    """Press keys as a connection brings them that has held them back."""
    names = {
        "/": "slash", "&": "ampersand", "?": "question_mark", "\r": "enter", "\t": "tab", "\x7f": "backspace",
        "\x1b": "escape",
    }  # fmt: skip
    for each in text:
        app.post_message(Key(names.get(each, each), each if each.isprintable() else None))


async def help_comes(app: ConsoleApp) -> None:
    """Wait until the help is there and all keys are done with."""
    await until_async(lambda: isinstance(app.screen, HelpScreen) and not app._key_order.is_busy, what="the help")


async def test_letters_that_come_with_the_slash_are_typed_and_none_is_a_command() -> None:
    source = fixtures.SCENES["healthy"]()
    async with shown(source) as (screen, pilot):
        at_once(screen.face, "/rsqe.w1")
        line = screen.query_one("#search", Input)
        await until_async(lambda: line.value == "rsqe.w1", what="what was typed")

        assert pilot.app.screen is screen
        assert not source.asked


@pytest.mark.parametrize("typed", ["draftxx\x7f\x7fer", "dx\x7frafter", "x\x1b/drafter", "\t\tdrafter"])
async def test_a_search_that_comes_whole_is_searched_for_in_whatever_way_it_was_typed(typed: str) -> None:
    async with shown(fixtures.SCENES["healthy"]()) as (screen, _):
        at_once(screen.face, f"/{typed}\r")
        pane = screen.query_one(LogPane)

        await until_async(lambda: pane.search_label == "/drafter  hit 2 of 2", what="the hit")
        assert not screen.query_one("#search", Input).visible


async def test_arrow_that_comes_before_its_list_is_there_counts() -> None:
    async with shown(fixtures.SCENES["healthy"]()) as (screen, pilot):
        picker = PickScreen("logs", [PickRow("one"), PickRow("two"), PickRow("three")])
        screen.face.push_screen(picker)
        screen.face.post_message(Key("down", None))

        await until_async(lambda: is_there(pilot.app, PickScreen), what="the list")
        rows = picker.query_one("#rows", LinesView)
        await until_async(lambda: "▸ two" in as_text(rows.view), what="the second row chosen")


async def test_letters_behind_the_enter_are_commands_again() -> None:
    """`n` goes on to the other hit, of which there are two."""
    async with shown(fixtures.SCENES["healthy"]()) as (screen, _):
        at_once(screen.face, "/drafter\rn?")
        pane = screen.query_one(LogPane)

        await help_comes(screen.face)
        await until_async(lambda: pane.search_label == "/drafter  hit 1 of 2", what="the next hit")
        assert screen.query_one("#search", Input).value == "drafter"


async def test_a_filter_by_tab_and_what_is_pasted_behind_the_slash_come_in_their_order() -> None:
    async with shown(fixtures.SCENES["healthy"]()) as (screen, _):
        line, pane = screen.query_one("#search", Input), screen.query_one(LogPane)
        at_once(screen.face, "/\t")
        screen.face.post_message(Paste("drafter\n"))
        at_once(screen.face, "s\x7f\r")

        await until_async(lambda: pane.log_view.sieve.only is not None, what="the filter")
        assert line.value == "drafter"


async def test_an_escape_that_comes_with_a_search_leaves_it_and_what_comes_behind_it_is_a_command() -> None:
    async with shown(fixtures.SCENES["healthy"]()) as (screen, pilot):
        at_once(screen.face, "/x\x1b?")
        await help_comes(screen.face)
        line = screen.query_one("#search", Input)
        assert (line.value, line.visible) == ("x", False)

        at_once(screen.face, "\x1b/q")
        await until_async(lambda: line.value == "q", what="the next search")
        assert pilot.app.screen is screen


async def test_screens_and_what_is_asked_for_on_them_may_come_all_at_once() -> None:
    """The log's screen is made by the first of these keys."""
    source = fixtures.SCENES["healthy"]()
    async with shown(source) as (screen, pilot):
        at_once(screen.face, "3gG/drafter\r1?")
        await help_comes(screen.face)

        assert pilot.app.screen_stack[-2] is screen
        assert not screen.query_one(LogPane).searching
        log = pilot.app.get_screen("log", LogScreen)
        pane = log.query_one(LogPane)
        await until_async(lambda: pane.search_label.startswith("/drafter  hit"), what="the hit on the log's screen")
        assert not source.asked


async def test_top_and_bottom_at_once_end_at_the_bottom() -> None:
    async with shown(fixtures.SCENES["healthy"]()) as (screen, _):
        pane = screen.query_one(LogPane)
        at_once(screen.face, "g")
        await until_async(lambda: not pane.following, what="the top")
        at_once(screen.face, "gGgG?")
        await help_comes(screen.face)

        assert pane.following


async def test_values_are_typed_into_a_plan_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`e` opens the table, enter the prompt of its first row, another one takes what stands there; `a` adds a name."""
    monkeypatch.setattr(plan, "TYPE_AHEAD_S", 0.0)
    source = fixtures.SCENES["healthy"]()
    async with shown(source) as (screen, pilot):
        app = screen.face
        at_once(app, "r")
        await until_async(lambda: isinstance(app.screen, plan.PlanScreen) and app.screen._plan, what="the plan")

        at_once(app, "e\r\x7f\x7f120\raNEW_ONE\r7\r\x1bnb\r")
        await until_async(lambda: source.asked[-1][1].name == "slammed6b", what="the new name")

        assert source.asked[-1][1].env == {"DFLASH_PROFILE_INTERVAL": "120", "NEW_ONE": "7"}
        assert not source.executed
        assert pilot.app.is_running


async def test_a_plan_is_not_confirmed_by_keys_that_came_before_it_however_late_they_are_handled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan, "TYPE_AHEAD_S", 0.0)
    source = fixtures.SCENES["healthy"]()
    async with shown(source) as (screen, pilot):
        app = screen.face
        at_once(app, "rRR\r\rR\x1b")
        await until_async(lambda: bool(source.asked) and not app._key_order.is_busy, what="the keys")
        assert isinstance(pilot.app.screen, plan.PlanScreen)
        assert not source.executed

        at_once(app, "R")
        await until_async(lambda: source.executed, what="what was pressed when the plan could be read")


async def test_a_further_change_is_taken_while_the_host_still_plans_for_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan, "TYPE_AHEAD_S", 0.0)
    source, planned = fixtures.SCENES["healthy"](), asyncio.Event()
    at_host = source.plan

    async def slow(action: str, overrides: Overrides = Overrides()) -> Plan:  # noqa: B008 - frozen
        if source.asked:
            await planned.wait()
        return await at_host(action, overrides)

    monkeypatch.setattr(source, "plan", slow)
    async with shown(source) as (screen, _):
        app = screen.face
        at_once(app, "r")
        await until_async(lambda: isinstance(app.screen, plan.PlanScreen) and app.screen._plan, what="the plan")
        shown_plan = app.screen
        assert isinstance(shown_plan, plan.PlanScreen)

        at_once(app, "cnb\r")
        await until_async(lambda: shown_plan._overrides.name == "slammed6b", what="both changes")
        planned.set()
        await until_async(lambda: len(source.asked) > 1, what="the plan for both")

        assert source.asked[-1][1].name == "slammed6b"
        assert source.asked[-1][1].keep_cache
        assert len(source.asked) == 2  # nothing was planned for the first change alone


class SlowArchive(FakeArchive):
    """A ledger that has to be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = asyncio.Event()

    async def runs(self, limit: int = 100, since: int = 0) -> Runs:
        await self.may_answer.wait()
        return await super().runs(limit, since)


async def test_what_is_typed_into_a_dialog_waits_until_the_ledger_has_brought_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keyorder, "_ASKING_S", 60.0)
    source, archive = fixtures.SCENES["healthy"](), SlowArchive()
    source.archive = archive
    async with shown(source) as (screen, pilot):
        app = screen.face
        at_once(app, "b12345\r?")
        await until_async(lambda: app._key_order.is_busy, what="the keys")
        assert pilot.app.screen is screen
        archive.may_answer.set()
        await help_comes(screen.face)

        assert source.baselines == [(12_345.0, "baseline")]
        assert pilot.app.screen_stack[-2] is screen


async def test_each_of_two_keys_goes_back_by_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyorder, "_ASKING_S", 60.0)
    source = pastruns.source()
    async with shown(source) as (screen, _):
        app = screen.face
        for _ in range(2):
            app.post_message(Key("left_square_bracket", "["))
        at_once(app, "?")
        await help_comes(screen.face)

        assert app.viewing_place.startswith("2 of ")


async def test_a_help_that_is_taken_apart_while_it_still_hears_of_its_size_is_no_error() -> None:
    """As when `?` and ctrl+q come at once."""
    async with shown(fixtures.SCENES["healthy"]()) as (screen, pilot):
        at_once(screen.face, "?")
        await help_comes(screen.face)
        await screen.face.help.query("*").remove()

        await pilot.resize_terminal(100, 30)
        await pilot.pause()

        assert pilot.app.is_running
        assert pilot.app._exception is None


async def test_a_handler_that_hangs_does_not_take_the_keyboard_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """ctrl+q is the app's own: it works while what has the focus hears nothing."""
    released, quits = asyncio.Event(), []
    async with shown(fixtures.SCENES["healthy"]()) as (screen, _):
        app = screen.face
        monkeypatch.setattr(app, "exit", lambda: quits.append(app._key_order.is_busy))
        screen.query_one(LogPane).call_later(released.wait)
        try:
            at_once(app, "xx")
            await until_async(lambda: app._key_order.is_busy, what="a key that is not done with")
            monkeypatch.setattr(keyorder, "_LONGEST_S", 0.0)
            app.post_message(Key("ctrl+q", None))
            await until_async(lambda: quits, what="what ctrl+q does")
        finally:
            released.set()
        await until_async(lambda: not app._key_order.is_busy, what="the end of the keys")


async def test_letters_are_commands_again_when_the_search_line_is_left() -> None:
    async with shown(fixtures.SCENES["healthy"]()) as (screen, pilot):
        await pilot.press("slash", "x", "escape")
        await pilot.press("question_mark")

        await until_async(lambda: is_there(pilot.app, HelpScreen), what="the help")
        await help_comes(screen.face)
        assert screen.query_one("#search", Input).value == "x"
