"""Lines become samples: formats are found and kept, bars are told apart, rates are derived by one rule only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.state.formats import FORMATS
from console.state.lines import LineSplitter, RawLine
from console.state.metrics import CheckpointState, Kind, LineKind, Parser, Sample, Scope, classify

DFLASH = "step {}/900 | loss 2.5 | tok/s 20,000 | hs_queue min_ready=4 max_depth=16"
TITAN = "[titan] 2026-02-11 07:15:09,551 - root - INFO - step: {}  loss:  4.5  grad_norm:  0.75  tps: 6,512"
KNOWN_LINES = [line for fmt in FORMATS for line in [*(sample for sample, _ in fmt.samples), *fmt.refuses]]


def raw(text: str, at: float = 1.0, *, partial: bool = False, cr: bool = False, offset: int = 0) -> RawLine:
    return RawLine(text=text, offset=offset, end_offset=offset + len(text) + 1, at=at, partial=partial, cr=cr)


def bar(step: int, total: int, rate: str = "2.00s/it") -> str:
    return f" {100 * step // total:2d}%|███▏      | {step}/{total} [10:20<23:00,  {rate}]"


def feed(parser: Parser, *texts: str) -> list[Sample]:
    return [sample for text in texts for sample in parser.feed(raw(text))]


def steps(samples: Iterable[Sample]) -> list[int | None]:
    return [sample.step for sample in samples if sample.kind is Kind.STEP]


def parse_bytes(data: bytes, cuts: Iterable[int] = ()) -> list[Sample]:
    splitter, parser = LineSplitter(), Parser()
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    found = []
    for start, end in pairwise(places):
        for line in splitter.feed(data[start:end], start, 1.0):
            found += parser.feed(line)
    return found


# Any input


known_bytes = st.lists(
    st.one_of(
        st.binary(max_size=20), st.sampled_from([b"\n", b"\r", b"\r\n", *(line.encode() for line in KNOWN_LINES)])
    ),
    max_size=15,
).map(b"".join)


@given(known_bytes, st.lists(st.integers(0, 5000), max_size=8))
def test_any_chunking_gives_the_same_samples(data: bytes, cuts: list[int]) -> None:
    assert parse_bytes(data, cuts) == parse_bytes(data)


@given(st.lists(st.one_of(st.sampled_from(KNOWN_LINES), st.text(max_size=80)), max_size=12))
def test_no_line_raises_and_every_number_is_finite(texts: list[str]) -> None:
    for sample in feed(Parser(tokens_per_step=1024), *texts):
        numbers = [
            sample.loss,
            sample.tok_s,
            sample.lr,
            sample.grad_norm,
            sample.queue_min,
            sample.queue_max,
            sample.step_s,
        ]
        assert all(number is None or math.isfinite(number) for number in [*numbers, *sample.extra.values()])
        assert (sample.tok_s is None) or (sample.scope is not None)


@given(st.text(max_size=120))
def test_no_text_makes_the_gutter_raise(text: str) -> None:
    assert classify(text) in LineKind


# Formats


def test_understood_counts_lines_not_states_of_a_bar() -> None:
    parser = Parser()
    for line in LineSplitter().feed(f"hello\n{DFLASH.format(1)}\n\r 1/9\r 2/9\n".encode(), 0, 1.0):
        parser.feed(line)

    understood = parser.understood
    assert (understood.lines, understood.matched, understood.steps, understood.format) == (3, 1, 1, "dflash")


def test_states_of_a_bar_count_as_steps_but_not_as_lines() -> None:
    parser = Parser()
    for line in LineSplitter().feed(f"\r{bar(1, 900)}\r{bar(2, 900)}\r{bar(3, 900)}\n".encode(), 0, 1.0):
        parser.feed(line)

    understood = parser.understood
    assert (understood.lines, understood.matched, understood.steps) == (1, 1, 3)


def test_number_with_an_unknown_unit_is_no_extra_field() -> None:
    (sample,) = feed(Parser(), TITAN.format(3) + "  memory: 44.10GiB(55.75%)  list: 1,2345  temp: 61.5  mfu: 41.5%")

    assert sample.extra == {"temp": 61.5, "mfu": 41.5}


def test_unfinished_line_is_not_read() -> None:
    parser = Parser()

    assert parser.feed(raw("step 1842", partial=True)) == []
    assert parser.feed(raw(DFLASH.format(1842), partial=True)) == []


def test_workers_line_does_not_touch_the_step() -> None:
    samples = feed(Parser(), DFLASH.format(10), "[drafter 6] step 99 local_loss 1.25 7.2K tok/s", DFLASH.format(11))

    assert steps(samples) == [10, 11]
    assert samples[1].scope is Scope.RANK
    assert samples[1].tok_s is None
    assert samples[1].extra == {"worker": 6.0, "worker_step": 99.0, "local_loss": 1.25, "worker_tok_s": 7200.0}


def test_counter_that_jumps_back_is_reported_as_it_is() -> None:
    assert steps(feed(Parser(), DFLASH.format(500), DFLASH.format(300))) == [500, 300]


@pytest.mark.parametrize(("value", "state"), [("nan", "nan"), ("NaN", "nan"), ("-inf", "inf"), ("2.5", None)])
def test_loss_that_is_no_number_is_named(value: str, state: str | None) -> None:
    (sample,) = feed(Parser(), f"step 7 | loss {value} | tok/s 20,000")

    assert (sample.loss_state, sample.loss) == (state, None if state else 2.5)


# Progress bars


def test_half_a_bar_is_not_read() -> None:
    assert Parser().feed(raw(bar(10, 900)[:-4], partial=True)) == []


# Rates


def test_megatron_rate_is_batch_times_length_over_time() -> None:
    line = (
        " iteration       40/    9000 | consumed samples:  2560 | elapsed time per iteration (ms): 800.0 | "
        "learning rate: "
        "4.0E-05 | global batch size:    64 | lm loss: 6.0E+00 | number of nan iterations:   0 |"
    )
    samples = feed(Parser(), line, "  seq_length ...................... 4096", line.replace(" 40/", " 41/"))

    assert (samples[0].tok_s, samples[0].scope) == (None, None)
    # 64 sequences x 4,096 tokens / 0.8 s
    assert (samples[2].tok_s, samples[2].scope) == (327_680.0, Scope.DERIVED)


def test_bar_rate_is_tokens_per_step_over_its_seconds_per_step() -> None:
    parser = Parser(tokens_per_step=65_536)

    slow, quick = feed(parser, bar(10, 900, "2.00s/it"), bar(11, 900, "4.00it/s"))

    assert (slow.tok_s, quick.tok_s) == (32_768.0, 262_144.0)
    assert slow.scope is Scope.DERIVED


def test_stated_rate_is_never_replaced_by_a_derived_one() -> None:
    (sample,) = feed(Parser(tokens_per_step=1), DFLASH.format(1))

    assert (sample.tok_s, sample.scope) == (20_000.0, Scope.GLOBAL)


def arriving(
    lines: Iterable[tuple[int, float]], *, live: Callable[[int], bool] = lambda step: True
) -> list[float | None]:
    parser = Parser(r"s=(?P<step>\d+)", tokens_per_step=1000)
    return [sample.tok_s for step, at in lines for sample in parser.feed(raw(f"s={step}", at), live=live(step))]


def test_rate_from_arrivals_waits_for_an_interval_that_it_saw_begin() -> None:
    # The first line was there already: when it was written isn't known. 1,000 tokens each 2 s.
    assert arriving([(1, 0.0), (2, 0.5), (3, 2.5), (4, 4.5)]) == [None, None, 500.0, 500.0]


def test_rate_from_arrivals_divides_by_the_steps_between_logged_lines() -> None:
    assert arriving([(10, 0.0), (20, 10.0), (30, 20.0)])[-1] == 1000.0


def test_backlog_tells_nothing_about_the_speed() -> None:
    rates = arriving([(1, 0.0), (2, 1.0), (3, 2.0), (4, 3.0), (5, 4.0), (6, 6.0)], live=lambda step: step > 3)

    assert rates == [None, None, None, None, None, 500.0]


def test_buffered_output_is_divided_by_the_time_between_bursts() -> None:
    # Ten steps come at once every 20 s: 2 s a step.
    lines = [(burst * 10 + n, burst * 20.0 + n / 1000) for burst in range(4) for n in range(10)]

    rates = arriving(lines)

    assert {rate for rate in rates if rate is not None} == {500.0}


def test_restart_of_the_counter_gives_no_rate() -> None:
    assert arriving([(10, 0.0), (11, 2.0), (12, 4.0), (3, 6.0), (4, 8.0)])[3:] == [None, None]


# Checkpoints


@pytest.mark.parametrize(
    ("line", "state", "step"),
    [
        ("Checkpoint saved at step 3000 → /out/a/step_3000 (41.2 GiB, 12.4 s)", CheckpointState.COMPLETED, 3000),
        ("saved checkpoint step_3000 -> /out/a/step_3000 (3.2s)", CheckpointState.COMPLETED, 3000),
        ("saving checkpoint at iteration    3000 to /ckpt/a in torch_dist format", CheckpointState.STARTED, 3000),
        ("  successfully saved checkpoint from iteration    3000 to /ckpt/a", CheckpointState.COMPLETED, 3000),
        ("[INFO] Saving model checkpoint to ./out/checkpoint-300", CheckpointState.STARTED, 300),
        ("Saving checkpoint to '/out/x/step-00000300'", CheckpointState.STARTED, 300),
        ("Writing checkpoint at step 700", CheckpointState.STARTED, 700),
        ("Saved checkpoint /ckpt/checkpoint2.pt (epoch 2 @ 900 updates, score 3.9)", CheckpointState.COMPLETED, 900),
        ("saving checkpoint to out-small", CheckpointState.STARTED, None),
        ("Saving checkpoint to /out/spec/checkpoints/0", CheckpointState.STARTED, None),
    ],
)
def test_checkpoint_line_tells_begun_from_done(line: str, state: CheckpointState, step: int | None) -> None:
    (sample,) = feed(Parser(), line)

    assert (sample.kind, sample.checkpoint, sample.checkpoint_step) == (Kind.CKPT, state, step)
    assert classify(line) is LineKind.CHECKPOINT


@pytest.mark.parametrize(
    "line",
    [
        "successfully loaded checkpoint from /ckpt/a at iteration 900",
        "Loading checkpoint shards:  42%|████▏     | 5/12 [00:48<01:06,  9.51s/it]",
        "Failed to save checkpoint at step 900",
        "Error while saving checkpoint at step 900",
        "Checkpoint will be saved every 500 steps",
        'print(f"saving checkpoint to {out_dir}")',
        '  File "/a/checkpointing.py", line 12, in save_checkpoint',
        "resuming from the checkpoint saved at step 900",
        "Deleting older checkpoint [/out/checkpoint-100] due to args.save_total_limit",
        "no checkpoint saved yet",
    ],
)
def test_line_about_something_else_is_no_checkpoint(line: str) -> None:
    assert feed(Parser(), line) == []
    assert classify(line) is not LineKind.CHECKPOINT


def test_torchtitan_checkpoint_is_that_of_the_last_step() -> None:
    samples = feed(
        Parser(),
        TITAN.format(500),
        "[titan] 2026-02-11 07:15:10,000 - root - INFO - Saving the checkpoint (or staging if async is enabled).",
        "[titan] 2026-02-11 07:15:22,000 - root - INFO - Finished saving the checkpoint in 12.00 seconds.",
    )

    assert [(sample.checkpoint, sample.checkpoint_step) for sample in samples[1:]] == [
        (CheckpointState.STARTED, 500),
        (CheckpointState.COMPLETED, 500),
    ]


def test_step_line_that_tells_of_a_checkpoint_gives_both() -> None:
    samples = feed(
        Parser(),
        "step 1999/9000 | loss 2.5000 | 21000 tok/s",
        "step 2000/9000 | loss 2.4000 | 21000 tok/s | ckpt saved",
    )

    assert [(sample.kind, sample.step, sample.loss) for sample in samples if sample.kind is Kind.STEP] == [
        (Kind.STEP, 1999, 2.5),
        (Kind.STEP, 2000, 2.4),
    ]
    assert [sample.checkpoint for sample in samples if sample.kind is Kind.CKPT] == [CheckpointState.COMPLETED]


def test_record_glued_to_a_bar_gives_both() -> None:
    data = f"\r{bar(10, 900)}[INFO|trainer.py:9] 2026-02-11 07:15:09 >> Saving model checkpoint to /o/checkpoint-10\n"

    samples = parse_bytes(data.encode())

    assert [(sample.kind, sample.step) for sample in samples] == [(Kind.STEP, 10), (Kind.CKPT, 10)]


# The gutter


@pytest.mark.parametrize(
    "line",
    [
        "Traceback (most recent call last):",
        "RuntimeError: CUDA error: device-side assert triggered",
        "[rank3]: RuntimeError: target_layer_ids missing",
        "[rank3]:[E211 07:15:09.551 ProcessGroupNCCL.cpp:616] NCCL error: unhandled system error",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "KeyError: 'loss'",
        "KeyboardInterrupt",
        "/root/run.sh: line 12: /venv/bin/python: Permission denied",
        "/root/run.sh: line 3: python9: command not found",
        "bash: line 1: /root/x.sh: No such file or directory",
        "/root/run.sh: line 12: 90112 Killed                  python3 train.py",
        "Killed",
        "Segmentation fault (core dumped)",
        "E0211 07:15:09.551000 4121 torch/distributed/elastic/multiprocessing/api.py:826] failed (exitcode: -9)",
        "F0211 07:15:09.551000 4121 x.cc:1] Check failed",
        "2026-02-11 07:15:09 FATAL no GPU",
        "[2026-02-11 07:15:09,551] [ERROR] [launch.py:325:sigkill_handler] exits with return code = -9",
        "2026-02-11 07:15:09,551 - root - ERROR - lost the store",
        "ERROR: no space left",
        "python3: can't open file '/root/x.py': [Errno 2] No such file or directory",
        "terminate called after throwing an instance of 'c10::Error'",
        "train_dflash_pipeline.py FAILED",
        "[rank4]:[E211 07:15:09.408 ProcessGroupNCCL.cpp:632] [Rank 4] Watchdog caught collective timeout",
        "[E ProcessGroupNCCL.cpp:737] [Rank 1] Watchdog caught collective operation timeout",
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -7)",
        "Failed to initialize NVML: Driver/library version mismatch",
        "Memory cgroup out of memory: Killed process 4121 (python)",
        "wandb: ERROR api_key not configured",
    ],
)
def test_real_errors_are_errors(line: str) -> None:
    assert classify(line) is LineKind.ERROR


@pytest.mark.parametrize(
    "line",
    [
        "step 10 | loss 2.5 | error_rate=0.1 | tok/s 20,000",
        "0 errors, 3 warnings",
        "word error rate: 0.12",
        "error: 0.03",
        "ERROR: 0",
        "errors=0 ERROR_BUDGET=3",
        "CUDA_ERROR_CHECKS=1 NCCL_ASYNC_ERROR_HANDLING=1",
        "    raise ValueError(f'unknown {name}')",
        '  File "/a/errors.py", line 3, in handle_error',
        "on_error=ignore",
        "no error found",
        "killed 3 stragglers",
        "Fault tolerance is on",
        "permission denied is handled by retrying",
        "checking 12 files for corruption: ok",
        "hello",
        "",
    ],
)
def test_word_alone_makes_no_error(line: str) -> None:
    assert classify(line) in (LineKind.PLAIN, LineKind.STEP)


@pytest.mark.parametrize(
    "line",
    [
        "/venv/x.py:12: UserWarning: the given buffer is not writable",
        "W0211 07:15:09.551000 4121 torch/distributed/run.py:774] Setting OMP_NUM_THREADS",
        "[2026-02-11 07:15:09] loop.py:280 WARNING Pool insufficient for dispatch",
        "WARNING: buffer low",
        "[W211 07:15:09.551 socket.cpp:464] [c10d] The server socket has failed to bind to [::]:29500",
        "warning: linker says no",
        "x.py:3: FutureWarning: ValueError: will be raised",
    ],
)
def test_warnings_are_warnings(line: str) -> None:
    assert classify(line) is LineKind.WARNING


@pytest.mark.parametrize("line", [DFLASH.format(3), TITAN.format(3), "[drafter 6] step 99 local_loss 1.25 7.2K tok/s"])
def test_step_lines_are_steps(line: str) -> None:
    assert classify(line) is LineKind.STEP


def test_loading_bar_is_plain() -> None:
    assert classify("Loading checkpoint shards:  42%|████▏     | 5/12 [00:48<01:06,  9.51s/it]") is LineKind.PLAIN
