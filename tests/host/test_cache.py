"""Clearing caches: what is refused, what is constant time, and what must never be lost."""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.host import cache, cacheguard
from tests.host.keeperlab import Lab, ended, reached, status
from tests.waiting import until

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@pytest.fixture
def bind(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A cache with a bind mount beneath it, from the same filesystem, where os.path.ismount is blind."""
    source, target = tmp_path / "source", tmp_path / "cache" / "deep" / "bound"
    source.mkdir()
    target.mkdir(parents=True)
    (source / "precious").write_text("weights")
    done = subprocess.run(["mount", "--bind", str(source), str(target)], check=False, capture_output=True)
    if done.returncode != 0:
        pytest.skip(f"bind mounts are not possible here: {done.stderr.decode()}")
    yield tmp_path / "cache", source
    # A deletion that went wrong may have moved it.
    for point in cacheguard.mounts():
        if point.startswith(str(tmp_path)):
            subprocess.run(["umount", point], check=True)


def fill(folder: Path, files: int, per_folder: int = 500) -> None:
    for number in range(files):
        inner = folder / str(number // per_folder)
        if number % per_folder == 0:
            inner.mkdir(parents=True)
        os.close(os.open(inner / str(number), os.O_CREAT, 0o600))


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "//",
        "/tmp",
        "relative/path",
        "/tmp/../etc/x",
        "/usr/lib",
        "/etc/ssl",
        "/var/lib",
        "/dev/shm",
        "/root",
        "/home",
    ],
)
def test_paths_too_high_or_too_strange_are_refused(path: str) -> None:
    assert cacheguard.refusal(path)


def test_ordinary_cache_is_not_refused(tmp_path: Path) -> None:
    assert cacheguard.refusal("/tmp/torchinductor_root_absent") is None
    assert cacheguard.refusal(str(tmp_path / "absent")) is None


def test_symlinks_are_refused_wherever_they_lead(tmp_path: Path) -> None:
    for name, target in (("a", "/"), ("b", os.path.expanduser("~")), ("c", str(tmp_path))):
        (tmp_path / name).symlink_to(target)

        assert "symlink" in (cacheguard.refusal(str(tmp_path / name)) or "")


def test_symlink_above_does_not_hide_where_the_path_really_is(tmp_path: Path) -> None:
    (tmp_path / "innocent").symlink_to("/usr")

    assert cacheguard.refusal(str(tmp_path / "innocent" / "lib")) == "is a system directory"


def test_what_the_run_needs_is_never_in_a_cleared_path(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()

    assert cacheguard.refusal(str(tmp_path / "cache"), [str(tmp_path / "cache" / "logs" / "x.log")])
    assert cacheguard.refusal(str(tmp_path / "cache"), [str(tmp_path / "cache-logs" / "x.log")]) is None


@needs_root
def test_mount_at_or_beneath_is_refused(bind: tuple[Path, Path]) -> None:
    folder, source = bind

    assert "mounted beneath" in (cacheguard.refusal(str(folder)) or "")
    assert cacheguard.refusal(str(folder / "deep" / "bound")) == "is a mount point"
    with pytest.raises(cache.CacheError) as caught:
        cache.set_aside(str(folder), [])
    assert caught.value.reason == "cache_refused"
    assert (source / "precious").read_text() == "weights"


@needs_root
def test_mount_that_slipped_in_is_not_entered_by_the_deletion(bind: tuple[Path, Path]) -> None:
    folder, source = bind
    (folder / "ordinary").write_text("x")
    trash = folder.parent / f"{cache.TRASH_PREFIX}x"
    trash.mkdir(mode=0o700)
    folder.rename(trash / "cache")

    assert not cache.delete_trash(str(trash))

    assert (source / "precious").read_text() == "weights"
    assert not (trash / "cache" / "ordinary").exists()


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    """A directory on tmpfs where there is one: making 20,000 files on a busy disk takes longer than the test."""
    base = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=base)) if os.access(base, os.W_OK) else tmp_path
    yield folder
    if folder != tmp_path:
        shutil.rmtree(folder)


def test_setting_aside_takes_the_same_time_for_many_files(in_memory: Path) -> None:
    fill(in_memory / "big", 20_000)
    fill(in_memory / "small", 10)
    took_s = {}

    for name in ("small", "big"):
        began = time.process_time()  # in memory all of it is our own work
        aside = cache.set_aside(str(in_memory / name), [])
        took_s[name] = time.process_time() - began
        assert aside is not None
        assert not (in_memory / name).exists()
        assert Path(aside.trash).is_dir()

    # Measuring is bounded by 80 ms, whatever there is to measure.
    assert took_s["big"] < took_s["small"] + 0.25


def test_deletion_copes_with_depth_odd_names_and_missing_permissions(tmp_path: Path) -> None:
    trash = tmp_path / f"{cache.TRASH_PREFIX}x"
    trash.mkdir(mode=0o700)
    here = os.open(trash, os.O_RDONLY)
    for _ in range(1500):  # deeper than any path or recursion may be
        os.mkdir("d", 0o700, dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    (trash / "link").symlink_to("/")
    (trash / os.fsdecode(b"\xff\n .1")).write_text("x")
    closed = trash / "closed"
    closed.mkdir()
    (closed / "file").write_text("x")
    closed.chmod(0o500)

    assert cache.delete_trash(str(trash))

    assert not trash.exists()


def test_trash_of_a_crashed_deletion_is_found_and_foreign_directories_are_not(tmp_path: Path) -> None:
    ours, open_to_others = tmp_path / f"{cache.TRASH_PREFIX}a", tmp_path / f"{cache.TRASH_PREFIX}b"
    ours.mkdir(mode=0o700)
    open_to_others.mkdir(mode=0o755)
    (tmp_path / f"{cache.TRASH_PREFIX}c").symlink_to("/")

    assert cache.left_behind(str(tmp_path / "cache")) == [str(ours)]


def test_two_deletions_do_not_work_on_one_trash(tmp_path: Path) -> None:
    trash = tmp_path / f"{cache.TRASH_PREFIX}a"
    trash.mkdir(mode=0o700)
    descriptor = os.open(trash, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        assert not cache.delete_trash(str(trash))
    finally:
        os.close(descriptor)
    assert cache.delete_trash(str(trash))


def test_restart_sets_the_cache_aside_and_deletes_it_and_old_trash(lab: Lab) -> None:
    lab.trainer("print(os.path.exists('cache')); time.sleep(600)")
    fill(lab.work / "cache", 2000)
    (lab.work / "cache" / "big").write_bytes(b"x" * 5_000_000)
    (lab.work / f"{cache.TRASH_PREFIX}old").mkdir(mode=0o700)

    directory, _ = lab.launch("r1", spec={"caches": [str(lab.work / "cache")]})

    stage = reached(directory, "running")["stages"]["cache"]
    assert stage["state"] == "done"
    assert stage["evidence"].endswith("MiB set aside")
    assert len(stage["evidence"]) <= 17
    until(lambda: lab.log("r1") == "False\n")
    until(lambda: not list(lab.work.glob(f"{cache.TRASH_PREFIX}*")), 60)


@pytest.mark.parametrize(
    ("spec", "why"),
    [({"keep_cache": True}, "kept (c)"), ({}, "nothing to clear"), ({"caches": []}, "no cache configured")],
)
def test_cache_stage_says_why_it_was_skipped(lab: Lab, spec: dict[str, object], why: str) -> None:
    lab.trainer("pass")

    directory, _ = lab.launch("r1", spec={"caches": [str(lab.work / "absent")], **spec})

    ended(directory)
    assert status(directory)["stages"]["cache"]["why"] == why


def test_refused_cache_is_told_before_anything_is_killed(lab: Lab) -> None:
    lab.trainer()
    (lab.work / "cache").symlink_to("/")

    directory, _ = lab.launch("r1", spec={"caches": [str(lab.work / "cache")]})

    found = reached(directory, "refused", "running")
    assert (found["reason"], found["stages"]) == ("cache_refused", {})
