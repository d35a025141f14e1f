"""Every format reads its own lines and nobody else's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.state.formatrules import FIELDS, Format, FormatError, Scope, is_candidate, parse_number
from console.state.formats import FORMATS, LITERALS, find_format
from console.state.lines import LineSplitter
from console.state.metrics import Kind, Parser, Sample
from console.state.prefix import skip_prefix

SAMPLES = [(fmt, line, expected) for fmt in FORMATS for line, expected in fmt.samples]
REFUSED = [(fmt, line) for fmt in FORMATS for line in fmt.refuses]
NOT_STEPS = [
    "W0211 07:15:09.551000 4121 torch/distributed/run.py:774] Setting OMP_NUM_THREADS to be 1 in default",
    "W0211 07:15:09.551000 158 torch/_dynamo/convert_frame.py:1551] [4/8] torch._dynamo hit config.recompile_limit (8)",
    "(EngineCore_0 pid=77) INFO 02-11 07:15:09 [loggers.py:127] Engine 000: Avg generation throughput: 91.2 tokens/s",
    "Fetching 12 files: 100%|██████████| 12/12 [00:02<00:00,  5.10it/s]",
    "100%|██████████| 12/12 [00:02<00:00,  5.10it/s]",
    "100%|██████████| 51200/51200 [00:09<00:00, 5210.88it/s]",
    "  0%|          | 0/2604 [00:00<?, ?it/s]",
    "| N/A   38C    P0             402W /  700W |   71200MiB / 143771MiB |     99%      Default |",
    "INFO: early stopping: best step 900, best loss 1.31 (patience 2)",
    "step 12 of the installation: done",
    "loss_fn=cross_entropy step_size=10 iterations=3",
    "  warnings.warn('step 3 | loss 1.0')",
    "config: {'steps': 1000, 'loss': 'kl', 'lr': 0.1}",
    "Namespace(lr=0.0006, max_steps=60000, log_interval=10, seq_len=4096)",
    "total_loss is computed every 10 steps",
    "Epoch 3",
    "nohup: appending output to 'nohup.out'",
]


def samples_of(text: str, format_name: str = "auto") -> list[Sample]:
    parser = Parser(format_name)
    lines = LineSplitter().feed(text.encode() + b"\n", 0, 1.0)
    return [sample for line in lines for sample in parser.feed(line)]


@pytest.mark.parametrize(("fmt", "line", "expected"), SAMPLES)
@pytest.mark.parametrize("chosen", ["auto", "by name"])
def test_format_reads_its_samples(chosen: str, fmt: Format, line: str, expected: dict[str, object]) -> None:
    (sample,) = samples_of(line, "auto" if chosen == "auto" else fmt.name)

    assert {name: getattr(sample, name) for name in expected} == expected
    assert sample.format == fmt.name


@pytest.mark.parametrize(("fmt", "line", "expected"), SAMPLES)
@pytest.mark.parametrize(
    "prefix", ["[rank0]: ", "[2026-02-11 07:15:09] ", "(TrainActor pid=4121) ", "\x1b[32m", "\0\0\0", "\0" * 400, "   "]
)
def test_prefixes_and_colours_change_nothing(prefix: str, fmt: Format, line: str, expected: dict[str, object]) -> None:
    found = samples_of(prefix + line)

    assert [(sample.kind, sample.step, sample.loss) for sample in found] == [
        (sample.kind, sample.step, sample.loss) for sample in samples_of(line)
    ]


@pytest.mark.parametrize(("fmt", "line"), REFUSED)
def test_format_refuses_what_only_looks_like_a_step(fmt: Format, line: str) -> None:
    for name in ("auto", fmt.name):
        assert not [sample for sample in samples_of(line, name) if sample.kind in (Kind.STEP, Kind.EVAL)]


@pytest.mark.parametrize("line", NOT_STEPS)
def test_other_lines_are_never_steps(line: str) -> None:
    assert not [sample for sample in samples_of(line) if sample.kind in (Kind.STEP, Kind.EVAL)]


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
def test_table_is_consistent(fmt: Format) -> None:
    assert set(fmt.aliases.values()) <= FIELDS
    assert fmt.samples
    assert all(rule.pairs or "rest" not in rule.head.compiled().groupindex for rule in fmt.rules)
    assert all(any(literal in line for literal in fmt.literals) for line, _ in fmt.samples)


def test_names_are_unique() -> None:
    assert len({fmt.name for fmt in FORMATS}) == len(FORMATS)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234", 1234.0),
        ("21.5K", 21500.0),
        ("1.23kit", 1230.0),
        ("2M", 2e6),
        ("2.143e+04", 21430.0),
        ("-0.5", -0.5),
        ("3.482117E+00", 3.482117),
        (".5", 0.5),
        ("1,23", None),
        ("", None),
        ("K", None),
        ("12GB", None),
        ("1_000", None),
        ("0x10", None),
    ],
)
def test_numbers_are_read_as_trainers_write_them(text: str, value: float | None) -> None:
    assert parse_number(text) == value


@given(st.text(max_size=60))
def test_no_text_makes_a_number_or_a_prefix_raise(text: str) -> None:
    parse_number(text)
    start, _ = skip_prefix(text)

    assert 0 <= start <= len(text)


def test_prefix_names_the_rank() -> None:
    assert skip_prefix("[rank3]: step 1") == (9, "3")


def test_user_regex_reads_its_groups() -> None:
    pattern = (
        r"it=(?P<step>\d+)/(?P<total>[\d,]+) .*L=(?P<loss>\S+) v=(?P<tok_s>\S+) "
        r"q=(?P<queue>\d+)/(?P<depth>\d+) x=(?P<temp>\S+)"
    )

    (sample,) = samples_of("run: it=40/1,000 L=1.5 v=21.5K q=3/16 x=0.7", pattern)

    assert (sample.step, sample.total_steps, sample.loss, sample.tok_s) == (40, 1000, 1.5, 21500.0)
    assert (sample.queue_min, sample.queue_max, sample.extra) == (3.0, 16.0, {"temp": 0.7})
    assert (sample.format, sample.scope) == ("regex", Scope.GLOBAL)


def test_user_regex_whose_group_holds_no_number_gives_no_step() -> None:
    assert samples_of("it=abc", r"it=(?P<step>\w+)") == []


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("dflsh", 'did you mean "dflash"'),
        (r"(?P<step>\d+", "not valid"),
        (r"(?P<loss>\d+)", "needs a group"),
        (r"(?P<step>\d*)", "matches an empty line"),
        (r"step (\d+)", r"as a regular expression it needs a group \(\?P<step>"),
        ("step (", r"as a regular expression it needs a group \(\?P<step>"),
        ("", "unknown log format"),
    ],
)
def test_unusable_format_is_refused_with_advice(pattern: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        find_format(pattern)


def test_one_pass_over_all_literals_finds_the_formats_that_each_alone_would_take() -> None:
    texts = [line for _, line, _ in SAMPLES]
    assert len(texts) > 50

    for text in (*texts, "", "INFO worker 3: prefetched batch", "step=" * 3):
        assert LITERALS.candidates(text) == [fmt for fmt in FORMATS if is_candidate(fmt, text)], text
