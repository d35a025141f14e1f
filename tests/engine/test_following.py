"""Following a log over a link that answers late, or not at all; and the credit that paces it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from console import protocol
from console.config import Metrics
from console.engine import outline
from console.engine.following import Following
from console.engine.logflow import CREDIT_BYTES
from console.link import retries
from console.link.link import Link
from console.reasons import ConsoleError, Exit, Reason
from console.state import events
from console.state.logbuffer import EntryKind, LogBuffer
from console.state.series import Series
from tests.waiting import until_async

PATH = "/log"
_PATIENCE_S = 60.0
"""Thousands of lines on a busy machine."""


@dataclass
class FakeLink:
    """Answers each LogFollow as `answers` says, in their order; notes what is asked and what credit is given."""

    answers: list[bool] = field(default_factory=list)
    follows: list[protocol.LogFollow] = field(default_factory=list)
    credits: list[int] = field(default_factory=list)
    ids: int = 0
    log: bytes = b""
    notes: list[dict[str, Any]] = field(default_factory=list)
    """Of the run's keeper."""
    refusals: list[Reason] = field(default_factory=list)
    """To what is asked of a log's beginning and middle, in their order."""

    def next_id(self) -> int:
        self.ids += 1
        return self.ids

    async def bulk_request(
        self,
        operation: protocol.LogFollow | protocol.LogRead | protocol.LogSample | protocol.Recorder,
        timeout_s: float,
    ) -> tuple[protocol.Reply, bytes]:
        if isinstance(operation, protocol.Recorder):
            return protocol.Reply(re=operation.id, ok=True, data={"records": self.notes}), b""
        if self.refusals and isinstance(operation, protocol.LogRead | protocol.LogSample):
            reason = self.refusals.pop(0)
            await asyncio.sleep(0)
            raise ConsoleError(reason, f"{PATH}: No such file or directory", Exit.REFUSED)
        if isinstance(operation, protocol.LogRead):
            return protocol.Reply(re=operation.id, ok=True, data={"size": len(self.log)}), self.log[: operation.length]
        if isinstance(operation, protocol.LogSample):
            middle = len(self.log) // 2
            data = {"offsets": [middle], "sizes": [operation.length]}
            return protocol.Reply(re=operation.id, ok=True, data=data), self.log[middle:][: operation.length]
        self.follows.append(operation)
        if self.answers and not self.answers.pop(0):
            raise ConsoleError(Reason.LINK_TIMEOUT, "no answer to LogFollow within 15 s", Exit.LINK)
        return protocol.Reply(re=operation.id, ok=True), b""

    def bulk_send(self, operation: protocol.LogCredit) -> None:
        self.credits.append(operation.bytes)


@dataclass
class Stage:
    link: FakeLink
    following: Following
    buffer: LogBuffer
    fed: list[events.Event]

    def chunk(self, data: bytes, offset: int) -> None:
        size = offset + len(data)
        event = protocol.LogEvent(
            bt=1.0, path=PATH, state="following", offset=offset, size=size, n=len(data), dev=1, inode=5
        )
        self.following.take(event, data, 100.0)

    @property
    def lines(self) -> list[str]:
        entries = [self.buffer.line(number) for number in range(self.buffer.first, self.buffer.end)]
        return [entry.text for entry in entries if entry is not None and entry.kind is EntryKind.LINE]

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.fed if isinstance(event, kind)]


def _recorder(run: str) -> protocol.Recorder:
    return protocol.Recorder(id=0, run=run, target="t")


