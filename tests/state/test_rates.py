"""Tokens/s that no line states: each trainer's rule with numbers worked out by hand, and records of several lines."""

from __future__ import annotations

import pytest

from console.state.formatrules import parse_duration
from console.state.lines import LineSplitter, RawLine
from console.state.metrics import Kind, Parser, Sample, Scope


def feed(parser: Parser, *texts: str, every_s: float = 0.0, live: bool = False) -> list[Sample]:
    found: list[Sample] = []
    splitter, place = LineSplitter(), 0
    for number, text in enumerate(texts):
        data = text.encode() + b"\n"
        for line in splitter.feed(data, place, number * every_s):
            found += parser.feed(line, live=live)
        place += len(data)
    return found


@pytest.mark.parametrize(
    ("lines", "tokens_per_step", "rate"),
    [
        # 16 sequences of 4,096 tokens in 2 s
        (
            [
                "  seq_length ................... 4096",
                (
                    " iteration       40/    9000 | consumed samples: 640 | elapsed time per iteration (ms): 2000.0 | "
                    "global batch size:    16 | lm loss: 6.0E+00 |"
                ),
            ],
            None,
            32_768.0,
        ),
        # 32,768 tokens in 512 ms
        (["tokens per iteration will be: 32,768", "iter 70: loss 5.1, time 512.00ms, mfu 31.07%"], None, 64_000.0),
        # 7.5 samples of 2,048 tokens a second
        (
            ["Namespace(lr=0.1, seq_len=2048)", "steps: 64 loss: 2.0 iter time (s): 1.5 samples/sec: 7.500"],
            None,
            15_360.0,
        ),
        # 100 steps of 1,000 tokens in 50 s, by the line's own Elapsed
        (
            [
                "Epoch 0 | Step 100/900 | Loss 2.0 | LR 1e-4 | Elapsed 99.0s",
                "Epoch 0 | Step 200/900 | Loss 2.0 | LR 1e-4 | Elapsed 50.0s",
            ],
            1000,
            2000.0,
        ),
        # 10 steps of 1,000 tokens in 2 s of training, whatever validation took
        (
            [
                "step:100/900 train_time:30000ms step_avg:300.00ms",
                "step:105/900 val_loss:3.5 train_time:31000ms step_avg:295.00ms",
                "step:110/900 train_time:32000ms step_avg:290.00ms",
            ],
            1000,
            5000.0,
        ),
        # 4 it/s of 500 tokens
        (["Epoch 0:   6%|6| 64/1000 [00:32<07:48,  4.00it/s, v_num=1, train_loss=2.0]"], 500, 2000.0),
        # 120,000 tokens in 60 s
        (["step:12 - actor/pg_loss:0.01 - perf/total_num_tokens:120000 - perf/time_per_step:60.0"], None, 2000.0),
    ],
)
def test_rate_is_derived_by_the_trainers_rule(
    lines: list[str], tokens_per_step: int | None, rate: float | None
) -> None:
    last = feed(Parser(tokens_per_step=tokens_per_step), *lines)[-1]

    assert last.tok_s == pytest.approx(rate)
    assert last.scope is Scope.DERIVED


def test_growth_of_the_token_total_over_time_is_the_rate() -> None:
    lines = [f"{{'loss': 1.5, 'num_tokens': {n * 8000}.0, 'epoch': 0.1}}" for n in range(1, 6)]

    samples = feed(Parser(), *lines, every_s=4.0, live=True)

    # 8,000 tokens every 4 s; the first line's own time is not known
    assert [sample.tok_s for sample in samples][-2:] == [2000.0, 2000.0]


def test_history_has_no_times_and_so_no_rate_from_a_total() -> None:
    lines = [f"{{'loss': 1.5, 'num_tokens': {n * 8000}.0, 'epoch': 0.1}}" for n in range(1, 6)]

    assert {sample.tok_s for sample in feed(Parser(), *lines, every_s=4.0)} == {None}


def test_stated_rate_of_a_device_is_not_replaced() -> None:
    line = "step:12 - perf/total_num_tokens:120000 - perf/time_per_step:60.0 - perf/throughput:250.0"

    (sample,) = feed(Parser(), line)

    assert (sample.tok_s, sample.scope) == (250.0, Scope.PER_DEVICE)


def test_further_lines_of_a_record_add_to_its_step() -> None:
    samples = feed(
        Parser(),
        "[batch=64/900]:",
        "\t Train loss/train/total: 2.5",
        "\t Train throughput/tokens_per_sec: 18000.5",
        "[Eval batch=1/4] Eval on c4 data:",
        "\t Eval metrics/eval/LanguageCrossEntropy: 2.75",
    )

    assert [(sample.kind, sample.step, sample.continues) for sample in samples] == [
        (Kind.STEP, 64, False),
        (Kind.OTHER, 64, True),
        (Kind.OTHER, 64, True),
        (Kind.EVAL, None, False),
        (Kind.EVAL, None, True),
    ]
    assert (samples[1].loss, samples[2].tok_s, samples[2].scope) == (2.5, 18000.5, Scope.GLOBAL)


def test_step_of_a_record_is_told_before_its_last_line_has_come() -> None:
    assert [sample.step for sample in feed(Parser(), "[step=64/900,epoch=0]")] == [64]


def test_line_of_another_kind_ends_a_record() -> None:
    samples = feed(Parser(), "[step=64/900,epoch=0]", "saved", "    train/CE loss=2.5")

    assert [sample.loss for sample in samples] == [None]


def test_wrapped_record_is_told_when_its_step_has_come() -> None:
    samples = feed(
        Parser(),
        "[22:41:07] INFO     train/loss=2.500, lr=5.00e-04,      logger.py:88",
        "                    profile/tokens_per_s=2.00e+04,",
        "                    global_step=640",
        "[22:41:08] INFO     train/loss=2.250, lr=5.00e-04, global_step=641",
    )

    assert [(sample.step, sample.loss, sample.tok_s, sample.lr) for sample in samples] == [
        (640, 2.5, 20_000.0, 5e-4),
        (641, 2.25, None, 5e-4),
    ]


def test_counter_of_each_epoch_becomes_the_step_of_the_run() -> None:
    lines = [
        f"Epoch {epoch}:  50%|5| {n}/1000 [01:00<01:00,  2.00it/s, train_loss=2.0]" for epoch, n in ((0, 999), (1, 5))
    ]

    assert [(sample.step, sample.stated_step) for sample in feed(Parser(), *lines)] == [(999, 999), (1005, 5)]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("16:42", 1002.0),
        ("5:10:22", 18622.0),
        ("29:33:19", 106399.0),
        ("1 day, 2:03:04", 93784.0),
        ("3h12m", 11520.0),
        ("1d 2h", 93600.0),
        ("45s", 45.0),
        ("?", None),
        ("", None),
        ("12", None),
        ("soon", None),
    ],
)
def test_time_left_is_read_as_trainers_write_it(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


def test_line_that_never_ends_its_record_is_bounded() -> None:
    parser = Parser()
    feed(parser, "[step=1/9,epoch=0]", *["    a=1"] * 600)

    assert not parser.in_record
    assert parser.feed(RawLine(text="    a=1", offset=0, end_offset=8, at=0.0), live=False) == []
