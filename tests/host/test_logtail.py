"""Following a log: every byte once, and every oddity by its name."""

import os
import random
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console import protocol
from console.host import logtail
from tests.host.agentprocess import Agent, awaited
from tests.host.mounts import mount, with_own_mounts


class Reader:
    """Plays the console: puts the chunks together and remembers where it stands."""

    def __init__(self, path: Path, **wanted: Any) -> None:
        self.follower = logtail.Follower({"path": str(path), "offset": 0, "credit_bytes": 1 << 30, **wanted})
        self.data = b""
        self.states: list[str] = []
        self.event: dict[str, Any] = {}

    def step(self) -> list[dict[str, Any]]:
        events = []
        for event, data in self.follower.step():
            assert len(data) == event["n"] <= logtail.CHUNK_BYTES
            if event["state"] in ("truncated", "rotated"):
                self.data = b""
            if data and "skipped_from" not in event and "offset" not in self.event:
                self.data = b""
            self.data += data
            if not self.states or self.states[-1] != event["state"]:
                self.states.append(event["state"])
            self.event = event
            events.append(event)
        return events

    def resume(self) -> dict[str, Any]:
        """What a console would ask for after a reconnect."""
        offset = self.event["offset"] + self.event["n"]
        tail = self.data[-logtail.FINGERPRINT_BYTES :]
        return {
            "offset": offset,
            "dev": self.event["dev"],
            "inode": self.event["inode"],
            "fingerprint": tail.hex(),
        }


def test_a_log_is_missing_then_empty_then_followed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    reader = Reader(log)

    reader.step()
    log.touch()
    reader.step()
    log.write_bytes(b"step 1\n")
    reader.step()

    assert reader.states == ["missing", "empty", "following"]
    assert reader.data == b"step 1\n"


def test_a_full_disk_is_told_as_long_as_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logtail, "HEARTBEAT_S", 0.0)

    def work() -> list[bool]:
        mount("tmpfs", tmp_path / "small", "size=64k")
        log, fill = tmp_path / "small" / "log", tmp_path / "small" / "fill"
        log.write_bytes(b"step 1\n")
        reader, told = Reader(log), []
        for content in (b"", bytes(64 << 10), b""):
            try:
                fill.write_bytes(content)
            except OSError:
                pass
            reader.step()
            told.append(bool(reader.step()[-1].get("full")))
        return told

    assert with_own_mounts(work) == [False, True, False]


def test_no_more_is_sent_than_the_credit_allows(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(bytes(range(256)) * 1000)
    reader = Reader(log, credit_bytes=100_000)

    reader.step()
    held = len(reader.data)
    reader.step()
    reader.follower.add_credit(1_000_000)
    reader.step()

    assert held == 100_000
    assert reader.data == log.read_bytes()


def test_truncation_is_noticed_by_size(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"old line\n" * 100)
    reader = Reader(log)
    reader.step()

    os.truncate(log, 0)
    reader.step()
    log.write_bytes(b"new\n")
    reader.step()

    assert reader.states == ["following", "truncated", "empty", "following"]
    assert reader.data == b"new\n"


def test_copytruncate_with_fast_regrowth_is_noticed_although_the_file_is_longer(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"old line\n" * 100)
    reader = Reader(log)
    reader.step()

    log.write_bytes(b"new line, longer\n" * 200)  # in place: the inode stays
    reader.step()

    assert "truncated" in reader.states
    assert reader.data == log.read_bytes()


def test_regrowth_to_the_same_size_is_noticed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"aaaa\n" * 100)
    reader = Reader(log)
    reader.step()

    log.write_bytes(b"bbbb\n" * 100)
    reader.step()

    assert "truncated" in reader.states
    assert reader.data == log.read_bytes()


def test_rotation_loses_not_one_line(tmp_path: Path) -> None:
    log, old = tmp_path / "log", tmp_path / "log.1"
    log.write_bytes(b"1\n")
    reader = Reader(log)
    reader.step()
    with log.open("ab") as file:
        file.write(b"2\n")
        log.rename(old)
        file.write(b"3\n")
    log.write_bytes(b"4\n")

    seen = [event for _ in range(3) for event in reader.step()]

    assert [event["state"] for event in seen if event["n"]] == ["following", "following"]
    assert reader.states == ["following", "rotated", "following"]
    first = next(event for event in seen if event["n"])
    assert (first["offset"], first["n"]) == (2, 4)
    assert reader.data == b"4\n"


