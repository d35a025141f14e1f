"""What must come out of single lines of each trainer, as `formats` shows them; and of what only looks like one."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.state.formatrules import Kind
from console.state.recognise import Recogniser, Row
from tests.state.trainerlines import LINES, NOTHING, Case

CASES = [(trainer, case) for trainer, cases in LINES.items() for case in cases]

PREFIXES = [
    "[rank1]: ",
    "[default3]:",
    "(TrainActor pid=4121, ip=10.0.0.3) ",
    "  3: ",
    "[1,3]<stdout>:",
    "node12: ",
    "10.20.1.14: ",
    "ip-10-0-3-21: ",
    "gpu-a100-3.cluster.local: ",
    "[0] ",
    "ain_fp8_mx/0 ",
    "trainer-1  | ",
    "Mar  9 22:41:07 node7 python[4121]: ",
    "2026-03-09T22:41:07.004123456Z ",
    "2026-03-09 22:41:07,004 - INFO - ",
    "2026-03-09 22:41:07.004 | INFO     | __main__:main:42 - ",
    "2026-03-09 22:41:07.004 | DEBUG    | pretrain:<module>:42 - ",
    "[2026-03-09 22:41:07,004][__main__][INFO] - ",
    "[2026-03-09 22:41:07,004][pretrain][INFO] - ",
    "2026-03-09T22:41:07.004123456Z stdout F ",
    "[pod/trainer-0/main] ",
    "[0]: ",
    "[1,mpirank:0,algo-1]<stdout>:",
    "2026-03-09 22:41:07,004 - train - INFO - ",
    "2026-03-09 22:41:07,004 INFO train_dflash_pipeline: ",
    "INFO:root:",
    "INFO 03-09 22:41:07 ",
    "\x1b[38;5;12m",
    "\0\0\0",
    "\ufffd",
    "\ufeff",
]
STAMPS_AND_NAMES = [
    "Mar  9 22:41:07 ",
    "Mon Mar  9 22:41:07 2026 ",
    "[Mon Mar  9 22:41:07 2026] ",
    "09-03-2026 22:41:07 ",
    "2026-03-09 22:41:07 UTC ",
    "INFO 2026-03-09 22:41:07,004 trainer.py:120] ",
    "2026-03-09 22:41:07,004 | INFO | pretrain | ",
    "[2026-03-09 22:41:07,004][INFO][pretrain] ",
    "[rank 0] ",
    "(rank 0) ",
    "Rank 0 | ",
    "[R0] ",
    "[GPU 0] ",
    "[0]:",
    "llama3-trainer-1  | ",
    "trainer  | ",
    "algo-1-x7k2p  | ",
    "[trainer] ",
    "[my-sft-job-1] ",
]
RECORDS = [
    "step 640/9000 | loss 2.0625 | tok/s 18,000",
    "{'loss': 2.0625, 'grad_norm': 0.5, 'learning_rate': 3e-05, 'epoch': 0.2}",
    "iter 640: loss 2.0625, time 250.00ms, mfu 31.07%",
    "step 640: {'train/loss': 2.0625, 'train/acc': 0.41, 'train/lr': 0.0003}",
    " iteration  640/ 9000 | consumed samples: 40960 | elapsed time per iteration (ms): 790.0 | lm loss: 2.0625E+00 |",
    "completed step: 640, seconds: 2.5, TFLOP/s/device: 150.1, Tokens/s/device: 3276.8, loss: 2.0625",
]
OWN_STARTS = ("=", "O", "\\", '"', "\r")
"""Banners are known by how they begin."""


def rows(data: bytes, *cuts: int) -> list[Row]:
    recogniser = Recogniser()
    found: list[Row] = []
    place = 0
    for cut in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        found += recogniser.feed(data[place:cut])
        place = cut
    return [*found, *recogniser.end()]


def said(row: Row) -> Case:
    return Case("", str(row.kind), row.step, row.loss, row.tok_s)


@pytest.mark.parametrize(("trainer", "case"), CASES)
def test_line_says_what_the_trainer_meant(trainer: str, case: Case) -> None:
    found = rows(case.line.encode() + b"\n")

    assert [said(row) for row in found] == [case._replace(line="")]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_what_stands_before_a_record_changes_nothing(prefix: str) -> None:
    plain = [case for _, case in CASES if "\n" not in case.line and case.line.lstrip()[:1] not in OWN_STARTS]

    wrong = [
        case
        for case in plain
        if [said(row) for row in rows(f"{prefix}{case.line}\r\n".encode())] != [case._replace(line="")]
    ]

    assert wrong == []


LABELS = [
    "0: ",
    "[rank0]: ",
    "[default0]:",
    "trainer-0  | ",
    "(Actor pid=77) ",
    "2026-03-09T22:41:07.{}4123456Z stdout F ",
]


@pytest.mark.parametrize("label", LABELS)
def test_label_before_every_line_of_a_record_changes_nothing(label: str) -> None:
    records = [case for _, case in CASES if "\n" in case.line]

    wrong = [
        case
        for case in records
        if [
            said(row)
            for row in rows("\n".join(label.format(n) + x for n, x in enumerate(case.line.split("\n"))).encode())
        ]
        != [case._replace(line="")]
    ]

    assert len(records) > 8
    assert wrong == []


def test_other_ranks_line_is_no_part_of_a_record() -> None:
    found = rows(b"[rank0]: [step=8/900,epoch=0]\n[rank1]:     train/CE loss=2.5\n    train/PPL=9\n")

    assert [row.kind for row in found] == [Kind.STEP, Kind.OTHER, Kind.OTHER]
    assert [row.loss for row in found] == [None, None, None]


@pytest.mark.parametrize("record", RECORDS)
def test_stamps_and_names_before_a_record_change_nothing(record: str) -> None:
    (plain,) = rows(record.encode())

    wrong = [
        prefix for prefix in STAMPS_AND_NAMES if list(map(said, rows(f"{prefix}{record}".encode()))) != [said(plain)]
    ]

    assert plain.loss == 2.0625
    assert wrong == []


@pytest.mark.parametrize("word", ["train: ", "Training: ", "[train] "])
def test_word_train_before_a_step_changes_nothing(word: str) -> None:
    (row,) = rows(f"{word}step 640/9000 | loss 2.0625 | tok/s 18,000".encode())

    assert (row.kind, row.step, row.loss, row.tok_s) == (Kind.STEP, 640, 2.0625, 18000.0)


WRAPPERS: list[Callable[[str], object]] = [
    lambda line: {"log": line + "\n", "stream": "stdout", "time": "2026-03-09T22:41:07.004123456Z"},
    lambda line: {"asctime": "2026-03-09 22:41:07,004", "levelname": "INFO", "lineno": 42, "message": line},
]
"""A container's log driver, and a JSON logger: the record is the value of a key."""


