"""A view of a real file: whatever is scrolled, every line is there once, in order, and little of it in memory."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from console.state.lines import LineSplitter, RawLine
from console.state.logquery import Place, typed
from console.state.logwindow import MOST_ENTRIES
from console.ui import logfile
from console.ui.logview import LogView
from tests.ui.filelogs import FileLogs, grow, tail_of


def view_of(path: Path, *, kept_bytes: int = 3000, height: int = 20) -> LogView:
    view = LogView(tail_of(path, kept_bytes), FileLogs(path), lambda: None)
    view.viewport.height, view.file.place, view.file.size_bytes = height, Place(path=str(path)), path.stat().st_size
    return view


def shown(view: LogView) -> list[str]:
    return [each.row.text for each in view.visible()]


def written(path: Path, count: int, width: int = 90) -> list[str]:
    lines = [f"line {number} {'x' * (number % width)}" for number in range(count)]
    path.write_text("".join(f"{line}\n" for line in lines))
    return lines


async def scrolled(view: LogView, lines: int) -> None:
    view.scroll(lines)
    await view.fetch()


async def test_up_to_the_first_line_and_down_to_the_last_every_line_is_seen_once(tmp_path: Path) -> None:
    wanted = written(tmp_path / "log", 20_000)
    view = view_of(tmp_path / "log")
    seen, largest = shown(view), 0

    while view.window is None or view.window.begin > 0 or view.where is None or view.where.offset > 0:
        before = shown(view)
        await scrolled(view, -19)
        seen = shown(view)[: shown(view).index(before[0])] + seen
        largest = max(largest, len(view.tail_or_window.entries))
    assert seen == wanted[-len(seen) :] == wanted
    assert view.where.line == 1

    back = shown(view)
    while not view.following:
        before = shown(view)
        await scrolled(view, 19)
        back += shown(view)[shown(view).index(before[-1]) + 1 :]
        largest = max(largest, len(view.tail_or_window.entries))
    assert back == wanted
    assert largest <= MOST_ENTRIES


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(-300, 300), max_size=30), st.integers(0, 2**32))
@example([0], 31459)  # a jump to where more lines stand on either side than are kept
async def test_wherever_it_is_scrolled_lines_that_follow_in_the_file_follow_on_the_pane(
    tmp_path: Path, moves: list[int], seed: int
) -> None:
    path = tmp_path / "log"
    wanted = written(path, 2000)
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logfile, "RANGE_BYTES", 4000)
        patch.setattr("console.state.logwindow.MOST_ENTRIES", 300)
        view = view_of(path)
        for move in moves:
            match chance.randrange(12):
                case 0:
                    await view.go_top()
                case 1:
                    await view.go_to(chance.randrange(path.stat().st_size))
                case 2:
                    view.follow()
                case 3:
                    grow(path, view._buffer, text := f"line {len(wanted)} new\n")
                    wanted.append(text[:-1])
                    view.file.size_bytes = path.stat().st_size
                    view.sync()
                case _:
                    await scrolled(view, move)
            rows = shown(view)
            at = wanted.index(rows[0])
            assert rows == wanted[at : at + len(rows)]
            assert len(rows) == 20
            where = view.where
            if where is not None and where.line is not None:
                assert where.line == at + 1


async def test_what_is_read_stays_in_place_while_the_log_floods(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, 500)
    view = view_of(path)
    view._buffer._max_lines = 200
    await scrolled(view, -40)
    before = shown(view)

    for _ in range(10):
        grow(path, view._buffer, "".join(f"new {number}\n" for number in range(100)))
        view.sync()

    assert shown(view) == before
    view.file.size_bytes = path.stat().st_size
    for _ in range(200):
        await scrolled(view, 19)
    assert view.following
    assert shown(view)[-1] == "new 99"


async def test_bytes_that_were_skipped_in_a_flood_can_be_read_above_the_gap(tmp_path: Path) -> None:
    path = tmp_path / "log"
    wanted = written(path, 3000)
    view = view_of(path, kept_bytes=0)
    data = path.read_bytes()
    buffer = view._buffer
    buffer.append(LineSplitter(0).feed(data[:5000][: data[:5000].rfind(b"\n") + 1], 0, 0.0))
    start = data.rfind(b"\n", 0, len(data) - 4000) + 1
    buffer.gap(start - 5000, 0.0)
    buffer.append(LineSplitter(start).feed(data[start:], start, 0.0))

    for _ in range(5):
        await scrolled(view, -19)

    rows = shown(view)
    at = wanted.index(rows[0])
    assert rows == wanted[at : at + len(rows)]


async def test_lines_of_a_file_that_is_gone_stay_above_those_of_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, 50)
    view = view_of(path, kept_bytes=1 << 20)
    path.write_bytes(b"")
    view._buffer.begin_anew("log was truncated", 0.0)
    grow(path, view._buffer, "".join(f"new {number}\n" for number in range(30)))

    await scrolled(view, -20)

    assert "log was truncated" in shown(view)
    await scrolled(view, -100)
    assert shown(view)[0] == "line 0 "
    assert view.file.trouble == ""


async def test_lines_between_steps_stay_however_many_steps_are_hidden(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(
        "".join(
            f"rare {number}\n" if number % 5000 == 7 else f"step {number} | loss 1.2 | tok/s 21,400\n"
            for number in range(60_000)
        )
    )
    view = view_of(path)
    await view.hide_steps(True)
    seen: list[str] = []

    for _ in range(40):
        await scrolled(view, -19)
        seen = shown(view)

    assert seen == [f"rare {number}" for number in range(7, 60_000, 5000)][: len(seen)]
    assert seen[0] == "rare 7"
    assert len(seen) == 12
    assert view.hidden_steps == 60_000 - 12
    where = view.where
    assert where is None or where.line is None


async def test_step_lines_that_were_hidden_before_are_not_counted_among_those_that_a_filter_lets_through(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log"
    path.write_text(
        "".join(
            f"rare {number}\n" if number % 50 == 7 else f"step {number} | loss 1.2 | tok/s 21,400\n"
            for number in range(1000)
        )
    )
    view = view_of(path)
    await view.hide_steps(True)
    for _ in range(4):
        await scrolled(view, -19)
    assert view.hidden_steps == 1000 - 20

    await view.set_filter(typed("rare"))
    assert (len(view.rows()), view.hidden_steps) == (20, 0)
    await view.set_filter(typed("(rare|step) 9[0-9]5"))
    assert view.rows() == []
    assert view.hidden_steps == 10
    await view.set_filter(None)

    view.rows()
    assert view.hidden_steps == 1000 - 20


async def test_after_a_filter_that_nothing_passed_all_lines_are_there_again(tmp_path: Path) -> None:
    wanted = written(tmp_path / "log", 2000)
    view = view_of(tmp_path / "log")
    await view.go_to(60_000)
    before = shown(view)
    await view.set_filter(typed("no such line"))
    assert shown(view) == []

    await view.set_filter(None)
    assert await _all_lines(view, wanted) == before

    view.follow()
    await view.set_filter(typed("no such line"))
    await scrolled(view, -10)
    await view.set_filter(None)
    assert shown(view) == wanted[-20:]
    await _all_lines(view, wanted)


async def test_after_only_step_lines_were_hidden_all_of_them_are_there_again(tmp_path: Path) -> None:
    path = tmp_path / "log"
    wanted = [f"step {number} | loss 1.2 | tok/s 21,400" for number in range(2000)]
    path.write_text("".join(f"{line}\n" for line in wanted))
    view = view_of(path)
    await view.go_top()
    await view.hide_steps(True)
    assert shown(view) == []

    await view.hide_steps(False)

    assert shown(view) == wanted[:20]
    await _all_lines(view, wanted)


async def _all_lines(view: LogView, wanted: list[str]) -> list[str]:
    """Return what is on the pane after looking through all that can be scrolled to, every line once and in order."""
    shown_first = shown(view)
    assert len(shown_first) == 20
    at = wanted.index(shown_first[0])
    assert shown_first == wanted[at : at + 20]
    for _ in range(3):
        await scrolled(view, -19)
        rows = shown(view)
        at = wanted.index(rows[0])
        assert rows == wanted[at : at + 20]
    return shown_first


async def test_a_filtered_window_claims_no_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, 5000)
    view = view_of(path)
    await view.set_filter(typed("7"))

    await view.go_top()

    assert shown(view)[0].startswith("line 7 ")
    assert view.where is not None
    assert view.where.line is None


async def test_a_pane_of_one_line_is_scrolled_while_a_line_is_being_written(tmp_path: Path) -> None:
    written(tmp_path / "log", 200)
    view = view_of(tmp_path / "log", height=1)
    view._buffer.set_live(RawLine(text="75 %", at=0.0, cr=True, offset=0, end_offset=4))

    await scrolled(view, -1)

    assert [row[:8] for row in shown(view)] == ["line 198"]
