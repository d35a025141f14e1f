"""What the title of the log says: the file's states and mishaps, and what of it is shown."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest

from console.model import LogState
from console.ui.present.logtitle import LogShown, log_title
from console.ui.present.look import Look
from console.ui.present.spans import text_of
from tests.ui import fixtures
from tests.ui.fixtures import replace

NOW = fixtures.NOW


def title(shown: LogShown | None = None, width: int = 160, **log: Any) -> str:
    snapshot = replace(fixtures.HEALTHY, log=replace(fixtures.HEALTHY.log, **log))
    return text_of(log_title(snapshot, width, Look(zone=UTC), shown or LogShown(), narrow=False))


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ({"state": LogState.MISSING}, "not there yet"),
        ({"state": LogState.TRUNCATED}, "truncated"),
        ({"state": LogState.ROTATED}, "rotated"),
        ({"state": LogState.DELETED, "detail": "the name is gone; followed through the open file"}, "the name is gone"),
        ({"state": LogState.UNREADABLE, "detail": "Permission denied"}, "Permission denied"),
        ({"mishap": LogState.TRUNCATED, "mishap_at": NOW - 60}, "truncated 14:33:06"),
        ({"mishap": LogState.ROTATED, "mishap_at": NOW - 60}, "rotated 14:33:06"),
        ({"filesystem": "nfs4"}, "on nfs4"),
        ({"detail": "redirected: the run writes here instead of to /tmp/a.log"}, "here instead of to /tmp/a.log"),
        ({"detail": "moved to /workspace/old.log"}, "moved to /workspace/old.log"),
        ({"state": LogState.NONE}, "not known"),
    ],
)
def test_every_state_of_the_file_is_named(log: dict[str, Any], said: str) -> None:
    assert said in title(**log)


@pytest.mark.parametrize("width", [60, 72, 74, 76, 80, 100, 110, 120])
@pytest.mark.parametrize(
    ("log", "said"),
    [
        ({"mishap": LogState.TRUNCATED, "mishap_at": NOW - 60}, "truncated"),
        ({"mishap": LogState.ROTATED, "mishap_at": NOW - 60}, "rotated"),
        ({"filesystem": "nfs4"}, "on nfs4"),
        ({"detail": "redirected: the run writes here instead of to /tmp/a.log"}, "redirected"),
        ({"detail": "moved to /workspace/old.log"}, "moved"),
        ({"state": LogState.DELETED, "detail": "the name is gone; followed through the open file"}, "deleted"),
        ({"state": LogState.UNREADABLE, "detail": "Permission denied"}, "unreadable"),
    ],
)
def test_every_state_of_the_file_is_named_however_narrow_the_title(width: int, log: dict[str, Any], said: str) -> None:
    line = title(width=width, **log)

    assert said in line
    assert "5.log" in line
    assert len(line) == width


def test_a_mishap_of_long_ago_is_not_news() -> None:
    assert "truncated" not in title(mishap=LogState.TRUNCATED, mishap_at=NOW - 3600)


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (LogShown(following=False, offset=430, size_bytes=1000, line=12), "line 12 · 43 % · f follows"),
        (LogShown(following=False, offset=430_000, size_bytes=1_000_000), "byte 430,000 · 43 % · f follows"),
        (LogShown(following=False, offset=1, size_bytes=9, unseen=412), "byte 1 · 11 % · ▼ 412 new lines  f"),
        (LogShown(search="/loss  hit 3 of 1,204…"), "/loss  hit 3 of 1,204…"),
        (LogShown(filter="rank[03]"), "only /rank[03]/"),
        (LogShown(hidden_steps=312), "312 step lines hidden"),
        (LogShown(trouble="no link: not all is here"), "no link: not all is here"),
        (LogShown(other="/w/train_slammed4.log", offset=0, size_bytes=9), "another log, esc goes back"),
        (LogShown(marked=True), "marked: y copies, > saves"),
        (LogShown(skipped_bytes=400 << 20), "400 MiB skipped"),
    ],
)
def test_what_is_shown_of_it_is_said(shown: LogShown, said: str) -> None:
    for width in (160, 120):
        assert said in title(shown, width)


def test_the_name_of_the_file_is_whole_as_long_as_its_size_can_go() -> None:
    snapshot = replace(fixtures.HEALTHY, log=replace(fixtures.HEALTHY.log, path="/w/train_slammed2.log"))

    for width in (76, 80, 84, 120):
        line = text_of(log_title(snapshot, width, Look(zone=UTC), LogShown(hidden_steps=211), narrow=True))
        assert "train_slammed2.log" in line
        assert len(line) == width


def test_a_path_that_is_too_long_loses_folders_and_never_the_name() -> None:
    path = "/workspace/" + "deep/" * 30 + "train_slammed2.log"

    line = title(width=120, path=path)

    assert "/…/" in line
    assert "/train_slammed2.log" in line


@pytest.mark.parametrize(
    ("search", "more", "right"),
    [
        ("/lo  hit 3 of 12", {}, " byte 430,000 · 43 % ──"),
        ("/loss  hit 3 of 1,204…", {}, " byte 430,000 · 43 % ──"),
        ("/learning_rate  hit 3 of 1,204…", {}, " 43 % ──"),
        ("/loss  hit 3 of 1,204…", {"unseen": 412}, " ▼ 412 new lines  f ──"),
        ("/lr  hit 3 of 1,204…", {"other": "/w/old.log"}, " another log, esc goes back ──"),
    ],
)
def test_what_was_searched_for_stays_in_a_narrow_title(search: str, more: dict[str, Any], right: str) -> None:
    shown = LogShown(following=False, offset=430_000, size_bytes=1_000_000, search=search, **more)

    text = text_of(log_title(fixtures.HEALTHY, 60, Look(zone=UTC), shown, narrow=True))

    assert text.startswith(f"── log  {search} ")
    assert text.endswith(right)
    assert len(text) == 60
