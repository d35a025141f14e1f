"""Progress lines: every stage once, in the order of the stages, whatever order the proofs come in."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from console.headless.follow import Progress
from console.model import Stage, StageState, StageStatus
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
