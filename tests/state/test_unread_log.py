"""How a run does is judged by a log that is read, never by the part of it that came first."""

from __future__ import annotations

from msgspec.structs import replace

from console.model import Verdict
from console.reasons import Exit
from console.state import events
from console.state.outcome import check_exit_code
from tests.state.story import Story, sample


def opened_late(**last: object) -> Story:
    """A console opened an hour after the first steps, which the log's head holds; its end is still to be read."""
    launched = Story().launched().cuda()
    story = Story(record=launched.record, now=launched.now + 3600.0, is_read_at_once=False).up().host().gpus()
    steps = [replace(sample(step, tok_s=21_500.0), at=story.at - 3500.0 + 2 * step) for step in range(1, 20)]
    steps[-1] = replace(steps[-1], **last)
    return story.tell(
        events.SamplesSeen(at=story.at, follow=story.follow_id(), samples=tuple(steps), live=False, dated=True)
    )


def test_old_steps_of_a_log_that_is_being_read_are_no_stall() -> None:
    story = opened_late()
    assert story.verdict() is Verdict.RUNNING
    assert not story.snapshot.log.caught_up
    assert check_exit_code(story.snapshot) is Exit.UNHEALTHY, "that it is well isn't known yet"

    story.samples(sample(1800, tok_s=21_500.0), live=True).read()

    assert story.verdict() is Verdict.STEPPING
    assert check_exit_code(story.snapshot) is Exit.OK


def test_stall_is_said_as_soon_as_the_log_is_read() -> None:
    story = opened_late().read().gpus(util=0, power_mw=90_000)

    assert story.verdict() is Verdict.STALLED


def test_bell_never_rings_for_what_an_old_log_tells() -> None:
    story = opened_late(loss=None, loss_state="nan")
    assert story.verdict() is Verdict.RUNNING
    story.read()

    assert story.verdict() is Verdict.NAN
    assert not [effect for effect in story.effects if isinstance(effect, events.RingBell)]


def test_link_that_was_away_for_long_is_no_stall_before_the_log_was_read_on() -> None:
    story = Story().stepping(60)
    story.is_read_at_once = False
    story.down().after(900.0).up().host().gpus()
    assert story.verdict() is Verdict.RUNNING

    story.samples(sample(500, tok_s=21_500.0), live=False).samples(sample(501, tok_s=21_500.0)).read()

    assert story.verdict() is Verdict.STEPPING
