"""When a failed link is tried again, and how soon."""

import random

import pytest

from console.link.retries import delay_s, is_retried
from console.reasons import ConsoleError, Reason


def test_waits_double_to_fifteen_seconds_with_jitter() -> None:
    chance = random.Random(1)

    for attempt, plain in enumerate([0.5, 1, 2, 4, 8, 15, 15, 15], start=1):
        waits = [delay_s(attempt, chance) for _ in range(200)]
        assert min(waits) >= plain * 0.8
        assert max(waits) <= min(15, plain * 1.2)
        assert len(set(waits)) > 20
    assert delay_s(10_000, chance) <= 15


@pytest.mark.parametrize(
    "reason",
    [Reason.LOGIN_REFUSED, Reason.HOST_KEY_UNKNOWN, Reason.HOST_KEY_CHANGED, Reason.PYTHON_MISSING, Reason.CONFIG],
)
def test_what_a_person_must_change_is_not_retried(reason: Reason) -> None:
    assert not is_retried(ConsoleError(reason), has_been_up=True)


@pytest.mark.parametrize("reason", [Reason.LINK_LOST, Reason.LINK_TIMEOUT, Reason.DNS_FAILED, Reason.AGENT_ENDED])
def test_what_may_pass_is_retried(reason: Reason) -> None:
    assert is_retried(ConsoleError(reason), has_been_up=False)


def test_stopped_container_is_retried_only_after_it_has_worked() -> None:
    error = ConsoleError(Reason.CONTAINER_STOPPED)

    assert not is_retried(error, has_been_up=False)
    assert is_retried(error, has_been_up=True)


@pytest.mark.parametrize(("cause", "retried"), [("login_refused", False), ("link_unreachable", True)])
def test_failed_jump_is_judged_by_its_cause(cause: str, retried: bool) -> None:
    assert is_retried(ConsoleError(Reason.JUMP_FAILED, data={"cause": cause}), has_been_up=True) is retried
