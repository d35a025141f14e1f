"""Expressions that somebody typed, matched within bounds: none of them, however it is written, holds the console up.

`(a+)+$` and a line of forty letters keep Python's matcher busy for years, and whether an expression does that shows
only on a line. So a timer of CPU time runs along: the matcher looks for signals, and one ends it. That works on the
main thread alone; elsewhere nothing is bounded.
"""

from __future__ import annotations

import math
import re
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import TypeVar

from console.state.formatrules import Format, Lazy
from console.state.logquery import Query

T = TypeVar("T")

TYPED_S, TYPED_SHARE = 0.5, 0.25
"""Of a search or a filter: it works on what is on the screen and some thousand lines around that."""
FORMAT_S, FORMAT_SHARE = 0.25, 0.25
"""Of a format in the config: it is tried on every line that is read."""
_STRIKES = 3
_LEAST_S = 0.005
"""A timer of the kernel's clock ticks is no finer."""


class TooSlow(Exception):
    """An expression took more time than it may."""


class Bounded:
    """An expression that may take `allowance_s` of CPU time at once, and a share of all time in the long run."""

    def __init__(self, pattern: re.Pattern[str], allowance_s: float = TYPED_S, share: float = TYPED_SHARE) -> None:
        self._pattern, self._allowance_s, self._share = pattern, allowance_s, share
        self._left_s, self._counted_at = allowance_s, time.monotonic()

    def search(self, text: str, start: int = 0) -> re.Match[str] | None:
        """As of a pattern. Raises: TooSlow."""
        return self._within(lambda: self._pattern.search(text, start))

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        """As of a pattern. Raises: TooSlow."""
        return self._within(lambda: self._pattern.match(text, start))

    def findall(self, text: str) -> list[re.Match[str]]:
        """Return what `finditer` would yield. Raises: TooSlow."""
        return self._within(lambda: list(self._pattern.finditer(text)))

    def refill(self) -> None:
        """Let it begin anew."""
        self._left_s, self._counted_at = self._allowance_s, time.monotonic()

    def _within(self, work: Callable[[], T]) -> T:
        if self._allowance_s == math.inf:
            return work()
        now = time.monotonic()
        self._left_s = min(self._allowance_s, self._left_s + (now - self._counted_at) * self._share)
        self._counted_at = now
        if self._left_s < _LEAST_S:
            raise TooSlow
        if threading.current_thread() is not threading.main_thread():
            return work()
        if signal.getsignal(signal.SIGVTALRM) is not _end:
            signal.signal(signal.SIGVTALRM, _end)
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, self._left_s)
            found = work()
            self._left_s = signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)[0]
        except TooSlow:
            self._left_s = 0.0
            raise
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        return found


def _end(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def bounded(query: Query) -> Bounded:
    """Return what finds a query in a line; a plain text has no bounds, and needs none."""
    return Bounded(query.pattern(), math.inf if query.literal else TYPED_S)


# -- formats of one's own ---------------------------------------------------------------------------------------------


class BoundedHead(Lazy):
    """The head of a rule that somebody wrote: a line on which it takes too long is not read by it, and after some of
    them none is any more."""

    __slots__ = ("_bound", "strikes")

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.strikes = 0
        self._bound: Bounded | None = None
        self.match = lambda text, start: self._try(lambda bound: bound.match(text, start))
        self.search = lambda text, start: self._try(lambda bound: bound.search(text, start))

    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.source)

    @property
    def is_given_up(self) -> bool:
        return self.strikes >= _STRIKES

    def _try(self, look: Callable[[Bounded], re.Match[str] | None]) -> re.Match[str] | None:
        if self.is_given_up:
            return None
        if self._bound is None:
            self._bound = Bounded(self.compiled(), FORMAT_S, FORMAT_SHARE)
        try:
            return look(self._bound)
        except TooSlow:
            self.strikes += 1
            self._bound.refill()
            return None


def bounded_format(fmt: Format) -> Format:
    """Return a format whose rules are tried within bounds."""
    rules = tuple(replace(rule, head=BoundedHead(rule.head.source)) for rule in fmt.rules)
    return replace(fmt, rules=rules)


def given_up(fmt: Format) -> str | None:
    """Return the expression of a rule that was given up, where there is one."""
    heads = (rule.head for rule in fmt.rules if isinstance(rule.head, BoundedHead))
    return next((head.source for head in heads if head.is_given_up), None)
