"""The marks that the console sets in a log: where its run began, and how it ended."""

from __future__ import annotations

from msgspec.structs import replace

from console.engine.runmarks import RunMarks
from console.protocol import ExitRecord, HostStage, LogIdent, ProcId, RunRecord
from console.state.logbuffer import EntryKind, LogBuffer

_ACCEPTED = RunRecord(id="r-1", name="one", main=ProcId(pid=7, start=1), log=LogIdent(path="/log", inode=55))
_STARTED = replace(_ACCEPTED, stages={"spawned": HostStage(state="done", evidence="pid 7")}, spawned_bt=3.0)
_ENDED = replace(_STARTED, exit=ExitRecord(code=126, ended_bt=4.0, lived_s=1.0, by="ops1"))


def _marks(buffer: LogBuffer) -> list[tuple[str, float]]:
    entries = [buffer.line(number) for number in range(buffer.first, buffer.end)]
    return [(each.text, each.at) for each in entries if each is not None and each.kind is EntryKind.MARK]


def _marking() -> tuple[RunMarks, LogBuffer]:
    buffer = LogBuffer()
    return RunMarks(buffer, lambda bt: 100.0 if bt is None else 1000.0 + bt), buffer


def test_a_run_that_is_still_to_be_executed_has_not_started() -> None:
    marks, buffer = _marking()
    marks.begin("r-1")

    marks.host_said(_ACCEPTED)
    assert _marks(buffer) == []
    marks.host_said(_STARTED)
    marks.host_said(_STARTED)

    assert _marks(buffer) == [("started  pid 7, log opened (inode 55)", 1003.0)]


def test_how_a_run_ended_stands_behind_its_last_line() -> None:
    marks, buffer = _marking()
    marks.begin("r-1")

    marks.host_said(_ENDED)
    assert len(_marks(buffer)) == 1, "its log is still being read"
    marks.read(is_at_end=True)
    marks.read(is_at_end=True)

    assert _marks(buffer)[1:] == [("exited   status 126, 1.0 s after exec, asked for by ops1", 1004.0)]


def test_the_log_of_another_run_is_not_marked() -> None:
    marks, buffer = _marking()

    marks.host_said(_ENDED)
    marks.begin("r-2")
    marks.read(is_at_end=True)
    marks.stop()
    marks.host_said(replace(_ENDED, id="r-2"))

    assert _marks(buffer) == []


def test_each_log_has_its_own_marks() -> None:
    marks, buffer = _marking()
    marks.begin("r-1")
    marks.host_said(_STARTED)

    marks.host_said(replace(_STARTED, id="r-2"))
    marks.begin("r-2")

    assert len(_marks(buffer)) == 2