@asynccontextmanager
async def _following(
    *answers: bool,
    log: bytes = b"",
    now: float = 100.0,
    series: dict[str, Series] | None = None,
    refusals: Sequence[Reason] = (),
    notes: Sequence[dict[str, Any]] | None = None,
) -> AsyncIterator[Stage]:
    """`log`: what is there of a run that has been going on for long. `series`: what is drawn.

    `notes`: of its keeper; None where it was started by hand.
    """
    buffer, fed = LogBuffer(), list[events.Event]()
    link = FakeLink([*answers], log=log, refusals=[*refusals], notes=[*(notes or ())])
    run = "hand:1/2" if notes is None else "r-1"
    drawn = {} if series is None else series
    found = Following(cast(Link, link), Metrics(), buffer, drawn, fed.append, lambda: now, _recorder)
    async with asyncio.TaskGroup() as tasks:
        found.tasks = tasks
        found.follow(events.FollowLog(follow=1, path=PATH, pid=None, from_start=not log, run=run))
        found.bulk_up()
        yield Stage(link, found, buffer, fed)
        found.bulk_down()


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that only `retry_now` ends."""
    monkeypatch.setattr(retries, "FIRST_S", 600.0)
    monkeypatch.setattr(retries, "LONGEST_S", 600.0)


async def test_follow_that_is_not_answered_is_told_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_S", 0.01)
    async with _following(False, False, True) as stage:
        await until_async(lambda: len(stage.link.follows) == 3)

        assert [event.detail for event in stage.of(events.BulkWentDown)] == ["no answer to LogFollow within 15 s"] * 2
        await asyncio.sleep(0.05)
        assert len(stage.link.follows) == 3  # answered: not asked again


async def test_log_that_is_not_there_when_its_run_is_met_is_followed_for_when_it_comes(never: None) -> None:
    async with _following(True, log=b"old\n", refusals=[Reason.FILE_MISSING] * 2) as stage:
        await until_async(lambda: stage.link.follows, 60, what="the follow")

        assert stage.link.follows[0].offset == 0
        assert not stage.of(events.BulkWentDown)


async def test_beginning_of_a_log_that_is_not_answered_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_S", 0.01)
    async with _following(True, log=b"old\n", refusals=[Reason.LINK_TIMEOUT]) as stage:
        await until_async(lambda: stage.link.follows, 60, what="the follow")

        assert len(stage.of(events.BulkWentDown)) == 1


async def test_retry_now_asks_for_the_log_at_once(never: None) -> None:
    async with _following(False, True) as stage:
        await until_async(lambda: stage.of(events.BulkWentDown))

        stage.following.retry_now()

        await until_async(lambda: len(stage.link.follows) == 2)


async def test_connection_that_goes_down_ends_the_asking(never: None) -> None:
    async with _following(False) as stage:
        await until_async(lambda: stage.of(events.BulkWentDown))

        stage.following.bulk_down()
        stage.following.retry_now()
        await asyncio.sleep(0.02)

        assert len(stage.link.follows) == 1


async def test_answer_that_came_late_and_the_next_one_bring_each_line_once(never: None) -> None:
    async with _following(False, True) as stage:
        await until_async(lambda: stage.of(events.BulkWentDown))

        stage.chunk(b"one\ntwo\n", 0)
        stage.following.retry_now()
        await until_async(lambda: len(stage.link.follows) == 2)
        again = stage.link.follows[1]
        stage.chunk(b"three\nfo", 8)
        stage.chunk(b"three\nfour\n", again.offset)
        await until_async(lambda: stage.following._flow.next_offset == 19)

        assert again.offset == 8
        assert stage.lines == ["one", "two", "three", "four"]
        resumed = stage.following._flow.follow_operation(9)
        assert (resumed.offset, resumed.fingerprint) == (19, b"one\ntwo\nthree\nfour\n".hex())


async def test_every_byte_that_is_read_is_credited_once() -> None:
    async with _following(True) as stage:
        await until_async(lambda: stage.link.follows)
        assert stage.link.follows[0].credit_bytes == CREDIT_BYTES
        offset = 0
        for count in (1, 700, 65_536, 12, 65_524):
            stage.chunk(b"x" * (count - 1) + b"\n", offset)
            offset += count

        await until_async(lambda: len(stage.lines) == 5)

        assert stage.link.credits == [1 + 700 + 65_536, 12 + 65_524]  # a little that is owed is not worth a word


async def test_credit_that_is_owed_to_an_agent_that_is_gone_is_not_given_to_the_next() -> None:
    async with _following(True) as stage:
        await until_async(lambda: stage.link.follows)
        stage.chunk(b"x\n", 0)

        stage.following.bulk_down()
        stage.following.bulk_up()
        await until_async(lambda: len(stage.link.follows) == 2)
        stage.chunk(b"x" * CREDIT_BYTES + b"\n", 2)
        await until_async(lambda: len(stage.lines) == 2)

        assert stage.link.credits == [CREDIT_BYTES // 4] * 4


async def _at_the_turn(comes_true: Callable[[], bool]) -> None:
    """Wait for the very turn of the loop in which it comes true: a look now and then would be some turns late."""
    async with asyncio.timeout(_PATIENCE_S):
        while not comes_true():  # noqa: ASYNC110  nobody tells of it
            await asyncio.sleep(0)


def _steps(stage: Stage) -> list[int | None]:
    return [sample.step for event in stage.of(events.SamplesSeen) for sample in event.samples]


def _log_of(steps: int) -> bytes:
    return "".join(f"step {n}/90000 | loss 2.5000 | 21000 tok/s\n" for n in range(1, steps + 1)).encode()


async def test_log_that_is_opened_is_shown_long_before_all_of_it_is_understood() -> None:
    async with _following(True) as stage:
        await until_async(lambda: stage.link.follows, _PATIENCE_S)
        stage.chunk(_log_of(2500), 0)

        await _at_the_turn(lambda: len(stage.lines) == 2500)
        known = len(_steps(stage))
        await until_async(lambda: len(_steps(stage)) == 2500, _PATIENCE_S)

        assert known < 1250
        assert _steps(stage) == list(range(1, 2501))
        assert len(stage.of(events.HistoryRead)) == 1
        assert stage.fed.index(stage.of(events.HistoryRead)[0]) > stage.fed.index(stage.of(events.SamplesSeen)[-1])


async def test_what_was_shown_before_a_cut_is_understood_when_the_host_is_heard_again() -> None:
    async with _following(True, True) as stage:
        await until_async(lambda: stage.link.follows, _PATIENCE_S)
        log = _log_of(2501)
        last = log.rindex(b"step")
        stage.chunk(log[:last], 0)
        await until_async(lambda: len(stage.lines) == 2500, _PATIENCE_S)

        stage.following.bulk_down()
        fed = len(stage.fed)
        await asyncio.sleep(0.05)
        fed_while_down = stage.fed[fed:]
        stage.following.bulk_up()
        await until_async(lambda: len(stage.link.follows) == 2, _PATIENCE_S)
        stage.chunk(log[last:], stage.link.follows[1].offset)
        await until_async(lambda: len(_steps(stage)) >= 2501, _PATIENCE_S)

        assert not fed_while_down  # it would be taken for a word from the host
        assert _steps(stage) == list(range(1, 2502))
        assert len(stage.lines) == 2501


async def test_tail_ends_with_the_last_line_that_was_understood() -> None:
    async with _following(True) as stage:
        await until_async(lambda: stage.link.follows, _PATIENCE_S)
        stage.chunk(_log_of(2500), 0)

        await _at_the_turn(lambda: len(stage.lines) == 2500)
        stage.following.tick()
        early, known = stage.of(events.LogTail)[0], _steps(stage)
        await until_async(lambda: len(_steps(stage)) == 2500, _PATIENCE_S)

        assert known[-1:] != [2500]
        assert [line.text.split("/")[0] for line in early.lines[-1:]] == [f"step {step}" for step in known[-1:]]
        assert stage.of(events.LogTail)[-1].lines[-1].text.startswith("step 2500/")


@pytest.mark.parametrize(("ahead_s", "is_known"), [(0.0, True), (30.0, True), (3600.0, False)])
async def test_times_from_ahead_are_none_rather_than_all_of_one_moment(ahead_s: float, is_known: bool) -> None:
    """A log whose lines bear another zone's times: the last hour of steps would stand above one another."""
    now, series = 1_800_000_000.0, dict[str, Series]()
    stamps = [datetime.fromtimestamp(now - 200 + 2 * step + ahead_s, UTC) for step in range(100)]
    log = "".join(
        f"[{at:%Y-%m-%d %H:%M:%S}] step {step}/900 | loss 1.5 | acc 0.5 | tok/s 21000\n"
        for step, at in enumerate(stamps)
    )
    async with _following(True, now=now, series=series) as stage:
        await until_async(lambda: stage.link.follows, _PATIENCE_S)
        stage.chunk(log.encode(), 0)
        await until_async(lambda: "loss" in series and len(series["loss"]) == 100, _PATIENCE_S)

    assert series["loss"].untimed is not is_known
    if not ahead_s:
        assert [point.at for point in series["loss"].points] == [now - 200 + 2 * step for step in range(100)]


