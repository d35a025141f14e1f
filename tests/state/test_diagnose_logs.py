"""Whole logs into verdicts: every reason in several wordings, and healthy logs that frighten."""

from __future__ import annotations

from collections import Counter

import pytest

from console.headless.explain import ended_from
from console.reasons import Reason
from console.state.judging import Ended
from console.state.postmortem import Finding, Piece, examine
from tests.state.failurelogs import ENDINGS, Ending
from tests.state.healthylogs import HEALTHY, Healthy

STEP = "step {n} | loss {loss} | tok/s 20,000 | min_ready={ready} max_depth=16\n"
BY_THE_WAY = frozenset({Reason.RUNNING_OK, Reason.EXIT_WITHOUT_STEP})
"""What no log alone can show."""


def explained(log: str | bytes, status: int | None = None, signal: str | None = None) -> Finding:
    data = log if isinstance(log, bytes) else log.encode("utf-8", "surrogateescape")
    return examine([Piece(0, data)], ended_from(status, signal))


def steps(*losses: object, ready: int = 4) -> str:
    return "".join(STEP.format(n=10 * (at + 1), loss=loss, ready=ready) for at, loss in enumerate(losses))


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.reason)
def test_an_ending_has_its_reason(ending: Ending) -> None:
    found = explained(ending.log, ending.status, ending.signal)

    assert found.reason == ending.reason, found
    assert found.evidence or not ending.log.strip()


@pytest.mark.parametrize("healthy", HEALTHY, ids=range(len(HEALTHY)))
def test_a_healthy_log_is_never_called_failed(healthy: Healthy) -> None:
    found = explained(healthy.log, healthy.status)

    assert found.reason in ((Reason.COMPLETED,) if healthy.status == 0 else (None, Reason.COMPLETED)), found


def test_there_are_enough_of_them() -> None:
    counted = Counter(ending.reason for ending in ENDINGS)

    assert min(counted.values()) >= 2
    assert len(HEALTHY) >= 60


def test_the_same_in_windows_line_ends_colours_and_a_rank_before_each_line() -> None:
    stack = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
    log = f"{stack}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."

    for dressed in (
        log.replace("\n", "\r\n"),
        "\n".join(f"\x1b[31m{line}\x1b[0m" for line in log.split("\n")),
        "\n".join(f"[rank3]: {line}" for line in log.split("\n")),
        "\n".join(f"(Actor pid=1) {line}" for line in log.split("\n")),
        "\n".join(f"Feb 14 02:11:09 gpu7 go.sh[7]: {line}" for line in log.split("\n")),
        "\n".join(f"2026-02-14T02:11:09.1Z stderr F {line}" for line in log.split("\n")),
    ):
        assert explained(dressed, 1).reason is Reason.CUDA_OOM, dressed


# -- status and signal ------------------------------------------------------------------------------------------------


def test_status_alone_proves_little() -> None:
    assert explained("", 1).reason is Reason.EXIT_STATUS
    assert explained(steps(1.2, 1.1), 0).reason is Reason.INCOMPLETE_EXIT0
    assert explained(steps(1.2, 1.1)).reason is None


def test_what_the_kernel_counted_is_evidence_and_a_bare_killed_is_none() -> None:
    piece = [Piece(0, b"step 1 | loss 1.0 | tok/s 9\nKilled\n")]

    assert examine(piece, Ended(code=137)).reason is Reason.SIGKILL_UNKNOWN
    assert examine(piece, Ended(code=137, oom="proven")).reason is Reason.CGROUP_OOM
    assert examine(piece, Ended(code=137, oom="likely")).reason is Reason.HOST_OOM


def test_kernels_line_about_another_program_is_none_of_ours_unless_ours_was_killed() -> None:
    log = f"{steps(1.2, 1.1)}[81.1] Out of memory: Killed process 71 (chrome) total-vm:1kB\n"

    assert explained(log).reason is None
    assert explained(log, 137).reason is Reason.HOST_OOM


def test_done_line_and_error_behind_it_is_no_completion() -> None:
    done = f"{steps(1.2, 1.1)}Training complete.\n"

    assert explained(done, 0).reason is Reason.COMPLETED
    assert (
        explained(f"{done}OSError: [Errno 28] No space left on device: '/ckpt/final.pt'", 0).reason is Reason.DISK_FULL
    )
    assert explained(done, 1).reason is Reason.EXIT_STATUS


def test_end_of_an_epoch_is_no_end_of_the_training() -> None:
    assert explained(f"{steps(1.2, 1.1)}Training epoch 1 finished\n", 0).reason is Reason.INCOMPLETE_EXIT0


# -- figures ----------------------------------------------------------------------------------------------------------


def test_nan_that_passed_is_none() -> None:
    assert explained(steps(1.2, "nan", 1.1)).reason is None
    assert explained(steps(1.2, "nan", "nan")).reason is Reason.NAN_LOSS
    assert "since step 20" in explained(steps(1.2, "nan", "nan")).detail


def test_spike_that_recovered_is_none() -> None:
    assert explained(steps(1.5, 1.5, 1.5, 4.9, 4.8, 4.7)).reason is Reason.LOSS_SPIKE
    assert explained(steps(1.5, 1.5, 1.5, 4.9, 3.1, 1.6, 1.5)).reason is None
    assert explained(steps(11.0, 9.0, 7.0, 5.0, 4.0, 3.5)).reason is None
    assert explained(steps(0.3, 1.2, 0.2, 0.9, 1.4, 0.4, 1.3)).reason is None


def test_queue_that_fills_again_is_none() -> None:
    assert explained(steps(*[1.2] * 6, ready=0)).reason is Reason.QUEUE_STARVED
    assert explained(steps(*[1.2] * 6, ready=0) + steps(1.2, ready=3)).reason is None
    assert explained(steps(1.2, 1.2, ready=0)).reason is None


def test_download_that_moves_is_none() -> None:
    bar = "model.safetensors:  40%|####      | {have}/5.00G [{spent}<01:30, {rate}]"

    assert explained(bar.format(have="2.00G", spent="01:00", rate="33.3MB/s")).reason is None
    assert explained(bar.format(have="2.00G", spent="05:00", rate="0.00B/s")).reason is Reason.DOWNLOAD_STALL
    assert explained(bar.format(have="5.00G", spent="05:00", rate="0.00B/s")).reason is None
    assert explained(bar.format(have="0.00", spent="00:00", rate="?B/s")).reason is None


# -- bytes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [b"", b"\n\n", b"\x00" * 4096, bytes(range(256)) * 20, b"\xe2\x96", b"\r" * 999, b"x" * 3_000_000],
    ids=range(7),
)
def test_any_bytes_are_read(data: bytes) -> None:
    assert explained(data).reason is None
    assert explained(data + b"\nKilled\n", 137).reason is Reason.SIGKILL_UNKNOWN
