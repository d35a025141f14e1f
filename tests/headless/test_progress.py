"""Progress lines: every stage once, in the order of the stages, whatever order the proofs come in."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any, cast

import pytest
from msgspec.structs import replace

from console.engine import Engine
from console.headless.follow import Progress, until_outcome
from console.headless.report import outcome_line
from console.model import ExitStatus, Snapshot, Stage, StageState, StageStatus, Verdict
from tests.ui import fixtures

_DONE = {stage: StageStatus(stage=stage, state=StageState.DONE, evidence="proof", took_s=1.0) for stage in Stage}


def test_contexts_seen_after_the_first_steps_are_told_before_them(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()

    _show(progress, cuda=StageState.UNKNOWN)
    before = _said(capsys)
    _show(progress, cuda=StageState.DONE)

    assert before == ["killing", "cache", "spawned"]
    assert _said(capsys) == ["cuda", "stepping"]


def test_contexts_that_are_never_seen_are_told_as_unknown_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()

    _show(progress, cuda=StageState.UNKNOWN)
    _show(progress, cuda=StageState.UNKNOWN, is_last=True)

    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in lines] == ["killing", "cache", "spawned", "cuda", "stepping"]
    assert "unknown" in lines[3]


def _show(progress: Progress, *, cuda: StageState, is_last: bool = False) -> None:
    stages = _DONE | {Stage.CUDA: StageStatus(stage=Stage.CUDA, state=cuda, have=0, want=2, took_s=1.0)}
    progress.show(replace(fixtures.HEALTHY, stages=tuple(stages.values())), is_last=is_last)


def _said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return re.findall(r"^\d\d:\d\d:\d\d (\w+)", capsys.readouterr().err, re.MULTILINE)


class _Watched:
    """As much of an engine as waiting needs: one that sees the same for ever."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    async def until(self, predicate: Callable[[Snapshot], Any], _deadline: float | None) -> Any:
        return predicate(self.snapshot)


@pytest.mark.parametrize(("is_read", "word", "code"), [(True, "FAILED", 14), (False, "PENDING", 20)])
async def test_run_that_is_over_is_called_failed_only_once_its_log_was_read(
    is_read: bool, word: str, code: int
) -> None:
    stages = tuple((_DONE | {Stage.STEPPING: StageStatus(stage=Stage.STEPPING, state=StageState.FAILED)}).values())
    run = replace(fixtures.RUN, alive=False, exit=ExitStatus(signal=9, at=fixtures.NOW - 60))
    log = replace(fixtures.HEALTHY.log, caught_up=is_read)
    over = replace(fixtures.HEALTHY, verdict=Verdict.FAILED, stages=stages, run=run, log=log)
    watched = cast(Engine, _Watched(over))

    found, judged = await until_outcome(
        watched, "stepping", run_id=run.id, deadline=asyncio.get_running_loop().time(), progress=Progress()
    )

    assert (judged.word, judged.exit_code) == (word, code)
    assert "on_track" not in outcome_line(found, judged)
