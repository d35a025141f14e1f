"""The events screen: what happened, in order, and what came while the operator was away."""

from __future__ import annotations

from datetime import UTC

from msgspec.structs import replace

from console.model import Verdict
from console.state.happenings import Happening, Kind
from console.ui.app import ConsoleApp
from console.ui.chronicle import Chronicle
from console.ui.present.events import event_lines, of_past_runs
from console.ui.present.look import Look
from console.ui.present.spans import as_text, text_of
from console.ui.screens.events import EventsScreen
from tests.ui import fixtures, pastruns
from tests.ui.fixtures import HEALTHY, NOW
from tests.ui.test_keys import running
from tests.waiting import until_async

LOOK = Look(zone=UTC)


def event(at: float, text: str) -> Happening:
    return Happening(at=at, kind=Kind.CHECKPOINT, text=text)


def test_events_stand_in_the_order_of_time_under_the_line_where_one_left() -> None:
    events = [event(NOW - 10, "third"), event(NOW - 300, "first"), event(NOW - 20, "second")]

    lines = [text_of(line) for line in event_lines(events, NOW - 100, NOW, 100, LOOK)]

    assert [line.split()[-1] for line in (lines[0], *lines[2:])] == ["first", "second", "third"]
    assert "since you left 14:32" in lines[1]


def test_stage_under_way_never_bears_the_sign_of_a_proven_one() -> None:
    stages = [
        Happening(at=NOW - 20, kind=Kind.STAGE, text="CUDA initialized: 5/8", fields={"state": "active"}),
        Happening(at=NOW - 10, kind=Kind.STAGE, text="CUDA initialized: 8/8", fields={"state": "done"}),
    ]

    under_way, proven = (text_of(line) for line in event_lines(stages, None, NOW, 100, LOOK))

    assert ("✓" in under_way, "▶" in under_way) == (False, True)
    assert "✓" in proven


def test_stage_that_was_skipped_does_not_bear_the_sign_of_a_proven_one() -> None:
    skipped = Happening(at=NOW, kind=Kind.STAGE, text="killing: skipped: nothing ran", fields={"state": "skipped"})

    (line,) = event_lines([skipped], None, NOW, 100, LOOK)

    assert ("✓" in text_of(line), "–" in text_of(line)) == (False, True)


def test_who_was_there_all_the_time_sees_no_line() -> None:
    assert "since you left" not in as_text(event_lines([event(NOW, "x")], None, NOW, 100, LOOK))
    assert "since you left" not in as_text(event_lines([event(NOW - 50, "x")], NOW - 10, NOW, 100, LOOK))


def test_days_are_named_where_they_change() -> None:
    events = [event(NOW - 86400, "a"), event(NOW - 80000, "b"), event(NOW, "c")]

    text = as_text(event_lines(events, None, NOW, 100, LOOK))

    assert text.count("19 Aug") == 1
    assert text.count("20 Aug") == 1


def test_leaving_is_a_minute_without_a_key_and_stays_marked_after_coming_back() -> None:
    chronicle = Chronicle()
    chronicle.key(1000.0)

    assert chronicle.left_at(1030.0) is None
    assert chronicle.left_at(1100.0) == 1000.0
    chronicle.key(1100.0)
    assert chronicle.left_at(1101.0) == 1000.0
    chronicle.key(1120.0)
    assert chronicle.left_at(1121.0) == 1000.0
    assert chronicle.left_at(1200.0) == 1120.0


def test_a_chronicle_tells_each_thing_once() -> None:
    chronicle = Chronicle()
    for snapshot in (HEALTHY, HEALTHY, fixtures.STALLED, fixtures.STALLED, HEALTHY):
        chronicle.see(snapshot)

    texts = [each.text for each in chronicle.events]
    assert len(texts) == len(set(texts))
    assert sum(text.startswith("STALLED") for text in texts) == 1


def test_runs_of_before_are_told_from_the_ledger_but_not_the_one_that_is_watched() -> None:
    rows = (pastruns.LIVE, replace(pastruns.BEFORE, ended_wall=NOW - 9000))

    found = of_past_runs(rows, but="r-0041", me="ops1")

    assert [each.text for each in found] == ["ops1 started slammed4", "slammed4: stopped by anna"]


def test_the_start_of_a_run_that_was_watched_until_it_was_replaced_is_told_once() -> None:
    chronicle = Chronicle()
    after = replace(fixtures.RUN, id="r-0042", name="slammed6", replaced="slammed5")
    for snapshot in (HEALTHY, replace(HEALTHY, run=after)):
        chronicle.see(snapshot)
    rows = (replace(pastruns.LIVE, ended_wall=NOW), pastruns.BEFORE)

    found = of_past_runs(rows, but="r-0042", me="ops1", told=chronicle.events)

    told = [each.text for each in (*found, *chronicle.events) if " started " in each.text]
    assert sorted(told) == [
        "ops1 started slammed4",
        "ops1 started slammed5",
        "ops1 started slammed6 in place of slammed5",
    ]


def text(app: ConsoleApp) -> str:
    return app.screen.text() if isinstance(app.screen, EventsScreen) else ""


async def test_the_screen_shows_what_happens_while_it_is_open() -> None:
    async with running(pastruns.source()) as (app, source, pilot):
        await pilot.press("5")
        await until_async(lambda: "ops1 started slammed4" in text(app), what="the ledger's runs")
        assert "checkpoint 18,000" in text(app)

        source.change(verdict=Verdict.STALLED, reason=fixtures.STALLED.reason)

        await until_async(lambda: "STALLED: " in text(app), what="the stall")


async def test_long_lists_scroll_and_come_back_to_the_end() -> None:
    async with running(pastruns.source(), size=(80, 24)) as (app, _, pilot):
        for number in range(60):
            app.chronicle.events.append(event(NOW - 100 + number, f"number {number}"))
        await pilot.press("5")
        await until_async(lambda: "number 59" in text(app), what="the newest")

        await pilot.press("g")
        await until_async(lambda: "number 59" not in text(app) and "below" in text(app), what="the first")
        await pilot.press("G")
        await until_async(lambda: "number 59" in text(app), what="the newest again")