@pytest.mark.parametrize(
    ("size_bytes", "last_note", "is_known"),
    [
        (10_000, {"k": "log", "bt": 50.0, "size": 10_000}, True),  # all of it was noted
        (3000, {"k": "log", "bt": 95.0, "size": 3000}, True),  # what stands behind that was written since
        (3000, {"k": "proc", "bt": 95.0}, True),  # nothing was written for long, and then just now
        (3000, {"k": "proc", "bt": 50.0}, False),  # the keeper notes no more: at any time since
        (0, {"k": "stage", "bt": 99.0}, True),  # a launch a moment ago
        (-1, {"k": "proc", "bt": 99.0}, False),  # a long one of whose log nothing could be noted
        (0, None, False),
    ],
)
async def test_what_came_after_the_keepers_last_note_was_written_just_now_while_it_notes(
    size_bytes: int, last_note: dict[str, Any] | None, is_known: bool
) -> None:
    log = b"".join(b"step %d/900 | loss 1.5 | acc 0.5 | tok/s 21000\n" % step for step in range(100))
    first = {"k": "log", "bt": 40.0, "size": size_bytes} if size_bytes > 0 else {"k": "proc", "bt": 40.0}
    notes = [first] if size_bytes else []
    series: dict[str, Series] = {}
    async with _following(True, series=series, notes=[*notes, *([last_note] if last_note else [])]) as stage:
        await until_async(lambda: stage.link.follows, _PATIENCE_S)
        stage.chunk(log, 0)
        await until_async(lambda: "loss" in series and len(series["loss"]) == 100, _PATIENCE_S)

    assert series["loss"].untimed is not is_known


