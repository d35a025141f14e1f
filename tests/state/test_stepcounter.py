"""Every training step is told once: bars are told apart, and what other ranks say once more is passed by."""

from __future__ import annotations

import pytest

from console.state.lines import LineSplitter
from console.state.metrics import Parser
from console.state.stepcounter import MOST_COPIES
from tests.state.test_metrics import TITAN, bar, feed, raw, steps


def test_total_of_the_header_holds_for_the_steps() -> None:
    (_, sample) = feed(Parser(), "targets: a | drafters: b | total_steps=700", "step 5 | loss 2.5 | tok/s 9")

    assert sample.total_steps == 700


def test_copy_of_a_step_by_another_rank_is_passed_by() -> None:
    lines = [f"[rank{rank}]:{TITAN.format(step)}" for step in (1, 2) for rank in (0, 1)]

    assert steps(feed(Parser(), *lines)) == [1, 2]


def test_copy_of_step_zero_by_another_rank_is_passed_by_like_any_other() -> None:
    lines = [f"[rank{rank}]:{TITAN.format(step)}" for step in (0, 1) for rank in (0, 1, 2)]

    assert steps(feed(Parser(), *lines)) == [0, 1]


def test_blocks_of_ranks_that_write_into_pipes_are_one_run_that_never_steps_back() -> None:
    blocks = [range(1, 5), range(5, 9), range(3, 5)]  # the last: back to a checkpoint
    lines = [f"[rank{rank}]:{TITAN.format(step)}" for block in blocks for rank in (0, 1, 2) for step in block]

    assert steps(feed(Parser(), *lines)) == [1, 2, 3, 4, 5, 6, 7, 8, 3, 4]


def test_another_rank_is_followed_once_the_one_that_was_is_gone() -> None:
    lines = [f"[rank7]:{TITAN.format(900)}", *(f"[rank3]:{TITAN.format(step)}" for step in range(1, 600))]

    assert steps(feed(Parser(), *lines))[:3] == [900, MOST_COPIES + 1, MOST_COPIES + 2]


def test_bar_gives_each_step_once() -> None:
    parser = Parser()

    samples = feed(parser, bar(10, 900), bar(10, 900), bar(11, 900))

    assert steps(samples) == [10, 11]
    assert samples[0].total_steps == 900


def test_live_bar_is_read_before_its_line_ends_and_not_again() -> None:
    splitter, parser = LineSplitter(), Parser()
    found = []
    place = 0
    for data in (f"\r{bar(10, 900)}".encode(), f"\r{bar(11, 900)}".encode(), b"\n"):
        for line in splitter.feed(data, place, 1.0):
            found += parser.feed(line)
        place += len(data)
        live = splitter.live()
        found += parser.feed(live) if live is not None else []

    assert steps(found) == [10, 11]


def test_record_without_a_step_takes_that_of_the_bar() -> None:
    parser = Parser()

    samples = feed(parser, bar(10, 900), "{'loss': 1.5, 'learning_rate': 3e-05, 'epoch': 0.1}")

    assert (samples[1].step, samples[1].loss) == (10, 1.5)


def test_bar_of_an_evaluation_is_not_the_training() -> None:
    parser = Parser()

    samples = feed(
        parser,
        bar(10, 900),
        "{'loss': 1.5, 'epoch': 0.1}",
        bar(60, 125),
        bar(61, 125),
        "{'eval_loss': 1.25}",
        bar(11, 900),
    )

    assert steps(samples) == [10, 10, 11]


def test_total_that_the_log_states_tells_the_bar() -> None:
    samples = feed(Parser(), "  Total optimization steps = 12", bar(60, 125), bar(3, 12))

    assert steps(samples) == [3]


@pytest.mark.parametrize("line", [bar(3, 12), bar(600, 90_000, "512.00it/s"), bar(0, 900)])
def test_bar_that_may_be_anything_is_no_step(line: str) -> None:
    assert feed(Parser(), line) == []


def test_epoch_bar_of_torchtune_tells_no_end_of_the_run() -> None:
    (first,) = Parser().feed(raw("1|999|Loss: 0.5: 100%|█████████▉| 999/1000 [05:00<00:00,  3.33it/s]"))
    (later,) = Parser().feed(raw("2|1250|Loss: 0.5:  25%|██▌       | 250/1000 [05:00<15:00,  1.20s/it]"))

    assert (first.step, first.total_steps) == (999, None)
    assert (later.step, later.total_steps) == (1250, None)