def test_a_log_moved_away_is_followed_where_it_went(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb", buffering=0) as file:
        file.write(b"1\n")
        reader = Reader(log)
        reader.step()
        log.rename(tmp_path / "elsewhere")
        file.write(b"2\n")
        reader.step()

    assert reader.data == b"1\n2\n"
    assert "elsewhere" in reader.event["detail"]


def test_a_log_that_was_moved_back_is_followed_by_its_name_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb", buffering=0) as file:
        reader = Reader(log)
        reader.step()
        log.rename(tmp_path / "elsewhere")
        file.write(b"1\n")
        reader.step()
        (tmp_path / "elsewhere").rename(log)
        file.write(b"2\n")
        reader.step()

    assert reader.data == b"1\n2\n"
    assert not reader.event.get("detail")


def test_a_deleted_log_is_followed_while_it_is_open(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb", buffering=0) as file:
        file.write(b"1\n")
        reader = Reader(log)
        reader.step()
        log.unlink()
        file.write(b"2\n")
        reader.step()

    assert reader.states == ["following", "deleted"]
    assert reader.data == b"1\n2\n"


def test_a_log_deleted_before_we_came_is_read_through_the_runs_stdout(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        child = subprocess.Popen(["sh", "-c", "echo from the dead; exec sleep 60"], stdout=file)
    awaited(lambda: log.stat().st_size)
    log.unlink()
    reader = Reader(log, pid=child.pid)

    reader.step()
    child.kill()
    child.wait()

    assert reader.states == ["deleted"]
    assert reader.data == b"from the dead\n"


def test_what_is_no_file_is_unreadable(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, Path("/dev/null")):
        reader = Reader(path)

        reader.step()

        assert reader.states == ["unreadable"]
        assert reader.event["detail"]


def test_resuming_goes_on_at_the_exact_byte(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"line\n" * 1000)
    first = Reader(log)
    first.step()
    with log.open("ab") as file:
        file.write(b"more\n" * 10)

    second = Reader(log, **first.resume())
    second.step()

    assert second.states == ["following"]
    assert second.event["offset"] == 5000
    assert second.data == b"more\n" * 10


def test_resuming_a_log_that_was_rewritten_starts_over(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"line\n" * 1000)
    first = Reader(log)
    first.step()
    log.write_bytes(b"LINE\n" * 2000)

    second = Reader(log, **first.resume())
    second.step()

    assert second.states == ["truncated", "following"]
    assert second.data == log.read_bytes()


def test_a_new_file_that_could_not_be_opened_at_first_is_told_as_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a console takes its first bytes for ones that it has, and drops them."""
    log = tmp_path / "log"
    log.write_bytes(b"of the old file\n")
    reader = Reader(log)
    reader.step()
    log.rename(tmp_path / "log.1")
    log.write_bytes(b"new\n")

    def refused(*_: Any) -> int:
        raise PermissionError(13, "Permission denied")  # as for anybody but root, until its mode is set

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refused)
        reader.step()
    events = reader.step()

    assert reader.states == ["following", "unreadable", "rotated", "following"]
    assert [(event["state"], event["offset"]) for event in events] == [("rotated", 0), ("following", 0)]
    assert reader.data == b"new\n"


def test_resuming_after_a_rotation_first_finishes_the_old_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"1\n")
    first = Reader(log)
    first.step()
    with log.open("ab") as file:
        file.write(b"2\n")
    log.rename(tmp_path / "log.1")
    log.write_bytes(b"3\n")

    second = Reader(log, **first.resume())
    chunks = [event for _ in range(3) for event in second.step() if event["n"]]

    assert [(event["offset"], event["n"]) for event in chunks] == [(2, 2), (0, 2)]
    assert second.states == ["following", "rotated", "following"]


def test_resuming_after_a_rotation_without_the_old_file_starts_at_the_new_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"1\n")
    first = Reader(log)
    first.step()
    (tmp_path / "new").write_bytes(b"3\n")
    (tmp_path / "new").rename(log)

    second = Reader(log, **first.resume())
    second.step()

    assert second.states == ["rotated", "following"]
    assert second.data == b"3\n"


def test_a_negative_offset_counts_from_the_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"0123456789")
    reader = Reader(log, offset=-4)

    reader.step()

    assert (reader.event["offset"], reader.data) == (6, b"6789")


def test_far_behind_it_jumps_to_a_line_near_the_end_and_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log"
    size = 40 << 20
    with log.open("wb") as file:
        file.truncate(size)
        file.seek(size - (1 << 20) - 10)
        file.write(b"x" * 20 + b"\n" + b"the first line that is sent\n")
        file.seek(size)
        file.write(b"\nend\n")
    reader = Reader(log)

    first = reader.step()[0]

    assert first["skipped_from"] == 0
    assert first["offset"] > size - (1 << 20)
    with log.open("rb") as file:
        file.seek(first["offset"] - 1)
        assert file.read(1) == b"\n"
        assert file.read() == reader.data


def test_the_file_is_looked_at_at_least_each_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(logtail, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    log = tmp_path / "log"
    log.write_bytes(b"1\n")
    reader = Reader(log)
    reader.step()
    clock[0] += 0.9
    early = reader.step()
    clock[0] += 0.2

    (heartbeat,) = reader.step()

    assert early == []
    assert heartbeat["n"] == 0


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_no_byte_is_lost_or_sent_twice(tmp_path: Path, seed: int) -> None:
    """Appends, rotations and reconnects in random order; each file's bytes must arrive whole and once."""
    chance, log, sent, got = random.Random(seed), tmp_path / "log", b"", b""
    log.touch()
    reader = Reader(log, credit_bytes=0)
    number = 0
    for turn in range(300):
        deed = chance.random()
        if deed < 0.7:
            line = f"line {turn} {'x' * chance.randrange(200)}\n".encode()
            sent += line
            with log.open("ab") as file:
                file.write(line)
        elif deed < 0.75:
            for _ in range(3):  # before a second rotation the first must have been seen
                reader.follower.add_credit(1 << 20)
                got += b"".join(data for _, data in reader.follower.step())
            number += 1
            log.rename(tmp_path / f"log.{number}")
            log.touch()
        else:
            reader.follower.add_credit(chance.randrange(3000))
            got += b"".join(data for _, data in reader.follower.step())
    for _ in range(5):
        reader.follower.add_credit(1 << 20)
        got += b"".join(data for _, data in reader.follower.step())

    assert got == sent


# -- through an agent -------------------------------------------------------------------------------------------------


def test_a_line_arrives_when_it_is_written(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"first\n")
    with Agent() as agent:
        assert agent.ask(protocol.LogFollow(id=1, path=str(log), offset=0)).ok
        awaited(lambda: b"".join(agent.raw) == b"first\n")

        with log.open("ab") as file:
            file.write(b"second\n")
        awaited(lambda: b"".join(agent.raw) == b"first\nsecond\n")

        assert all(isinstance(event, protocol.LogEvent) for event in agent.events)


def test_credit_given_is_used_at_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 1_000_000)
    with Agent() as agent:
        agent.ask(protocol.LogFollow(id=1, path=str(log), offset=0, credit_bytes=1000))
        awaited(lambda: sum(map(len, agent.raw)) == 1000)

        agent.send(protocol.LogCredit(bytes=5_000_000))

        awaited(lambda: sum(map(len, agent.raw)) == 1_000_000)


def test_a_new_follow_replaces_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    with Agent() as agent:
        agent.ask(protocol.LogFollow(id=1, path=str(tmp_path / "a"), offset=0))
        agent.ask(protocol.LogFollow(id=2, path=str(tmp_path / "b"), offset=0))
        awaited(lambda: b"b" in b"".join(agent.raw))
        with (tmp_path / "a").open("ab") as file:
            file.write(b"A")
        with (tmp_path / "b").open("ab") as file:
            file.write(b"B")

        awaited(lambda: b"B" in b"".join(agent.raw))
        assert b"A" not in b"".join(agent.raw)


def test_a_range_is_read_as_raw_bytes(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bytes(range(256)))
    with Agent() as agent:
        reply = agent.ask(protocol.LogRead(id=1, path=str(tmp_path / "log"), offset=10, length=20))
        beyond = agent.ask(protocol.LogRead(id=2, path=str(tmp_path / "log"), offset=1000, length=20))
        missing = agent.ask(protocol.LogRead(id=3, path=str(tmp_path / "none"), offset=0, length=20))

        assert (reply.data["size"], agent.reply_raw[1]) == (256, bytes(range(10, 30)))
        assert (beyond.ok, agent.reply_raw[2]) == (True, b"")
        assert missing.error is not None
        assert missing.error.reason == "file_missing"


def test_samples_are_spread_evenly_and_bounded(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(bytes(range(256)) * 16)

    offsets, pieces = logtail.sample_ranges(str(path), 100, 4100, 4, 10)
    few, _ = logtail.sample_ranges(str(path), 0, 25, 100, 10)
    beyond = logtail.sample_ranges(str(path), 4090, 5000, 2, 10)
    to_the_end, _ = logtail.sample_ranges(str(path), 96, -1000, 3, 10)
    short = [logtail.sample_ranges(str(path), 0, -1, 3, 10, larger_than=size)[0] for size in (4095, 4096)]

    assert offsets == [100, 1100, 2100, 3100]
    assert pieces == [bytes((offset + index) % 256 for index in range(10)) for offset in offsets]
    assert few == [0, 12]
    assert [len(piece) for piece in beyond[1]] == [6, 0]
    assert to_the_end == [96, 1096, 2096]
    assert short == [[0, 1365, 2730], []]


def test_samples_come_over_the_wire_in_one_answer(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"0123456789" * 100)
    with Agent() as agent:
        path, gone = str(tmp_path / "log"), str(tmp_path / "none")
        reply = agent.ask(protocol.LogSample(id=1, path=path, first=0, last=1000, count=3, length=4))
        missing = agent.ask(protocol.LogSample(id=2, path=gone, first=0, last=1000, count=3, length=4))

        assert reply.data == {"offsets": [0, 333, 666], "sizes": [4, 4, 4]}
        assert agent.reply_raw[1] == b"012334566789"
        assert missing.error is not None
        assert missing.error.reason == "file_missing"
