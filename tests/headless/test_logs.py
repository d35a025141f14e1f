"""`logs`: any line of the whole file, by what is in it, by when it was written, of any run."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from console.commands.options import Moment
from console.headless.loglines import Wanted
from console.reasons import ConsoleError, Exit, Reason
from tests.headless.running import Console

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
    assert "no line" in console("logs", "--grep", "zebra").err


def test_no_more_bytes_are_printed_than_asked_for(console: Console, ran: Path) -> None:
    done = console("logs", "--grep", "step", "--max-bytes", "200")

    assert 0 < len(done.out) <= 200
    assert "did not fit into --max-bytes" in done.err


def test_step_lines_can_be_left_out(console: Console, ran: Path) -> None:
    done = console("logs", "--no-steps", "-n", "2")

    assert done.out.splitlines() == ["somewhere in the middle", "RuntimeError: second"]


def test_the_log_of_another_run_is_found_by_its_name(console: Console, ran: Path) -> None:
    assert console("logs", "--run", "older", "-n", "2").out.splitlines() == ["two", "ValueError: three"]
    assert console("logs", "--run", "older", "--errors").out.endswith("older.log:3: ValueError: three\n")

    gone = console("logs", "--run", "never")
    assert gone.code == 3
    assert "log_unreadable" in gone.out


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
    with pytest.raises(click.UsageError, match=r"moment|duration|come yet|negative"):
        Moment().convert(moment, None, None)


def test_a_moment_without_a_zone_is_one_of_this_machine() -> None:
    assert Moment().convert("2026-02-11T07:15:09Z", None, None) == 1770794109.0  # as `date -u +%s` has it
    local = datetime.fromtimestamp(1770794109.0, UTC).astimezone()
    assert Moment().convert(f"{local:%Y-%m-%d %H:%M:%S}", None, None) == 1770794109.0


def test_a_time_of_day_is_that_of_the_last_24_hours() -> None:
    now = time.time()

    for hour in range(24):
        at = Moment().convert(f"{hour:02}:30", None, None)
        assert now - 86_400 - 7200 < at <= now  # a change of the clocks within them moves it by an hour
        assert datetime.fromtimestamp(at, UTC).astimezone().strftime("%H:%M") == f"{hour:02}:30"


def test_options_that_contradict_each_other_are_refused(console: Console) -> None:
    assert console("logs", "--errors", "--grep", "x").code == 2
    assert console("logs", "-f", "--run", "older").code == 2


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
