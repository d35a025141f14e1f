"""What is said when the link is back: only what can be known."""

from __future__ import annotations

from console.model import LinkState, Snapshot
from console.state.logbuffer import LogBuffer
from console.ui.present.linkback import LinkWatch
from tests.ui import fixtures
from tests.ui.fixtures import raw, replace

LOST = fixtures.SCENES["link"]().snapshot


def back(after_s: float, *, caught_up: bool, **changes: object) -> Snapshot:
    at = LOST.at + after_s
    log = replace(LOST.log, caught_up=caught_up, at=at)
    return replace(LOST, at=at, link=fixtures.LINK, log=log, **changes)


def test_lines_lost_are_counted_only_when_the_log_was_read_up_to_its_end() -> None:
    watch, log = LinkWatch(), LogBuffer()
    assert watch.see(LOST, log) is None
    assert watch.see(back(30, caught_up=False), log) is None

    log.append([raw("step 1")])
    said = watch.see(back(31, caught_up=True), log)

    assert said == "link back after 1m 12s, 0 lines lost"
    assert watch.see(back(32, caught_up=True), log) is None


def test_what_was_left_out_is_said() -> None:
    watch, log = LinkWatch(), LogBuffer()
    log.gap(1 << 20, 0.0)  # an old one, from before
    watch.see(LOST, log)
    watch.see(back(1, caught_up=False), log)

    log.gap(3 << 20, 0.0)

    assert (watch.see(back(2, caught_up=True), log) or "").endswith(", 3.0 MiB of the log skipped")


def test_nothing_is_claimed_of_a_log_that_does_not_catch_up_or_is_another_runs() -> None:
    for changes in ({"caught_up": False}, {"caught_up": True, "run": replace(fixtures.RUN, id="r-other")}):
        watch, log = LinkWatch(), LogBuffer()
        watch.see(LOST, log)
        watch.see(back(1, caught_up=False), log)
        said = watch.see(back(9, **changes), log)

        assert said == "link back after 43 s"


def test_a_link_that_is_lost_again_before_anything_was_said_was_away_all_the_time() -> None:
    watch, log = LinkWatch(), LogBuffer()
    watch.see(LOST, log)
    watch.see(back(1, caught_up=False), log)
    again = replace(LOST, at=LOST.at + 5, link=replace(LOST.link, last_word_at=LOST.at + 2))
    watch.see(again, log)

    watch.see(back(18, caught_up=False), log)

    assert watch.see(back(19, caught_up=True), log) == "link back after 1m 00s, 0 lines lost"


def test_a_first_connection_is_no_return() -> None:
    watch, log = LinkWatch(), LogBuffer()
    connecting = replace(LOST, link=replace(LOST.link, state=LinkState.CONNECTING, last_word_at=None))

    assert watch.see(connecting, log) is None
    assert watch.see(back(1, caught_up=True), log) is None
