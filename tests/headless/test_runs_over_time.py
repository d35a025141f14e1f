"""history, compare, metrics, watch and wait --for steady on real runs of the demo's host."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from console.demo.host import NAME
from console.engine.unwatched import Unwatched
from console.headless import follow, wait, watch
from console.headless.history import run_json, table
from console.headless.watch import _reached
from console.history.entry import LOG_ONLY, Entry
from console.model import Progress, Rate, Verdict
from console.protocol import RunRecord
from console.state.outcome import is_steady, towards_steady
from tests.headless.running import Console, printed, time_is_up_once_judged, time_is_up_when
from tests.ui import fixtures
from tests.waiting import until


def ndjson(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One ledger for all tests of this module: what the runs of one were is what the next ones ask for."""
    return tmp_path_factory.mktemp("state")


@pytest.fixture(autouse=True)
def _one_ledger(state_home: Path, _private_folders: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(state_home))


@pytest.fixture(scope="module")
def two_runs(console: Console, state_home: Path) -> tuple[str, str]:
    """The names of two runs that have made some steps, the second of them alive."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(state_home))
        names = _two_runs(console)
    return names[0], names[1]


def _two_runs(console: Console) -> list[str]:
    names = []
    for words in (("--env", "DFLASH_SPLIT_FC_LAYERS=0"), ("--env", "DFLASH_SPLIT_FC_LAYERS=1", "--note", "split it")):
        started = console("restart", "--yes", "--timeout", "60s", "--json", *words)
        assert started.code == 0, started
        names.append(started.json["run"])
        assert console("wait", "--for", "step=80", "--timeout", "60s").code == 0
    return names


def test_history_lists_runs_newest_first_with_what_was_changed(console: Console, two_runs: tuple[str, str]) -> None:
    done = console("history", "-n", "2")

    head, newest, older = done.out.splitlines()
    assert done.code == 0
    assert head.split() == ["RUN", "STARTED", "LAUNCH", "END", "STEPS", "TOK/S", "±", "PEAK", "LOSS", "CHANGED"]
    assert newest.split()[0] == two_runs[1]
    assert " stepping " in newest
    assert 'env DFLASH_SPLIT_FC_LAYERS 0->1; "split it"' in newest
    assert older.split()[0] == two_runs[0]
    assert " stopped by " in older


def test_history_as_ndjson_is_whole_and_polled_by_its_seq(console: Console, two_runs: tuple[str, str]) -> None:
    newest, older = ndjson(console("history", "-n", "2", "--json").out)

    assert (newest["schema"], newest["run"], newest["alive"], newest["outcome"]) == (1, two_runs[1], True, "stepping")
    assert newest["changed"]["env"] == {"DFLASH_SPLIT_FC_LAYERS": ["0", "1"]}
    assert newest["note"] == "split it"
    assert newest["peak_bytes"] > 100 * 2**30
    assert newest["step"] >= 80
    assert (older["alive"], older["outcome"]) == (False, "stopped")
    assert older["step"] >= 80
    assert older["tok_s"]["steady"] == pytest.approx(21_500, rel=0.1)

    changed = ndjson(console("history", "--since", str(older["seq"])).out)
    assert two_runs[0] not in [row["run"] for row in changed]


def test_history_tells_of_a_run_whose_log_was_not_read_yet(
    console: Console, two_runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none_read(self: Unwatched, place: str, records: Sequence[RunRecord]) -> frozenset[str]:
        return frozenset(each.id for each in records if each.exit is not None)

    with monkeypatch.context() as patch:
        patch.setattr(Unwatched, "update", none_read)
        unread = console("history", "-n", "2", "--json")
        curves, table = console("metrics", "--run", two_runs[0], "--json"), console("metrics", "--run", two_runs[1])
        both = console("compare", two_runs[1], two_runs[0], "--json")

    assert f"not read yet: the logs of {two_runs[0]};" in unread.err
    assert [row["log_read"] for row in ndjson(unread.out)] == [None, False]
    assert f"not read yet: the logs of {two_runs[0]};" in curves.err
    assert curves.json["log_read"] is False
    assert "not read yet" not in table.err
    assert f"not read yet: the logs of {two_runs[0]};" in both.err
    assert both.json["log_read"] == {"a": None, "b": False}

    def is_read() -> bool:
        told = console("history", "-n", "2", "--json")
        assert ("not read yet" in told.err) == (ndjson(told.out)[1]["log_read"] is False)
        return [row["log_read"] for row in ndjson(told.out)] == [None, True]

    until(is_read, 60.0, "its log is read")


def test_what_is_lacking_of_a_run_whose_log_was_not_read_yet_is_not_said_to_be_unknown() -> None:
    row = Entry(id="r-1", name="one", is_over=True, stepped=True, last_step=80)

    told = run_json(row, None, is_unread=True)["why"]

    assert (told["tok_s"], told["peak_bytes"]) == ("its log was not read yet: ask again",) * 2
    assert "step" not in told


NOT_READ = "no line of its log is a step line of a known format"


@pytest.mark.parametrize(
    ("row", "steps", "why"),
    [
        (Entry(id="r-1", is_over=True, failed_stage="spawned"), "0", "no step was seen in its log"),
        (Entry(id="r-1"), "-", "no step was seen by a console"),
        (Entry(id="r-1", is_over=True, reason="format_unknown"), "-", NOT_READ),
        (Entry(id="log:/x", outcome=LOG_ONLY, is_over=True, log_size=9), "-", NOT_READ),
        (Entry(id="log:/x", outcome=LOG_ONLY, is_over=True, log_size=0), "-", "its log is empty"),
        (
            Entry(id="log:/x", outcome=LOG_ONLY, is_over=True, stepped=True),
            "-",
            "the step lines of its log name no step",
        ),
    ],
)
def test_a_log_of_which_nothing_was_understood_is_not_said_to_have_no_steps(row: Entry, steps: str, why: str) -> None:
    head, line = table([row], [row], "", None)

    assert line[: head.index("STEPS") + 5].split()[-1] == steps
    assert run_json(row, None)["why"]["step"] == why


def test_compare_tells_figures_noise_and_settings(console: Console, two_runs: tuple[str, str]) -> None:
    done = console("compare", two_runs[1], two_runs[0], "--json")

    found = done.json
    assert done.code == 0
    assert (found["a"], found["b"], found["aligned"]) == (two_runs[1], two_runs[0], "since_first_step")
    assert found["tok_s"]["a"] == pytest.approx(21_500, rel=0.1)
    assert found["tok_s"]["delta_pct"] == pytest.approx(0, abs=5)
    assert found["diff"]["env"] == {"DFLASH_SPLIT_FC_LAYERS": ["1", "0"]}
    assert found["launch_s"]["a"] > 0
    assert (found["tok_s"]["significant"] is None) == (found["tok_s"]["noise_pct"] is None)
    if found["tok_s"]["noise_pct"] is None:
        assert found["why"]["tok_s.noise_pct"]


def test_compare_with_a_run_that_nobody_knows_is_refused(console: Console, two_runs: tuple[str, str]) -> None:
    done = console("compare", two_runs[1], "nosuch")

    assert done.code == 3
    assert "run_unknown" in done.out
    assert "nosuch: no such run of" in done.out
    assert "did you mean" not in done.out
    for words in (("compare", two_runs[1], "slammd"), ("metrics", "--run", "slammd")):
        assert f"slammd: no such run of {NAME}; did you mean {two_runs[1]}? |" in console(*words).out


def test_metrics_are_the_curves_of_a_run(console: Console, two_runs: tuple[str, str]) -> None:
    found = console("metrics", "--json").json
    table = list(csv.DictReader(io.StringIO(console("metrics", "--run", two_runs[0], "--csv").out)))

    points = found["series"]["tok_s"]["points"]
    assert found["data_age_s"] is not None
    assert found["run"] == two_runs[1]
    assert sum(point[2] for point in points) >= 70
    assert all(point[4] <= point[3] <= point[5] for point in points)
    rates = [row for row in table if row["metric"] == "tok_s"]
    assert {row["run"] for row in rates} == {two_runs[0]}
    assert max(int(row["step"]) for row in rates) >= 80


def test_wait_for_steady_goes_on_waiting_in_the_first_ten_minutes(console: Console, two_runs: tuple[str, str]) -> None:
    with time_is_up_once_judged(wait):
        done = console("wait", "--for", "steady", "--timeout", "4s")

    assert done.code == 20
    assert done.out.startswith("PENDING ")


_CUT = """
mount --make-rprivate / && mount -t tmpfs -o size=2m tmpfs $STATE && export XDG_STATE_HOME=$STATE || exit 77
$C history --config $FILE >/dev/null 2>&1
mount -o remount,ro $STATE
$C history --config $FILE -n 2; echo $?
mount -o remount,rw $STATE
cat /dev/zero >$STATE/fill 2>/dev/null
$C metrics --config $FILE --run $RUN; echo $?
$C compare --config $FILE $RUN $RUN; echo $?
"""


@pytest.mark.skipif("os.geteuid() != 0", reason="needs root to mount")
def test_the_past_is_told_though_nothing_can_be_noted(
    console: Console, two_runs: tuple[str, str], tmp_path: Path
) -> None:
    known = {"STATE": str(tmp_path), "FILE": str(console.config), "RUN": two_runs[0]}
    known["C"] = f"{sys.executable} -m console.cli"
    known["PYTHONPATH"] = str(Path(__file__).parents[2])
    done = subprocess.run(
        ["unshare", "-m", "/bin/sh", "-c", _CUT],
        env={**os.environ, **known},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip(done.stderr)

    ledger = tmp_path / "dflash-console" / "ledger.sqlite3"
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.isdigit()] == ["0"] * 3, done
    assert [line.split()[0] for line in lines[1:3]] == [two_runs[1], two_runs[0]]
    said = [line for line in done.stderr.splitlines() if "not noted" in line]
    assert len(said) == 3
    assert f"{ledger}: Read-only file system" in said[0]
    assert f"{ledger}: No space left on device" in said[1]


# -- watch ------------------------------------------------------------------------------------------------------------


def watcher(console: Console, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "console.cli", "watch", "--config", str(console.config), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_watch_begins_with_the_snapshot_counts_and_ends_when_its_time_is_up(
    console: Console, two_runs: tuple[str, str]
) -> None:
    with time_is_up_when(watch, lambda: printed().count('"type":"step"') >= 2):
        done = console("watch", "--for", "8s")

    events = ndjson(done.out)
    assert done.code == 20
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["type"], events[0]["verdict"], events[0]["run"]) == ("snapshot", "stepping", two_runs[1])
    assert [event["type"] for event in events].count("step") >= 2
    assert events[-1] | {"type": "end", "why": "for", "exit_code": 20} == events[-1]
    assert events[-1]["resume"] == f"--after {events[-1]['seq']}"


def test_watch_goes_on_behind_the_one_before_and_says_what_it_can_not_know(
    console: Console, two_runs: tuple[str, str]
) -> None:
    until_it_steps = ("--for", "60s", "--until", "stepping")
    last = ndjson(console("watch", *until_it_steps).out)[-1]["seq"]

    again = ndjson(console("watch", *until_it_steps, "--after", str(last)).out)
    strange = ndjson(console("watch", *until_it_steps, "--after", "777").out)

    assert again[0]["seq"] == last + 1
    assert [event["type"] for event in again if event["type"] in ("gap", "snapshot")] == ["gap", "snapshot"]
    assert (strange[0]["type"], strange[0]["seq"], strange[0]["n"]) == ("gap", 778, None)


def test_watch_tells_of_an_end_of_the_run_and_ends_with_it(console: Console, two_runs: tuple[str, str]) -> None:
    with watcher(console, "--until", "ended") as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        console("stop", "--yes", "--timeout", "30s")
        out, err = process.communicate(timeout=120)

    events = ndjson(out)
    assert first["type"] == "snapshot"
    assert process.returncode == 15, err
    assert {"operator", "health", "end"} <= {event["type"] for event in events}
    assert next(event for event in events if event["type"] == "health")["verdict"] == "stopped"
    assert (events[-1]["why"], events[-1]["exit_code"]) == ("ended", 15)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_watch_with_its_last_line(console: Console, number: signal.Signals) -> None:
    with watcher(console) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(process.pid, number)
        out, err = process.communicate(timeout=120)

    end = json.loads(out.splitlines()[-1])
    assert process.returncode == 128 + number, err
    assert (end["why"], end["exit_code"]) == ("signal", 128 + number)


def test_a_reader_that_goes_away_ends_watch_quietly(console: Console) -> None:
    with watcher(console, "--every", "0.1s") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()

        code = until(lambda: process.poll() is not None and (process.returncode,), 60.0, "watch has ended")
        complaint = process.stderr.read()

    assert code == (141,)
    assert complaint == ""


@pytest.mark.parametrize(
    ("until_words", "verdict", "expected"),
    [
        (("ended",), Verdict.FINISHED, ("ended", 0)),
        (("ended",), Verdict.STOPPED, ("ended", 15)),
        (("failed",), Verdict.FAILED, ("failed", 12)),
        (("stepping",), Verdict.STEPPING, ("stepping", 0)),
        (("stepping", "ended"), Verdict.STOPPED, ("ended", 15)),
        (("stalled",), Verdict.STALLED, ("stalled", 6)),
        (("failed", "stalled"), Verdict.STEPPING, None),
    ],
)
def test_watch_ends_with_the_code_of_what_came(
    until_words: tuple[str, ...], verdict: Verdict, expected: tuple[str, int] | None
) -> None:
    base = fixtures.LAUNCH_FAILED if verdict is Verdict.FAILED else fixtures.HEALTHY

    assert _reached(replace(base, verdict=verdict), until_words) == expected


# -- steady -----------------------------------------------------------------------------------------------------------


def steadily(**rate: Any) -> Any:
    known: dict[str, Any] = {"steady": 21_480.0, "mad": 190.0, "n": 301, "covered_s": 598.0, "scope": "global"}
    progress = replace(fixtures.PROGRESS, rate=Rate(**(known | rate)))
    return replace(fixtures.HEALTHY, progress=progress)


@pytest.mark.parametrize(
    ("rate", "steady", "missing"),
    [
        ({}, True, ""),
        ({"covered_s": 300.0}, False, "5.0 of 10 min"),
        ({"mad": 700.0}, False, "MAD 3.3%, wanted below 3%"),
        ({"n": 1200, "covered_s": 150.0}, True, ""),  # eight steps a second: the newest alone are kept
        ({"steady": None, "mad": None, "n": 0, "covered_s": None}, False, "0.0 of 10 min"),
    ],
)
def test_ten_minutes_of_steps_with_a_small_spread_are_steady(rate: dict[str, Any], steady: bool, missing: str) -> None:
    now = steadily(**rate)

    assert is_steady(now) is steady
    if not steady:
        assert towards_steady(now) == missing
    judged = follow.judge(now, "steady")
    assert (judged.word, judged.settled, int(judged.exit_code)) == (
        ("OK", True, 0) if steady else ("PENDING", False, 20)
    )


def test_a_young_quick_run_is_not_steady_yet() -> None:
    now = steadily(n=1200, covered_s=150.0)
    young = replace(now, progress=replace(now.progress, first_step_at=now.at - 200))

    assert not is_steady(young)


def test_a_run_that_has_ended_never_becomes_steady() -> None:
    over = replace(fixtures.STOPPED, progress=Progress())

    assert follow.judge(over, "steady").settled


def test_logs_of_which_no_run_is_known_are_listed_and_compared(console: Console, two_runs: tuple[str, str]) -> None:
    logs = console.host.folder / "host"
    whole = (logs / f"train_{two_runs[0]}.log").read_text()
    (logs / "train_ancient.log").write_text(whole)
    (logs / "train_other.log").write_text("nothing of a training\n")

    listed = console("history")
    found = console("compare", "ancient", two_runs[0], "--json").json

    rows = {line.split()[0]: line for line in listed.out.splitlines()}
    assert " log only " in rows["ancient"]
    assert " log only " in rows["other"]
    assert found["a"] == "ancient"
    assert found["tok_s"]["a"] == pytest.approx(21_500, rel=0.05)
    assert found["diff"] is None
    assert found["why"]["id"] == "only its log is known"
    assert found["why"]["launch_s"] == "no launch of ancient is known"
    (logs / "train_ancient.log").unlink()
    (logs / "train_other.log").unlink()
