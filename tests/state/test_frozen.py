"""A frozen container is neither a lost link nor a dead run: verdict, reason, health and exit code say the same."""

from __future__ import annotations

from console.headless.status import status_json, status_lines
from console.model import Verdict
from console.reasons import Exit
from console.state import outcome
from tests.state.story import Story


def frozen() -> Story:
    story = Story().up()
    story.launched()
    story.stepping()
    return story.after(5.0).down("container_frozen", retry_in_s=None)


def test_verdict_and_reason_of_a_frozen_container_are_one_truth() -> None:
    told = frozen().snapshot

    assert (told.verdict, told.last_known) == (Verdict.FROZEN, Verdict.STEPPING)
    assert told.reason is not None
    assert told.reason.slug == told.link.reason == "container_frozen"
    assert (outcome.health_word(told), outcome.check_exit_code(told)) == ("unknown", Exit.ENTRY)


def test_scripts_are_told_frozen_and_never_that_the_run_goes_on() -> None:
    told = frozen().snapshot

    answer = status_json(told)

    assert (answer["verdict"], answer["health"]) == ("frozen", "unknown")
    assert answer["alive"] is not False
    assert " FROZEN " in status_lines(told)[0]
    assert outcome.judge(told, "stepping").outcome == "link"


def test_a_link_that_is_lost_otherwise_is_still_a_lost_link() -> None:
    story = Story().up()
    story.launched()

    assert story.down("link_timeout").snapshot.verdict is Verdict.LINK_LOST
