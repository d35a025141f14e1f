"""The waiting helpers end at once, in time, and say what they waited for."""

import time

import pytest

from tests.waiting import PATIENCE_S, until, until_async


def test_until_returns_the_first_true_value() -> None:
    values = iter([0, 0, 7])

    assert until(lambda: next(values), timeout_s=PATIENCE_S) == 7


def test_until_names_what_was_not_reached() -> None:
    started = time.monotonic()

    with pytest.raises(AssertionError, match=r"within 0\.05 s: the moon \(last value: None\)"):
        until(lambda: None, timeout_s=0.05, what="the moon")

    assert time.monotonic() - started < PATIENCE_S


async def test_until_async_takes_functions_and_coroutine_functions() -> None:
    async def seven() -> int:
        return 7

    assert await until_async(seven, timeout_s=PATIENCE_S) == 7
    assert await until_async(lambda: 8, timeout_s=PATIENCE_S) == 8


async def test_until_async_gives_up_at_its_deadline() -> None:
    with pytest.raises(AssertionError, match="never"):
        await until_async(lambda: False, timeout_s=0.05, what="never")
