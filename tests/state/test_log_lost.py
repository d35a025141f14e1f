"""The connection of the log alone is lost: its age grows, the pane says so, and no stall is called by it."""

from __future__ import annotations

from console.model import Verdict
from console.state import events
from console.ui.present.logtitle import LogShown, empty_log, log_title
from console.ui.present.look import Look
from tests.state.story import Story


def _lost(story: Story, seconds: int) -> Story:
    """Lose the log's connection, once the log was heard, while the host goes on telling of its GPUs."""
    story.log(size=100)
    story.tell(events.BulkWentDown(at=story.at, detail="the agent ended"))
    for _ in range(seconds):
        story.ticks(1).tell(events.LinkRtt(at=story.at, rtt_s=0.0, bt=story.bt, wall=story.at))
        story.gpus(power_mw=90_000, util=0)
    return story


def test_age_of_the_log_grows_though_the_host_is_heard() -> None:
    story = _lost(Story().stepping(60), 30)

    now = story.snapshot
    assert (now.log.lost, now.link.state) == ("the agent ended", "up")
    assert now.ages.log is not None
    assert now.ages.log >= 30
    assert now.ages.link is not None
    assert now.ages.link < 2


def test_steps_that_nobody_can_see_are_no_stall() -> None:
    story = _lost(Story().stepping(60), 120)

    assert story.verdict() is not Verdict.STALLED


def test_log_that_speaks_again_is_as_young_as_before() -> None:
    story = _lost(Story().stepping(60), 30)

    story.log(size=200)

    assert story.snapshot.log.lost is None
    assert story.snapshot.ages.log is not None
    assert story.snapshot.ages.log < 2


def test_link_that_is_lost_as_well_is_all_that_is_told() -> None:
    story = _lost(Story().stepping(60), 5).down()
    assert story.snapshot.log.lost is None

    assert story.up().snapshot.log.lost is None


def test_pane_says_that_its_connection_is_lost() -> None:
    now = _lost(Story().stepping(60), 30).snapshot

    title = log_title(now, 100, Look(), LogShown(), narrow=False)
    assert "log connection lost · 30 s old" in "".join(span.text for span in title)
    assert empty_log(now) == "the log's connection is lost: the agent ended"
