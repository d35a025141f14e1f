"""A flood of log is read in slices between which others have their turn."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from console.engine import reading
from console.engine.reading import OWED_BYTES, SLICE_BYTES, Reading, slices
from console.protocol import LogEvent
from tests.waiting import until_async


def chunk(offset: int, data: bytes, skipped_from: int | None = None) -> LogEvent:
    return LogEvent(
        bt=0.0, state="following", offset=offset, size=1 << 30, path="log", n=len(data), skipped_from=skipped_from
    )


def test_slices_say_where_they_stand_and_lose_nothing() -> None:
    data = bytes(range(256)) * (SLICE_BYTES // 100)

    pieces = list(slices(chunk(1000, data, skipped_from=10), data, 5.0))

    assert b"".join(part for _, part, _ in pieces) == data
    assert [event.offset for event, _, _ in pieces] == [1000 + SLICE_BYTES * n for n in range(len(pieces))]
    assert [event.n for event, _, _ in pieces] == [len(part) for _, part, _ in pieces]
    assert [event.skipped_from for event, _, _ in pieces] == [10] + [None] * (len(pieces) - 1)


async def test_others_have_their_turn_in_a_flood_and_the_order_stays() -> None:
    read: list[int] = []
    credit: list[int] = []
    turns = 0

    def slow(event: LogEvent, data: bytes, now: float) -> None:
        read.append(event.offset)
        for _ in range(200_000):  # more CPU time than a turn has
            pass

    flood = Reading(slow, credit.append)
    data = b"x" * (4 * SLICE_BYTES)
    flood.put(chunk(0, data), data, 0.0)
    flood.put(chunk(len(data), b"end"), b"end", 0.0)
    assert len(read) < 5
    while len(read) < 5:
        turns += 1
        await asyncio.sleep(0)

    assert read == [0, SLICE_BYTES, 2 * SLICE_BYTES, 3 * SLICE_BYTES, 4 * SLICE_BYTES]
    assert turns > 0
    assert sum(credit) <= len(data) + 3
    assert len(data) + 3 - sum(credit) < OWED_BYTES


async def test_what_was_dropped_is_never_read() -> None:
    read: list[int] = []

    def slow(event: LogEvent, data: bytes, now: float) -> None:
        read.append(event.offset)
        for _ in range(200_000):
            pass

    flood = Reading(slow, lambda count: None)
    data = b"x" * (64 * SLICE_BYTES)
    flood.put(chunk(0, data), data, 0.0)
    seen = len(read)
    flood.begin(0)
    await asyncio.sleep(2 * reading.TURN_S)

    assert len(read) == seen < 64
    flood.put(chunk(0, b"new"), b"new", 0.0)
    assert len(read) == seen + 1


def clock_of(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let readings go by a clock that only the test moves; their timers stay those of the loop."""
    now, loop = [0.0], asyncio.get_running_loop()
    theirs = SimpleNamespace(time=lambda: now[0], call_later=lambda *wanted: loop.call_later(*wanted))
    monkeypatch.setattr(reading, "asyncio", SimpleNamespace(get_running_loop=lambda: theirs))
    return now


