"""The state directory: files that readers always find whole, a lock that names its holder, recorder and secrets."""

import fcntl
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.host import bounded, files, lock, recorder, secretenv
from tests.host.keeperlab import REPOSITORY, mode_of
from tests.waiting import until

_HOLD = """
import sys; sys.path.insert(0, sys.argv[2])
from console.host import lock
held = lock.TargetLock(sys.argv[1])
print(held.try_acquire({"operator": "ops", "stage": "killing"}), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A small tmpfs."""
    folder = tmp_path / "small"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(["mount", *options], check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting a tmpfs is not possible here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_what_is_written_is_read_back_private_and_with_its_schema(tmp_path: Path) -> None:
    for value in ({"a": "x" * 50_000}, {"a": "é\udcff"}, {}):
        files.write_json(str(tmp_path), "status.json", value)

        assert files.read_json(str(tmp_path), "status.json") == {**value, "schema": 1}
    assert mode_of(tmp_path / "status.json") == 0o600


def test_symlinks_are_neither_read_nor_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text('{"a": 1}')
    (tmp_path / "status.json").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "link").symlink_to(tmp_path)

    assert files.read_json(str(tmp_path), "status.json") is None
    files.write_json(str(tmp_path), "status.json", {"b": 2})
    with pytest.raises(NotADirectoryError):
        files.write_json(str(tmp_path / "link"), "status.json", {})

    assert (tmp_path / "elsewhere").read_text() == '{"a": 1}'


def test_full_disk_does_not_stop_a_reserved_file(full_disk: Path) -> None:
    files.reserve(str(full_disk), "exit.json")
    files.write_json(str(full_disk), "status.json", {"state": "running"})
    files.write_json(str(full_disk), "status.json", {"state": "spawned"})
    with pytest.raises(OSError, match="No space"):
        (full_disk / "log").write_bytes(b"x" * 1_000_000)
    with pytest.raises(OSError, match="No space"):
        (full_disk / "other").write_bytes(b"x")

    files.write_json(str(full_disk), "exit.json", {"code": 1})
    files.write_json(str(full_disk), "status.json", {"state": "ended"})

    assert files.read_json(str(full_disk), "exit.json") == {"code": 1, "schema": 1}
    assert files.read_json(str(full_disk), "status.json") == {"state": "ended", "schema": 1}


def test_readers_never_see_half_a_file(tmp_path: Path) -> None:
    code = (
        "import itertools, select, sys; sys.path.insert(0, sys.argv[2]); from console.host import files\n"
        "for n in itertools.count():\n"
        "    files.write_json(sys.argv[1], 's.json', {'n': n, 'same': [n] * 1500})\n"
        "    if n >= 3000 and select.select([0], [], [], 0)[0]: break"
    )
    files.write_json(str(tmp_path), "s.json", {"n": -1, "same": []})
    argv = [sys.executable, "-c", code, str(tmp_path), str(REPOSITORY)]
    writer = subprocess.Popen(argv, stdin=subprocess.PIPE)
    seen = set[int]()

    while writer.poll() is None:
        if len(seen) > 100 and writer.stdin is not None:
            writer.stdin.close()  # enough of both: written 3000 times, and read while it was
        found = files.read_json(str(tmp_path), "s.json")
        if found is not None:
            assert set(found["same"]) <= {found["n"]}
            seen.add(found["n"])

    assert len(seen) > 100
    assert writer.returncode == 0
    assert files.read_json(str(tmp_path), "s.json") is not None


def test_what_was_rewritten_while_it_was_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write_json(str(tmp_path), "s.json", {"n": 1})
    read = files._read_regular

    def overtaken(path: str) -> bytes:
        monkeypatch.setattr(files, "_read_regular", read)
        files.write_json(str(tmp_path), "s.json", {"n": 2})
        return b'{"n": "half of each"}'

    monkeypatch.setattr(files, "_read_regular", overtaken)

    assert files.read_json(str(tmp_path), "s.json") == {"n": 2, "schema": 1}


def test_directories_of_others_or_open_to_others_are_not_trusted(tmp_path: Path) -> None:
    files.secure_makedirs(str(tmp_path / "a" / "b"))
    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "a" / "b") == 0o700
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "a")

    for name in ("open", "link"):
        with pytest.raises(files.Unusable, match=name):
            files.secure_makedirs(str(tmp_path / name))


@pytest.mark.parametrize("name", ["../../etc", ".", "..", "", "a/b", "é x", ".hidden", "ok-1"])
def test_odd_names_stay_within_their_directory(name: str) -> None:
    safe = files.safe_name(name)

    assert safe not in ("", ".", "..")
    assert "/" not in safe
    assert not safe.startswith(".")


