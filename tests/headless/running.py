"""Calling the command line as a script would, within the test's process: one import instead of one per call."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar

import pytest
from msgspec.structs import replace

from console import cli, configwriter
from console.demo.host import NAME, DemoHost
from console.engine import requests
from console.headless import follow
from console.model import Snapshot
from tests.waiting import until

D = TypeVar("D", bound="Said")

_AT_LATEST_S = 60.0


@dataclass(frozen=True, slots=True)
class Done:
    """What a call gave back."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout."""
        lines = self.out.splitlines()
        assert len(lines) == 1, self.out
        answer: dict[str, Any] = json.loads(lines[0])
        return answer


def call(*words: str) -> Done:
    """Run the command line to its end."""
    out, err = io.StringIO(), io.StringIO()
    code: object = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main(list(words))
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return Done(int(code), out.getvalue(), err.getvalue())


def examined(doctor: Callable[[], D]) -> D:
    """Return what `doctor` says once none of its facts was given up for taking long: a busy machine may do that."""
    said: list[D] = []

    def is_answered() -> bool:
        said.append(doctor())
        return "no answer in" not in said[-1].out

    until(is_answered, 60.0, "answers to all that doctor asks")
    return said[-1]


class Said(Protocol):
    """What a call of the command line has printed."""

    @property
    def out(self) -> str: ...


class Console:
    """The command line, pointed at one demo host."""

    def __init__(self, host: DemoHost, **changes: Any) -> None:
        self.host = host
        self.config = host.folder / "config.toml"
        self.config.write_text(configwriter.render_whole(NAME, replace(host.target, **changes)))

    def __call__(self, command: str, *words: str) -> Done:
        return call(command, "--config", str(self.config), *words)

    def restart(self, *words: str) -> Done:
        """Start a fresh run and return what came of it."""
        return self("restart", "--yes", "--timeout", "90s", *words)

    def stepping(self) -> dict[str, Any]:
        """Return the status of a run that steps: that which is there, for a test to which any run will do."""
        there = self("status", "--json").json
        if there["verdict"] != "stepping":
            started = self.restart("--json")
            assert started.code == 0, started
            there = self("status", "--json").json
        return there

    def free(self) -> None:
        """End what runs, so that the next test begins with nothing."""
        self.host.inject("none")
        stopped = self("stop", "--yes", "--timeout", "90s")
        assert stopped.code in (0, 5), stopped


class Due(float):
    """A moment of the loop's time that has come once `has_come` says so, and by the clock at the latest."""

    _has_come: Callable[[], bool]

    @classmethod
    def when(cls, has_come: Callable[[], bool]) -> Due:
        found = cls(asyncio.get_running_loop().time() + _AT_LATEST_S)
        found._has_come = has_come
        return found

    def __sub__(self, now: float, /) -> float:
        return -math.inf if self._has_come() else float(self) - now

    def __le__(self, now: float, /) -> bool:
        return self._has_come() or float(self) <= now


@contextlib.contextmanager
def time_is_up_when(command: ModuleType, has_come: Callable[[], bool]) -> Iterator[None]:
    """Let the timeout of a command's module pass at that moment: no guess at how long a busy machine takes till then.

    Those of the lab's tests pass by the clock.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "deadline_after", lambda timeout_s: None if timeout_s is None else Due.when(has_come))
        yield


@contextlib.contextmanager
def time_is_up_once_judged(command: ModuleType, holds: Callable[[Snapshot], bool] = bool) -> Iterator[None]:
    """Let it pass when the command has judged a snapshot of which that holds, while it waits for an outcome."""
    judged, judge = [], follow.judge

    def noted(snapshot: Snapshot, *arguments: Any, **options: Any) -> Any:
        judged.append(snapshot)
        return judge(snapshot, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch, time_is_up_when(command, lambda: any(map(holds, judged[-1:]))):
        patch.setattr(follow, "judge", noted)
        yield


def printed() -> str:
    """Return what the call under way has printed by now."""
    assert isinstance(sys.stdout, io.StringIO)
    return sys.stdout.getvalue()


def prove_starts_at(age_s: float, patch: pytest.MonkeyPatch) -> None:
    """Instead of after a second: on a busy machine what ends within one, or lives for longer, does so by chance."""
    made = requests.run_spec
    patch.setattr(requests, "run_spec", lambda *known: replace(made(*known), start_s=age_s))


def fast_host(folder: Path) -> DemoHost:
    """Return a host whose run steps a second or two after its start, and then eight times a second."""
    return DemoHost(folder, speed=8.0, load_s=6.0)
