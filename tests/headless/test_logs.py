"""`logs`: any line of the whole file, by what is in it, by when it was written, of any run."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from msgspec.structs import replace

from console import configwriter
from console.commands.options import Moment
from console.demo.host import NAME
from console.headless.loglines import Printer, Wanted
from console.history import ledger
from console.history.entry import Entry
from console.reasons import ConsoleError, Exit, Reason
from tests.headless.running import Console, call

STEP = "step {} | loss 1.2 | tok/s 21,400"


@pytest.fixture(scope="module")
def ran(console: Console) -> Path:
    """A run that has ended, with a log of our own in its place; another log beside it."""
    done = console.restart("--json")
    assert done.code == 0, done.err
    assert console("stop", "--yes").code == 0
    log = Path(done.json["log"])
    lines = [STEP.format(number) for number in range(1, 3_001)]
    lines[9] = "RuntimeError: first"
    lines[10] = "somewhere in the middle"
    lines[2_000] = "RuntimeError: second"
    log.write_text("".join(f"{line}\n" for line in lines))
    log.with_name(log.name.replace(done.json["run"], "older")).write_text("one\ntwo\nValueError: three\n")
    return log


def test_errors_come_with_file_and_line_the_first_ones_first(console: Console, ran: Path) -> None:
    done = console("logs", "--errors")

    assert done.code == 0, done.err
    assert done.out.splitlines() == [f"{ran}:10: RuntimeError: first", f"{ran}:2001: RuntimeError: second"]
    assert console("logs", "--errors", "-n", "1").out.splitlines() == [f"{ran}:10: RuntimeError: first"]


def test_context_is_marked_as_such(console: Console, ran: Path) -> None:
    done = console("logs", "--errors", "-n", "1", "--context", "1")

    assert done.out.splitlines() == [
        f"{ran}-9- {STEP.format(9)}",
        f"{ran}:10: RuntimeError: first",
        f"{ran}-11- somewhere in the middle",
    ]


def test_grep_gives_the_last_matches_and_says_how_many_there_are(console: Console, ran: Path) -> None:
    done = console("logs", "--grep", r"STEP 299\d ".lower(), "-n", "2")

    assert done.out.splitlines() == [f"{ran}:{n}: {STEP.format(n)}" for n in (2_998, 2_999)]
    assert "2 of 10 lines, the last ones" in done.err
    assert console("logs", "--grep", "zebra").err.rstrip().endswith("matches")
    assert "matches step ( as text: it is no valid expression" in console("logs", "--grep", "step (").err


def test_no_more_bytes_are_printed_than_asked_for(console: Console, ran: Path) -> None:
    done = console("logs", "--grep", "step", "--max-bytes", "200")

    assert 0 < len(done.out) <= 200
    assert done.out.endswith(f"{ran}:3000: {STEP.format(3_000)}\n"), "the newest that fit"
    assert "did not fit into --max-bytes" in done.err


def test_the_end_of_a_line_is_printed_where_there_is_no_room_for_all_of_it(console: Console, ran: Path) -> None:
    done = console("logs", "-n", "3", "--max-bytes", "13")

    assert done.code == 0
    assert done.out == "tok/s 21,400\n"
    assert "a line of 36 bytes did not fit into --max-bytes: its end is printed" in done.err
    assert "2 lines more did not fit" in done.err


# What of the lines `one`, `zwei`, `drittens` is printed within so many bytes, and what is said of the rest
@pytest.mark.parametrize(
    ("max_bytes", "newest", "first", "said"),
    [
        (18, ["one", "zwei", "drittens"], ["one", "zwei", "drittens"], ""),
        (17, ["zwei", "drittens"], ["one", "zwei"], "1 lines more did not fit into --max-bytes"),
        (9, ["drittens"], ["one", "zwei"], "lines more"),
        (8, ["rittens"], ["one"], "2 lines more"),
        (2, ["s"], ["o"], "is printed"),
        (1, [], [], "not even the"),
    ],
)
def test_of_lines_that_do_not_all_fit_the_newest_are_kept_and_of_errors_the_first(
    capsys: pytest.CaptureFixture[str], max_bytes: int, newest: list[str], first: list[str], said: str
) -> None:
    for keeps_first, kept in ((False, newest), (True, first)):
        printer = Printer("/log", max_bytes, keeps_first=keeps_first)
        for line in ("one", "zwei", "drittens"):
            printer.say(line)
        printer.finish(keeps_start=keeps_first)

        done = capsys.readouterr()
        assert done.out.splitlines() == kept
        assert said in done.err


def test_a_line_is_cut_between_characters(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer("/log", 5)

    printer.say("für ähm")
    printer.finish(keeps_start=False)

    assert capsys.readouterr().out == "ähm\n"


def test_step_lines_can_be_left_out(console: Console, ran: Path) -> None:
    done = console("logs", "--no-steps", "-n", "2")

    assert done.out.splitlines() == ["somewhere in the middle", "RuntimeError: second"]


def test_the_log_of_another_run_is_found_by_its_name(console: Console, ran: Path) -> None:
    assert console("logs", "--run", "older", "-n", "2").out.splitlines() == ["two", "ValueError: three"]
    assert console("logs", "--run", "older", "--errors").out.endswith("older.log:3: ValueError: three\n")


def test_a_run_that_nobody_knows_is_told_from_a_log_that_is_gone(console: Console, ran: Path) -> None:
    never = console("logs", "--run", "never")

    assert never.code == 3
    assert "run_unknown" in never.out
    assert f"never: no such run of {NAME}, and no log {ran.with_name('train_never.log')} |" in never.out
    near = console("logs", "--run", ran.stem.removeprefix("train_")[:-1]).out
    assert f"; did you mean {ran.stem.removeprefix('train_')}? |" in near

    ran.with_name("train_odd.log").mkdir()
    unreadable = console("logs", "--run", "odd")
    assert unreadable.code == 3
    assert "log_unreadable" in unreadable.out


def test_where_the_log_of_a_run_was_is_known_from_the_ledger_after_the_host_has_forgotten_it(
    console: Console, ran: Path
) -> None:
    moved = ran.with_name("elsewhere.log")
    moved.write_text("from another place\n")
    assert console("history", "-n", "1").code == 0
    with ledger.opened(ledger.default_path()) as book:
        place = book.place_of(NAME)
        assert place is not None
        book.record(place, NAME, [Entry(id="r-old1", name="forgotten", log_path=str(moved))])

    assert console("logs", "--run", "r-old1").out == "from another place\n"
    moved.unlink()
    gone = console("logs", "--run", "forgotten")

    assert gone.code == 3
    assert "log_unreadable" in gone.out, "the run is known, its log is gone"


def test_a_log_that_all_runs_share_is_not_that_of_a_run_that_nobody_knows(
    console: Console, ran: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(configwriter.render_whole(NAME, replace(console.host.target, log=str(ran))))

    done = call("logs", "--config", str(config), "--run", "never")

    assert done.code == 3
    assert "run_unknown" in done.out


def test_since_goes_by_what_the_keeper_noted(console: Console, ran: Path) -> None:
    everything = console("logs", "--since", "1h", "-n", "3000")

    assert everything.code == 0, everything.err
    assert len(everything.out.splitlines()) == 3_000
    undated = console("logs", "--since", "1h", "--run", "older")
    assert undated.code == 3
    assert "log_undated" in undated.out


def test_since_goes_by_the_dates_of_the_lines_where_they_bear_some(console: Console, ran: Path) -> None:
    now = datetime.now(UTC).astimezone().replace(microsecond=0)
    moments = [now - timedelta(minutes=minutes) for minutes in (90, 30, 5)]
    dated = ran.with_name(ran.name.replace(ran.name.split("train_")[-1].split(".")[0], "dated"))
    lines = [f"[{moment:%Y-%m-%d %H:%M:%S}] step {n}" for n, moment in enumerate(moments)]
    dated.write_text("\n".join([lines[0], lines[1], "Traceback (most recent call last):", lines[2]]) + "\n")

    def since(moment: str) -> list[str]:
        done = console("logs", "--run", "dated", "--since", moment)
        assert done.code == 0, done.err
        return done.out.splitlines()

    assert since("1h") == [lines[1], "Traceback (most recent call last):", lines[2]]
    assert since(f"{moments[0]:%Y-%m-%dT%H:%M:%S%z}")[0] == lines[0]
    assert since("2m") == []


@pytest.mark.parametrize("moment", ["25:99", "2026-13-01", "2126-01-01", "soon", "-5m"])
def test_what_is_no_moment_is_refused(moment: str) -> None:
    with pytest.raises(click.UsageError, match=r"is no moment: expected 10m|come yet"):
        Moment().convert(moment, None, None)


def test_a_moment_without_a_zone_is_one_of_this_machine() -> None:
    assert Moment().convert("2026-02-11T07:15:09Z", None, None) == 1770794109.0  # as `date -u +%s` has it
    local = datetime.fromtimestamp(1770794109.0, UTC).astimezone()
    assert Moment().convert(f"{local:%Y-%m-%d %H:%M:%S}", None, None) == 1770794109.0


def test_a_time_of_day_is_that_of_the_last_24_hours() -> None:
    now = time.time()

    for hour in range(24):
        at = Moment().convert(f"{hour:02}:30", None, None)
        assert now - 86_400 - 7200 < at <= time.time()  # a change of the clocks within them moves it by an hour
        assert datetime.fromtimestamp(at, UTC).astimezone().strftime("%H:%M") == f"{hour:02}:30"


def test_a_time_of_day_of_a_zone_far_behind_is_found_too(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = min(23, 24 - datetime.now(UTC).hour)  # it has just become tomorrow here
    monkeypatch.setenv("TZ", f"AAA-{ahead}")
    time.tzset()
    try:
        for hour in range(24):
            assert Moment().convert(f"{hour:02}:59+00:00", None, None) <= time.time()
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_time_of_day_before_the_clocks_were_changed_is_that_of_the_clock_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = datetime.now(UTC)
    began = now - timedelta(hours=2)  # since then a zone of UTC is an hour ahead, for half a year
    until = began + timedelta(days=180)
    rules = ",".join(f"{at.timetuple().tm_yday - 1}/{at:%H:%M:%S}" for at in (began, until))
    monkeypatch.setenv("TZ", f"AAA0BBB-1,{rules}")
    time.tzset()
    try:
        later_today = (now + timedelta(hours=1, minutes=30)).astimezone()

        at = Moment().convert(f"{later_today:%H:%M}", None, None)

        assert f"{datetime.fromtimestamp(at).astimezone():%H:%M}" == f"{later_today:%H:%M}"
        assert at <= time.time()
    finally:
        monkeypatch.undo()
        time.tzset()


def test_options_that_contradict_each_other_are_refused(console: Console) -> None:
    assert console("logs", "--errors", "--grep", "x").code == 2
    assert console("logs", "-f", "--run", "older").code == 2
    assert console("logs", "-f", "--max-bytes", "10").code == 2


@pytest.mark.parametrize(
    ("wanted", "text", "taken"),
    [
        (Wanted(), "anything", True),
        (Wanted(no_steps=True), STEP.format(1), False),
        (Wanted(grep="Loss"), STEP.format(1), False),
        (Wanted(grep="loss"), STEP.format(1), True),
        (Wanted(errors=True), "ValueError: x", True),
        (Wanted(errors=True), "all good", False),
    ],
)
def test_a_line_is_taken_by_what_is_in_it(wanted: Wanted, text: str, taken: bool) -> None:
    assert wanted.takes(text) is taken


def test_an_expression_that_would_take_years_is_refused_with_a_reason() -> None:
    with pytest.raises(ConsoleError) as refused:
        Wanted(grep="(a+)+$").takes("a" * 60 + "!")

    assert (refused.value.reason, refused.value.exit_code) == (Reason.PATTERN_SLOW, Exit.REFUSED)
