"""Runs of which only a log is left: rows, times, curves, and two of them compared."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from console.engine.logpieces import PLACE_BYTES, PLACES, ranges
from console.history.comparing import compare
from console.history.entry import Entry
from console.history.oldlog import read, row_id, summary
from console.history.samples import Curves
from console.host.logtail import sample_ranges
from console.state.metrics import Parser

WRITTEN = datetime(2026, 8, 20, 14, 34, 6, tzinfo=UTC).timestamp()


def log(rate: float, seed: int, steps: int = 900, *, stamp: str = "[%H:%M:%S]", sd: float = 250.0) -> bytes:
    """Return a log as the demo's trainer writes them: a step every 2 s, the last at the time of the last write."""
    rng = random.Random(seed)
    lines = []
    state = 0.0
    for step in range(1, steps + 1):
        state = 0.5 * state + rng.gauss(0, 0.866)
        at = datetime.fromtimestamp(WRITTEN - 2.0 * (steps - step), UTC)
        lead = f"{at.strftime(stamp)} " if stamp else ""
        value = rate * (0.7 if step < 40 else 1) + sd * state
        loss = 1.1 + 3 * 0.995**step
        lines.append(
            f"{lead}step {step}/60000 | loss {loss:.4f} | acc 0.081 | lr 4.12e-05 | tok/s {value:,.0f}"
            " | hs_queue min_ready=5 max_depth=16"
        )
    return ("\n".join(lines) + "\n").encode()


def of(text: bytes, name: str = "old", pieces: list[tuple[int, bytes]] | None = None) -> tuple[Entry, Curves]:
    steps, checkpoint = read(pieces or [(0, text)], Parser(), 0.0)
    return summary(f"/workspace/train_{name}.log", name, len(text), WRITTEN, steps, checkpoint)


def test_the_row_says_what_the_log_says() -> None:
    row, curves = of(log(21_000, 1))

    assert (row.id, row.name, row.is_log_only) == (row_id("/workspace/train_old.log"), "old", True)
    assert (row.first_step, row.last_step, row.total_steps) == (1, 900, 60_000)
    assert row.steady_tok_s == pytest.approx(21_000, rel=0.005)
    assert row.steady_n == pytest.approx(300, abs=2)
    assert (row.loss_state, row.ended_wall) == ("ok", WRITTEN)
    assert set(curves.digests) == {"tok_s", "loss", "queue"}


@pytest.mark.parametrize("stamp", ["[%H:%M:%S]", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"])
def test_times_are_those_of_the_lines(stamp: str) -> None:
    row, curves = of(log(21_000, 1, stamp=stamp))

    assert row.lived_s == pytest.approx(899 * 2)
    assert row.first_step_wall == pytest.approx(WRITTEN - 899 * 2)
    assert sum(bucket.n for bucket in curves.digests["tok_s"].buckets) == 900


def test_times_of_day_go_on_over_midnights_and_over_what_was_not_read(tmp_path: Path) -> None:
    text = log(21_000, 1, steps=130_000)  # 3 days
    (tmp_path / "log").write_bytes(text)
    ends, between = ranges(len(text))
    assert between is not None
    drawn = zip(*sample_ranges(str(tmp_path / "log"), *between, PLACES, PLACE_BYTES), strict=True)

    row, _ = of(text, pieces=sorted([*((start, text[start:end]) for start, end in ends), *drawn]))

    assert row.lived_s == pytest.approx(129_999 * 2, abs=3)


def test_a_log_without_times_has_rates_and_no_curve() -> None:
    row, curves = of(log(21_000, 1, stamp=""))

    assert (row.lived_s, row.first_step_wall, curves.digests) == (None, None, {})
    assert row.steady_tok_s == pytest.approx(21_000, rel=0.005)
    assert (row.steady_n, len(curves.steady.rates)) == (300, 300)


def test_a_log_without_any_step_is_a_row_without_figures() -> None:
    row, curves = of(b"loading model\nTraceback (most recent call last):\nValueError: no\n")

    assert (row.stepped, row.last_step, row.steady_tok_s, row.last_loss, row.loss_state) == (
        False,
        None,
        None,
        None,
        None,
    )
    assert curves == Curves()


def test_two_logs_compare_as_two_runs_do() -> None:
    found = compare(of(log(21_035 * 1.021, 3), "a"), of(log(21_035, 4), "b"))

    assert found.rate is not None
    assert found.rate.delta_pct == pytest.approx(2.1, abs=0.4)
    assert found.rate.significant is True
    assert found.loss is not None
    assert found.loss.delta == pytest.approx(0, abs=0.01)
    assert found.tokens is not None
    assert found.tokens.delta_pct == pytest.approx(2.1, abs=0.4)
    assert found.changes is None


def test_half_a_percent_within_the_noise_of_two_logs_is_said_to_be_so() -> None:
    found = compare(of(log(21_035 * 1.005, 3, sd=1500), "a"), of(log(21_035, 4, sd=1500), "b"))

    assert found.rate is not None
    assert found.rate.significant is False


def test_each_launch_within_one_log_warms_up_anew() -> None:
    again = log(21_000, 4, steps=300, stamp="%Y-%m-%d %H:%M:%S")  # its first 39 steps are slow
    first = again.replace(b"2026-08-20", b"2026-08-19")

    (row, _), (once, _) = of(first + again), of(again)

    assert (row.steady_tok_s, row.steady_n) == (once.steady_tok_s, once.steady_n)


def test_rates_that_count_different_tokens_are_not_set_against_each_other() -> None:
    titan = log(21_000, 3).replace(b"tok/s ", b"tps: ").replace(b" | ", b"  ").replace(b"loss ", b"loss: ")
    titan = b"".join(
        b"[titan] " + line.replace(b"step ", b"step: ").replace(b"/60000", b"") for line in titan.splitlines(True)
    )

    found = compare(of(titan, "a"), of(log(21_035, 4), "b"))

    assert found.a.scope == "per_device"
    assert (found.rate, found.tokens) == (None, None)
    assert found.unlike == "A counts the tokens of one GPU, B of all GPUs"
    assert found.loss is not None
