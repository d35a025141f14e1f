"""Search in a view of a real file: every hit is found, the nearest first, and no more is said than is known."""

from __future__ import annotations

import asyncio
from pathlib import Path

from console.state.logquery import ERRORS, typed
from console.ui.logsearch import LogSearch
from console.ui.logview import LogView
from tests.ui import fixtures
from tests.ui.filelogs import FileLogs
from tests.ui.fixtures import replace
from tests.ui.test_logview import shown, view_of, written
from tests.waiting import until_async


def searched(view: LogView) -> LogSearch:
    return LogSearch(view, lambda: None)


def in_small_looks(path: Path) -> tuple[LogView, FileLogs]:
    """Return a view of 20,000 lines whose host looks through one block of them at a time."""
    written(path, 20_000)
    view = view_of(path)
    logs = view.file.logs
    assert isinstance(logs, FileLogs)
    logs.slice_s = -1.0
    return view, logs


async def test_a_known_hit_is_gone_to_without_asking_the_host_to_search(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, 20_000)
    view = view_of(path)
    query = typed(" 777 x")
    search = searched(view)
    await search.count(query)
    logs = view.file.logs
    assert isinstance(logs, FileLogs)
    logs.asked.clear()

    assert await search.find(query, back=True, again=False)

    assert view.cursor is not None
    assert view.cursor.text.startswith("line 777 ")
    assert set(logs.asked) == {"lines"}
    assert search.label == "/ 777 x  hit 1 of 1"


async def test_a_search_in_a_filter_finds_only_what_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"{'even' if number % 2 == 0 else 'odd'} {number}\n" for number in range(4000)))
    view = view_of(path)
    search = searched(view)
    await view.set_filter(typed("even"))

    assert await search.find(typed("[67]$"), back=True, again=False)
    assert view.cursor is not None
    assert view.cursor.text == "even 3996"
    assert not await search.find(typed("odd"), back=True)


async def test_no_error_is_said_only_after_the_whole_file_was_searched(tmp_path: Path) -> None:
    path = tmp_path / "log"
    view, logs = in_small_looks(path)
    search = searched(view)

    assert not await search.find(ERRORS, back=False)

    assert search.label == "no error line"
    assert logs.asked.count("matching") >= path.stat().st_size // (1 << 20)
    assert shown(view)[-1].startswith("line 19999 ")


async def test_in_a_log_whose_name_is_not_known_nothing_is_called_absent(tmp_path: Path) -> None:
    written(tmp_path / "log", 300)
    view = view_of(tmp_path / "log")
    view.file.place = None
    search = searched(view)

    assert not await search.find(typed("no such text"), back=True)

    assert search.label == "/no such text  not found here"


async def test_of_a_hit_that_is_not_shown_it_is_said_why(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("a start\n" + "x" * 3_000_000 + " needle\n" + "bar 1\rneedle 2\rbar 3\n" + "a needle\n")
    view = view_of(path, kept_bytes=len("a needle\n") + 1)
    search, query = searched(view), typed("needle")
    said = []

    for _ in range(3):
        assert await search.find(query, back=True)
        await search.count(query)
        said.append(search.label)

    assert said == [
        "/needle  hit 3 of 3",
        "/needle  hit 2 of 3, written over",
        "/needle  hit 1 of 3, cut off",
    ]


async def test_what_is_not_shown_of_lines_that_are_here_is_looked_through_by_the_host(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("needle 0\nbar 1\rneedle 1\rbar 2\nneedle 2\nbar 3\rbar 4\nneedle 3\nits end\n")
    view = view_of(path, kept_bytes=1 << 20)
    search, query = searched(view), typed("needle")
    logs = view.file.logs
    found = []

    for back in (*[True] * 4, *[False] * 4):
        assert await search.find(query, back=back)
        assert view.cursor is not None
        found.append(view.cursor.text)
    assert found == ["needle 3", "needle 2", "bar 2", "needle 0", "bar 2", "needle 2", "needle 3", "needle 0"]

    view.file.logs = fixtures.NoLogs()
    view.follow()
    found = []
    for _ in range(3):
        assert await search.find(query, back=True)
        assert view.cursor is not None
        found.append(view.cursor.text)
    view.file.logs = logs
    assert found == ["needle 3", "needle 2", "needle 0"]


async def test_the_number_of_hits_is_not_said_like_the_place_of_one(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, 300)
    view = view_of(path, kept_bytes=1 << 20)
    search = searched(view)
    said = []

    for text in ("line 7 ", "line 17"):
        assert await search.find(typed(text), back=True, again=False)
        await search.count(typed(text))
        said.append(search.label)
        view.follow()
        said.append(search.label)

    assert said == ["/line 7   hit 1 of 1", "/line 7   1 hit", "/line 17  hit 11 of 11", "/line 17  11 hits"]


async def test_hits_in_what_is_here_are_not_called_all_hits(tmp_path: Path) -> None:
    written(tmp_path / "log", 20_000)
    view = view_of(tmp_path / "log")
    search = searched(view)
    view.file.logs = fixtures.NoLogs()

    assert await search.find(typed("line 19999"), back=True, again=False)
    view.follow()

    assert search.label == "/line 19999  1+ hits"


async def test_a_count_ends_with_the_file_that_it_began_in(tmp_path: Path) -> None:
    view, logs = in_small_looks(tmp_path / "log")
    search = searched(view)
    logs.gate.clear()
    first_file = view.files
    counting = asyncio.create_task(search.count(typed("x")))
    await until_async(lambda: logs.asked, 60, what="the first look")

    another = tmp_path / "another"
    written(another, 20_000)
    view.file.seen(replace(fixtures.HEALTHY, log=replace(fixtures.HEALTHY.log, path=str(another))))
    logs.gate.set()
    await counting

    assert logs.asked == ["count"]
    assert not search._hits[first_file, typed("x")].total


async def test_a_count_that_was_not_ended_is_not_called_the_whole(tmp_path: Path) -> None:
    view, logs = in_small_looks(tmp_path / "log")

    def lose_link() -> None:
        if logs.asked.count("count") == 1:
            view.file.logs = fixtures.NoLogs()

    search = LogSearch(view, lose_link)
    query = typed("line")
    await search.find(query, back=True, again=False)
    await search.count(query)
    said = search.label
    view.file.logs = logs
    await search.count(query)

    assert said.endswith("+ hits")
    assert search.label == "/line  hit 20,000 of 20,000"


async def test_what_the_host_could_not_be_asked_for_is_not_called_absent(tmp_path: Path) -> None:
    written(tmp_path / "log", 20_000)
    view = view_of(tmp_path / "log")
    search = searched(view)
    logs, view.file.logs = view.file.logs, fixtures.NoLogs()

    assert not await search.find(typed("line 3 "), back=True, again=False)
    assert search.label == "/line 3   not found here"
    assert not await search.find(ERRORS, back=True, again=False)
    assert search.label == "no error line here"

    view.file.logs = logs
    assert not await search.find(ERRORS, back=True, again=False)
    assert search.label == "no error line"
