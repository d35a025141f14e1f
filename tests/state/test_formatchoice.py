"""A log's format is found by its step lines, kept, and changed only when the log has turned to another."""

from __future__ import annotations

from console.state.metrics import Parser
from tests.state.test_metrics import DFLASH, TITAN, feed, steps


def test_format_is_kept_once_found() -> None:
    parser = Parser()

    samples = feed(parser, DFLASH.format(1), DFLASH.format(2), TITAN.format(7), DFLASH.format(3))

    assert steps(samples) == [1, 2, 3]
    assert parser.format == "dflash"


def test_format_changes_when_the_log_has_turned_to_another() -> None:
    parser = Parser()

    samples = feed(parser, DFLASH.format(1), *(TITAN.format(n) for n in range(10, 15)))

    assert steps(samples) == [1, 12, 13, 14]
    assert parser.format == "torchtitan"


def test_named_format_reads_nothing_else() -> None:
    parser = Parser("megatron")

    assert feed(parser, DFLASH.format(1), *(TITAN.format(n) for n in range(5))) == []
    assert parser.understood.format == "megatron"


def test_unknown_log_has_no_format() -> None:
    parser = Parser()
    feed(parser, "loading", "warming up", "done")

    assert (parser.understood.lines, parser.understood.matched, parser.format) == (3, 0, None)