@pytest.mark.parametrize("wrapped", WRAPPERS)
def test_record_within_json_says_the_same(wrapped: Callable[[str], object]) -> None:
    plain = [case for _, case in CASES if case.line.isprintable() and not set(case.line) & set('"\\')]
    lines = [case for case in plain if " " in case.line and case.line[0] not in OWN_STARTS]

    wrong = [
        case
        for case in lines
        if [said(row) for row in rows(json.dumps(wrapped(case.line), ensure_ascii=False).encode())]
        != [case._replace(line="")]
    ]

    assert wrong == []
    assert len(lines) > 200


@pytest.mark.parametrize("trainer", LINES)
def test_lines_say_the_same_when_they_follow_each_other(trainer: str) -> None:
    lines = [case.line for case in LINES[trainer]]
    starts = {1 + sum(before.count("\n") + 1 for before in lines[:index]): index for index in range(len(lines))}

    found = {row.line: row for row in rows("\n".join(lines).encode())}

    assert set(found) == set(starts)
    wrong = {
        lines[index]: (said(found[line]), LINES[trainer][index]._replace(line=""))
        for line, index in starts.items()
        if said(found[line]) != LINES[trainer][index]._replace(line="")
    }
    assert wrong == {}


def test_every_trainer_has_lines_of_its_own() -> None:
    assert min(len(cases) for cases in LINES.values()) >= 10


@pytest.mark.parametrize("line", NOTHING)
def test_line_of_something_else_says_nothing(line: str) -> None:
    (row,) = rows(line.encode())

    assert row.kind in (Kind.OTHER, Kind.HEADER)
    assert (row.step, row.loss, row.tok_s, row.rate) == (None, None, None, None)


piece = st.sampled_from([*(case.line for _, case in CASES), *NOTHING, "\r", "\n", "    x=1", ""]) | st.text(max_size=30)


@given(st.lists(piece, max_size=12), st.lists(st.integers(0, 9000), max_size=6))
def test_rows_do_not_depend_on_how_the_bytes_came(pieces: list[str], cuts: list[int]) -> None:
    data = "\n".join(pieces).encode(errors="replace")

    assert rows(data, *cuts) == rows(data)


def test_verdict_names_the_format_and_why() -> None:
    recogniser = Recogniser()
    list(recogniser.feed(b"hello\nstep 1 | loss 2.5 | tok/s 9\nstep 2 | loss 2.5 | tok/s 9\n"))
    list(recogniser.end())

    verdict = recogniser.verdict()

    assert (verdict.format, verdict.lines, verdict.understood, verdict.steps) == ("dflash", 3, 2, 2)
    assert verdict.why == "2 step lines, the first is line 2"


def test_unknown_log_says_so() -> None:
    recogniser = Recogniser()
    list(recogniser.feed(json.dumps({"a": 1}).encode()))
    list(recogniser.end())

    assert recogniser.verdict().format is None
