"""Waiting on a condition with a deadline: what tests use where others would sleep."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")

PATIENCE_S = 60.0
"""What comes true within milliseconds here may take seconds where three workers share two busy cores."""

# 10 ms: short beside every budget that a test measures, long enough to leave a shared core to the process waited for.
_POLL_S = 0.01


def until(predicate: Callable[[], T], timeout_s: float = PATIENCE_S, what: str = "") -> T:
    """Call `predicate` until it returns something true, and return that.

    Raises: AssertionError naming `what` and the last value when `timeout_s` has passed.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(_complaint(predicate, timeout_s, what, value))
        time.sleep(_POLL_S)


@overload
async def until_async(predicate: Callable[[], Awaitable[T]], timeout_s: float = PATIENCE_S, what: str = "") -> T: ...
@overload
async def until_async(predicate: Callable[[], T], timeout_s: float = PATIENCE_S, what: str = "") -> T: ...
async def until_async(predicate: Callable[[], Any], timeout_s: float = PATIENCE_S, what: str = "") -> Any:
    """Do as `until` does without blocking the event loop; `predicate` may be a coroutine function.

    Raises: AssertionError naming `what` and the last value when `timeout_s` has passed.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        outcome = predicate()
        value = await outcome if isinstance(outcome, Awaitable) else outcome
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(_complaint(predicate, timeout_s, what, value))
        await asyncio.sleep(_POLL_S)


def _complaint(predicate: object, timeout_s: float, what: str, value: object) -> str:
    subject = what or getattr(predicate, "__qualname__", repr(predicate))
    return f"not reached within {timeout_s:g} s: {subject} (last value: {value!r})"
