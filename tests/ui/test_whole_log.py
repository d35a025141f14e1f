# ruff: noqa: ASYNC240 - small local files
"""The whole remote file under the keys of less: from its first byte to the line that is being written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path

import pytest
from textual.pilot import Pilot

from console.model import LinkState, LogState, LogStatus, Verdict
from console.ui.app import ConsoleApp
from console.ui.present.spans import as_text
from console.ui.screens.log import LogScreen
from console.ui.screens.pick import PickScreen
from console.ui.widgets.lines import LinesView
from console.ui.widgets.logpane import LogPane
from tests.ui import fixtures
from tests.ui.filelogs import FileLogs, grow, tail_of
from tests.ui.fixtures import FakeSource, replace
from tests.ui.screens import is_there
from tests.waiting import until_async

LINES = 30_000
TAIL_BYTES = 20_000
RANKS = (3, 0, 1, 2, 4, 5, 6, 7)


def traceback(rank: int) -> list[str]:
    frames = (
        "Traceback (most recent call last):",
        '  File "/srv/fit.py", line 88',
        "RuntimeError: no target_layer_ids",
    )
    return [f"[rank{rank}]: {text}" for text in frames]


def text_of(number: int) -> list[str]:
    if number == 7000:
        return [line for rank in RANKS for line in traceback(rank)]
    if number in (100, 15_000, 29_990):
        return [f"needle at {number}"]
    return [f"step {number} | loss 1.{number:06d} | tok/s 21,400" if number % 3 else f"plain {number} " + "x" * 150]


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "train_slammed5.log"
    path.write_text("".join(f"{line}\n" for number in range(1, LINES + 1) for line in text_of(number)))
    return path


class Desk:
    """An app over a real file, and what is seen of it."""

    def __init__(self, app: ConsoleApp, source: FakeSource, logs: FileLogs, pilot: Pilot[str]) -> None:
        self.app, self.source, self.logs, self.pilot = app, source, logs, pilot

    @property
    def pane(self) -> LogPane:
        return self.app.screen_stack[-1].query_one(LogPane)

    @property
    def title(self) -> str:
        return as_text(self.app.screen.query_one("#log-title", LinesView).view)

    @property
    def rows(self) -> list[str]:
        return [shown.row.text for shown in self.pane._shown]

    def is_busy(self) -> bool:
        return self.pane.busy

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def until(self, look: Callable[[], object], what: str) -> None:
        await until_async(look, 60, what=what)

    async def typed(self, key: str, text: str) -> None:
        await self.press(key, *("space" if char == " " else char for char in text), "enter")


@asynccontextmanager
async def desk(path: Path, *, size: tuple[int, int] = (120, 36), kept_bytes: int = TAIL_BYTES) -> AsyncIterator[Desk]:
    log = LogStatus(
        state=LogState.FOLLOWING, path=str(path), size_bytes=path.stat().st_size, at=fixtures.NOW, grew_at=fixtures.NOW
    )
    source = FakeSource(replace(fixtures.HEALTHY, log=log), tail_of(path, kept_bytes))
    logs = FileLogs(path, path.with_name("train_slammed4.log"))
    source.logs = logs
    app = ConsoleApp(source, zone=UTC)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.press("3")
        await pilot.pause()
        assert isinstance(app.screen, LogScreen)
        yield Desk(app, source, logs, pilot)


async def test_g_shows_the_first_line_of_the_file_and_G_follows_again(big: Path) -> None:
    async with desk(big) as on:
        await on.press("g")
        await on.until(lambda: on.rows[0].startswith("step 1 "), "the first line")
        assert "line 1 · 0 % · f follows" in on.title
        assert sum(name == "lines" for name in on.logs.asked) <= 3

        await on.press("G")
        assert on.pane.following
        assert on.rows[-1].startswith(f"plain {LINES} ")


async def test_page_up_loads_what_is_above_the_tail(big: Path) -> None:
    wanted = big.read_text().splitlines()
    async with desk(big, size=(120, 24), kept_bytes=2000) as on:
        await on.press("pageup", "pageup", "pageup", "up")
        await on.until(lambda: not on.pane.log_view.wants, "the range above")

        at = wanted.index(on.rows[0])
        assert on.rows == wanted[at : at + len(on.rows)]
        assert at == LINES + 23 - 20 - (3 * 19 + 1)


async def test_lines_that_come_meanwhile_wait_below_and_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"old {number}\n" for number in range(500)))
    async with desk(path) as on:
        await on.press("pageup", "pageup")
        before = on.rows
        grow(path, on.source.log, "".join(f"new {number}\n" for number in range(412)))
        on.source.change(verdict=Verdict.SLOW)

        await on.until(lambda: "▼ 412 new lines  f" in on.title, "the count of unseen lines")
        assert on.rows == before
        await on.press("f")
        assert on.rows[-1] == "new 411"


async def test_a_search_looks_through_the_whole_file_nearest_first_and_counts(big: Path) -> None:
    async with desk(big) as on:
        await on.typed("slash", "needle at")
        await on.until(lambda: "hit 3 of 3" in on.title, "the count")
        assert "needle at 29990" in on.rows

        for key, hit, rank in (("N", 15_000, 2), ("N", 100, 1), ("N", 29_990, 3), ("n", 100, 1), ("n", 15_000, 2)):
            await on.press(key)
            await on.until(lambda hit=hit: f"needle at {hit}" in on.rows, f"the hit at {hit}")  # type: ignore[misc]
            await on.until(lambda rank=rank: f"hit {rank} of 3" in on.title, "its rank")  # type: ignore[misc]
        first = on.pane.where
        assert first is not None
        assert first.line is not None
        assert big.read_text().splitlines()[first.line - 1] == on.rows[0]

        await on.press("escape")
        assert "needle" not in on.title


async def test_a_search_under_way_says_how_far_it_is_and_escape_stops_it(big: Path) -> None:
    async with desk(big) as on:
        on.logs.slice_s = -1.0  # one block a look
        on.logs.gate.clear()
        await on.typed("slash", "needle at 100$")
        await on.until(lambda: "searching" in on.title, "its progress")
        assert on.is_busy()

        await on.press("escape")
        on.logs.gate.set()

        assert "stopped while searching" in on.title
        assert not on.is_busy()
        assert on.rows[-1].startswith(f"plain {LINES} ")


@pytest.mark.parametrize(
    ("typed", "found"), [("NEEDLE at", 0), ("Needle", 0), ("needle at 15.*0$", 1), ("(needle", 0), ("plain 30000", 1)]
)
async def test_a_search_is_as_less_does_it(big: Path, typed: str, found: int) -> None:
    async with desk(big) as on:
        await on.typed("slash", typed)
        await on.until(lambda: "not found" in on.title or f" of {found}" in on.title, "an end of the search")
        assert ("not found" in on.title) == (found == 0)


async def test_errors_are_found_in_the_whole_file_and_ranks_that_fail_alike_are_one_line(big: Path) -> None:
    async with desk(big) as on:
        await on.press("e")
        await on.until(lambda: "error 1 of 16" in on.title, "the first error")
        # What was searched for is shown whole ...
        assert "[rank3]: Traceback (most recent call last):" in on.rows
        await on.press("escape")
        # ... and folds again when nobody looks for it any more.
        assert "8 ranks: RuntimeError: no target_layer_ids  (rank 3 first)" in on.rows
        assert not any("rank5" in row for row in on.rows)

        await on.press("u")
        assert any("rank5" in row for row in on.rows)


async def test_E_and_N_go_up_to_what_e_and_n_go_down_to_around_both_ends(tmp_path: Path) -> None:
    path = tmp_path / "log"
    marked = {100: "Error: first", 9000: "Error: second", 15_990: "Error: third"}
    path.write_text("".join(f"{marked.get(number, f'line {number}')}\n" for number in range(16_000)))
    async with desk(path) as on:
        for up, down, word in (("E", "e", "error"), ("N", "n", "hit")):
            if word == "hit":
                await on.press("escape", "f")
                await on.typed("slash", "^Error")
                await on.until(lambda: "hit 3 of 3" in on.title, "the newest hit")
                await on.press(down)
                await on.until(lambda: "hit 1 of 3" in on.title, "around the end")
            keys = [(up, 3), (up, 2), (up, 1), (up, 3), (down, 1), (down, 2)]
            for key, rank in keys:
                await on.press(key)
                said = f"{word} {rank} of 3"
                await on.until(lambda said=said: said in on.title, f"{key}: {said}")  # type: ignore[misc]
                text = list(marked.values())[rank - 1]
                await on.until(lambda text=text: text in on.rows, text)  # type: ignore[misc]


async def test_a_filter_shows_matching_lines_of_the_whole_file_only(big: Path) -> None:
    async with desk(big) as on:
        await on.press("slash", "tab", *"needle", "enter")
        await on.until(lambda: "only /needle/" in on.title, "the filter")
        assert on.rows == ["needle at 29990"]

        await on.press("pageup")
        await on.until(lambda: len(on.rows) == 3, "what matches above")
        assert on.rows == ["needle at 100", "needle at 15000", "needle at 29990"]

        await on.press("escape")
        await on.until(lambda: len(on.rows) > 3, "all lines again")


async def test_hidden_step_lines_are_counted(big: Path) -> None:
    async with desk(big) as on:
        await on.press("full_stop")
        await on.until(lambda: "step lines hidden" in on.title, "the count")
        assert not any(row.startswith("step") for row in on.rows)
        assert len(on.rows) == on.pane.size.height

        await on.press("pageup", "pageup")
        await on.until(lambda: not on.pane.log_view.wants, "what is above")
        assert not any(row.startswith("step") for row in on.rows)
        await on.press("full_stop")
        await on.until(lambda: any(row.startswith("step") for row in on.rows), "step lines again")


async def test_wrapped_lines_are_whole_and_scroll_line_by_line(big: Path) -> None:
    async with desk(big, size=(80, 24)) as on:
        await on.press("w")
        shown = on.pane._shown
        wrapped = [each for each in shown if each.row.text.startswith("plain")]
        assert {each.line for each in wrapped} >= {0, 1, 2}
        room = on.pane.log_view.viewport.room
        text = "".join(on.pane.render_line(shown.index(each)).text[2 : 2 + room].rstrip() for each in wrapped[-3:])
        assert text == wrapped[-1].row.text

        await on.press("up")
        assert [(each.row.text, each.line) for each in on.pane._shown[1:]] == [
            (each.row.text, each.line) for each in shown[:-1]
        ]


async def test_wrapped_lines_are_whole_when_the_pane_was_painted_before_it_knew_its_new_width(big: Path) -> None:
    async with desk(big, size=(60, 20)) as on:
        await on.press("w")
        pane, room = on.pane, on.pane.log_view.viewport.room
        pane._strips.clear()  # nothing is painted yet at this width
        pane.log_view.viewport.room = room + 20  # as it was, wider; a paint comes before the resize is told
        pane._shown = pane.log_view.visible()
        for y in range(pane.size.height):
            pane.render_line(y)
        pane._repaint()

        assert pane.log_view.viewport.room == room
        assert not [row for y in range(pane.size.height) if "…" in (row := pane.render_line(y).text)]


async def test_another_log_is_looked_at_and_escape_goes_back(big: Path) -> None:
    other = big.with_name("train_slammed4.log")
    other.write_text("".join(f"older {number}\n" for number in range(5000)))
    async with desk(big) as on:
        await on.press("l")
        await on.until(lambda: is_there(on.app, PickScreen), "the list of logs")
        await on.press(*"slammed4", "enter")
        await on.until(lambda: on.rows[-1:] == ["older 4999"], "the end of the other log")
        assert on.pane.log_view.file.place.path == str(other)  # type: ignore[union-attr]
        assert "another log, esc goes back" in on.title

        await on.press("g")
        await on.until(lambda: on.rows[0] == "older 0", "its first line")
        await on.press("escape")
        assert on.pane.following
        assert on.rows[-1].startswith(f"plain {LINES} ")


async def test_marked_lines_are_copied_and_saved(big: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    async with desk(big, size=(120, 24)) as on:
        await on.press("g")
        await on.until(lambda: on.rows[0].startswith("step 1 "), "the first line")
        await on.press("v", "pagedown")
        await on.until(lambda: not on.rows[0].startswith("step 1 "), "the next page")
        last = on.rows[-1]
        wanted = big.read_text()[: big.read_text().index(last) + len(last) + 1]
        await on.press("y")
        await on.until(lambda: on.app.clipboard == wanted, "the copy")

        path = tmp_path / "saved.log"
        await on.press("greater_than_sign")
        line = await until_async(lambda: on.app.screen.query("#line").first(), what="the prompt")
        line.value = str(path)  # type: ignore[attr-defined]
        shown = "".join(f"{row}\n" for row in on.app.screen_stack[-2].query_one(LogPane).shown_text().split("\n"))
        await on.press("enter")
        await on.until(path.exists, "the file")
        await on.until(lambda: path.stat().st_size, "its bytes")

        assert path.read_text() == shown
        assert path.stat().st_mode & 0o777 == 0o600


async def test_a_file_that_is_replaced_while_it_is_read_is_named_and_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"old {number}\n" for number in range(9000)))
    async with desk(path) as on:
        await on.press("g")
        await on.until(lambda: on.rows[0] == "old 0", "the first line")
        (tmp_path / "new").write_text("".join(f"new {number}\n" for number in range(9000)))
        (tmp_path / "new").rename(path)

        for _ in range(200):
            on.pane.action_page(20)
            await on.pilot.pause()
            await on.until(lambda: not on.pane.log_view.wants or on.pane.log_view.file.trouble, "an answer")
            if "while it was read" in on.title:
                break
        assert "the log was replaced while it was read" in on.title
        await on.press("g")
        await on.until(lambda: on.rows[0] == "new 0", "the first line of the new file")


async def test_without_a_link_what_is_here_can_be_searched_and_scrolled(big: Path) -> None:
    async with desk(big) as on:
        on.source.change(link=replace(on.source.snapshot.link, state=LinkState.LOST))
        on.source.logs = on.pane.log_view.file.logs = fixtures.NoLogs()
        await on.typed("slash", "needle at")
        await on.until(lambda: "hit 1 of 1+" in on.title, "what is here")
        await on.press("g")
        await on.until(lambda: "no link" in on.title, "the trouble")
        await on.press("f")
        assert on.pane.following
        await on.until(lambda: "no link" not in on.title, "a title without it")


async def test_trouble_is_told_until_it_was_read_or_the_link_is_back(big: Path) -> None:
    async with desk(big) as on:
        on.source.change(link=replace(on.source.snapshot.link, state=LinkState.LOST))
        on.source.logs = on.pane.log_view.file.logs = fixtures.NoLogs()
        for leave in (
            lambda: on.press("escape"),
            lambda: on.source.change(link=replace(on.source.snapshot.link, state=LinkState.UP)),
        ):
            await on.press("g")
            await on.until(lambda: "no link: not all is here" in on.title, "the trouble")
            on.source.change(verdict=Verdict.SLOW)
            await on.pilot.pause()
            assert on.pane.log_view.file.trouble

            done = leave()
            if done is not None:
                await done
            await on.until(lambda: "no link: not all is here" not in on.title, "a title without it")
            assert not on.pane.following


async def test_lines_that_are_not_let_through_are_not_called_lines_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"step {number} | loss 1.2 | tok/s 21,400\n" for number in range(300)))
    async with desk(path) as on:
        for key, text, why in (
            ("full_stop", "", "all lines here are step lines, which are hidden"),
            ("ampersand", "loss", "all lines here that match /loss/ are step lines, which are hidden"),
            ("ampersand", "no such", "no line here matches /no such/"),
        ):

            def is_said(why: str = why) -> bool:
                return on.pane.render_line(0).text.strip() == why

            await (on.typed(key, text) if text else on.press(key))
            await on.until(is_said, why)
            await on.press("pageup")  # at the end first, then among what the filter let through
            await on.until(lambda: not list(on.pane.workers), "the end of what was asked")
            assert is_said()


async def test_a_flood_of_which_bytes_are_left_out_says_how_many_while_it_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"old {number}\n" for number in range(500)))
    async with desk(path) as on:
        on.source.log.gap(38 << 20, on.source.snapshot.at - 1)
        grow(path, on.source.log, "".join(f"new {number}\n" for number in range(500)))
        on.source.change(verdict=Verdict.SLOW)
        await on.until(lambda: "38.0 MiB skipped" in on.title, "the bytes")

        await on.press("g")
        await on.until(lambda: on.rows[:1] == ["old 0"], "the first line")
        await on.until(lambda: "skipped" not in on.title, "a title of the place")