def rests_noted(
    monkeypatch: pytest.MonkeyPatch, took_s: float, *, waits: bool = False
) -> tuple[Reading, list[int], list[float]]:
    """Return a reading whose every piece takes so much CPU time, how many pieces it has read, and its rests.

    `waits`: it rests by the clock, too; else it goes on at once.
    """
    cpu_s, read, rests = [0.0], [0], list[float]()
    monkeypatch.setattr("console.engine.reading.time.thread_time", lambda: cpu_s[0])
    loop = asyncio.get_running_loop()
    call_later: Callable[..., asyncio.TimerHandle] = loop.call_later

    def costly(event: LogEvent, data: bytes, now: float) -> None:
        cpu_s[0] += took_s
        read[0] += 1

    reading_it = Reading(costly, lambda count: None)

    def noting(delay: float, callback: Any, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        if getattr(callback, "__self__", None) is not reading_it:
            return call_later(delay, callback, *args, **kwargs)
        rests.append(delay)
        return call_later(delay if waits else 0.0, callback, *args, **kwargs)

    monkeypatch.setattr(loop, "call_later", noting)
    return reading_it, read, rests


async def test_each_costly_slice_is_followed_by_a_rest_of_the_same_length(monkeypatch: pytest.MonkeyPatch) -> None:
    flood, read, delays = rests_noted(monkeypatch, 0.03, waits=True)
    for number in range(3):
        flood.put(chunk(10 * number, b"x\n"), b"x\n", 0.0)
    assert read == [1]

    await until_async(lambda: read == [3])

    assert delays == [pytest.approx(0.03)] * 3


async def test_a_log_that_goes_on_flooding_gets_a_smaller_share(monkeypatch: pytest.MonkeyPatch) -> None:
    clock_of(monkeypatch)
    flood, read, delays = rests_noted(monkeypatch, 1.5)
    for number in range(4):
        flood.put(chunk(10 * number, b"x\n"), b"x\n", 0.0)

    await until_async(lambda: read == [4])

    # 1.5 s and 3 s may be a log that is opened; more than 4 s within no time is a flood.
    assert delays == [pytest.approx(1.5), pytest.approx(1.5), pytest.approx(6.0), pytest.approx(6.0)]


async def test_it_is_a_flood_as_soon_as_the_host_has_skipped_something(monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock_of(monkeypatch)
    flood, read, delays = rests_noted(monkeypatch, 0.03)
    flood.put(chunk(0, b"x\n"), b"x\n", 0.0)
    await until_async(lambda: read == [1])
    now[0] += 60.0  # in which nothing came
    flood.put(chunk(5000, b"x\n", skipped_from=2), b"x\n", 0.0)
    await until_async(lambda: read == [2])

    assert delays == [pytest.approx(0.03), pytest.approx(0.12)]


async def test_turns_are_shorter_in_a_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    clock_of(monkeypatch)
    cpu_s = [0.0]
    monkeypatch.setattr("console.engine.reading.time.thread_time", lambda: cpu_s[0])
    turns: list[int] = []
    left = [100]

    def understand(has_time: Callable[[], bool]) -> int | None:
        turns.append(0)
        while left[0] and has_time():
            cpu_s[0] += 0.001
            turns[-1] += 1
            left[0] -= 1
        return 1 if turns[-1] else None

    flood = Reading(lambda event, data, now: True, lambda count: None, understand)
    flood.put(chunk(0, b"x\n"), b"x\n", 0.0)
    assert turns == [5]

    flood.put(chunk(5000, b"x\n", skipped_from=2), b"x\n", 0.0)
    await until_async(lambda: left == [0])

    # The turn in which the skip is seen is one of before.
    assert turns[:4] == [5, 5, 2, 2]


async def test_who_is_behind_reads_what_came_meanwhile_as_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu_s = [0.0]
    monkeypatch.setattr("console.engine.reading.time.thread_time", lambda: cpu_s[0])
    read: list[tuple[int, bytes, int | None]] = []

    def slow(event: LogEvent, data: bytes, now: float) -> None:
        assert event.n == len(data)
        read.append((event.offset, data, event.skipped_from))
        cpu_s[0] += 0.02

    flood = Reading(slow, lambda count: None)
    lines = [f"line {number}\n".encode() for number in range(40)]
    offset = 0
    for line in lines[:30]:
        flood.put(chunk(offset, line), line, 0.0)
        offset += len(line)
    after_gap = offset + 1000
    for number, line in enumerate(lines[30:]):
        flood.put(chunk(after_gap, line, skipped_from=None if number else offset), line, 0.0)
        after_gap += len(line)

    await until_async(lambda: sum(len(data) for _, data, _ in read) == sum(len(line) for line in lines))

    assert read == [
        (0, lines[0], None),
        (len(lines[0]), b"".join(lines[1:30]), None),
        (offset + 1000, b"".join(lines[30:]), offset),
    ]


async def test_what_a_status_says_is_not_lost_among_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu_s = [0.0]
    monkeypatch.setattr("console.engine.reading.time.thread_time", lambda: cpu_s[0])
    states: list[tuple[str, int]] = []

    def slow(event: LogEvent, data: bytes, now: float) -> None:
        states.append((event.state, len(data)))
        cpu_s[0] += 0.02

    flood = Reading(slow, lambda count: None)
    flood.put(chunk(0, b"a\n"), b"a\n", 0.0)
    flood.put(chunk(2, b"b\n"), b"b\n", 0.0)
    flood.put(LogEvent(bt=0.0, state="truncated", offset=4, size=4, path="log", n=0), b"", 0.0)
    flood.put(chunk(4, b"c\n"), b"c\n", 0.0)

    await until_async(lambda: len(states) == 4)

    assert states == [("following", 2), ("following", 2), ("truncated", 0), ("following", 2)]


async def test_all_that_came_is_shown_before_more_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu_s = [0.0]
    monkeypatch.setattr("console.engine.reading.time.thread_time", lambda: cpu_s[0])
    did: list[str] = []
    waiting: list[int] = []

    def show(event: LogEvent, data: bytes, now: float) -> bool:
        did.append(f"show {event.offset}")
        waiting.append(event.offset)
        cpu_s[0] += 0.001
        return True

    def understand(has_time: Callable[[], bool]) -> int | None:
        if not waiting:
            return None
        did.append(f"understand {waiting.pop(0)}")
        cpu_s[0] += 0.02
        return 2

    reads = Reading(show, lambda count: None, understand)
    for offset in (0, 2, 4):
        reads.put(chunk(offset, b"x\n", skipped_from=0), b"x\n", 0.0)

    await until_async(lambda: len(did) == 6)

    assert did == ["show 0", "understand 0", "show 2", "show 4", "understand 2", "understand 4"]


async def test_what_follows_the_opening_is_credited_when_it_is_understood() -> None:
    credit: list[int] = []
    waiting: list[int] = []
    may_understand = [False]

    def show(event: LogEvent, data: bytes, now: float) -> bool:
        waiting.append(len(data))
        return True

    def understand(has_time: Callable[[], bool]) -> int | None:
        return waiting.pop(0) if waiting and may_understand[0] else None

    reads = Reading(show, credit.append, understand)
    reads.begin(2 * OWED_BYTES)
    for number in range(4):
        reads.put(chunk(number * OWED_BYTES, b"x" * OWED_BYTES), b"x" * OWED_BYTES, 0.0)
    await until_async(lambda: sum(waiting) == 4 * OWED_BYTES)
    opened = sum(credit)
    may_understand[0] = True
    reads.put(chunk(4 * OWED_BYTES, b"end"), b"end", 0.0)
    await until_async(lambda: not waiting)

    assert opened == 2 * OWED_BYTES
    assert sum(credit) == 4 * OWED_BYTES


async def test_key_goes_first_and_keys_that_are_held_down_do_not_stop_the_log() -> None:
    read: list[int] = []

    def show(event: LogEvent, data: bytes, now: float) -> bool:
        read.append(event.offset)
        return False

    reads = Reading(show, lambda count: None)
    reads.pause(0.05)
    reads.put(chunk(0, b"x\n"), b"x\n", 0.0)
    reads.put(chunk(2, b"x\n"), b"x\n", 0.0)
    read_at_once = [*read]
    for _ in range(2000):  # twenty seconds, unless it is read meanwhile
        reads.pause(0.05)
        await asyncio.sleep(0.01)
        if read:
            break

    assert read_at_once == []
    assert read == [0]  # as one piece


async def test_what_a_log_is_opened_with_is_never_taken_for_a_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    clock_of(monkeypatch)
    cpu_s, waiting, delays = [0.0], list[int](), list[float]()
    monkeypatch.setattr("console.engine.reading.time.thread_time", lambda: cpu_s[0])
    loop = asyncio.get_running_loop()
    call_later: Callable[..., asyncio.TimerHandle] = loop.call_later

    def noting(delay: float, callback: Any, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        if getattr(callback, "__self__", None) is not reads:
            return call_later(delay, callback, *args, **kwargs)
        delays.append(delay)
        return call_later(0.0, callback, *args, **kwargs)

    def show(event: LogEvent, data: bytes, now: float) -> bool:
        waiting.append(len(data))
        return True

    def understand(has_time: Callable[[], bool]) -> int | None:
        if not waiting:
            return None
        cpu_s[0] += 3.0
        return waiting.pop(0)

    reads = Reading(show, lambda count: None, understand)
    monkeypatch.setattr(loop, "call_later", noting)
    reads.begin(ahead_bytes=4 * SLICE_BYTES)
    data = b"x" * (6 * SLICE_BYTES)
    reads.put(chunk(0, data), data, 0.0)

    await until_async(lambda: not waiting)

    # A quarter each while it is opened. Only what ends the opening and what comes behind it is counted: 3 s are within
    # the bound, 6 s and 9 s are not.
    assert delays == [pytest.approx(0.75)] * 3 + [pytest.approx(3.0)] + [pytest.approx(12.0)] * 2
