"""Another log takes the place of the shown one: nothing that was asked of the one before is taken for its own."""

from __future__ import annotations

from pathlib import Path

from console.model import LogState, LogStatus
from console.state.logquery import Place
from tests.ui import fixtures
from tests.ui.filelogs import grow
from tests.ui.fixtures import replace
from tests.ui.test_logview import written
from tests.ui.test_whole_log import Desk, desk


def _start_another(on: Desk, path: Path, text: str) -> None:
    """Another run is started: the buffer is emptied, and a snapshot names its log."""
    path.write_text("")
    on.source.log.clear()
    grow(path, on.source.log, text)
    log = LogStatus(state=LogState.FOLLOWING, path=str(path), size_bytes=len(text), at=fixtures.NOW)
    on.source.change(log=log, run=replace(fixtures.RUN, id="r-0042", name="slammed6", log_path=str(path)))
    on.app.screen.refresh_now()  # type: ignore[attr-defined]


async def test_what_was_searched_in_the_log_before_is_not_said_of_another_runs_log(tmp_path: Path) -> None:
    path, other = tmp_path / "log", tmp_path / "other"
    path.write_text("".join(f"step {number}\n" for number in range(30)))
    async with desk(path) as on:
        await on.typed("slash", "step 2")
        await on.until(lambda: "/step 2  hit 11 of 11" in on.title, "the hit in the old log")

        _start_another(on, other, "a start\nstep 2\nstep 3\n")
        await on.until(lambda: on.rows == ["a start", "step 2", "step 3"], "the new log")
        await on.until(lambda: "/step 2" not in on.title, "a title without the search")
        assert not on.pane._marks_hits

        await on.press("n")
        await on.until(lambda: "/step 2  hit 1 of 1" in on.title, "the hit in the new log")


async def test_lines_and_hits_that_come_late_of_the_log_before_are_not_shown_as_another_ones(tmp_path: Path) -> None:
    path, other = tmp_path / "log", tmp_path / "other"
    written(path, 20_000)
    async with desk(path) as on:
        on.logs.gate.clear()
        await on.press("g")
        await on.typed("slash", "line 777 ")
        await on.until(lambda: {"lines", "matching"} <= set(on.logs.asked), "both first looks")

        _start_another(on, other, "line 777 of another run\nthe newest line\n")
        on.logs.gate.set()
        await on.until(lambda: not list(on.pane.workers), "the end of what was asked")
        await on.pilot.pause()

        assert on.pane.following
        assert on.rows == ["line 777 of another run", "the newest line"]
        assert on.pane.log_view.file.size_bytes == other.stat().st_size
        await on.until(lambda: "/line 777" not in on.title, "a title without the search")


async def test_a_log_that_was_left_before_it_came_is_not_shown_in_place_of_the_followed_one(tmp_path: Path) -> None:
    path, other = tmp_path / "log", tmp_path / "other"
    wanted = written(path, 300)
    other.write_text("of another run\n")
    async with desk(path) as on:
        on.logs.gate.clear()
        on.pane.open(Place(path=str(other)))
        await on.until(lambda: on.logs.asked, "the first look")

        await on.press("escape")
        on.logs.gate.set()
        await on.until(lambda: not list(on.pane.workers), "the end of what was asked")
        await on.pilot.pause()

        assert on.pane.following
        assert on.rows == wanted[-len(on.rows) :]


async def test_a_search_goes_on_in_a_log_that_is_chosen_and_escape_leaves_that_log_at_once(tmp_path: Path) -> None:
    path, other = tmp_path / "log", tmp_path / "other"
    written(path, 300)
    other.write_text("line 7 of another run\nits end\n")
    async with desk(path) as on:
        await on.typed("slash", "line 7 ")
        await on.until(lambda: "hit 1 of 1" in on.title, "the hit")
        on.pane.open(Place(path=str(other)))
        await on.until(lambda: on.rows == ["line 7 of another run", "its end"], "the chosen log")
        await on.until(lambda: "/line 7" not in on.title, "a title without the search")

        await on.press("n")
        await on.until(lambda: "hit 1 of 1" in on.title and not on.pane.busy, "the hit in it, counted")
        await on.press("escape")
        await on.until(lambda: "/line 7" not in on.title, "a title without the search")
        assert "another log" in on.title

        await on.press("N")
        on.pane.open(Place(path=str(other)))
        await on.until(lambda: "another log" in on.title and not on.pane.busy, "the chosen log again")
        await on.press("escape")

        await on.until(lambda: "another log" not in on.title, "the followed log")
