"""Logs of other people's launchers and trainers into verdicts: written before the rules were looked at."""

from __future__ import annotations

import pytest

from console.reasons import Reason
from tests.state.failurelogs import Ending
from tests.state.foreignlogs import FAILURES, HEALTHY
from tests.state.healthylogs import Healthy
from tests.state.test_diagnose_logs import explained


@pytest.mark.parametrize("ending", FAILURES, ids=lambda ending: ending.reason)
def test_a_strangers_failure_has_its_reason(ending: Ending) -> None:
    found = explained(ending.log, ending.status, ending.signal)

    assert found.reason == ending.reason, found
    assert found.evidence


@pytest.mark.parametrize("healthy", HEALTHY, ids=range(len(HEALTHY)))
def test_a_strangers_healthy_log_is_never_called_failed(healthy: Healthy) -> None:
    found = explained(healthy.log, healthy.status)

    assert found.reason in ((Reason.COMPLETED,) if healthy.status == 0 else (None, Reason.COMPLETED)), found


def test_a_quota_is_told_from_a_full_disk_though_torch_knows_of_neither() -> None:
    torch = "RuntimeError: [enforce fail at inline_container.cc:815] . PytorchStreamWriter failed writing file data/4\n"

    assert explained(torch, 1).reason is Reason.DISK_FULL
    assert (
        explained(f"{torch}OSError: [Errno 122] Disk quota exceeded: '/home/ann/x.pt'", 1).reason is Reason.DISK_QUOTA
    )


def test_an_early_end_counts_in_the_trainers_own_words_only() -> None:
    steps = "  4%|4         | 118/2904 [09:52<3:52:20,  5.00s/it]\n"

    assert explained(f"{steps}{{'train_runtime': 594.1, 'train_loss': 0.9}}\n", 0).reason is Reason.COMPLETED
    assert explained(f"{steps}Training complete.\n", 0).reason is Reason.INCOMPLETE_EXIT0
