"""`d`: a diagnosis is saved by a worker, and the screen says where, or why not."""

from __future__ import annotations

from console.model import LinkState, Verdict
from console.reasons import ConsoleError, Exit, Reason
from console.ui.actions import by_id, footer_keys, is_offered
from console.ui.situation import Situation
from tests.ui.fixtures import replace
from tests.ui.test_keys import running
from tests.waiting import until_async


def toasts(app: object) -> list[str]:
    return [notification.message for notification in app._notifications]  # type: ignore[attr-defined]


async def test_d_saves_a_diagnosis_and_says_where() -> None:
    async with running("stalled") as (app, source, pilot):
        await pilot.press("d")
        await until_async(lambda: any("saved" in text for text in toasts(app)), 60)

        assert source.diagnosed == 1
        assert toasts(app) == ["diagnosis saved: /home/ops/slammed5.diagnosis.txt"]
        assert not source.asked, "no plan, no restart"


async def test_d_does_nothing_where_the_console_only_watches() -> None:
    async with running("stalled", read_only=True) as (app, source, pilot):
        await pilot.press("d")
        await pilot.pause()

        assert source.diagnosed == 0
        assert toasts(app) == []


async def test_d_says_why_there_is_no_diagnosis() -> None:
    async with running("stalled") as (app, source, pilot):
        source.refuse = ConsoleError(Reason.NOTHING_RUNS, "no process of a run is there", Exit.NOTHING_RUNS)

        await pilot.press("d")
        await until_async(lambda: any("no diagnosis" in text for text in toasts(app)), 60)

        assert toasts(app) == ["no diagnosis: no process of a run is there"]


async def test_d_asks_nobody_while_the_link_is_lost() -> None:
    async with running("stalled") as (app, source, pilot):
        source.change(link=replace(source.snapshot.link, state=LinkState.LOST))
        await pilot.pause()

        await pilot.press("d")
        await pilot.pause()

        assert source.diagnosed == 0
        assert not any("looking" in text for text in toasts(app))


def test_d_is_there_while_something_of_the_run_lives_and_mentioned_for_a_hang() -> None:
    stalled = Situation(verdict=Verdict.STALLED, run_alive=True)

    assert ("d", "diagnose") in footer_keys(stalled)[0]
    assert ("d", "diagnose") not in footer_keys(Situation(verdict=Verdict.STEPPING, run_alive=True))[0]
    assert is_offered(by_id("diagnose"), Situation(verdict=Verdict.ENDED, run_alive=True))
    assert not is_offered(by_id("diagnose"), Situation(verdict=Verdict.ENDED))
