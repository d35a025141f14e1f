"""Asking after a run that another one has followed: its own ending, and that it was replaced only where it was."""

from __future__ import annotations

import re
from typing import Any

import pytest

from console.demo.host import NAME
from console.headless.earlier import replaced_by
from console.history import ledger
from console.history.entry import Entry
from console.protocol import ExitRecord, RunRecord
from tests.headless.running import Console


@pytest.fixture(scope="module")
def followed(console: Console) -> dict[str, dict[str, Any]]:
    """Runs by how they ended, with another one after them: by itself after 20 steps, and in its launch."""
    console.host.inject("sigkill")
    runs = {"killed": console.restart("--json").json}
    assert console("wait", runs["killed"]["id"], "--for", "exit", "--timeout", "60s").code == 0
    console.host.inject("exit-at-once")
    runs["broken"] = console.restart("--json").json
    console.host.inject("none")
    assert console.restart("--wait", "spawned").code == 0
    return runs


def test_run_that_has_ended_by_itself_is_told_by_its_own_ending(
    console: Console, followed: dict[str, dict[str, Any]]
) -> None:
    old = followed["killed"]

    plain = console("wait", old["id"], "--for", "exit", "--timeout", "60s")
    answer = console("wait", old["run"], "--for", "exit", "--timeout", "60s", "--json")
    stepped = console("wait", old["id"], "--for", "step=1000000", "--timeout", "60s")

    told = rf"exit {old['run']} id={old['id']} signal=9 after=[\d.]+s ended=\S+Z\n"
    assert (plain.code, plain.err) == (0, "")
    assert re.fullmatch(f"OK {told}", plain.out), plain.out
    assert (answer.code, answer.json["outcome"], answer.json["signal"]) == (0, "reached", 9)
    assert (answer.json["run"], answer.json["id"], answer.json["run_alive"]) == (old["run"], old["id"], False)
    assert answer.json["ended_at"] < answer.json["at"]
    assert answer.json["data_age_s"] is not None
    assert (stepped.code, stepped.out.split()[:2]) == (15, ["ENDED", "stepping"])
    assert f" {old['run']} id={old['id']} signal=9 " in stepped.out


def test_launch_that_has_failed_is_told_as_it_was_then(console: Console, followed: dict[str, dict[str, Any]]) -> None:
    old = followed["broken"]

    done = console("wait", old["id"], "--timeout", "60s", "--json")

    same = ("outcome", "stage", "exit_status", "signal", "exit_code", "run", "id")
    assert done.code == old["exit_code"] in (12, 13, 14)
    assert {key: done.json[key] for key in same} == {key: old[key] for key in same}
    assert (done.json["reason"], done.json["exit_status"]) == ("missing_module", 1)
    assert done.json["log_tail"][-1] == "ModuleNotFoundError: No module named 'dflash.kernels'"
    assert "is there now" in done.json["safe"], "what was true then isn't now"
    assert console("wait", old["id"], "--for", "free", "--timeout", "60s").out.startswith(f"OK free {old['run']} ")


def test_run_that_the_host_tells_of_no_more_is_told_by_what_was_noted(
    console: Console, followed: dict[str, dict[str, Any]]
) -> None:
    console("history")
    old: dict[str, Any] = {"is_over": True, "accepted_wall": 1.79e9, "lived_s": 9.0, "ended_wall": 1.79e9 + 10.5}
    rows = [
        Entry(id="r-old1", name="old1", outcome="ended", stepped=True, exit_code=0, **old),
        Entry(id="r-old2", name="old2", outcome="failed", failed_stage="cuda", exit_code=1, **old),
        Entry(id="r-old3", name="old3", outcome="ended", **old),
    ]
    with ledger.opened(ledger.default_path()) as book:
        place = book.place_of(NAME)
        assert place is not None
        book.record(place, NAME, rows)

    exited, *others = [console("wait", each, "--for", word, "--timeout", "60s") for each, word in NOTED]

    told = r"OK exit old1 id=r-old1 status=0 after=9\.0s ended=2026-09-21T14:13:30\.\d{3}Z\n"
    assert exited.code == 0
    assert re.fullmatch(told, exited.out), exited.out
    assert [(each.code, each.out.split(" id=")[0]) for each in others] == [
        (15, "ENDED stepping old1"),
        (13, "FAILED cuda old2"),
        (15, "ENDED unknown old3"),
    ]


NOTED = (("old1", "exit"), ("r-old1", "stepping"), ("r-old2", "stepping"), ("r-old3", "stepping"))


def record(run_id: str, *, replaces: str | None = None, **known: Any) -> RunRecord:
    return RunRecord(id=run_id, name=f"n-{run_id}", state="running", replaced_id=replaces, **known)


def test_run_was_replaced_by_the_one_that_stopped_it_whatever_came_later() -> None:
    stopped = record("r-1", exit=ExitRecord(signal=15, by="ops1"))
    killed = record("r-1", exit=ExitRecord(signal=9))
    others = [record("r-3", replaces="r-2"), stopped, record("r-2", replaces="r-1")]
    stop = record("r-2", replaces="r-1", action="stop")

    by = replaced_by(stopped, others)

    assert by is not None
    assert by.id == "r-2"
    assert replaced_by(record("r-1"), others) is by, "its keeper was lost: it left no exit record"
    assert replaced_by(killed, others) is None, "it was dead already when the other one came to stop it"
    assert replaced_by(stopped, [stop, stopped]) is None
