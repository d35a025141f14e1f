"""When the log grew last, whatever happened to its file: a log that speaks is never called silent."""

from __future__ import annotations

from typing import Any

import pytest

from console import protocol
from console.state import events
from tests.state.story import LOG, Story


def _say(story: Story, size: int | None, state: str = "following", inode: int = 5) -> Story:
    event = protocol.LogEvent(bt=story.bt, path=LOG, state=state, offset=size or 0, size=size, n=0, inode=inode)
    return story.tell(events.LogSaid(at=story.at, follow=story.follow_id(), log=event))


@pytest.mark.parametrize(
    "said",
    [
        [{"size": 13, "state": "rotated", "inode": 6}, {"size": 13, "inode": 6}],  # with its first line already
        [{"size": 0, "state": "rotated", "inode": 6}, {"size": 13, "inode": 6}],
        [{"size": 60, "state": "truncated"}, {"size": 60}],
        [{"size": None, "state": "unreadable"}, {"size": 113}],
        [{"size": None, "state": "missing"}, {"size": 13, "inode": 6}],
        [{"size": 113, "state": "deleted"}],
        [{"size": 113}],
    ],
    ids=["rotated", "rotated-empty", "truncated", "unreadable", "missing", "deleted", "following"],
)
def test_what_was_written_while_the_file_was_odd_is_growth(said: list[dict[str, Any]]) -> None:
    story = Story().stepping(60)
    _say(_say(story, 99), 100).ticks(90)

    for each in said:
        _say(story, **each)

    assert story.snapshot.log.grew_at == story.at


@pytest.mark.parametrize(
    "said",
    [
        [{"size": 0, "state": "truncated"}],
        [{"size": 0, "state": "rotated", "inode": 6}],
        [{"size": None, "state": "unreadable"}, {"size": 100}],
        [{"size": 100, "state": "deleted"}],
        [{"size": 100}],
    ],
    ids=["truncated", "rotated", "unreadable", "deleted", "following"],
)
def test_a_file_that_nobody_wrote_to_did_not_grow(said: list[dict[str, Any]]) -> None:
    story = Story().stepping(60)
    _say(_say(story, 99), 100)
    grew_at = story.at
    story.ticks(90)

    for each in said:
        _say(story, **each)

    assert story.snapshot.log.grew_at == grew_at