@pytest.mark.parametrize(("start_bytes", "is_known"), [(10_000, True), (40_000, False)])
async def test_steps_behind_a_part_of_the_log_that_is_not_read_are_told_as_such(
    start_bytes: int, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a run says before its first step may be longer than what is read of a log's start."""
    monkeypatch.setattr(outline, "WHOLE_BYTES", 100_000)
    monkeypatch.setattr(outline, "HEAD_BYTES", 30_000)
    log = b"NCCL INFO Channel 00/32\n" * (start_bytes // 24) + _log_of(4000)
    async with _following(True, log=log) as stage:
        await until_async(lambda: stage.link.follows, _PATIENCE_S)
        begin = log.index(b"step 3900/")
        stage.chunk(log[begin:], begin)
        await until_async(lambda: _steps(stage)[-1:] == [4000], _PATIENCE_S)

        told = [event for event in stage.of(events.SamplesSeen) if event.samples]
        assert told[0].after_gap is not is_known
        assert told[-1].after_gap is not is_known
        assert (told[0].samples[0].step == 1) is is_known


async def test_end_of_a_long_log_is_shown_before_its_beginning_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline, "WHOLE_BYTES", 100_000)
    monkeypatch.setattr(outline, "HEAD_BYTES", 30_000)
    log = _log_of(9000)
    async with _following(True, log=log) as stage:
        await until_async(lambda: stage.link.follows, _PATIENCE_S)
        begin = log.index(b"step 8500/")
        stage.chunk(log[begin:], begin)

        await _at_the_turn(lambda: len(stage.lines) == 501)
        known = _steps(stage)
        await until_async(lambda: _steps(stage)[-1:] == [9000], _PATIENCE_S)

        steps = [step or 0 for step in _steps(stage)]
        assert len(known) < 500
        assert steps == sorted(set(steps))  # of pieces between nothing is told
        told = steps.index(8501)  # the first line may have a beginning that was not read
        assert steps == [*range(1, told + 1), *range(8501, 9001)]
        assert outline.FIRST_STEPS <= told < outline.FIRST_STEPS + log[: 2 * outline.PART_BYTES].count(b"\n")
        drawn = [point.step or 0 for point in stage.following._series["loss"].points]
        rest = [step for step in drawn if told < step <= log[:30_000].count(b"\n")]
        assert len(rest) > 30  # a fourth of 30 kB less what was told
        assert drawn == sorted(drawn)
        assert any(4000 < step < 5000 for step in drawn)