def test_lock_names_its_holder_and_dies_with_it(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, path, str(REPOSITORY)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.readline() == b"True\n"

    assert lock.read_holder(path) == {"operator": "ops", "stage": "killing"}
    rival = lock.TargetLock(path)
    assert not rival.try_acquire({"operator": "other"})
    assert lock.read_holder(path) == {"operator": "ops", "stage": "killing"}

    holder.kill()
    holder.communicate(timeout=20)
    assert lock.read_holder(path) is None
    assert rival.try_acquire({"operator": "other"})
    rival.update(stage="cache")
    assert lock.read_holder(path) == {"operator": "other", "stage": "cache"}
    rival.release()
    assert lock.read_holder(path) is None


class _Clock:
    """Time that passes only where somebody waits; `at` does something once it has come so far."""

    def __init__(self, at_s: float, act: Callable[[], None]) -> None:
        self.now, self._at_s, self._act = 0.0, at_s, act

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        before, self.now = self.now, self.now + seconds
        if before < self._at_s <= self.now:
            self._act()


@pytest.mark.parametrize("content", [b"", b"{}", b'{"operator": "ann", "pid": 4194304}'])
def test_a_reader_that_a_busy_host_keeps_waiting_does_not_refuse_the_lock_to_everybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    path = tmp_path / "lock"
    path.write_bytes(content)
    reader = os.open(path, os.O_RDWR)
    fcntl.flock(reader, fcntl.LOCK_SH)
    clock = _Clock(3.0, lambda: os.close(reader))
    monkeypatch.setattr(lock, "time", clock)

    assert lock.TargetLock(str(path)).try_acquire({"operator": "bob"})
    assert clock.now < 3.1


def test_a_rival_that_lives_and_says_so_is_waited_for_a_moment_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = lock.TargetLock(str(tmp_path / "lock"))
    assert held.try_acquire({"operator": "ann", "pid": os.getpid()})
    clock = _Clock(60.0, held.release)
    monkeypatch.setattr(lock, "time", clock)

    assert not lock.TargetLock(held.path).try_acquire({"operator": "bob"})
    assert clock.now < 0.3


def test_lock_is_not_kept_by_a_helper(tmp_path: Path) -> None:
    held = lock.TargetLock(str(tmp_path / "lock"))
    assert held.try_acquire({})

    bounded.call(lambda: os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "0.5"), 60.0)
    held.release()

    assert lock.TargetLock(held.path).try_acquire({})


def test_bounded_call_ends_what_hangs() -> None:
    with pytest.raises(bounded.TookTooLong):
        bounded.call(lambda: until(lambda: False, 60), 0.2)
    with pytest.raises(bounded.ChildFailed, match="KeyError"):
        bounded.call(lambda: os.environ["DFLASH_ABSENT"], 60.0)
    assert bounded.call(lambda: {"a": [1, "é"]}, 60.0) == {"a": [1, "é"]}


def test_recorder_that_is_thinned_keeps_the_launch_as_it_was(tmp_path: Path) -> None:
    kept = recorder.Recorder(str(tmp_path), max_bytes=40_000)
    for size in range(60):
        kept.log(size)
    launch = (tmp_path / recorder.NAME).read_text().splitlines()
    for size in range(100, 4000):
        kept.log(size)

    now = (tmp_path / recorder.NAME).read_text().splitlines()

    assert now[: len(launch)] == launch
    sizes = [json.loads(line)["size"] for line in now]
    assert sizes == sorted(sizes)
    assert max(b - a for a, b in itertools.pairwise(sizes)) > 8  # it was thinned many times
    assert (tmp_path / recorder.NAME).stat().st_size <= 40_000


def test_recorder_stays_within_its_bound_and_keeps_stages(tmp_path: Path) -> None:
    record = recorder.Recorder(str(tmp_path), max_bytes=20_000)
    record.stage("killing", "done", "2 pids gone")

    for size in range(2000):
        record.log(size)
        record.log(size)
    record.exit("exit status 0")

    path = tmp_path / recorder.NAME
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert path.stat().st_size <= 21_000
    assert mode_of(path) == 0o600
    assert (lines[0]["k"], lines[-1]["k"]) == ("stage", "exit")
    sizes = [line["size"] for line in lines if line["k"] == "log"]
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == 1999
    assert sizes[0] < 500, "thinned, not cut off"


def test_recorder_that_is_thinned_again_and_again_keeps_every_stage(tmp_path: Path) -> None:
    record = recorder.Recorder(str(tmp_path), max_bytes=24_000)

    for turn in range(150):
        for size in range(5):
            record.log(5 * turn + size)
        record.stage("killing", "active", str(turn))

    lines = [json.loads(line) for line in (tmp_path / recorder.NAME).read_text().splitlines()]
    assert len([line for line in lines if line["k"] == "log"]) < 700  # it was thinned
    assert [line["detail"] for line in lines if line["k"] == "stage"] == [str(turn) for turn in range(150)]


def test_recorder_whose_file_is_taken_away_begins_another(tmp_path: Path) -> None:
    record, path = recorder.Recorder(str(tmp_path)), tmp_path / recorder.NAME
    record.log(1)
    path.unlink()

    for size in (2, 3, 4):
        record.log(size)

    assert [json.loads(line)["size"] for line in path.read_text().splitlines()] == [3, 4]


def test_secrets_are_kept_as_hashes_that_show_a_change(tmp_path: Path) -> None:
    key = secretenv.state_key(str(tmp_path))
    before = secretenv.masked({"WANDB_API_KEY": "one", "PLAIN": "x"}, key)
    after = secretenv.masked({"WANDB_API_KEY": "two", "PLAIN": "x"}, key)

    assert before["PLAIN"] == "x"
    assert before["WANDB_API_KEY"].startswith("hmac:")
    assert before["WANDB_API_KEY"] != after["WANDB_API_KEY"]
    assert secretenv.masked(before, key) == before
    assert secretenv.state_key(str(tmp_path)) == key
    assert mode_of(tmp_path / "key") == 0o600
