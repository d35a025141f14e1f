"""Every key does what the registry says it does, and nothing is dead, hidden or dangerous by accident."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from typing import Any

import pytest
from textual.command import CommandList, CommandPalette
from textual.pilot import Pilot
from textual.widgets import Input

from console.model import Overrides, Verdict
from console.reasons import ConsoleError, Reason
from console.state.events import RingBell
from console.ui.actions import bindings, footer_keys, key_name, offered
from console.ui.actiontable import ACTIONS
from console.ui.app import ConsoleApp, screen_class
from console.ui.palette import Commands, ExtraCommand
from console.ui.present.plotting import Metric, Zoom
from console.ui.present.spans import as_text
from console.ui.screens import plan as plan_module
from console.ui.screens.edit import EditScreen
from console.ui.screens.help import HelpScreen
from console.ui.screens.overview import Overview
from console.ui.screens.plan import PlanScreen
from console.ui.screens.prompt import PromptScreen
from console.ui.screens.target import TargetScreen
from console.ui.situation import Face, Situation
from console.ui.widgets.lines import LinesView
from console.ui.widgets.logpane import LogPane
from tests.ui import fixtures
from tests.ui.fixtures import FakeSource, raw, replace
from tests.ui.screens import is_there
from tests.waiting import until_async

_FLAGS = ("run_alive", "good_run", "comparing", "link_lost", "contact", "unwritten", "replay")
# What later screens will bring; until then these keys are neither shown nor bound.
LATER = {"t"}
NEVER = {"ctrl+b", "ctrl+a", "ctrl+s", "ctrl+z", "ctrl+e", "ctrl+k", "ctrl+u", "ctrl+w", "ctrl+d"}

SITUATIONS = [
    Situation(verdict=verdict, face=Face(face), **dict(zip(_FLAGS, flags, strict=True)))
    for verdict in Verdict
    for face in ConsoleApp.SCREENS
    for flags in itertools.product((False, True), repeat=len(_FLAGS))
    if face == Face.OVERVIEW or not flags[4]  # first contact is a page of the overview
] + [
    Situation(verdict=verdict, face=Face(face), good_run=True, **{flag: True})
    for verdict in Verdict
    for face in ConsoleApp.SCREENS
    for flag in ("replay", "past")
]


@pytest.fixture(autouse=True)
def _keys_count_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "TYPE_AHEAD_S", 0.0)


@asynccontextmanager
async def running(
    source: FakeSource | str, *, size: tuple[int, int] = (120, 36), read_only: bool = False
) -> AsyncIterator[tuple[ConsoleApp, FakeSource, Pilot[str]]]:
    found = fixtures.SCENES[source]() if isinstance(source, str) else source
    app = ConsoleApp(found, zone=UTC, read_only=read_only)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app, found, pilot


def overview(app: ConsoleApp) -> Overview:
    screen = app.screen_stack[1]
    assert isinstance(screen, Overview)
    return screen


def log_of(app: ConsoleApp) -> LogPane:
    return overview(app).query_one(LogPane)


def rows_of(app: ConsoleApp) -> str:
    return as_text(app.screen.query_one("#rows", LinesView).view)


def title_of(app: ConsoleApp) -> str:
    return as_text(overview(app).query_one("#log-title", LinesView).view)


def has_looked_for(app: ConsoleApp, text: str, *, and_found: bool = False) -> bool:
    """Whether the palette is through with what was typed, and has it chosen where something was found."""
    palette = app.screen
    if not isinstance(palette, CommandPalette) or palette.query_one(Input).value != text:
        return False
    looks = [worker for worker in app.workers if worker.node is palette and not worker.is_finished]
    return not looks and (not and_found or palette.query_one(CommandList).highlighted is not None)


async def opened_plan(app: ConsoleApp, pilot: Pilot[str], key: str = "r") -> PlanScreen:
    await pilot.press(key)
    screen = await until_async(lambda: app.screen if is_there(app, PlanScreen) else None, what="the dialog")
    assert isinstance(screen, PlanScreen)
    await until_async(lambda: "kill" in rows_of(app) or "✗" in rows_of(app), what="the plan in the dialog")
    await pilot.pause()
    return screen


# --- the registry ---


def test_no_two_actions_share_a_key_or_an_id() -> None:
    made = bindings()

    for situation in SITUATIONS:
        keys = [key for action in offered(situation) for key in action.keys]
        assert len(set(keys)) == len(keys), situation
    assert len({binding.id for binding in made}) == len(made)
    assert all(binding.id and binding.tooltip for binding in made)


def test_keys_of_later_screens_and_keys_of_habits_are_free() -> None:
    assert {binding.key for binding in bindings()} & (LATER | NEVER) == set()
    main = {key for now in SITUATIONS if now.face is Face.OVERVIEW for action in offered(now) for key in action.keys}
    assert "enter" not in main


@pytest.mark.parametrize("verdict", list(Verdict))
def test_the_footer_shows_only_what_is_offered(verdict: Verdict) -> None:
    situation = Situation(verdict=verdict, run_alive=verdict is Verdict.STEPPING)
    names = {action.label_in(situation) for action in offered(situation)}

    left, right = footer_keys(situation)

    assert {label for _, label in (*left, *right)} <= names | {"screens"}
    assert [key for key, _ in right] == ["?", "q"]


@pytest.mark.parametrize(
    ("scene", "size"),
    [("healthy", (80, 24)), ("healthy", (60, 20)), ("launching", (80, 24)), ("failed", (80, 24)), ("link", (60, 20))],
)
async def test_the_footer_tells_of_the_other_screens_where_it_is_narrow(scene: str, size: tuple[int, int]) -> None:
    async with running(scene, size=size) as (app, _, _pilot):
        footer = as_text(overview(app).query_one("#footer", LinesView).view)

        assert "1-5 screens" in footer
        assert "? help" in footer


def test_every_key_has_a_name_for_people() -> None:
    names = {key_name(key) for action in ACTIONS for key in action.keys}

    assert {name for name in names if len(name) > 1} == {
        "ctrl+p", "ctrl+l", "ctrl+q", "space", "PgUp", "PgDn", "Home", "End",
    }  # fmt: skip


@pytest.mark.parametrize("face", list(ConsoleApp.SCREENS))
def test_every_action_is_implemented_by_the_screens_that_offer_it(face: str) -> None:
    ids = {action.id for situation in SITUATIONS if situation.face == face for action in offered(situation)}

    screen = screen_class(Face(face))
    assert [action for action in sorted(ids) if not callable(getattr(screen, f"act_{action}", None))] == []


def test_every_action_is_offered_somewhere() -> None:
    found = {action.id for situation in SITUATIONS for action in offered(situation)}

    assert found == {action.id for action in ACTIONS}


def test_read_only_takes_away_whatever_changes_a_run() -> None:
    situation = Situation(verdict=Verdict.STEPPING, run_alive=True, read_only=True)

    ids = {action.id for action in offered(situation)}
    assert ids.isdisjoint({"again", "restart", "run_again", "stop", "diagnose"})
    assert {action.id for action in ACTIONS if action.changes_run} == {
        "again",
        "restart",
        "run_again",
        "stop",
        "view_again",
    }


async def test_read_only_leaves_no_key_no_hint_and_no_help_for_restart() -> None:
    async with running("healthy", read_only=True) as (app, _, pilot):
        await pilot.press("r", "s")
        assert isinstance(app.screen, Overview)
        assert "restart" not in overview(app).text()

        await pilot.press("question_mark")
        assert "restart" not in rows_of(app)
        await pilot.press("escape", "colon")
        await pilot.pause()
        await pilot.press(*"restart")
        await until_async(lambda: has_looked_for(app, "restart"), what="what the palette finds")
        await pilot.press("enter")
        await until_async(lambda: not isinstance(app.screen, CommandPalette), what="the palette closed")
        await pilot.pause()

        assert not any(isinstance(screen, PlanScreen) for screen in app.screen_stack)


# --- the log ---


async def test_slash_searches_and_n_goes_around() -> None:
    async with running("healthy", size=(120, 24)) as (app, _, pilot):
        await pilot.press("slash", *"drafter", "enter")
        await pilot.pause()
        assert "/drafter  hit 2 of 2" in title_of(app)

        await pilot.press("n")
        assert "1 of 2" in title_of(app)
        await pilot.press("N")
        assert "2 of 2" in title_of(app)
        await pilot.press("escape")
        assert "drafter" not in title_of(app)


async def test_letters_typed_into_the_search_are_no_commands() -> None:
    async with running("healthy") as (app, _, pilot):
        await pilot.press("slash", *"rsq", "escape")

        assert isinstance(app.screen, Overview)
        assert not app.screen.query_one("#search", Input).visible


async def test_a_search_without_a_hit_says_so() -> None:
    async with running("healthy") as (app, _, pilot):
        await pilot.press("slash", *"zebra", "enter")
        await pilot.pause()

        assert "/zebra  not found" in title_of(app)


async def test_e_finds_the_first_error_of_a_failure() -> None:
    async with running("failed") as (app, _, pilot):
        await pilot.press("e")

        await until_async(lambda: log_of(app).log_view.cursor, what="an error line")
        assert "Permission denied" in getattr(log_of(app).log_view.cursor, "text", "")


async def test_e_without_an_error_says_so() -> None:
    async with running("healthy") as (app, _, pilot):
        await pilot.press("e")
        await until_async(lambda: "no error line" in title_of(app), what="the word that there is none")
        await pilot.press("E")
        await pilot.pause()
        assert "no error line" in title_of(app)


async def test_scrolling_up_stops_following_and_f_follows_again() -> None:
    async with running("healthy", size=(120, 24)) as (app, source, pilot):
        await pilot.press("pageup")
        await pilot.pause()
        assert not log_of(app).following

        source.log.append([raw(f"line {n}") for n in range(412)])
        source.change(verdict=Verdict.SLOW)
        await until_async(lambda: "▼ 412 new lines  f" in title_of(app), what="the count of unseen lines")
        await pilot.press("f")
        await pilot.pause()

        assert log_of(app).following
        assert "following" in title_of(app)


async def test_g_and_capital_g_go_to_the_ends() -> None:
    async with running("healthy", size=(120, 24)) as (app, source, pilot):
        await pilot.press("g")
        await pilot.pause()
        assert log_of(app)._shown[0].row.entry is source.log.line(source.log.first)
        await pilot.press("G")
        await pilot.pause()
        assert log_of(app).following


async def test_arrows_scroll_the_log_from_the_start() -> None:
    async with running("healthy", size=(120, 24)) as (app, _, pilot):
        before = [shown.row.entry for shown in log_of(app)._shown]
        await pilot.press("up")
        await pilot.pause()
        assert [shown.row.entry for shown in log_of(app)._shown][1:] == before[:-1]


async def test_old_lines_that_are_dropped_leave_what_is_read_in_place() -> None:
    source = fixtures.SCENES["healthy"]()
    source.log._max_lines = 60
    source.log.append([raw(f"old {n}") for n in range(60)])
    async with running(source, size=(120, 24)) as (app, _, pilot):
        await pilot.press("pageup")
        await pilot.pause()
        log = log_of(app)
        before = [shown.row.entry.text for shown in log._shown]

        source.log.append([raw(f"new {n}") for n in range(5)])
        log.sync()
        await pilot.pause()

        assert [shown.row.entry.text for shown in log._shown] == before


@pytest.mark.parametrize(
    "text",
    [
        "[bold]not bold[/bold]",
        "[/]",
        "\x1b[31mred\x1b]0;title\x07",
        "a\tb\x00\x7f\x9b",
        "漢字 wide 漢字",
        "\u202egnp.exe",
        "[@click=app.quit]x[/]",
    ],
)
async def test_whatever_a_line_holds_reaches_the_screen_as_text(text: str) -> None:
    source = FakeSource(fixtures.HEALTHY)
    source.log.append([raw(text)])
    async with running(source) as (app, _, _pilot):
        log = log_of(app)
        shown = log.render_line(0).text

        assert len(log.render_line(0)._segments) >= 2
        assert not set(shown) & {"\x1b", "\x07", "\x00", "\x7f", "\x9b", "\t", "\u202e"}
        for word in ("[bold]not bold[/bold]", "[@click=app.quit]x[/]", "漢字 wide 漢字"):
            assert word in shown or word != text
        assert log.render_line(0).cell_length == 120


# --- panels ---


async def test_m_and_z_change_what_the_slot_shows() -> None:
    async with running("healthy") as (app, _, pilot):
        screen = overview(app)
        seen = []
        for _ in Metric:
            seen.append(as_text(screen.query_one("#main-panel", LinesView).view).split()[1])
            await pilot.press("m")
        assert seen == [metric.value for metric in Metric]

        zooms: list[Zoom] = []
        for _ in range(3):
            zooms.append(screen._zoom)
            await pilot.press("z")
        assert zooms == [Zoom.RUN, Zoom.SHORT, Zoom.RUN]


async def test_the_plots_hold_dots_once_plotext_is_there() -> None:
    async with running("healthy") as (app, _, _pilot):

        def dotted() -> bool:
            text = as_text(overview(app).query_one("#main-panel", LinesView).view)
            return any("\u2801" <= char <= "\u28ff" for char in text)

        await until_async(dotted, 60, what="dots in the plot")


async def test_y_copies_a_report_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    async with running("failed") as (app, _, pilot):
        await pilot.press("y")
        await until_async(lambda: app._notifications, what="the toast")

        assert "ct200 slammed6: FAILED" in app.clipboard
        assert [n.message for n in app._notifications] == ["copied the report"]


async def test_only_the_rows_that_differ_are_painted_again() -> None:
    async with running("healthy") as (app, source, pilot):
        rail = overview(app).query_one("#rail", LinesView)
        await pilot.pause()
        painted: list[object] = []

        def refresh(*regions: object, **_: object) -> LinesView:
            painted.append(regions)
            return rail

        rail.refresh = refresh  # type: ignore[method-assign]

        overview(app).refresh_now()
        source.snapshot = replace(source.snapshot, at=source.snapshot.at + 1)
        overview(app).refresh_now()

        assert painted == []


# --- link and first contact ---


async def test_c_retries_only_while_the_link_is_lost() -> None:
    async with running("link") as (app, source, pilot):
        await pilot.press("c")
        assert source.retries == 1
        await pilot.press("r")
        await pilot.pause()
        assert isinstance(app.screen, Overview)
        assert "no link: nothing can be started or stopped" in next(iter(app._notifications)).message

        log = replace(source.snapshot.log, at=source.snapshot.at + 1, caught_up=True)
        source.change(link=fixtures.LINK, verdict=Verdict.STEPPING, log=log)
        await until_async(lambda: overview(app).snapshot.verdict is Verdict.STEPPING, what="the link back")
        await pilot.press("c")
        assert source.retries == 1
        assert list(app._notifications)[-1].message == "link back after 42 s, 0 lines lost"


async def test_a_run_started_by_hand_is_introduced_before_it_is_watched() -> None:
    async with running("by-hand") as (app, _, pilot):
        assert "A run started by hand is on ct200." in overview(app).text()
        assert "w watch" in overview(app).text()

        await pilot.press("w")
        await pilot.pause()

        assert "A run started by hand" not in overview(app).text()
        assert log_of(app).display


# --- plan ---


async def test_a_restart_needs_the_capital_letter_inside_the_dialog() -> None:
    async with running("healthy") as (app, source, pilot):
        await pilot.press("R", "S")
        assert source.asked == []

        await opened_plan(app, pilot)
        await pilot.press("r", "enter")
        await pilot.pause()
        assert source.executed == []

        await opened_plan(app, pilot)
        await pilot.press("R")
        await until_async(lambda: source.executed, what="the request")
        assert source.executed == [(replace(fixtures.RESTART_PLAN, keep_cache=False), Overrides())]
        await until_async(lambda: isinstance(app.screen, Overview), what="the dialog closed")


async def test_a_plan_that_comes_while_the_dialog_is_taken_down_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running("healthy") as (app, source, pilot):
        made, asked, answer = source.plan, asyncio.Event(), asyncio.Event()

        async def late(*arguments: Any) -> Any:
            asked.set()
            await answer.wait()
            return await made(*arguments)

        monkeypatch.setattr(source, "plan", late)
        await pilot.press("r")
        await asyncio.wait_for(asked.wait(), 20)
        dialog = app.screen
        await dialog.remove_children()
        answer.set()
        await until_async(lambda: all(worker.is_finished for worker in dialog.workers), what="the plan")

        assert isinstance(app.screen, plan_module.PlanScreen), "an error in there would have ended the app"


async def test_a_dialog_that_is_taken_down_before_its_next_paint_ends_nothing() -> None:
    async with running("healthy") as (app, _, pilot):
        dialog = await opened_plan(app, pilot)
        taken_down = dialog.remove_children()
        dialog.call_after_refresh(dialog._show_more)
        await taken_down
        await pilot.pause()

        assert app.screen is dialog, "an error in there would have ended the app"


async def test_stop_takes_s_and_never_capital_r() -> None:
    async with running("healthy") as (app, source, pilot):
        await opened_plan(app, pilot, "s")
        await pilot.press("R")
        await pilot.pause()
        assert source.executed == []
        await pilot.press("S")
        await until_async(lambda: source.executed, what="the request")
        assert source.executed[0][0].action == "stop"


async def test_keys_typed_ahead_of_the_dialog_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "TYPE_AHEAD_S", 60.0)
    async with running("healthy") as (app, source, pilot):
        await pilot.press("r", "R", "R")
        await until_async(lambda: is_there(app, PlanScreen) and "kill" in rows_of(app), what="the plan")
        await pilot.press("R", "enter")
        await pilot.pause()

        assert source.executed == []
        assert isinstance(app.screen, PlanScreen)


async def test_a_refused_check_takes_the_red_button_away() -> None:
    source = fixtures.SCENES["healthy"]()
    source.plans = [fixtures.REFUSED_PLAN]
    async with running(source) as (app, _, pilot):
        await opened_plan(app, pilot)
        await pilot.press("R")
        await pilot.pause()

        assert not app.screen.query_one("#act").display
        assert source.executed == []


async def test_enter_starts_only_where_nothing_runs() -> None:
    source = fixtures.SCENES["idle"]()
    source.plans = [fixtures.START_PLAN]
    async with running(source) as (app, _, pilot):
        await opened_plan(app, pilot)
        await pilot.press("tab", "enter")
        await until_async(lambda: source.executed, what="the request")


async def test_c_n_and_e_change_the_plan_and_nothing_else() -> None:
    async with running("healthy") as (app, source, pilot):
        await opened_plan(app, pilot)
        await pilot.press("c")
        await until_async(lambda: "kept (c)" in rows_of(app), what="the cache kept")

        await pilot.press("n")
        await until_async(lambda: is_there(app, PromptScreen), what="the prompt")
        await pilot.press("backspace", "7", "enter")
        await until_async(lambda: is_there(app, PlanScreen) and "slammed7" in rows_of(app), what="the name")

        await pilot.press("e")
        await until_async(lambda: is_there(app, EditScreen), what="the table")
        await pilot.press("down", "enter")
        await until_async(lambda: is_there(app, PromptScreen), what="the prompt")
        await pilot.press("backspace", "2", "enter")
        await until_async(lambda: is_there(app, EditScreen), what="the table again")
        await pilot.press("escape")
        await until_async(lambda: is_there(app, PlanScreen) and "0 → 2" in rows_of(app), what="the change")

        assert source.executed == []
        assert source.asked[-1][1] == Overrides(name="slammed7", env={"DFLASH_SPLIT_FC_LAYERS": "2"}, keep_cache=True)


async def test_o_plans_the_last_good_settings_after_a_failure_and_touches_nothing() -> None:
    async with running("failed") as (app, source, pilot):
        await opened_plan(app, pilot, "o")
        assert "settings of slammed5" in rows_of(app)
        assert "DFLASH_SPLIT_FC_LAYERS 0 (config 1)" in rows_of(app)
        assert source.asked[-1] == ("restart", Overrides(base=fixtures.GOOD))
        assert source.executed == []

        await pilot.press("o")
        await until_async(lambda: "settings of slammed5" not in rows_of(app), what="the config's settings")
        await pilot.press("o")
        await until_async(lambda: "settings of slammed5" in rows_of(app), what="the past run's settings")
        await pilot.press("R")
        await until_async(lambda: source.executed, what="the request")

    assert source.executed[0][1].base == fixtures.GOOD


async def test_o_is_bound_only_where_it_does_something() -> None:
    for scene in ("healthy", "idle", "launching"):
        async with running(scene) as (app, source, pilot):
            await pilot.press("o")
            await pilot.pause()
            assert not isinstance(app.screen, PlanScreen)
            assert source.asked == []
    source = FakeSource(replace(fixtures.LAUNCH_FAILED, good=None, changes=None))
    async with running(source) as (app, _, pilot):
        await pilot.press("o")
        await pilot.pause()
        assert not isinstance(app.screen, PlanScreen)
    async with running("failed", read_only=True) as (app, _, pilot):
        await pilot.press("o")
        await pilot.pause()
        assert not isinstance(app.screen, PlanScreen)


async def test_edits_come_on_top_of_a_past_runs_environment_and_show_none_of_its_secrets() -> None:
    async with running("failed") as (app, source, pilot):
        await opened_plan(app, pilot, "o")
        await pilot.press("e")
        await until_async(lambda: is_there(app, EditScreen), what="the table")
        assert "hmac" not in rows_of(app)

        await pilot.press("down", "enter")
        await until_async(lambda: is_there(app, PromptScreen), what="the prompt")
        await pilot.press("backspace", "2", "enter")
        await until_async(lambda: is_there(app, EditScreen), what="the table again")
        await pilot.press("escape")
        await until_async(lambda: is_there(app, PlanScreen), what="the dialog")
        await until_async(lambda: source.asked[-1][1].env, what="the plan with the change")

        assert source.asked[-1][1] == Overrides(base=fixtures.GOOD, env={"DFLASH_SPLIT_FC_LAYERS": "2"})


async def test_a_secret_is_never_shown_in_the_table() -> None:
    async with running("healthy") as (app, _, pilot):
        await opened_plan(app, pilot)
        await pilot.press("e")
        await until_async(lambda: is_there(app, EditScreen), what="the table")

        assert "0123456789abcdef" not in rows_of(app)
        assert "WANDB_API_KEY" in rows_of(app)
        await pilot.press("down", "down", "enter")
        await until_async(lambda: is_there(app, PromptScreen), what="the prompt")
        assert app.screen.query_one(Input).value == ""
        assert app.screen.query_one(Input).password


async def test_a_world_that_changes_under_the_plan_is_planned_anew() -> None:
    source = fixtures.SCENES["healthy"]()
    source.plans = [fixtures.RESTART_PLAN, replace(fixtures.RESTART_PLAN, replaces=fixtures.PROCESSES[:1])]
    async with running(source) as (app, _, pilot):
        await opened_plan(app, pilot)
        source.change(processes=fixtures.PROCESSES[:1])

        await until_async(lambda: "changed: pid 84941 is gone" in rows_of(app), what="the note")


async def test_a_refused_request_is_explained_in_the_dialog() -> None:
    async with running("healthy") as (app, source, pilot):
        await opened_plan(app, pilot)
        source.refuse = ConsoleError(Reason.RESTART_UNDER_WAY, "ops2 restarts slammed6 since 14:33:02")
        await pilot.press("R")

        await until_async(lambda: "ops2 restarts slammed6" in rows_of(app), what="the reason")
        assert source.executed == []
        await pilot.press("escape")
        await until_async(lambda: isinstance(app.screen, Overview), what="the dialog closed")


# --- console ---


async def test_help_lists_every_offered_action_and_closes() -> None:
    async with running("healthy") as (app, source, pilot):
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        assert source.attended
        text = rows_of(app)
        sentences = " ".join(text.split())
        assert [a.help for a in offered(overview(app).situation) if a.help not in sentences] == []

        await pilot.press("q")
        await pilot.pause()
        assert isinstance(app.screen, Overview)


async def test_help_that_was_open_before_shows_what_is_offered_now_in_the_size_that_there_is_now() -> None:
    async with running("healthy", size=(120, 60)) as (app, _, pilot):
        await pilot.press("question_mark")
        await pilot.press("end")
        await pilot.press("escape")
        await until_async(lambda: isinstance(app.screen, Overview), what="the help closed")
        await pilot.press("3")
        await pilot.resize_terminal(70, 60)
        await until_async(lambda: not isinstance(app.screen, Overview) and app.screen.size.width == 70, what="the log")
        screen = app.screen
        assert isinstance(screen, TargetScreen)

        await pilot.press("question_mark")
        await pilot.pause()

        assert isinstance(app.screen, HelpScreen)
        rows = rows_of(app)
        sentences = " ".join(rows.split())
        assert [a.help for a in offered(screen.situation) if a.help not in sentences] == []
        assert screen.situation.face is Face.LOG
        await pilot.press("escape")
        await until_async(lambda: app.screen_stack[-1] is screen, what="the help closed again")


@pytest.mark.parametrize("key", ["ctrl+p", "colon"])
async def test_the_palette_runs_an_action_by_its_name(key: str) -> None:
    async with running("healthy") as (app, _, pilot):
        await pilot.press(key)
        await pilot.pause()
        await pilot.press(*"zoom")
        await until_async(lambda: has_looked_for(app, "zoom", and_found=True), what="what the palette finds")
        await pilot.press("enter")

        await until_async(lambda: overview(app)._zoom is Zoom.SHORT, what="the zoom")


async def test_what_was_chosen_in_the_palette_as_the_console_ends_is_not_done_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running("healthy") as (app, _, _pilot):
        commands = Commands(app.screen)
        with monkeypatch.context() as patch:
            patch.setattr(app, "_running", False)
            await overview(app).remove_children()

            await commands._act("zoom")

        assert app._exception is None


async def test_the_palette_lists_the_consoles_own_actions_before_what_was_added() -> None:
    added = ExtraCommand("Fault: nan", "The loss becomes NaN.", lambda: "nan")
    app = ConsoleApp(fixtures.SCENES["healthy"](), zone=UTC, extra=(added,))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        titles = [str(hit.prompt) async for hit in Commands(app.screen).discover()]

        assert titles[-1] == "Fault: nan"
        assert "restart  r" in titles[:-1]


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
async def test_q_leaves_and_touches_nothing(key: str) -> None:
    async with running("launching") as (app, source, pilot):
        assert "quit, launch goes on" in overview(app).text()
        await pilot.press(key)
        await until_async(lambda: not app.is_running, what="the end")
        assert (source.executed, source.asked) == ([], [])


async def test_ctrl_c_says_how_to_leave() -> None:
    async with running("healthy") as (app, _, pilot):
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert [n.message for n in app._notifications] == ["q quits, the run goes on"]
        assert app.is_running


async def test_ctrl_l_paints_anew() -> None:
    async with running("healthy") as (app, _, pilot):
        await pilot.press("ctrl+l")
        await pilot.pause()
        assert isinstance(app.screen, Overview)


async def test_a_failure_rings_once_and_is_no_toast(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running("launching") as (app, source, _):
        rings: list[int] = []
        monkeypatch.setattr(app, "bell", lambda: rings.append(1))
        failed = fixtures.LAUNCH_FAILED
        source.bells.append(RingBell(verdict="failed", title="ct200 slammed6 FAILED spawned"))
        source.change(verdict=failed.verdict, stages=failed.stages, run=failed.run, reason=failed.reason)
        await until_async(lambda: overview(app).snapshot.verdict is Verdict.FAILED, what="the failure")
        source.change(at=failed.at + 1)
        overview(app).refresh_now()
        await asyncio.sleep(0)

        assert rings == [1]
        assert source.bells == []
        assert list(app._notifications) == []
        assert app._pane_title == "✗ ct200 slammed6 FAILED spawned"


async def test_without_a_config_the_demo_is_one_key_away() -> None:
    app = ConsoleApp(None, config_path="~/x.toml")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("d")
        await until_async(lambda: not app.is_running, what="the end")

    assert app.return_value == "demo"
