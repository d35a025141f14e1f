"""Old run directories go, within bounds that are counted; what lives, is fresh or is not ours stays."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from console.host import files, procfs, prune

DAY_S = 86400.0


@pytest.fixture
def target(tmp_path: Path) -> Path:
    directory = tmp_path / "targets" / "t"
    (directory / "runs").mkdir(parents=True, mode=0o700)
    return directory


def run_of(target: Path, name: str, age_days: float, size: int = 100, **status: Any) -> Path:
    """A run as its keeper has left it so long ago."""
    directory = target / "runs" / name
    directory.mkdir(mode=0o700)
    then = time.time() - age_days * DAY_S
    files.write_json(str(directory), "request.json", {"request": name, "accepted_wall": then})
    files.write_json(str(directory), "status.json", {"id": name, "state": "ended", **status})
    (directory / "recorder.ndjson").write_bytes(b"x" * size)
    os.mkfifo(directory / "control", 0o600)
    for each in directory.iterdir():
        os.utime(each, (then, then))
    return directory


def left(target: Path) -> set[str]:
    return set(os.listdir(target / "runs"))


def newest(target: Path, count: int = prune.KEPT) -> set[str]:
    names = {f"new{number}" for number in range(count)}
    for number, name in enumerate(sorted(names)):
        run_of(target, name, 2 + number / 100)
    return names


def test_the_newest_fifty_stay_whatever_their_age(target: Path) -> None:
    for number in range(50):
        run_of(target, f"r{number}", 400 + number)

    assert prune.prune(str(target), "r0") == []
    assert len(left(target)) == 50


def test_beyond_them_a_month_is_kept_and_what_is_older_goes_whole(target: Path) -> None:
    names = newest(target)
    run_of(target, "month", 29.5)
    run_of(target, "old", 31)
    run_of(target, "older", 300)

    assert prune.prune(str(target), "new0") == ["older", "old"]
    assert left(target) == names | {"month"}
    assert os.listdir(target) == ["runs"]


def test_a_month_of_too_many_or_too_big_ones_goes_from_its_oldest_on(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = newest(target)
    for number in range(4):
        run_of(target, f"r{number}", 3 + number)
    monkeypatch.setattr(prune, "KEPT_AT_MOST", 52)

    assert prune.prune(str(target), "new0") == ["r3", "r2"]

    run_of(target, "big", 2.9, size=200_000)
    blocks = sum(each.stat().st_blocks * 512 for each in target.glob("runs/*/*"))
    monkeypatch.setattr(prune, "KEPT_BYTES", blocks - 1)
    assert prune.prune(str(target), "new0") == ["r1"]
    assert left(target) == names | {"big", "r0"}


@pytest.mark.parametrize("who", ["keeper", "main", "trainer"])
def test_a_run_of_which_something_lives_stays(target: Path, who: str) -> None:
    names = newest(target)
    child = subprocess.Popen(["sleep", "60"])
    stat = procfs.read_stat(child.pid)
    assert stat is not None
    ident: dict[str, Any] = {who: {"pid": stat.pid, "start": stat.start}}
    run_of(target, "alive", 300, boot=procfs.boot_identity(), **ident)
    run_of(target, "other_boot", 300, boot="before", **ident)

    removed = prune.prune(str(target), "new0")
    child.kill()
    child.wait()

    assert removed == ["other_boot"]
    assert left(target) == names | {"alive"}
    assert prune.prune(str(target), "new0") == ["alive"]


def test_a_run_that_was_written_to_today_and_the_keepers_own_stay(target: Path) -> None:
    names = newest(target)
    os.utime(run_of(target, "written", 300) / "recorder.ndjson")
    run_of(target, "own", 300)

    assert prune.prune(str(target), "own") == []
    assert left(target) == names | {"written", "own"}


def test_nothing_is_followed_and_what_no_keeper_makes_is_left_alone(target: Path, tmp_path: Path) -> None:
    names = newest(target)
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "request.json").write_text('{"accepted_wall": 1.0}')
    (precious / "weights").write_text("kept")
    os.utime(precious / "request.json", (1, 1))
    os.utime(precious / "weights", (1, 1))
    (target / "runs" / "link").symlink_to(precious)
    (run_of(target, "with_link", 300) / "weights").symlink_to(precious / "weights")
    (run_of(target, "with_folder", 300) / "sub").mkdir()
    (target / "runs" / "no_run").mkdir()
    run_of(target, "open_to_all", 300).chmod(0o777)
    old = time.time() - 300 * DAY_S
    for each in target.glob("runs/*/*"):
        os.utime(each, (old, old), follow_symlinks=False)

    assert prune.prune(str(target), "new0") == ["with_link"]
    assert left(target) == names | {"link", "with_folder", "no_run", "open_to_all"}
    assert (precious / "weights").read_text() == "kept"


def test_runs_behind_a_symlink_are_not_touched(target: Path, tmp_path: Path) -> None:
    newest(target)
    run_of(target, "old", 300)
    (target / "runs").rename(tmp_path / "elsewhere")
    (target / "runs").symlink_to(tmp_path / "elsewhere")

    assert prune.prune(str(target), "new0") == []
    assert len(left(target)) == 51


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")
@pytest.mark.parametrize("place", ["runs/mounted", f"{prune.PREFIX}mounted"])
def test_what_is_mounted_there_is_not_touched(target: Path, tmp_path: Path, place: str) -> None:
    names = newest(target)
    run_of(target, "source", 300).rename(tmp_path / "source")
    (target / place).mkdir(mode=0o700)
    if subprocess.run(["mount", "--bind", tmp_path / "source", target / place], check=False).returncode:
        pytest.skip("no mounting here")
    try:
        assert prune.prune(str(target), "new0") == []
        assert (tmp_path / "source" / "request.json").exists()
    finally:
        subprocess.run(["umount", target / place], check=True)
    assert names <= left(target)


def test_what_a_lost_keeper_had_set_aside_is_removed(target: Path) -> None:
    run_of(target, "old", 300).rename(target / f"{prune.PREFIX}77")

    prune.prune(str(target), "new0")

    assert os.listdir(target) == ["runs"]
