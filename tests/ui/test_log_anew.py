"""A log that is truncated or replaced while it is read: what is gone is shown, never taken for what is there."""

from __future__ import annotations

from pathlib import Path

from console.state.logquery import Place, typed
from console.ui.logsearch import LogSearch
from console.ui.logview import LogView
from tests.ui.filelogs import FileLogs, grow
from tests.ui.test_logview import scrolled, shown, view_of, written


def _search(view: LogView) -> LogSearch:
    return LogSearch(view, lambda: None)


def _anew(view: LogView, path: Path, text: str) -> None:
    """Truncate the log and let the run write on; the view is told as it is by the pane."""
    path.write_bytes(b"")
    view._buffer.begin_anew("log was truncated", 0.0)
    grow(path, view._buffer, text)
    view.sync()


def _is_marked(view: LogView) -> bool:
    return view.mark is not None


async def _found(search: LogSearch, view: LogView, text: str, *, back: bool) -> str:
    assert await search.find(typed(text), back=back)
    assert view.cursor is not None
    assert view.cursor.text in shown(view)
    return view.cursor.text


async def test_hits_are_found_in_the_order_in_which_they_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"old {number} {'hit' if number % 100 == 0 else '-'}\n" for number in range(300)))
    view = view_of(path, kept_bytes=1 << 20)
    search = _search(view)
    assert await _found(search, view, "hit", back=True) == "old 200 hit"
    _anew(view, path, "".join(f"new {number} {'hit' if number in (5, 90) else '-'}\n" for number in range(150)))

    forth = [await _found(search, view, "hit", back=False) for _ in range(2)]
    await search.count(typed("hit"))
    forth += [await _found(search, view, "hit", back=False) for _ in range(2)]
    back = [await _found(search, view, "hit", back=True) for _ in range(6)]

    # Around the end comes the start of the file as it is now; above that still stands what is gone.
    assert forth == ["new 5 hit", "new 90 hit", "new 5 hit", "new 90 hit"]
    assert back == ["new 5 hit", "old 200 hit", "old 100 hit", "old 0 hit", "new 90 hit", "new 5 hit"]


async def test_what_was_counted_before_says_nothing_of_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"old {number} hit\n" for number in range(300)))
    view = view_of(path, kept_bytes=1 << 20)
    search, query = _search(view), typed("hit")
    await search.find(query, back=True)
    await search.count(query)
    assert search.label == "/hit  hit 300 of 300"

    _anew(view, path, "".join(f"new {number} hit\n" for number in range(1500)))
    assert search.label == "/hit  hit gone, 999+ in the file"  # so many came into the window at once
    await search.count(query)
    assert search.label == "/hit  hit gone, 1,500 in the file"
    await search.find(query, back=False)
    assert search.label == "/hit  hit 1 of 1,500"


async def test_a_known_place_of_a_hit_is_not_looked_for_in_lines_that_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"old {number}\n" for number in range(300)))
    view = view_of(path, kept_bytes=1 << 20)
    _anew(view, path, "".join(f"new {number}\n" for number in range(300)))
    await scrolled(view, -400)
    search, query = _search(view), typed("new 250")
    await search.count(query)
    view.cursor = None

    assert await view.go_to(path.read_bytes().index(b"new 250"))

    assert "new 250" in shown(view)


async def test_lines_that_are_gone_have_no_place_in_the_file_and_cannot_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, 300)
    view = view_of(path, kept_bytes=1 << 20)
    await scrolled(view, -100)
    view.mark = view.top_offset
    assert view.marked_range[0] == view.mark != 0

    _anew(view, path, "".join(f"new {number}\n" for number in range(30)))

    assert not _is_marked(view)
    assert view.file.trouble == "the marked lines are gone from the file"
    assert view.where is None
    assert view.top_offset is None
    assert view.marked_range == (0, 0)
    for _ in range(20):
        await scrolled(view, 19)
    assert view.following
    begin, end = view.marked_range
    assert path.read_bytes()[begin:end].decode().splitlines() == [f"new {number}" for number in range(10, 30)]


async def test_a_range_that_was_read_before_is_not_joined_with_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, 30_000)
    view = view_of(path)
    await view.go_top()
    _anew(view, path, "".join(f"new {number} {'y' * 90}\n" for number in range(40_000)))
    view.file.size_bytes = path.stat().st_size

    for _ in range(400):
        await scrolled(view, 20)
        if view.file.trouble:
            break
        assert view.where is None

    assert view.file.trouble == "the log was replaced while it was read"
    assert view.following
    assert await view.go_top()
    assert shown(view)[0].startswith("new 0 ")


async def test_a_file_of_another_name_is_read_on_after_the_followed_one_began_anew(tmp_path: Path) -> None:
    path, other = tmp_path / "log", tmp_path / "other"
    written(path, 300)
    wanted = written(other, 3000)
    view = view_of(path)
    await view.open(Place(path=str(other)))
    _anew(view, path, "new\n")

    assert await view.go_top()
    for _ in range(300):
        await scrolled(view, 19)

    assert shown(view) == wanted[-20:]
    assert view.file.trouble == ""


async def test_a_replaced_file_is_asked_for_without_a_word_of_trouble(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, 3000)
    view = view_of(path)
    await view.go_top()
    view.follow()
    assert view.file.place is not None
    assert view.file.place.identity is not None
    (tmp_path / "next").write_bytes(b"")
    (tmp_path / "next").rename(path)
    _anew(view, path, "".join(f"new {number}\n" for number in range(3000)))
    assert isinstance(view.file.logs, FileLogs)

    found = await view.file.look_for(typed("new 17"), 0, back=False, limit=1)

    assert found is not None
    assert [line.text for line in found.lines] == ["new 17"]
    assert view.file.trouble == ""


async def test_around_the_top_of_the_new_file_a_search_goes_on_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, 600)
    view = view_of(path)  # its first line here stands at a byte in the middle of the new file
    search = _search(view)
    _anew(view, path, "".join(f"new {number} {'hit' if number % 400 == 1 else '-' * 30}\n" for number in range(1200)))
    view.scroll(-5)
    assert await _found(search, view, "new 1 hit", back=False) == "new 1 hit"

    assert await _found(search, view, "hit", back=True) == "new 801 hit"


async def test_a_place_is_not_looked_for_in_a_range_that_was_read_before(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, 30_000)
    view = view_of(path)
    await view.go_top()
    _anew(view, path, "".join(f"new {number}\n" for number in range(5000)))

    assert await view.go_to(path.read_bytes().index(b"new 70"))

    assert "new 70" in shown(view)
