"""Logs on network filesystems: named, asked for anew, and followed on when a handle goes stale."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from console.host import logtail, netfs
from tests.host.test_logtail import Reader

_MOUNTS = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
31 22 0:45 / /workspace rw,relatime shared:9 - nfs4 10.0.0.7:/export rw,vers=4.2
32 22 0:46 / /mnt/my\\040disk rw - fuse.sshfs me@there: rw
33 22 0:47 / /tmp rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("dev", "kind"),
    [((254, 1), ""), ((0, 45), "nfs4"), ((0, 46), "fuse.sshfs"), ((0, 47), ""), ((9, 9), "")],
)
def test_the_kind_is_told_by_the_device(tmp_path: Path, dev: tuple[int, int], kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(_MOUNTS)

    assert netfs.kind(os.makedev(*dev), str(mounts)) == kind
    assert netfs.kind(os.makedev(*dev), str(tmp_path / "none")) == ""


@pytest.mark.parametrize(
    ("dev", "here"),
    [((254, 1), True), ((0, 45), False), ((0, 46), False), ((0, 47), True), ((9, 9), False)],
)
def test_only_what_is_known_to_be_local_counts_as_here(tmp_path: Path, dev: tuple[int, int], here: bool) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(_MOUNTS)

    assert netfs.is_here(os.makedev(*dev), str(mounts)) is here
    assert not netfs.is_here(os.makedev(*dev), str(tmp_path / "none"))


def test_a_log_on_a_network_filesystem_says_so_and_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(netfs, "kind", lambda _: "nfs4")
    monkeypatch.setattr(logtail, "HEARTBEAT_S", 0.0)
    asked: list[str] = []
    monkeypatch.setattr(netfs, "look_again", asked.append)
    log = tmp_path / "log"
    log.write_bytes(b"step 1\n")
    reader = Reader(log)

    reader.step()
    reader.step()

    assert reader.event["fs"] == "nfs4"
    assert asked == [str(log)]


def test_a_log_on_a_disk_says_nothing_of_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"step 1\n")
    reader = Reader(log)

    reader.step()

    assert "fs" not in reader.event


@pytest.mark.parametrize("changed", [False, True])
def test_a_stale_handle_is_opened_anew_and_read_on_at_the_exact_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: bool
) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"step 1\n" * 300)
    reader = Reader(log)
    reader.step()

    def stale(*_: object) -> os.stat_result:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", stale)
        with pytest.raises(OSError, match="Stale") as caught:
            reader.follower.step()
    event, _ = reader.follower.trouble(caught.value)
    assert (event["state"], event["detail"]) == ("unreadable", "Stale file handle")
    log.write_bytes((b"other\n" if changed else b"step 1\n") * 300 + b"step 2\n")
    reader.step()

    assert ("truncated" in reader.states) == changed
    assert reader.data == log.read_bytes()
